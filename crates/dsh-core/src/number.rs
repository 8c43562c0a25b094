//! Whole numbers that survive every JSON reader.
//!
//! Guarantee: a [`SafeInteger`] is in its range from the moment it exists; what is out of range is
//! refused while it is read, with the bound in the message.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use serde_json::Number;

/// The largest whole number that a reader which keeps numbers as `f64` keeps exactly (2^53 - 1).
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A whole number from `LEAST` to [`MAX_SAFE_INTEGER`], for configurations and arguments.
///
/// It reads `5` and `5.0` alike, writes itself as a plain number, and its schema has `minimum` and
/// `maximum`.
///
/// ```
/// use dsh_core::SafeInteger;
/// #[derive(serde::Deserialize, Debug)]
/// #[serde(default, rename_all = "camelCase")]
/// struct Config {
///     timeout_ms: SafeInteger<1>,
/// }
/// impl Default for Config {
///     fn default() -> Self {
///         Self { timeout_ms: SafeInteger::of::<30_000>() }
///     }
/// }
/// assert_eq!(serde_json::from_str::<Config>("{}").unwrap().timeout_ms.get(), 30_000);
/// let error = serde_json::from_str::<Config>(r#"{"timeoutMs": 0}"#).unwrap_err().to_string();
/// assert!(error.starts_with("0 is out of range: at least 1, at most 9007199254740991"), "{error}");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SafeInteger<const LEAST: u64>(u64);

impl<const LEAST: u64> SafeInteger<LEAST> {
    /// `value`, if it is in range.
    pub const fn new(value: u64) -> Option<Self> {
        if LEAST <= value && value <= MAX_SAFE_INTEGER { Some(Self(value)) } else { None }
    }

    /// A constant such as a default. One that is out of range does not compile.
    pub const fn of<const VALUE: u64>() -> Self {
        const { assert!(LEAST <= VALUE && VALUE <= MAX_SAFE_INTEGER) };
        Self(VALUE)
    }

    /// A JSON number, if it is whole and in range.
    pub fn from_number(number: &Number) -> Option<Self> {
        let whole = number.as_u64().or_else(|| whole(number.as_f64()?));
        whole.and_then(Self::new)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number as a length, where it is larger than any length the largest one there is.
    pub fn as_len(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A float that is a whole number which an `f64` keeps exactly.
fn whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact")]
    let most = MAX_SAFE_INTEGER as f64;
    if number.fract() != 0.0 || !(0.0..=most).contains(&number) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and in range"
    )]
    Some(number as u64)
}

impl<const LEAST: u64> Serialize for SafeInteger<LEAST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de, const LEAST: u64> Deserialize<'de> for SafeInteger<LEAST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(Reader)
    }
}

struct Reader<const LEAST: u64>;

impl<const LEAST: u64> Visitor<'_> for Reader<LEAST> {
    type Value = SafeInteger<LEAST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from {LEAST} to {MAX_SAFE_INTEGER}")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        SafeInteger::new(value).ok_or_else(|| out_of_range::<LEAST, E>(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        let whole = u64::try_from(value).ok();
        whole.and_then(SafeInteger::new).ok_or_else(|| out_of_range::<LEAST, E>(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        if value.fract() != 0.0 {
            return Err(E::invalid_value(Unexpected::Float(value), &self));
        }
        whole(value).and_then(SafeInteger::new).ok_or_else(|| out_of_range::<LEAST, E>(value))
    }
}

fn out_of_range<const LEAST: u64, E: Error>(value: impl fmt::Display) -> E {
    let message = format!("{value} is out of range: at least {LEAST}, at most {MAX_SAFE_INTEGER}");
    E::custom(message)
}

impl<const LEAST: u64> JsonSchema for SafeInteger<LEAST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("SafeIntegerFrom{LEAST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MAX_SAFE_INTEGER })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_read_and_what_is_refused() {
        let from = |value: Value| {
            let read = serde_json::from_value::<SafeInteger<2>>(value);
            read.map(SafeInteger::get).map_err(|error| error.to_string())
        };
        for (value, expected) in [
            (json!(2), 2),
            (json!(2.0), 2),
            (json!(MAX_SAFE_INTEGER), MAX_SAFE_INTEGER),
            (json!(9_007_199_254_740_991.0), MAX_SAFE_INTEGER),
        ] {
            assert_eq!(from(value), Ok(expected));
        }
        let range = "out of range: at least 2, at most 9007199254740991";
        let expected = "expected an integer from 2 to 9007199254740991";
        for (value, message) in [
            (json!(1), format!("1 is {range}")),
            (json!(0.0), format!("0 is {range}")),
            (json!(-3), format!("-3 is {range}")),
            (json!(MAX_SAFE_INTEGER + 1), format!("9007199254740992 is {range}")),
            (json!(1e300), format!("1{} is {range}", "0".repeat(300))),
            (json!(2.5), format!("invalid value: floating point `2.5`, {expected}")),
            (json!("2"), format!("invalid type: string \"2\", {expected}")),
            (json!(null), format!("invalid type: null, {expected}")),
            (json!([2]), format!("invalid type: sequence, {expected}")),
        ] {
            assert_eq!(from(value), Err(message));
        }
    }

    #[test]
    fn a_number_by_itself() {
        let from =
            |number: f64| Number::from_f64(number).as_ref().and_then(SafeInteger::<0>::from_number);
        assert_eq!(from(5.0), Some(SafeInteger::of::<5>()));
        for number in [5.5, -1.0, 1e300, 9_007_199_254_740_992.0] {
            assert_eq!(from(number), None, "{number}");
        }
        assert_eq!(SafeInteger::<1>::from_number(&0.into()), None);
        assert_eq!(SafeInteger::<1>::new(0), None);
    }

    #[test]
    fn it_is_written_as_a_number_and_its_schema_has_the_bounds() {
        assert_eq!(json!(SafeInteger::<1>::of::<7>()), json!(7));
        let schema = schemars::schema_for!(SafeInteger<1>);
        assert_eq!(schema.get("minimum"), Some(&json!(1)));
        assert_eq!(schema.get("maximum"), Some(&json!(MAX_SAFE_INTEGER)));
        assert_eq!(schema.get("type"), Some(&json!("integer")));
    }
}
