//! Overlays: small changes of a composition from a file of their own.
//!
//! An overlay is a YAML list of items, each about the row with its `id`:
//!
//! ```yaml
//! - id: terminal-bash            # replaces the whole configuration
//!   config: { rows: 50 }
//! - id: tool-jobs                # turns a row off, or on with false
//!   disabled: true
//! - insert: after                # adds a row before or after another one
//!   id: terminal-bash
//!   row: { name: terminal-bash, id: wide, config: { backendType: wide, cols: 250 } }
//! ```
//!
//! Guarantees: [`Overlay::parse`] fails alone on what is not a YAML list; everything else is reported
//! by [`Plan::resolve`](crate::Plan::resolve), each with the line of its item. A file without items
//! changes nothing.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    composition::{Config, ParseError, Row, RowState, Vocabulary, text, yaml_list},
    problem::{Fault, Place, Problem},
    yaml::{Kind, Node},
};

/// A parsed overlay.
#[derive(Debug, Clone)]
pub struct Overlay {
    pub(crate) items: Vec<Item>,
    /// Items that are none.
    pub(crate) problems: Vec<Problem>,
}

/// One change.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) place: Place,
    /// Id of the row that it is about.
    pub(crate) target: String,
    pub(crate) change: Change,
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Row { config: Option<Config>, state: Option<RowState> },
    InsertBefore(Box<Row>),
    InsertAfter(Box<Row>),
}

impl Overlay {
    /// Parses YAML. `origin` names the file in every message about it.
    pub fn parse(origin: &str, text: &str, vocabulary: &Vocabulary) -> Result<Self, ParseError> {
        let origin: Arc<str> = origin.into();
        let root = yaml_list(&origin, text)?;
        let nodes = match root.kind {
            Kind::List(nodes) => nodes,
            Kind::Scalar(Value::Null) => Vec::new(),
            Kind::Scalar(_) | Kind::Map(_) => {
                let message = format!(
                    "an overlay is a list of changes, not {}; write items such as `- id: terminal-bash`",
                    root.describe()
                );
                return Err(ParseError { place: Place { origin, line: Some(root.line) }, message });
            }
        };
        let mut overlay = Self { items: Vec::new(), problems: Vec::new() };
        for node in nodes {
            let place = Place { origin: Arc::clone(&origin), line: Some(node.line) };
            match read(&place, node, vocabulary) {
                Ok((target, change)) => overlay.items.push(Item { place, target, change }),
                Err(faults) => overlay.problems.extend(
                    faults.into_iter().map(|fault| Problem { place: place.clone(), fault }),
                ),
            }
        }
        Ok(overlay)
    }
}

/// The target and the change that an item asks for, or all that is wrong with it.
fn read(
    place: &Place,
    node: Node,
    vocabulary: &Vocabulary,
) -> Result<(String, Change), Vec<Fault>> {
    let wrong = |message: String| Fault::Item { message };
    if let Some(tag) = node.foreign_tag() {
        return Err(vec![Fault::Tag { path: "item".to_owned(), tag }]);
    }
    let found = node.describe();
    let Kind::Map(entries) = node.kind else {
        return Err(vec![wrong(format!("an item is a mapping with an `id`, not {found}"))]);
    };
    let (mut target, mut config, mut state, mut before, mut row) = (None, None, None, None, None);
    let mut faults = Vec::new();
    for (key, value) in entries {
        if let Some(tag) = value.foreign_tag() {
            faults.push(Fault::Tag { path: key, tag });
            continue;
        }
        let read = match key.as_str() {
            "id" => text("id", &value).map(|it| target = Some(it)),
            "config" => Config::read(place.clone(), value).map(|it| config = Some(it)),
            "disabled" => RowState::read(&value).map(|it| state = Some(it)),
            "insert" => match text("insert", &value).as_deref() {
                Ok("before") => Ok(true),
                Ok("after") => Ok(false),
                _ => Err(format!("`insert` is {}, but must be before or after", value.describe())),
            }
            .map(|it| before = Some(it)),
            "row" => {
                row = Some(Row::read(place.clone(), value, vocabulary));
                Ok(())
            }
            _ => Err(format!("an item has no key `{key}`")),
        };
        faults.extend(read.err().map(wrong));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let change = match (before, row, config, state) {
        (None, None, None, None) => Err("the item changes nothing"),
        (None, None, config, state) => Ok(Change::Row { config, state }),
        (Some(true), Some(row), None, None) => Ok(Change::InsertBefore(Box::new(row))),
        (Some(false), Some(row), None, None) => Ok(Change::InsertAfter(Box::new(row))),
        (Some(_), None, ..) => Err("`insert` without the `row` to insert"),
        (None, Some(_), ..) => Err("a `row` without `insert: before` or `insert: after`"),
        _ => Err("`insert` and a change of the row that is there in one item; write two"),
    };
    match (target, change) {
        (Some(target), Ok(change)) => Ok((target, change)),
        (None, Err(change)) => {
            Err(vec![wrong("the item has no `id`".to_owned()), wrong(change.to_owned())])
        }
        (None, Ok(_)) => Err(vec![wrong("the item has no `id`".to_owned())]),
        (Some(_), Err(change)) => Err(vec![wrong(change.to_owned())]),
    }
}
