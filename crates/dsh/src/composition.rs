//! From the command line to a plan. Nothing is started here.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use dsh_core::{Composition, Overlay, Plan, PluginEntry, problem::Problem};
use serde_json::Value;

use crate::{
    cli::{CompositionArgs, Patches},
    failure::Failure,
    plugins::{
        AGENT_LOOP, BASE, FRONT_ENDS, MCP, MODEL_OPENAI, MODEL_SCRIPT, OTHER_SANDBOX, SANDBOX,
        SANDBOX_POLICY, VOCABULARY, WEB,
    },
};

/// The composition that runs unless the user names another, so that the binary runs anywhere.
const DEFAULT: &str = include_str!("../terminal.yml");
const DEFAULT_NAME: &str = "compositions/terminal.yml (built in)";

/// The layers of a run: the base, the user's composition or the built-in one, what `rows` adds to it,
/// `$DSH_HOME/patch.yml` and the overlays of the command line.
///
/// `rows` must be no different when applied twice: overlays find its rows, and do not undo them.
pub(crate) fn compose(
    args: &CompositionArgs,
    rows: impl Fn(Composition) -> Composition,
) -> Result<Composition, Failure> {
    let linked = PluginEntry::linked();
    let mut composition = rows(load(args.file.as_deref())?).with_base(&BASE, &linked);
    let chosen = composition.rows().iter().any(|it| it.plugin == OTHER_SANDBOX);
    if args.sandbox.is_some() && !chosen {
        composition = composition.with_base(&[SANDBOX], &linked);
    }
    // An overlay of the home is for all commands, and not each has every one of these rows.
    let absent: Vec<&str> = FRONT_ENDS.into_iter().chain([MODEL_OPENAI, MODEL_SCRIPT]).collect();
    for overlay in overlays(&args.patches)? {
        composition = composition.with_overlay(overlay, &absent);
    }
    if let Some(mode) = &args.sandbox {
        composition = composition.with_config(SANDBOX_POLICY, "mode", mode.as_str());
    }
    Ok(rows(composition))
}

fn load(file: Option<&Path>) -> Result<Composition, Failure> {
    let parsed = match file {
        None => Composition::parse(DEFAULT_NAME, DEFAULT, &VOCABULARY),
        Some(path) => {
            let hint = "give the path of a YAML file; `dsh mcp` and `dsh run` need none";
            let text = read("composition", path, hint)?;
            Composition::parse(&path.display().to_string(), &text, &VOCABULARY)
        }
    };
    parsed.map_err(|error| Failure::user(error.to_string(), ""))
}

/// The overlays in the order in which they apply.
fn overlays(patches: &Patches) -> Result<Vec<Overlay>, Failure> {
    let of_home = home_patch(patches);
    let given = patches.files.iter().map(|path| (path, "give --patch the path of a YAML file", ""));
    let files = of_home.iter().map(|path| (path, WITHOUT_HOME_PATCH, WITHOUT_HOME_PATCH));
    let parsed = files.chain(given).map(|(path, unread, wrong)| {
        let text = read("overlay", path, unread)?;
        let overlay = Overlay::parse(&path.display().to_string(), &text, &VOCABULARY);
        overlay.map_err(|error| Failure::user(error.to_string(), wrong))
    });
    parsed.collect()
}

/// What to do about an overlay that the user did not name.
const WITHOUT_HOME_PATCH: &str =
    "this overlay applies to every run: mend it, or leave it out with --no-home-patch";

/// The overlay of the home, if it is to be applied.
fn home_patch(patches: &Patches) -> Option<PathBuf> {
    let home = dsh_core::home::folder(None).ok().filter(|_| !patches.no_home_patch)?;
    Some(home.join("patch.yml")).filter(|it| it.exists())
}

/// What is wrong with a composition and its overlays.
fn refused(patches: &Patches, message: String, problems: &[Problem]) -> Failure {
    let of_home = home_patch(patches).map(|it| it.display().to_string());
    let there = |it: &Problem| of_home.as_deref() == Some(&*it.place.origin);
    Failure::user(message, if problems.iter().any(there) { WITHOUT_HOME_PATCH } else { "" })
}

fn read(what: &str, path: &Path, hint: &str) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        let not_text = error.kind() == std::io::ErrorKind::InvalidData;
        let hint = if not_text { "it must be a YAML text in UTF-8" } else { hint };
        Failure::user(format!("cannot read the {what} {}: {error}", path.display()), hint)
    })
}

