//! Form fields with a single or a multiple choice.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::Revision;
use super::wire::{NotExpressible, SerializeAt};

/// An option of a choice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct EnumOption {
    /// The value that is sent.
    #[serde(rename = "const")]
    pub value: String,
    /// The title that is shown.
    pub title: String,
}

impl EnumOption {
    /// Creates an option from its value and title.
    #[must_use]
    pub fn new(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self { value: value.into(), title: title.into() }
    }
}

impl Serialize for EnumOption {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("const", &self.value)?;
        map.serialize_entry("title", &self.title)?;
        map.end()
    }
}

/// The values to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choices {
    /// Values without titles.
    Untitled(Vec<String>),
    /// Values with titles; since 2025-11-25. Written as [`Choices::LegacyTitled`] at older
    /// revisions.
    Titled(Vec<EnumOption>),
    /// Values and a separate list of titles: the form of 2025-06-18, which later revisions still
    /// accept.
    LegacyTitled {
        /// The values that are sent.
        values: Vec<String>,
        /// The titles that are shown, in the same order.
        names: Vec<String>,
    },
}

impl Choices {
    /// Returns the values that can be sent.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        let (values, options): (&[String], &[EnumOption]) = match self {
            Self::Untitled(values) | Self::LegacyTitled { values, .. } => (values, &[]),
            Self::Titled(options) => (&[], options),
        };
        values.iter().map(String::as_str).chain(options.iter().map(|option| option.value.as_str()))
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for Choices {
    fn from(values: [T; N]) -> Self {
        Self::Untitled(values.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<String>> for Choices {
    fn from(values: Vec<String>) -> Self {
        Self::Untitled(values)
    }
}

impl From<Vec<EnumOption>> for Choices {
    fn from(options: Vec<EnumOption>) -> Self {
        Self::Titled(options)
    }
}

/// A field with a single choice.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SingleSelectSchema {
    /// The label.
    pub title: Option<String>,
    /// A description of the choice.
    pub description: Option<String>,
    /// The values to choose from.
    pub choices: Choices,
    /// The initial value; since 2025-11-25.
    pub default: Option<String>,
}

impl SingleSelectSchema {
    /// Creates a single choice from these options.
    #[must_use]
    pub fn new(choices: impl Into<Choices>) -> Self {
        Self { title: None, description: None, choices: choices.into(), default: None }
    }

    /// Sets [`SingleSelectSchema::title`].
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets [`SingleSelectSchema::description`].
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets [`SingleSelectSchema::default`].
    #[must_use]
    pub fn default(mut self, value: impl Into<String>) -> Self {
        self.default = Some(value.into());
        self
    }
}

impl<'de> Deserialize<'de> for SingleSelectSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            title: Option<String>,
            description: Option<String>,
            #[serde(rename = "oneOf")]
            titled: Option<Vec<EnumOption>>,
            #[serde(rename = "enum")]
            values: Option<Vec<String>>,
            #[serde(rename = "enumNames")]
            names: Option<Vec<String>>,
            default: Option<String>,
        }

        let fields = Fields::deserialize(deserializer)?;
        let choices = match (fields.titled, fields.values, fields.names) {
            (Some(options), _, _) => Choices::Titled(options),
            // MCP 2026-07-28 client/elicitation#requested-schema [ELIC-009]: still read.
            (None, Some(values), Some(names)) => Choices::LegacyTitled { values, names },
            (None, Some(values), None) => Choices::Untitled(values),
            (None, None, _) => return Err(D::Error::missing_field("enum")),
        };
        Ok(Self {
            title: fields.title,
            description: fields.description,
            choices,
            default: fields.default,
        })
    }
}

impl SerializeAt for SingleSelectSchema {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let modern = revision >= Revision::V2025_11_25;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "string")?;
        write_label(&mut map, self.title.as_ref(), self.description.as_ref())?;
        match &self.choices {
            Choices::Untitled(values) => map.serialize_entry("enum", values)?,
            Choices::Titled(options) if modern => map.serialize_entry("oneOf", options)?,
            // MCP 2025-06-18 client/elicitation#supported-schema-types [ELIC-008]: titles are in a
            // separate list.
            Choices::Titled(options) => {
                map.serialize_entry("enum", &Column(options, |option| &option.value))?;
                map.serialize_entry("enumNames", &Column(options, |option| &option.title))?;
            }
            Choices::LegacyTitled { values, names } => {
                map.serialize_entry("enum", values)?;
                map.serialize_entry("enumNames", names)?;
            }
        }
        if let (Some(value), true) = (&self.default, modern) {
            map.serialize_entry("default", value)?;
        }
        map.end()
    }
}

/// A field with a multiple choice; since 2025-11-25.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MultiSelectSchema {
    /// The label.
    pub title: Option<String>,
    /// A description of the choice.
    pub description: Option<String>,
    /// The values to choose from; [`Choices::LegacyTitled`] is written as [`Choices::Titled`].
    pub choices: Choices,
    /// The minimum number of choices.
    pub min_items: Option<u64>,
    /// The maximum number of choices.
    pub max_items: Option<u64>,
    /// The initial values.
    pub default: Option<Vec<String>>,
}

