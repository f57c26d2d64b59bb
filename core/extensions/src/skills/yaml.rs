//! YAML mappings as JSON objects, by the core schema of YAML 1.2.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::{Map, Number, Value};

/// The deepest nesting. 32: `metadata` of a skill is a map of strings, so the deepest known is 2.
const DEPTH_MAX: usize = 32;

/// The largest document, in bytes of its texts and 16 for each node. 1 MiB: aliases can repeat a
/// value many times over, and without them 64 KiB of text do not come near.
const WEIGHT_MAX: usize = 1 << 20;

/// Why a text is not a YAML mapping that has a JSON form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidYaml {
    /// It is not YAML.
    #[error("{reason}, in line {line}")]
    Syntax {
        /// The reason.
        reason: String,
        /// The line in the file, from 1.
        line: usize,
    },
    /// It is not one mapping.
    #[error("the frontmatter is not a mapping, such as `name: refunds`")]
    NotMapping,
    /// A key appears twice.
    #[error("the key {0:?} appears twice")]
    DuplicateKey(String),
    /// A key is a list or a mapping, which JSON does not have.
    #[error("a key is not a text")]
    Key,
    /// A value has no JSON form: it is infinite, not a number, or has a tag of its own.
    #[error("the value {0:?} has no JSON form")]
    Value(String),
    /// It is nested deeper than 32 levels, or becomes larger than 1 MiB by its aliases.
    #[error("the frontmatter is nested too deeply, or too large")]
    TooLarge,
}

/// A collection whose end has not come yet.
enum Open {
    Sequence(Vec<Value>),
    Mapping(Map<String, Value>, Option<String>),
}

/// Builds the value from the events of the parser, without recursion.
#[derive(Default)]
struct Builder {
    /// The open collections, with the ids of their anchors; 0 stands for no anchor.
    open: Vec<(Open, usize)>,
    anchors: BTreeMap<usize, Value>,
    weight: usize,
    document: Option<Value>,
}

/// Parses one YAML document that is a mapping.
pub(super) fn parse_mapping(text: &str) -> Result<Map<String, Value>, InvalidYaml> {
    // Two levels more than the builder accepts, so that the builder reports the depth.
    let mut options = granit_parser::options! {
        disallow_directives: true,
        flow_nesting_limit: DEPTH_MAX + 2,
        block_nesting_limit: DEPTH_MAX + 2,
    };
    // Another crate may have turned the comments on.
    options.set_emit_comments(false);
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, _span) = next.map_err(syntax)?;
        builder.take(event)?;
    }
    match builder.document {
        Some(Value::Object(fields)) => Ok(fields),
        _ => Err(InvalidYaml::NotMapping),
    }
}

