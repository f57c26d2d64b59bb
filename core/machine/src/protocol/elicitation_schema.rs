//! The schema of a form: a flat object of simple fields.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

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
    /// An unknown type, kept and written back unchanged.
    Unknown(Json),
}

forward_wire!(PrimitiveSchema { Text, Number, Boolean, SingleSelect, MultiSelect, Unknown });

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
        let probe: Probe<'_> = json.decode().map_err(D::Error::custom)?;
        let selects = probe.values.is_some() || probe.titled.is_some();
        // A list of types is an unknown kind.
        match probe.kind.as_ref().and_then(RawJson::to_text).as_deref() {
            Some("string") if selects => json.decode().map(Self::SingleSelect),
            Some("string") => json.decode().map(Self::Text),
            Some("number" | "integer") => json.decode().map(Self::Number),
            Some("boolean") => json.decode().map(Self::Boolean),
            Some("array") => json.decode().map(Self::MultiSelect),
            _ => Ok(Self::Unknown(json)),
        }
        .map_err(D::Error::custom)
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
            /// The format of the text.
            format: StringFormat = "format" in ALL;
            /// The initial value; since 2025-11-25.
            default: String = "default" in SINCE_2025_11_25;
        }
    }
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
}