impl MultiSelectSchema {
    /// Creates a multiple choice from these options.
    #[must_use]
    pub fn new(choices: impl Into<Choices>) -> Self {
        Self {
            title: None,
            description: None,
            choices: choices.into(),
            min_items: None,
            max_items: None,
            default: None,
        }
    }

    /// Sets [`MultiSelectSchema::title`].
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets [`MultiSelectSchema::description`].
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets [`MultiSelectSchema::min_items`].
    #[must_use]
    pub fn min_items(mut self, count: u64) -> Self {
        self.min_items = Some(count);
        self
    }

    /// Sets [`MultiSelectSchema::max_items`].
    #[must_use]
    pub fn max_items(mut self, count: u64) -> Self {
        self.max_items = Some(count);
        self
    }

    /// Sets [`MultiSelectSchema::default`].
    #[must_use]
    pub fn default(mut self, values: impl Into<Vec<String>>) -> Self {
        self.default = Some(values.into());
        self
    }
}

impl<'de> Deserialize<'de> for MultiSelectSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            title: Option<String>,
            description: Option<String>,
            items: Items,
            #[serde(default, rename = "minItems")]
            min_items: Option<u64>,
            #[serde(default, rename = "maxItems")]
            max_items: Option<u64>,
            default: Option<Vec<String>>,
        }

        #[derive(Deserialize)]
        struct Items {
            // The titled form is `anyOf`; some peers write `oneOf`, as for a single choice.
            #[serde(rename = "anyOf", alias = "oneOf")]
            titled: Option<Vec<EnumOption>>,
            #[serde(rename = "enum")]
            values: Option<Vec<String>>,
        }

        let fields = Fields::deserialize(deserializer)?;
        let choices = match (fields.items.titled, fields.items.values) {
            (Some(options), _) => Choices::Titled(options),
            (None, Some(values)) => Choices::Untitled(values),
            (None, None) => return Err(D::Error::missing_field("enum")),
        };
        Ok(Self {
            title: fields.title,
            description: fields.description,
            choices,
            min_items: fields.min_items,
            max_items: fields.max_items,
            default: fields.default,
        })
    }
}

impl SerializeAt for MultiSelectSchema {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        // MCP 2025-06-18 client/elicitation#supported-schema-types [ELIC-008]: this type does not
        // exist. A text field is not an equivalent, because users would enter free text.
        if revision < Revision::V2025_11_25 {
            return Err(S::Error::custom(NotExpressible::new(
                "a form field with a multiple choice",
                revision,
            )));
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "array")?;
        write_label(&mut map, self.title.as_ref(), self.description.as_ref())?;
        map.serialize_entry("items", &ItemsOf(&self.choices))?;
        if let Some(count) = self.min_items {
            map.serialize_entry("minItems", &count)?;
        }
        if let Some(count) = self.max_items {
            map.serialize_entry("maxItems", &count)?;
        }
        if let Some(values) = &self.default {
            map.serialize_entry("default", values)?;
        }
        map.end()
    }
}

fn write_label<M: SerializeMap>(
    map: &mut M,
    title: Option<&String>,
    description: Option<&String>,
) -> Result<(), M::Error> {
    if let Some(title) = title {
        map.serialize_entry("title", title)?;
    }
    if let Some(description) = description {
        map.serialize_entry("description", description)?;
    }
    Ok(())
}

/// The `items` of a multiple choice.
struct ItemsOf<'a>(&'a Choices);

impl Serialize for ItemsOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.0 {
            Choices::Untitled(values) => {
                map.serialize_entry("type", "string")?;
                map.serialize_entry("enum", values)?;
            }
            Choices::Titled(options) => map.serialize_entry("anyOf", options)?,
            Choices::LegacyTitled { values, names } => {
                let options: Vec<EnumOption> = values
                    .iter()
                    .enumerate()
                    .map(|(index, value)| EnumOption::new(value, names.get(index).unwrap_or(value)))
                    .collect();
                map.serialize_entry("anyOf", &options)?;
            }
        }
        map.end()
    }
}

/// One member of each option, as an array.
struct Column<'a>(&'a [EnumOption], fn(&EnumOption) -> &String);

impl Serialize for Column<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for option in self.0 {
            seq.serialize_element((self.1)(option))?;
        }
        seq.end()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn titled() -> SingleSelectSchema {
        SingleSelectSchema::new(vec![EnumOption::new("r", "Red"), EnumOption::new("g", "Green")])
            .default("r")
    }

    #[test]
    fn titles_are_a_separate_list_at_2025_06_18() {
        // Rule: [ELIC-008] [ELIC-009].
        assert_eq!(
            titled().to_json_at(Revision::V2025_06_18).unwrap().as_str(),
            r#"{"type":"string","enum":["r","g"],"enumNames":["Red","Green"]}"#
        );
        assert_eq!(
            titled().to_json_at(Revision::V2025_11_25).unwrap().as_str(),
            r#"{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"r"}"#
        );
    }

    #[test]
    fn values_of_choices_are_the_sendable_ones() {
        assert!(titled().choices.values().eq(["r", "g"]));
        assert!(Choices::from(["a", "b"]).values().eq(["a", "b"]));
    }
}