fn syntax(error: ScanError) -> InvalidYaml {
    // The text begins in the second line of the file.
    InvalidYaml::Syntax { reason: error.info(), line: error.marker().line() + 1 }
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), InvalidYaml> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                if let Some((Open::Mapping(_, key @ None), _)) = self.open.last_mut() {
                    *key = Some(text.to_string());
                    return self.grow(text.len());
                }
                let value = scalar(&text, style, tag.as_deref())?;
                self.grow(text.len())?;
                self.complete(value, anchor)
            }
            Event::SequenceStart(_, anchor, _) => self.begin(Open::Sequence(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => {
                self.begin(Open::Mapping(Map::new(), None), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::Sequence(items), anchor)) => self.complete(Value::Array(items), anchor),
                Some((Open::Mapping(fields, _), anchor)) => {
                    self.complete(Value::Object(fields), anchor)
                }
                None => Err(InvalidYaml::NotMapping),
            },
            Event::Alias(id) => {
                // An alias within its own value has no JSON form.
                let named = self.anchors.get(&id);
                let value = named.ok_or_else(|| InvalidYaml::Value("*alias".to_owned()))?.clone();
                self.grow_by(&value)?;
                if let Some((Open::Mapping(_, key @ None), _)) = self.open.last_mut() {
                    let Value::String(text) = value else { return Err(InvalidYaml::Key) };
                    *key = Some(text);
                    return Ok(());
                }
                self.complete(value, 0)
            }
            // A second document is refused where its value ends.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, collection: Open, anchor: usize) -> Result<(), InvalidYaml> {
        if let Some((Open::Mapping(_, None), _)) = self.open.last() {
            return Err(InvalidYaml::Key);
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(InvalidYaml::TooLarge);
        }
        self.open.push((collection, anchor));
        self.grow(0)
    }

    /// Adds a value to the collection that contains it.
    fn complete(&mut self, value: Value, anchor: usize) -> Result<(), InvalidYaml> {
        if anchor != 0 {
            self.grow_by(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            Some((Open::Sequence(items), _)) => items.push(value),
            Some((Open::Mapping(fields, key), _)) => {
                let key = key.take().ok_or(InvalidYaml::Key)?;
                if fields.contains_key(&key) {
                    return Err(InvalidYaml::DuplicateKey(key));
                }
                fields.insert(key, value);
            }
            None if self.document.is_some() => return Err(InvalidYaml::NotMapping),
            None => self.document = Some(value),
        }
        Ok(())
    }

    fn grow(&mut self, text: usize) -> Result<(), InvalidYaml> {
        self.weight = self.weight.saturating_add(text + 16);
        if self.weight > WEIGHT_MAX { Err(InvalidYaml::TooLarge) } else { Ok(()) }
    }

    // The depth of a value is bounded, and so is the recursion.
    fn grow_by(&mut self, value: &Value) -> Result<(), InvalidYaml> {
        self.grow(value.as_str().map_or(0, str::len))?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.grow_by(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
                self.grow(key.len())?;
                self.grow_by(value)
            }),
            _ => Ok(()),
        }
    }
}

/// Resolves a scalar by the core schema.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, InvalidYaml> {
    let invalid = || InvalidYaml::Value(text.to_owned());
    let Some(tag) = tag else {
        // Quoted and block scalars are texts.
        return match style {
            ScalarStyle::Plain => plain(text).ok_or_else(invalid),
            _ => Ok(Value::String(text.to_owned())),
        };
    };
    match tag.core_suffix() {
        Some("str") => Ok(Value::String(text.to_owned())),
        Some(kind) => {
            let value = plain(text).ok_or_else(invalid)?;
            let fits = match (&value, kind) {
                (Value::Null, "null") | (Value::Bool(_), "bool") => true,
                (Value::Number(number), "int") => !number.is_f64(),
                (Value::Number(_), "float") => true,
                _ => false,
            };
            if fits { Ok(value) } else { Err(invalid()) }
        }
        // `!` alone is a text; other tags have a meaning that JSON does not have.
        None if tag.handle().is_empty() && tag.suffix() == "!" => {
            Ok(Value::String(text.to_owned()))
        }
        None => Err(invalid()),
    }
}

/// Resolves a plain scalar; `None` for a number that JSON does not have.
fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return None,
        _ => {}
    }
    if matches!(text.trim_start_matches(['+', '-']), ".inf" | ".Inf" | ".INF") {
        return None;
    }
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        let digit = digits.starts_with(|c: char| c.is_digit(radix));
        if digit { u64::from_str_radix(digits, radix).ok().map(Number::from) } else { None }
    };
    if let Some(number) = radix("0o", 8).or_else(|| radix("0x", 16)) {
        return Some(Value::Number(number));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let signed = text.strip_prefix('+').unwrap_or(text);
        let number = signed.parse::<i64>().map(Number::from);
        let number = number.or_else(|_| signed.parse::<u64>().map(Number::from));
        // Beyond that, the closest number, like other readers.
        return match number {
            Ok(number) => Some(Value::Number(number)),
            Err(_) => Number::from_f64(signed.parse().ok()?).map(Value::Number),
        };
    }
    if is_float(unsigned) {
        return Number::from_f64(text.parse().ok()?).map(Value::Number);
    }
    Some(Value::String(text.to_owned()))
}

