//! The schema of a form: a flat object of simple fields.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde::de::Deserializer;

use super::Revision;
use super::elicitation::ElicitValue;
use super::elicitation_select::{MultiSelectSchema, SingleSelectSchema};
use super::map::Map;
use super::message::{forward_wire, message, word};
use crate::jsonrpc::{Json, RawJson};

message! {
    /// The schema of a form.
    ///
    /// ```
    /// use mcp_sansio::protocol::{ElicitSchema, NumberSchema, StringSchema};
    ///
    /// let form = ElicitSchema::new()
    ///     .field("name", StringSchema::new().title("Name"))
    ///     .optional_field("people", NumberSchema::integer().minimum(1));
    /// assert_eq!(form.required.as_deref(), Some(&["name".to_owned()][..]));
    /// ```
    // MCP 2026-07-28 client/elicitation#requested-schema [ELIC-007]: a flat object of simple
    // properties.
    #[derive(Default)]
    pub struct ElicitSchema {
        tag "type" = "object" in ALL;
        required {}
        defaulted {
            /// The fields in display order.
            properties: Map<PrimitiveSchema> = "properties" in ALL;
        }
        optional {
            /// The fields that must be filled in.
            required: Vec<String> = "required" in ALL;
            /// The dialect, if specified; since 2025-11-25.
            dialect: String = "$schema" in SINCE_2025_11_25;
        }
    }
}

impl ElicitSchema {
    /// Adds an optional field.
    #[must_use]
    pub fn optional_field(
        mut self,
        name: impl Into<String>,
        schema: impl Into<PrimitiveSchema>,
    ) -> Self {
        self.properties.insert(name, schema);
        self
    }

    /// Adds a required field.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.get_or_insert_default().push(name.clone());
        self.properties.insert(name, schema);
        self
    }
}

/// A value of a filled-in form does not fit its schema: see [`ElicitSchema::validate`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {reason}")]
#[non_exhaustive]
pub struct InvalidContent {
    /// The name of the field.
    pub field: String,
    /// What is wrong with its value.
    pub reason: Cow<'static, str>,
}

impl ElicitSchema {
    /// Checks the values of a filled-in form, before they are sent and after they were received.
    /// Formats of texts are checked in outline only. Values that are no field of the form, as JSON
    /// Schema has it, and those of [unknown](PrimitiveSchema::Unknown) fields are not checked.
    /// `null` is absence, as some hosts write the fields that the user leaves empty.
    ///
    /// ```
    /// use mcp_sansio::protocol::{ElicitSchema, Map, NumberSchema};
    ///
    /// let form = ElicitSchema::new().field("people", NumberSchema::integer().minimum(1));
    /// assert!(form.validate(&Map::new().with("people", 2_i64)).is_ok());
    /// let error = form.validate(&Map::new().with("people", 0_i64)).unwrap_err();
    /// assert_eq!(error.to_string(), "`people` is less than 1");
    /// ```
    ///
    /// # Errors
    ///
    /// The first field that is missing, or has a value that does not fit.
    // MCP 2026-07-28 client/elicitation#requested-schema [ELIC-007]
    pub fn validate(&self, content: &Map<ElicitValue>) -> Result<(), InvalidContent> {
        let wrong = |field: &str, reason| Err(InvalidContent { field: field.into(), reason });
        let is_filled = |value: &ElicitValue| !matches!(value, ElicitValue::Unknown(it) if it.as_str() == "null");
        for name in self.required.iter().flatten() {
            if !content.get(name).is_some_and(is_filled) {
                return wrong(name, "is required".into());
            }
        }
        for (name, value) in content.iter().filter(|(_, value)| is_filled(value)) {
            if let Some(defect) = self.properties.get(name).and_then(|field| field.defect(value)) {
                return wrong(name, defect);
            }
        }
        Ok(())
    }
}

