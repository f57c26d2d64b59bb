//! The frontmatter of a `SKILL.md`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use mcp_sansio::jsonrpc::{Json, JsonError};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

use super::name::{InvalidSkillName, check_name};
use super::yaml::{InvalidYaml, parse_mapping};

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

/// Why a `SKILL.md` has no usable frontmatter: the fault of its author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFrontmatter {
    /// The file is not UTF-8.
    #[error("the file is not UTF-8")]
    Encoding,
    /// The file does not begin with a line `---`, or no second one follows within 64 KiB.
    #[error("the file does not begin with a frontmatter between two lines `---`")]
    Missing,
    /// The frontmatter is not a YAML mapping with a JSON form.
    #[error(transparent)]
    Yaml(#[from] InvalidYaml),
    /// `name` or `description` is missing or no text.
    #[error("the frontmatter has no text called `{0}`")]
    Required(&'static str),
    /// The name is not one of a skill.
    #[error(transparent)]
    Name(#[from] InvalidSkillName),
    /// A field is too long, empty, or of the wrong type.
    #[error("`{field}` is {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// The required type and length.
        expected: &'static str,
    },
}

/// The field in which two frontmatters differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontmatterDifference {
    /// The name of the field.
    pub field: String,
}

impl fmt::Display for FrontmatterDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the field {:?} differs", self.field)
    }
}

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
    pub fn parse(file: &[u8]) -> Result<(Self, &str), InvalidFrontmatter> {
        let text = core::str::from_utf8(file).map_err(|_| InvalidFrontmatter::Encoding)?;
        let (first, rest) = text.split_once('\n').ok_or(InvalidFrontmatter::Missing)?;
        if first.trim_end() != MARK {
            return Err(InvalidFrontmatter::Missing);
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
        Err(InvalidFrontmatter::Missing)
    }

    fn new(fields: Map<String, Value>) -> Result<Self, InvalidFrontmatter> {
        for required in ["name", "description"] {
            if !fields.get(required).is_some_and(Value::is_string) {
                return Err(InvalidFrontmatter::Required(required));
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

    /// Compares two frontmatters field by field, and returns the first field that differs. Numbers
    /// are compared by their value; the order of fields has no meaning.
    // MCP 2026-07-28 skills:skills#frontmatter-verification [SKILL-078]
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<FrontmatterDifference> {
        let differs = |field: &&String| match (self.0.get(*field), other.0.get(*field)) {
            (Some(one), Some(two)) => !is_same(one, two),
            _ => true,
        };
        let field = self.0.keys().chain(other.0.keys()).find(differs)?;
        Some(FrontmatterDifference { field: field.clone() })
    }

    /// Checks the fields against the specification of Agent Skills, for a skill to be served.
    ///
    /// # Errors
    ///
    /// A field breaks a rule: the fault of the skill's author.
    // MCP 2026-07-28 skills:skills#skill-format [SKILL-007]
    pub fn check(&self) -> Result<(), InvalidFrontmatter> {
        check_name(self.name())?;
        let invalid = |field, expected| Err(InvalidFrontmatter::Field { field, expected });
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

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    fn parse(text: &str) -> Result<Frontmatter, InvalidFrontmatter> {
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
        for missing in
            ["", "---", "# Refunds\n", "---\nname: a\ndescription: b\n", "\u{feff}---\n---\n"]
        {
            assert_eq!(parse(missing), Err(InvalidFrontmatter::Missing), "{missing:?}");
        }
        assert_eq!(parse("---\nname: a\n---\n"), Err(InvalidFrontmatter::Required("description")));
        assert_eq!(
            parse("---\nname: 7\ndescription: b\n---\n"),
            Err(InvalidFrontmatter::Required("name"))
        );
        assert_eq!(Frontmatter::parse(b"---\n\xff\n---\n"), Err(InvalidFrontmatter::Encoding));
        let long = format!("---\nname: a\ndescription: {}\n---\n", "b".repeat(LENGTH_MAX));
        assert_eq!(parse(&long), Err(InvalidFrontmatter::Missing));
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
            Err(InvalidFrontmatter::Field { field, .. }) => field,
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
        assert_eq!(named, Err(InvalidSkillName::Character('R').into()));
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
            let difference = file.difference(&entry(&same.replace(from, to))).unwrap();
            assert_eq!(difference.field, field);
            assert_eq!(difference.to_string(), format!("the field {field:?} differs"));
        }
    }

    #[test]
    fn a_frontmatter_without_name_is_not_read() {
        assert!(serde_json::from_str::<Frontmatter>(r#"{"description":"b"}"#).is_err());
        assert!(Frontmatter::from_name("a", "b").with_field("name", &7).is_err());
        let more = Frontmatter::from_name("a", "b").with_field("license", "MIT").unwrap();
        assert_eq!(
            more.field_names().collect::<alloc::vec::Vec<_>>(),
            ["description", "license", "name"]
        );
        assert_eq!(more.field("license").unwrap().as_str(), r#""MIT""#);
    }
}
