//! The frontmatter of a `SKILL.md`.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use mcp_sansio::jsonrpc::{Json, JsonError};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

use super::entry::InvalidSkill;
use super::uri::check_name;

/// The longest frontmatter, in bytes. 64 KiB: its description has 1,024 characters at most, so more
/// is not metadata.
const LENGTH_MAX: usize = 64 << 10;

/// The longest description and the longest compatibility note, in characters.
// Agent Skills specification, `description` field: "Max 1024 characters. Non-empty."
const DESCRIPTION_MAX: usize = 1024;
// Agent Skills specification, `compatibility` field: "Max 500 characters."
const COMPATIBILITY_MAX: usize = 500;

/// The line that begins and ends a frontmatter.
const MARK: &str = "---";

/// The frontmatter of a skill: all fields that its author wrote, as JSON.
///
/// `name` and `description` are always there. Nothing here acts on a field: what `allowed-tools` or
/// a hook means is the decision of the host, which may not follow them without consent of the user.
///
/// ```
/// use mcp_sansio_extensions::skills::Frontmatter;
///
/// let file = b"---\nname: refunds\ndescription: Refunds an order\nmetadata:\n  version: '2'\n---\nAsk first.\n";
/// let (frontmatter, instructions) = Frontmatter::parse(file)?;
/// assert_eq!(frontmatter.name(), "refunds");
/// assert_eq!(frontmatter.field("metadata").unwrap().as_str(), r#"{"version":"2"}"#);
/// assert_eq!(instructions, "Ask first.\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// MCP 2026-07-28 skills:skills#frontmatter [SKILL-034]: metadata under a reserved prefix is one more
// field.
#[derive(Clone)]
pub struct Frontmatter(Map<String, Value>);

impl Frontmatter {
    /// Reads the frontmatter at the beginning of a `SKILL.md`, and returns it with the rest of the
    /// file: the instructions.
    ///
    /// The YAML is read by the core schema of YAML 1.2: `yes` and a date are texts.
    ///
    /// # Errors
    ///
    /// The frontmatter is missing, or has no name or no description.
    // MCP 2026-07-28 skills:skills#skill-format [SKILL-009]
    pub fn parse(file: &[u8]) -> Result<(Self, &str), InvalidSkill> {
        let missing =
            || invalid("the file does not begin with a frontmatter between two lines `---`");
        let text = core::str::from_utf8(file).map_err(|_| invalid("the file is not UTF-8"))?;
        // Some editors write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (first, rest) = text.split_once('\n').ok_or_else(missing)?;
        if first.trim_end() != MARK {
            return Err(missing());
        }
        let mut length = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == MARK {
                let fields = parse_mapping(&rest[..length])?;
                return Ok((Self::new(fields)?, &rest[length + line.len()..]));
            }
            length += line.len();
            if length > LENGTH_MAX {
                break;
            }
        }
        Err(missing())
    }

    fn new(fields: Map<String, Value>) -> Result<Self, InvalidSkill> {
        for field in ["name", "description"] {
            if !fields.get(field).is_some_and(Value::is_string) {
                return Err(InvalidSkill::Field { field, expected: "a text" });
            }
        }
        Ok(Self(fields))
    }

    /// Creates the frontmatter of a skill whose `SKILL.md` is generated.
    #[must_use]
    pub fn from_name(name: &str, description: &str) -> Self {
        let text = |text: &str| Value::String(text.to_owned());
        let fields = [("name", text(name)), ("description", text(description))];
        Self(fields.map(|(field, value)| (field.to_owned(), value)).into_iter().collect())
    }

    /// Sets a field.
    ///
    /// # Errors
    ///
    /// The value has no JSON form, or `name` or `description` would not be a text.
    pub fn with_field<T: Serialize + ?Sized>(
        mut self,
        field: &str,
        value: &T,
    ) -> Result<Self, JsonError> {
        let value: Value = Json::from_serialize(value)?.decode()?;
        self.0.insert(field.to_owned(), value);
        Self::new(self.0).map_err(JsonError::custom)
    }

    /// Returns the name: a label. Other skills may have the same.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text("name")
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        self.text("description")
    }

    fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the value of a field.
    #[must_use]
    pub fn field(&self, field: &str) -> Option<Json> {
        self.0.get(field).and_then(|value| Json::from_serialize(value).ok())
    }

    /// Returns the names of the fields.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Compares two frontmatters field by field, and returns the name of the first
    /// that differs. Numbers
    /// are compared by their value; the order of fields has no meaning.
    // MCP 2026-07-28 skills:skills#frontmatter-verification [SKILL-078]
    #[must_use]
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let differs = |field: &&String| match (self.0.get(*field), other.0.get(*field)) {
            (Some(one), Some(two)) => !is_same(one, two),
            _ => true,
        };
        self.0.keys().chain(other.0.keys()).find(differs).map(String::as_str)
    }

    /// Checks the fields against the specification of Agent Skills, for a skill to be served.
    ///
    /// # Errors
    ///
    /// A field breaks a rule: the fault of the skill's author.
    // MCP 2026-07-28 skills:skills#skill-format [SKILL-007]
    pub fn check(&self) -> Result<(), InvalidSkill> {
        check_name(self.name())?;
        let invalid = |field, expected| Err(InvalidSkill::Field { field, expected });
        let length = self.description().chars().count();
        if self.description().trim().is_empty() || length > DESCRIPTION_MAX {
            return invalid("description", "a text of 1 to 1024 characters");
        }
        if self.0.get("license").is_some_and(|license| !license.is_string()) {
            return invalid("license", "a text");
        }
        if let Some(note) = self.0.get("compatibility") {
            let length = note.as_str().map(|note| note.chars().count());
            if !length.is_some_and(|length| (1..=COMPATIBILITY_MAX).contains(&length)) {
                return invalid("compatibility", "a text of 1 to 500 characters");
            }
        }
        if self.0.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            return invalid("metadata", "a mapping");
        }
        Ok(())
    }
}