/// The schema of one field.
// MCP 2025-06-18 client/elicitation#supported-schema-types [ELIC-008]
// MCP 2026-07-28 client/elicitation#requested-schema [ELIC-009]
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// A text.
    Text(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A boolean.
    Boolean(BooleanSchema),
    /// A single choice.
    SingleSelect(SingleSelectSchema),
    /// A multiple choice; since 2025-11-25.
    MultiSelect(MultiSelectSchema),
    /// A field that forms cannot have, kept and written back unchanged.
    Unknown(Json),
}

forward_wire!(PrimitiveSchema { Text, Number, Boolean, SingleSelect, MultiSelect, Unknown });

macro_rules! labels {
    ($($(#[doc = $doc:literal])* $label:ident;)+) => { $(
        $(#[doc = $doc])*
        #[must_use]
        pub fn $label(&self) -> Option<&str> {
            match self {
                Self::Text(field) => field.$label.as_deref(),
                Self::Number(field) => field.$label.as_deref(),
                Self::Boolean(field) => field.$label.as_deref(),
                Self::SingleSelect(field) => field.$label.as_deref(),
                Self::MultiSelect(field) => field.$label.as_deref(),
                Self::Unknown(_) => None,
            }
        }
    )+ };
}

impl PrimitiveSchema {
    labels! {
        /// Returns the label of the field.
        title;
        /// Returns the description of the field.
        description;
    }

    /// Returns the initial value of the field.
    #[must_use]
    pub fn default(&self) -> Option<ElicitValue> {
        match self {
            Self::Text(field) => field.default.clone().map(ElicitValue::Text),
            Self::Number(field) => field.default.map(ElicitValue::Number),
            Self::Boolean(field) => field.default.map(ElicitValue::Boolean),
            Self::SingleSelect(field) => field.default.clone().map(ElicitValue::Text),
            Self::MultiSelect(field) => field.default.clone().map(ElicitValue::Choices),
            Self::Unknown(_) => None,
        }
    }

    /// Returns why a value does not fit the field.
    fn defect(&self, value: &ElicitValue) -> Option<Cow<'static, str>> {
        match (self, value) {
            (Self::Unknown(_), _) | (Self::Boolean(_), ElicitValue::Boolean(_)) => None,
            (Self::Text(field), ElicitValue::Text(text)) => field.defect(text),
            (Self::Number(field), ElicitValue::Integer(number)) => field.defect(*number as f64),
            (Self::Number(field), ElicitValue::Number(number)) => field.defect(*number),
            (Self::SingleSelect(field), ElicitValue::Text(value)) => {
                let is_known = field.choices.values().any(|known| known == value);
                (!is_known).then(|| "is not one of the choices".into())
            }
            (Self::MultiSelect(field), ElicitValue::Choices(values)) => {
                let is_known = |value: &String| field.choices.values().any(|known| known == value);
                let count = values.len() as u64;
                if !values.iter().all(is_known) {
                    return Some("has a value that is not one of the choices".into());
                }
                limits("choices", count, field.min_items, field.max_items)
            }
            _ => Some("has a value of another type".into()),
        }
    }
}

impl StringSchema {
    fn defect(&self, text: &str) -> Option<Cow<'static, str>> {
        let is_wrong = self.format.as_ref().is_some_and(|format| !fits(format, text));
        if is_wrong {
            return self.format.as_ref().map(|it| format!("is not in the format `{it}`").into());
        }
        limits("characters", text.chars().count() as u64, self.min_length, self.max_length)
    }
}

impl NumberSchema {
    fn defect(&self, number: f64) -> Option<Cow<'static, str>> {
        // Beyond 64 bits every floating point number is a whole one.
        let is_whole = number.abs() >= i64::MAX as f64 || (number as i64) as f64 == number;
        match (self.minimum, self.maximum) {
            _ if self.kind == NumberKind::Integer && !is_whole => {
                Some("is not a whole number".into())
            }
            (Some(minimum), _) if number < minimum => {
                Some(format!("is less than {minimum}").into())
            }
            (_, Some(maximum)) if number > maximum => {
                Some(format!("is more than {maximum}").into())
            }
            _ => None,
        }
    }
}