/// Whether a text is `\.[0-9]+|[0-9]+(\.[0-9]*)?` with an optional exponent.
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let exponent = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some = !whole.is_empty() || !fraction.is_empty();
    some && digits(whole) && digits(fraction) && exponent
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Value, InvalidYaml> {
        parse_mapping(text).map(Value::Object)
    }

    #[test]
    fn scalars_follow_the_core_schema() {
        let text = "a: text\nb: 'yes'\nc: yes\nd: true\ne: 7\nf: -0x1\ng: 0x1F\nh: 0o17\n\
                    i: 1.50\nj: ~\nk:\nl: 1e3\nm: 2024-01-01\nn: 1.2.3\no: !!str 5\np: +12\n\
                    q: .5\nr: \"a\\tb\"\ns: 18446744073709551615\nt: .\nu: 0xg\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({
                "a": "text", "b": "yes", "c": "yes", "d": true, "e": 7, "f": "-0x1", "g": 31,
                "h": 15, "i": 1.5, "j": null, "k": null, "l": 1000.0, "m": "2024-01-01",
                "n": "1.2.3", "o": "5", "p": 12, "q": 0.5, "r": "a\tb",
                "s": 18_446_744_073_709_551_615_u64, "t": ".", "u": "0xg",
            })
        );
        for text in ["a: .inf", "a: -.Inf", "a: .nan", "a: !!int x", "a: !own x"] {
            assert!(matches!(parse(text), Err(InvalidYaml::Value(_))), "{text}");
        }
    }

    #[test]
    fn collections_become_arrays_and_objects() {
        let text = "description: >\n  two\n  lines\nnotes: |\n  kept\n  apart\n\
                    list: [a, 1, {b: c}]\nblock:\n- x\n- y: z\n# a comment\n1: one\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({
                "description": "two lines\n", "notes": "kept\napart\n",
                "list": ["a", 1, {"b": "c"}], "block": ["x", {"y": "z"}], "1": "one",
            })
        );
    }

    #[test]
    fn other_documents_are_refused_with_a_reason() {
        assert_eq!(parse(""), Err(InvalidYaml::NotMapping));
        assert_eq!(parse("- a"), Err(InvalidYaml::NotMapping));
        assert_eq!(parse("a: 1\n---\nb: 2\n"), Err(InvalidYaml::NotMapping));
        assert_eq!(parse("a: 1\na: 2\n"), Err(InvalidYaml::DuplicateKey("a".into())));
        assert_eq!(parse("[a]: 1\n"), Err(InvalidYaml::Key));
        assert!(matches!(parse("a: b: c\n"), Err(InvalidYaml::Syntax { line: 2, .. })));
        assert!(matches!(parse("%YAML 1.1\n---\na: 1\n"), Err(InvalidYaml::Syntax { .. })));
    }

    #[test]
    fn aliases_are_copied_within_a_bound() {
        assert_eq!(parse("a: &x [1]\nb: *x\n").unwrap(), json!({"a": [1], "b": [1]}));
        assert_eq!(parse("a: &x k\n*x : 1\n").unwrap(), json!({"a": "k", "k": 1}));
        assert!(matches!(parse("a: &x [*x]\n"), Err(InvalidYaml::Value(_))));
        // Each line is ten times the one before it.
        let mut text = String::from("a0: &a0 xxxxxxxxxx\n");
        for n in 1..12 {
            let before = alloc::vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        assert_eq!(parse(&text), Err(InvalidYaml::TooLarge));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX - 1)).is_ok());
        assert_eq!(parse(&nested(DEPTH_MAX)), Err(InvalidYaml::TooLarge));
        assert!(parse(&nested(10_000)).is_err());
    }
}