fn invalid(reason: impl Into<Cow<'static, str>>) -> InvalidSkill {
    InvalidSkill::Frontmatter(reason.into())
}

/// Whether two values are the same. Readers of YAML and of JSON differ in how they write a number.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => is_same_number(one, other),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|it| is_same(one, it)))
        }
        _ => one == other,
    }
}

fn is_same_number(one: &Number, other: &Number) -> bool {
    if one.is_f64() || other.is_f64() { one.as_f64() == other.as_f64() } else { one == other }
}

impl fmt::Debug for Frontmatter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq for Frontmatter {
    fn eq(&self, other: &Self) -> bool {
        self.difference(other).is_none()
    }
}

impl Serialize for Frontmatter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Frontmatter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Map::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

// ------------------------------------------------------------------ YAML mappings as JSON objects, by the core schema of YAML 1.2

/// The deepest nesting. 32: `metadata` of a skill is a map of strings, so the deepest known is 2.
const DEPTH_MAX: usize = 32;

/// The largest document, in bytes of its texts and 16 for each node. 1 MiB: aliases can repeat a
/// value many times over, and without them 64 KiB of text do not come near.
const WEIGHT_MAX: usize = 1 << 20;

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
pub(super) fn parse_mapping(text: &str) -> Result<Map<String, Value>, InvalidSkill> {
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
        _ => Err(not_mapping()),
    }
}

fn syntax(error: ScanError) -> InvalidSkill {
    // The text begins in the second line of the file.
    invalid(format!("{}, in line {}", error.info(), error.marker().line() + 1))
}

fn not_mapping() -> InvalidSkill {
    invalid("the frontmatter is not a mapping, such as `name: refunds`")
}

fn not_json(value: &str) -> InvalidSkill {
    invalid(format!("the value {value:?} has no JSON form"))
}

fn not_text() -> InvalidSkill {
    invalid("a key of the frontmatter is not a text")
}

