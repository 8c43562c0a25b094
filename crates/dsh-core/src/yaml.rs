//! YAML as a tree that still knows lines and tags.
//!
//! Serde alone would lose both: a row's line is what a problem is reported with, and an unknown tag
//! would silently turn into the bare text behind it.
//!
//! Guarantees: duplicate keys are an error at any depth, `yes` is text and not a boolean, a leading
//! zero keeps a number text.

mod wording;

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::{Spanned, Tagged};

/// One YAML value.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where it starts, from 1.
    pub(crate) line: u64,
    /// An explicit tag, resolved (`!!js` is `tag:yaml.org,2002:js`).
    pub(crate) tag: Option<String>,
    pub(crate) kind: Kind,
}

/// What a [`Node`] holds.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Null, a boolean, a number or text.
    Scalar(Value),
    List(Vec<Node>),
    /// In the order of the file.
    Map(Vec<(String, Node)>),
}

/// The text is not YAML, or has a mapping with the same key twice.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) message: String,
    /// Line and column, from 1.
    pub(crate) at: Option<(u64, u64)>,
}

/// Parses one document.
pub(crate) fn parse(text: &str) -> Result<Node, Broken> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location().map(|at| (at.line(), at.column())).filter(|(line, _)| *line > 0);
        Broken { message: wording::plain(&error), at }
    })
}

impl Node {
    /// The tag as people write it, if it is one that a plain value cannot have.
    pub(crate) fn foreign_tag(&self) -> Option<String> {
        const CORE: &str = "tag:yaml.org,2002:";
        let tag = self.tag.as_deref()?;
        match tag.strip_prefix(CORE) {
            Some("str" | "int" | "float" | "bool" | "null" | "seq" | "map") => None,
            Some(name) => Some(format!("!!{name}")),
            None if tag == "!" => None,
            None => Some(tag.to_owned()),
        }
    }

    /// What it is, for a message.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Scalar(Value::Null) => "nothing".to_owned(),
            Kind::Scalar(value) => format!("`{value}`"),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: Tagged(kind, tag), referenced, .. } =
            Spanned::<Tagged<Kind>>::deserialize(deserializer)?;
        Ok(Self { line: referenced.line(), tag, kind })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyKind)
    }
}

struct AnyKind;

impl<'de> Visitor<'de> for AnyKind {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_none<E: de::Error>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element()? {
            nodes.push(node);
        }
        Ok(Kind::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut nodes = Vec::new();
        while let Some(entry) = map.next_entry()? {
            nodes.push(entry);
        }
        Ok(Kind::Map(nodes))
    }
}