fn limits(what: &str, count: u64, min: Option<u64>, max: Option<u64>) -> Option<Cow<'static, str>> {
    match (min, max) {
        (Some(min), _) if count < min => Some(format!("has fewer than {min} {what}").into()),
        (_, Some(max)) if count > max => Some(format!("has more than {max} {what}").into()),
        _ => None,
    }
}

/// Whether a text has the outline of a format. Only the application can know whether there is such
/// an address or a day.
fn fits(format: &StringFormat, text: &str) -> bool {
    let is_date = |text: &[u8]| {
        let is_right = |(at, byte): (usize, &u8)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        text.len() == 10 && text.iter().enumerate().all(is_right)
    };
    let has_space = text.contains(char::is_whitespace);
    match format {
        StringFormat::Email => {
            let parts = text.rsplit_once('@');
            !has_space && parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
        }
        StringFormat::Uri => {
            let parts = text.split_once(':');
            !has_space && parts.is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
        }
        StringFormat::Date => is_date(text.as_bytes()),
        StringFormat::DateTime => {
            let parts = text.as_bytes().split_at_checked(10);
            parts.is_some_and(|(date, time)| is_date(date) && matches!(time, [b'T' | b't', _, ..]))
        }
        _ => true,
    }
}

macro_rules! from_schema {
    ($($variant:ident($schema:ty)),+) => { $(
        impl From<$schema> for PrimitiveSchema {
            fn from(schema: $schema) -> Self {
                Self::$variant(schema)
            }
        }
    )+ };
}
from_schema!(
    Text(StringSchema),
    Number(NumberSchema),
    Boolean(BooleanSchema),
    SingleSelect(SingleSelectSchema),
    MultiSelect(MultiSelectSchema)
);

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(rename = "type", borrow)]
            kind: Option<RawJson<'a>>,
            #[serde(rename = "enum", borrow)]
            values: Option<RawJson<'a>>,
            #[serde(rename = "oneOf", borrow)]
            titled: Option<RawJson<'a>>,
        }

        let json = Json::deserialize(deserializer)?;
        // A field that forms cannot have does not hide the others.
        let known = json.decode::<Probe<'_>>().ok().and_then(|probe| {
            let selects = probe.values.is_some() || probe.titled.is_some();
            // A list of types is an unknown kind.
            match probe.kind.as_ref().and_then(RawJson::to_text).as_deref()? {
                "string" if selects => json.decode().map(Self::SingleSelect).ok(),
                "string" => json.decode().map(Self::Text).ok(),
                "number" | "integer" if !selects => json.decode().map(Self::Number).ok(),
                "boolean" => json.decode().map(Self::Boolean).ok(),
                "array" => json.decode().map(Self::MultiSelect).ok(),
                _ => None,
            }
        });
        Ok(known.unwrap_or(Self::Unknown(json)))
    }
}

message! {
    /// A text field.
    // MCP 2025-11-25 client/elicitation#requested-schema [ELIC-010]: a pattern is not written.
    #[derive(Default)]
    pub struct StringSchema {
        tag "type" = "string" in ALL;
        required {}
        defaulted {}
        optional {
            /// The label.
            title: String = "title" in ALL;
            /// A description of the expected value.
            description: String = "description" in ALL;
            /// The minimum number of characters.
            min_length: u64 as u64 = "minLength" in ALL;
            /// The maximum number of characters.
            max_length: u64 as u64 = "maxLength" in ALL;
            /// The format of the text. One that the protocol does not have is not written.
            format: StringFormat = "format" in ALL, when format_is_expressible;
            /// The initial value; since 2025-11-25.
            default: String = "default" in SINCE_2025_11_25;
        }
    }
}

const fn format_is_expressible(format: &StringFormat, _: Revision) -> bool {
    !matches!(format, StringFormat::Unknown(_))
}

word! {
    /// The format of a text.
    pub enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date and a time.
        DateTime = "date-time",
    }
}