fn too_large() -> InvalidSkill {
    invalid("the frontmatter is nested deeper than 32 levels, or its aliases make it too large")
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), InvalidSkill> {
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
                None => Err(not_mapping()),
            },
            Event::Alias(id) => {
                // An alias within its own value has no JSON form.
                let named = self.anchors.get(&id);
                let value = named.ok_or_else(|| not_json("*alias"))?.clone();
                self.grow_by(&value)?;
                if let Some((Open::Mapping(_, key @ None), _)) = self.open.last_mut() {
                    let Value::String(text) = value else { return Err(not_text()) };
                    *key = Some(text);
                    return Ok(());
                }
                self.complete(value, 0)
            }
            // A second document is refused where its value ends.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, collection: Open, anchor: usize) -> Result<(), InvalidSkill> {
        if let Some((Open::Mapping(_, None), _)) = self.open.last() {
            return Err(not_text());
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(too_large());
        }
        self.open.push((collection, anchor));
        self.grow(0)
    }

    /// Adds a value to the collection that contains it.
    fn complete(&mut self, value: Value, anchor: usize) -> Result<(), InvalidSkill> {
        if anchor != 0 {
            self.grow_by(&value)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            Some((Open::Sequence(items), _)) => items.push(value),
            Some((Open::Mapping(fields, key), _)) => {
                let key = key.take().ok_or_else(not_text)?;
                if fields.contains_key(&key) {
                    return Err(invalid(format!("the key {key:?} appears twice")));
                }
                fields.insert(key, value);
            }
            None if self.document.is_some() => return Err(not_mapping()),
            None => self.document = Some(value),
        }
        Ok(())
    }

    fn grow(&mut self, text: usize) -> Result<(), InvalidSkill> {
        self.weight = self.weight.saturating_add(text + 16);
        if self.weight > WEIGHT_MAX { Err(too_large()) } else { Ok(()) }
    }

    // The depth of a value is bounded, and so is the recursion.
    fn grow_by(&mut self, value: &Value) -> Result<(), InvalidSkill> {
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
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, InvalidSkill> {
    let invalid = || not_json(text);
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
    use super::*;

    fn parse(text: &str) -> Result<Frontmatter, InvalidSkill> {
        Frontmatter::parse(text.as_bytes()).map(|(frontmatter, _rest)| frontmatter)
    }

    const PLAIN: &str = "---\nname: refunds\ndescription: Refunds\n---\n";

    #[test]
    fn a_skill_begins_with_its_frontmatter() {
        // Rule: [SKILL-009].
        let (frontmatter, rest) = Frontmatter::parse(b"---\nname: a\ndescription: b\n---").unwrap();
        assert_eq!((frontmatter.name(), frontmatter.description(), rest), ("a", "b", ""));
        let windows = PLAIN.replace('\n', "\r\n");
        assert_eq!(parse(&windows).unwrap(), parse(PLAIN).unwrap());
        // As some editors of Windows write it.
        assert_eq!(parse(&format!("\u{feff}{windows}")).unwrap(), parse(PLAIN).unwrap());
        let is_missing = |parsed: Result<Frontmatter, InvalidSkill>| {
            parsed.is_err_and(|error| error.to_string().contains("two lines `---`"))
        };
        for missing in ["", "---", "# Refunds\n", "---\nname: a\ndescription: b\n", " ---\n---\n"] {
            assert!(is_missing(parse(missing)), "{missing:?}");
        }
        let no_text = |text: &str| match parse(text) {
            Err(InvalidSkill::Field { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(no_text("---\nname: a\n---\n"), "description");
        assert_eq!(no_text("---\nname: 7\ndescription: b\n---\n"), "name");
        let encoding = Frontmatter::parse(b"---\n\xff\n---\n").unwrap_err().to_string();
        assert!(encoding.contains("UTF-8"), "{encoding}");
        let long = format!("---\nname: a\ndescription: {}\n---\n", "b".repeat(LENGTH_MAX));
        assert!(is_missing(parse(&long)));
    }

    #[test]
    fn a_served_skill_keeps_the_rules_of_its_format() {
        // Rule: [SKILL-007].
        let check = |more: &str| {
            parse(&PLAIN.replacen("---\n", &format!("---\n{more}"), 1)).unwrap().check()
        };
        assert_eq!(
            check("license: MIT\ncompatibility: Linux\nmetadata:\n  a: b\nother: [1]\n"),
            Ok(())
        );
        let field = |more: &str| match check(more) {
            Err(InvalidSkill::Field { field, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert_eq!(field("license: [MIT]\n"), "license");
        assert_eq!(field(&format!("compatibility: {}\n", "x".repeat(501))), "compatibility");
        assert_eq!(field("metadata: x\n"), "metadata");
        let described = |text: String| Frontmatter::from_name("a", &text).check();
        assert_eq!(described("d".repeat(1024)), Ok(()));
        for text in [String::new(), " ".to_owned(), "d".repeat(1025)] {
            assert!(described(text).is_err());
        }
        let named = Frontmatter::from_name("Refunds", "d").check();
        assert!(matches!(named, Err(InvalidSkill::Field { field: "name", .. })));
    }

    #[test]
    fn frontmatters_are_compared_field_by_field() {
        // Rule: [SKILL-078] [SKILL-034].
        let entry = |json: &str| serde_json::from_str::<Frontmatter>(json).unwrap();
        let file = parse(
            "---\nname: a\ndescription: b\nweight: 1.0\nmetadata:\n  io.modelcontextprotocol/x: 'y'\n---\n",
        )
        .unwrap();
        let same = r#"{"metadata":{"io.modelcontextprotocol/x":"y"},"weight":1,"description":"b","name":"a"}"#;
        assert_eq!(file.difference(&entry(same)), None);
        for (from, to, field) in [
            (r#""b""#, r#""B""#, "description"),
            (r#""y""#, r#""z""#, "metadata"),
            (r#""weight":1,"#, "", "weight"),
            (r#""weight":1"#, r#""weight":"1""#, "weight"),
            (r#""weight":1"#, r#""weight":1,"allowed-tools":"Bash""#, "allowed-tools"),
        ] {
            assert_eq!(file.difference(&entry(&same.replace(from, to))), Some(field));
        }
    }

    #[test]
    fn a_frontmatter_without_name_is_not_read() {
        assert!(serde_json::from_str::<Frontmatter>(r#"{"description":"b"}"#).is_err());
        assert!(Frontmatter::from_name("a", "b").with_field("name", &7).is_err());
        let more = Frontmatter::from_name("a", "b").with_field("license", "MIT").unwrap();
        assert_eq!(more.field_names().collect::<Vec<_>>(), ["description", "license", "name"]);
        assert_eq!(more.field("license").unwrap().as_str(), r#""MIT""#);
    }
}

#[cfg(test)]
mod yaml_tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Value, InvalidSkill> {
        parse_mapping(text).map(Value::Object)
    }

    fn assert_refused(text: &str, reason: &str) {
        let refused = parse(text).unwrap_err().to_string();
        assert!(refused.contains(reason), "{text}: {refused}");
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
            assert_refused(text, "has no JSON form");
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
        assert_eq!(parse(""), Err(not_mapping()));
        assert_eq!(parse("- a"), Err(not_mapping()));
        assert_eq!(parse("a: 1\n---\nb: 2\n"), Err(not_mapping()));
        assert_refused("a: 1\na: 2\n", "the key \"a\" appears twice");
        assert_refused("[a]: 1\n", "a key of the frontmatter is not a text");
        assert_refused("a: b: c\n", "in line 2");
        assert_refused("%YAML 1.1\n---\na: 1\n", "in line 2");
    }

    #[test]
    fn aliases_are_copied_within_a_bound() {
        assert_eq!(parse("a: &x [1]\nb: *x\n").unwrap(), json!({"a": [1], "b": [1]}));
        assert_eq!(parse("a: &x k\n*x : 1\n").unwrap(), json!({"a": "k", "k": 1}));
        assert_refused("a: &x [*x]\n", "has no JSON form");
        // Each line is ten times the one before it.
        let mut text = String::from("a0: &a0 xxxxxxxxxx\n");
        for n in 1..12 {
            let before = alloc::vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        assert_eq!(parse(&text), Err(too_large()));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth| format!("a: {}{}\n", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEPTH_MAX - 1)).is_ok());
        assert_eq!(parse(&nested(DEPTH_MAX)), Err(too_large()));
        assert!(parse(&nested(10_000)).is_err());
    }
}
