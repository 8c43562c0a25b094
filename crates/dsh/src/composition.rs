//! From the command line to a plan. Nothing is started here.

use std::path::Path;

use dsh_core::{Composition, Plan, PluginEntry};

use crate::{
    failure::Failure,
    plugins::{BASE, FRONT_ENDS, VOCABULARY},
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

/// Checks everything that can be checked before a start.
pub(crate) fn plan(composition: Composition) -> Result<Plan, Failure> {
    let linked = PluginEntry::linked();
    let composition = composition.with_base(&BASE, &linked);
    Plan::resolve(&composition, &linked).map_err(|error| Failure::user(error.to_string(), ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::{DEMO, MCP};

    #[test]
    fn the_default_composition_is_sound() {
        let plan = plan(load(None).unwrap()).unwrap();
        assert!(plan.order().contains(&"tool-terminal"), "{plan:?}");
    }

    #[test]
    fn one_front_end_runs() {
        let rows = "- name: web\n- name: agent-loop\n- name: mcp\n- name: demo\n";
        let rows = Composition::parse("c.yml", rows, &VOCABULARY).unwrap();
        for file in [load(None).unwrap(), rows] {
            for which in [MCP, DEMO] {
                let plan = plan(front_end(file.clone(), which)).unwrap();
                let order = plan.order();
                let running: Vec<_> = order.iter().filter(|it| FRONT_ENDS.contains(it)).collect();
                assert_eq!(running, [&which]);
            }
        }
    }
}