message! {
    /// A number field.
    pub struct NumberSchema {
        required {
            /// Whether fractions are allowed.
            kind: NumberKind = "type" in ALL;
        }
        defaulted {}
        optional {
            /// The label.
            title: String = "title" in ALL;
            /// A description of the expected value.
            description: String = "description" in ALL;
            /// The minimum value.
            minimum: f64 = "minimum" in ALL;
            /// The maximum value.
            maximum: f64 = "maximum" in ALL;
            /// The initial value; since 2025-11-25.
            default: f64 = "default" in SINCE_2025_11_25;
        }
    }
}

impl NumberSchema {
    /// Creates a field for a number.
    #[must_use]
    pub fn number() -> Self {
        Self::new(NumberKind::Number)
    }

    /// Creates a field for a whole number.
    #[must_use]
    pub fn integer() -> Self {
        Self::new(NumberKind::Integer)
    }
}

word! {
    /// Whether fractions are allowed in a number.
    pub enum NumberKind {
        /// Allowed.
        Number = "number",
        /// Not allowed.
        Integer = "integer",
    }
}

message! {
    /// A boolean field.
    #[derive(Default)]
    pub struct BooleanSchema {
        tag "type" = "boolean" in ALL;
        required {}
        defaulted {}
        optional {
            /// The label.
            title: String = "title" in ALL;
            /// The meaning of `true`.
            description: String = "description" in ALL;
            /// The initial value.
            default: bool = "default" in ALL;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::protocol::{Choices, Revision, SerializeAt};

    #[test]
    fn a_multiple_choice_is_refused_at_older_revisions() {
        // Rule: [ELIC-008].
        let form = ElicitSchema::new().field("c", MultiSelectSchema::new(["a", "b"]));
        assert!(form.to_json_at(Revision::V2025_06_18).is_err());
        assert!(form.to_json_at(Revision::V2025_11_25).is_ok());
    }

    #[test]
    fn legacy_names_are_still_read_and_an_unknown_type_survives() {
        // Rule: [ELIC-009] [ELIC-010].
        let text = r#"{"type":"object","properties":{"z":{"type":"string","enum":["a"],"enumNames":["A"]},"y":{"type":"null"},"x":{"type":"string","pattern":"^a"}}}"#;
        let form: ElicitSchema = serde_json::from_str(text).unwrap();
        let legacy = form.properties.get("z");
        assert!(matches!(
            legacy,
            Some(PrimitiveSchema::SingleSelect(SingleSelectSchema {
                choices: Choices::LegacyTitled { .. },
                ..
            }))
        ));
        assert_eq!(
            form.to_json_at(Revision::LATEST).unwrap().as_str(),
            text.replace(r#","pattern":"^a""#, "")
        );
    }

    #[test]
    fn a_filled_in_form_fits_its_schema_or_the_field_is_named() {
        // Rule: [ELIC-007].
        let text = r#"{"type":"object","properties":{
            "name":{"type":"string","title":"Name","minLength":2,"maxLength":3,"default":"Ann"},
            "mail":{"type":"string","format":"email"},"day":{"type":"string","format":"date"},
            "at":{"type":"string","format":"date-time"},"page":{"type":"string","format":"uri"},
            "age":{"type":"integer","minimum":1,"maximum":9,"description":"In years"},
            "sure":{"type":"boolean"},"size":{"type":"string","enum":["s","m"]},
            "tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"maxItems":1},
            "odd":{"type":"null"}},"required":["name"]}"#;
        let form: ElicitSchema = serde_json::from_str(text).unwrap();
        let check = |content: &str| {
            let content = serde_json::from_str(content).unwrap();
            form.validate(&content).err().map(|error| error.to_string())
        };
        for content in [
            r#"{"name":"Bob","other":1}"#,
            r#"{"name":"éé","mail":"a@b","day":"2026-07-28","at":"2026-07-28T10:00:00Z"}"#,
            r#"{"name":"Bob","page":"urn:a","age":3.0,"sure":true,"size":"m","tags":["b"],"odd":[]}"#,
            r#"{"name":"Bob","mail":null,"age":null,"sure":null,"size":null,"tags":null}"#,
        ] {
            assert_eq!(check(content), None, "{content}");
        }
        for (member, expected) in [
            (r#""name":"B""#, "`name` has fewer than 2 characters"),
            (r#""name":"Anna""#, "`name` has more than 3 characters"),
            (r#""name":7"#, "`name` has a value of another type"),
            (r#""name":"Bob","mail":"a b@c""#, "`mail` is not in the format `email`"),
            (r#""name":"Bob","day":"28.7.2026""#, "`day` is not in the format `date`"),
            (r#""name":"Bob","at":"2026-07-28""#, "`at` is not in the format `date-time`"),
            (r#""name":"Bob","page":"page""#, "`page` is not in the format `uri`"),
            (r#""name":"Bob","age":0"#, "`age` is less than 1"),
            (r#""name":"Bob","age":9.5"#, "`age` is not a whole number"),
            (r#""name":"Bob","age":10"#, "`age` is more than 9"),
            (r#""name":"Bob","size":"l""#, "`size` is not one of the choices"),
            (r#""name":"Bob","tags":["c"]"#, "`tags` has a value that is not one of the choices"),
            (r#""name":"Bob","tags":["a","b"]"#, "`tags` has more than 1 choices"),
            (r#""age":1"#, "`name` is required"),
            (r#""name":null"#, "`name` is required"),
        ] {
            assert_eq!(check(&format!("{{{member}}}")).as_deref(), Some(expected));
        }
        let field = |name| form.properties.get(name).unwrap();
        assert_eq!(
            (field("name").title(), field("age").description()),
            (Some("Name"), Some("In years"))
        );
        assert_eq!(field("name").default(), Some("Ann".into()));
        assert_eq!((field("odd").title(), field("sure").default()), (None, None));
    }

    #[test]
    fn a_field_is_required_unless_it_is_optional() {
        // Rule: [ELIC-007].
        let form = ElicitSchema::new()
            .field("a", StringSchema::new())
            .optional_field("b", BooleanSchema::new());
        assert_eq!(
            form.to_json_at(Revision::V2025_06_18).unwrap().as_str(),
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"boolean"}},"required":["a"]}"#
        );
    }

    #[test]
    fn a_field_that_forms_cannot_have_does_not_hide_the_others() {
        // Rule: [ELIC-007].
        for field in [
            r#"{"type":"array","items":{"type":"string"}}"#,
            r#"{"type":"string","default":5}"#,
            r#"{"type":"boolean","default":"yes"}"#,
            r#"{"type":"integer","enum":[1,3]}"#,
            r#"{"type":"string","oneOf":[{"const":"a"}]}"#,
            "true",
        ] {
            let text = format!(
                r#"{{"type":"object","properties":{{"odd":{field},"even":{{"type":"string"}}}}}}"#
            );
            let form: ElicitSchema = serde_json::from_str(&text).unwrap();
            let field = |name| form.properties.get(name).unwrap();
            assert!(matches!(field("odd"), PrimitiveSchema::Unknown(_)), "{text}");
            assert!(matches!(field("even"), PrimitiveSchema::Text(_)));
            assert_eq!(form.to_json_at(Revision::LATEST).unwrap().as_str(), text);
        }
    }

    #[test]
    fn formats_that_the_protocol_does_not_have_are_not_written() {
        // Rule: [ELIC-010].
        for (format, written) in [("email", true), ("ipv4", false)] {
            let text = format!(r#"{{"type":"string","format":"{format}"}}"#);
            let field: PrimitiveSchema = serde_json::from_str(&text).unwrap();
            let expected = if written { &*text } else { r#"{"type":"string"}"# };
            assert_eq!(field.to_json_at(Revision::LATEST).unwrap().as_str(), expected);
        }
    }
}