/// Makes `which` the front end that runs: with the row of the file or one of its own. The rows of
/// all others stay idle, but that of MCP beside the page.
pub(crate) fn front_end(composition: Composition, which: &'static str) -> Composition {
    let others: Vec<&str> = FRONT_ENDS.into_iter().filter(|it| *it != which).collect();
    let composition = composition.with_front_end(which, &others);
    if which == WEB { composition.with_front_end(MCP, &[]) } else { composition }
}

/// Makes a script the model, and the rows of real models idle.
pub(crate) fn scripted(composition: Composition, steps: Value) -> Composition {
    composition.with_front_end(MODEL_SCRIPT, &[MODEL_OPENAI]).with_config(
        MODEL_SCRIPT,
        "steps",
        steps,
    )
}

/// Adds the model of this host unless the composition has one.
pub(crate) fn with_model(composition: Composition) -> Composition {
    composition.with_base(&[MODEL_OPENAI], &PluginEntry::linked())
}

/// For a host that only shows something: no front end runs.
pub(crate) fn without_front_end(composition: Composition) -> Composition {
    composition.with_idle(&FRONT_ENDS)
}

/// Checks everything that can be checked before a start. None where the user only wants to see the
/// composition, which is then printed.
pub(crate) fn plan(
    args: &CompositionArgs,
    composition: &Composition,
) -> Result<Option<Plan>, Failure> {
    let linked = PluginEntry::linked();
    let plan = Plan::resolve(composition, &linked);
    let plan = plan.map_err(|error| refused(&args.patches, error.to_string(), &error.problems))?;
    if args.dump_config {
        let mut out = std::io::stdout();
        out.write_all(composition.dump(&linked).as_bytes()).context("cannot print")?;
        return Ok(None);
    }
    Ok(Some(plan))
}

/// All that is wrong with a composition, whichever front end runs it; else the rows that it has.
pub(crate) fn check(args: &CompositionArgs) -> Result<Vec<String>, Failure> {
    let linked = PluginEntry::linked();
    let mut problems: Vec<Problem> = Vec::new();
    let rows = |which| {
        move |it| {
            if which == AGENT_LOOP {
                with_model(front_end(it, which))
            } else {
                front_end(it, which)
            }
        }
    };
    for which in FRONT_ENDS {
        if let Err(error) = Plan::resolve(&compose(args, rows(which))?, &linked) {
            for found in error.problems {
                // Which rows there are, and so what a hint names, is the front end's.
                let says = |it: &Problem| (it.place.clone(), it.fault.to_string());
                if !problems.iter().any(|it| says(it) == says(&found)) {
                    problems.push(found);
                }
            }
        }
    }
    if problems.is_empty() {
        let composition = compose(args, without_front_end)?;
        return Ok(composition.rows().iter().map(|row| row.id.clone()).collect());
    }
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    Err(refused(&args.patches, lines.join("\n"), &problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(rows: &str, add: impl Fn(Composition) -> Composition) -> Vec<&'static str> {
        let rows = Composition::parse("c.yml", rows, &VOCABULARY).unwrap();
        let linked = PluginEntry::linked();
        let plan = Plan::resolve(&add(rows).with_base(&BASE, &linked), &linked).unwrap();
        let order = plan.order();
        let watched = FRONT_ENDS.into_iter().chain([MODEL_OPENAI, MODEL_SCRIPT, "tool-terminal"]);
        watched.filter(|it| order.contains(it)).collect()
    }

    #[test]
    fn one_front_end_and_its_model_run() {
        let rows = "- name: web\n- name: terminal\n- name: agent-loop\n- name: mcp\n- name: model-openai\n  disabled: true\n";
        let demo = |it| scripted(front_end(it, AGENT_LOOP), Value::Array(Vec::new()));
        assert_eq!(running(rows, |it| front_end(it, MCP)), [MCP]);
        assert_eq!(running(rows, |it| front_end(it, WEB)), [MCP, WEB]);
        assert_eq!(running(rows, without_front_end), [""; 0]);
        assert_eq!(running(rows, demo), [AGENT_LOOP, MODEL_SCRIPT]);
        assert_eq!(running(rows, |it| demo(demo(it))), [AGENT_LOOP, MODEL_SCRIPT]);
        assert_eq!(running(DEFAULT, |it| front_end(it, MCP)), [MCP, "tool-terminal"]);
        assert_eq!(running(DEFAULT, demo), [AGENT_LOOP, MODEL_SCRIPT, "tool-terminal"]);
    }
}
