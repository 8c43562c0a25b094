//! From the command line to a plan. Nothing is started here.

use std::path::Path;

use dsh_core::{Composition, Plan, PluginEntry};
use serde_json::Value;

use crate::{
    failure::Failure,
    plugins::{BASE, FRONT_ENDS, MODEL_OPENAI, MODEL_SCRIPT, VOCABULARY},
};

/// The composition that runs unless the user names another, so that the binary runs anywhere.
const DEFAULT: &str = include_str!("../../../compositions/terminal.yml");
const DEFAULT_NAME: &str = "compositions/terminal.yml (built in)";

/// Reads the user's composition, or the built-in one.
pub(crate) fn load(file: Option<&Path>) -> Result<Composition, Failure> {
    let parsed = match file {
        None => Composition::parse(DEFAULT_NAME, DEFAULT, &VOCABULARY),
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| {
                let hint = if error.kind() == std::io::ErrorKind::InvalidData {
                    "a composition is a YAML text in UTF-8"
                } else {
                    "give --composition the path of a YAML file; without it the built-in one runs"
                };
                Failure::user(format!("cannot read the composition {name}: {error}"), hint)
            })?;
            Composition::parse(&name, &text, &VOCABULARY)
        }
    };
    parsed.map_err(|error| Failure::user(error.to_string(), ""))
}

/// Makes `which` the front end that runs: with the row of the file or one of its own. The rows of
/// all others stay idle.
pub(crate) fn front_end(composition: Composition, which: &'static str) -> Composition {
    let others: Vec<&str> = FRONT_ENDS.into_iter().filter(|it| *it != which).collect();
    composition.with_front_end(which, &others)
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

/// Checks everything that can be checked before a start.
pub(crate) fn plan(composition: Composition) -> Result<Plan, Failure> {
    let linked = PluginEntry::linked();
    let composition = composition.with_base(&BASE, &linked);
    Plan::resolve(&composition, &linked).map_err(|error| Failure::user(error.to_string(), ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::{AGENT_LOOP, MCP};

    fn running(composition: Composition) -> Vec<&'static str> {
        let plan = plan(composition).unwrap();
        let order = plan.order();
        let watched = FRONT_ENDS.into_iter().chain([MODEL_OPENAI, MODEL_SCRIPT]);
        watched.filter(|it| order.contains(it)).collect()
    }

    #[test]
    fn the_default_composition_is_sound() {
        let plan = plan(load(None).unwrap()).unwrap();
        assert!(plan.order().contains(&"tool-terminal"), "{plan:?}");
    }

    #[test]
    fn one_front_end_and_its_model_run() {
        let rows = "- name: web\n- name: agent-loop\n- name: mcp\n- name: model-openai\n  disabled: true\n";
        let rows = Composition::parse("c.yml", rows, &VOCABULARY).unwrap();
        for file in [load(None).unwrap(), rows] {
            assert_eq!(running(front_end(file.clone(), MCP)), [MCP]);
            assert_eq!(running(without_front_end(file.clone())), [""; 0]);
            let demo = scripted(front_end(file, AGENT_LOOP), Value::Array(Vec::new()));
            assert_eq!(running(demo), [AGENT_LOOP, MODEL_SCRIPT]);
        }
    }
}
