//! Finds the annotations in a schema in one pass.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Branch, HeaderParams, InvalidHeaderParam, MIRRORS_MAX, PREFIX};
use crate::binding::is_token_byte;
use crate::jsonrpc::RawJson;

pub(super) const ANNOTATION: &str = "x-mcp-header";

/// Reads a schema that may have annotations. Each byte is read once or twice.
pub(super) fn read(schema: &str) -> Result<HeaderParams, InvalidHeaderParam> {
    let mut walk = Walk::default();
    let mut deserializer = serde_json::Deserializer::from_str(schema);
    let root = Step { walk: &mut walk, position: Position::Root }.deserialize(&mut deserializer);
    match (walk.fault, root) {
        (Some(fault), _) => Err(fault),
        (None, Err(_)) => Err(InvalidHeaderParam::Unreadable),
        (None, Ok(root)) => Ok(HeaderParams { headers: walk.headers, branches: root.branches }),
    }
}

#[derive(Default)]
struct Walk<'de> {
    /// The keys and array indices from the root to the current value.
    path: Vec<Segment<'de>>,
    headers: Vec<String>,
    fault: Option<InvalidHeaderParam>,
}

enum Segment<'de> {
    Key(Cow<'de, str>),
    Index(usize),
}

/// The kind of value at a position in the schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The schema itself.
    Root,
    /// A schema that is reached only through `properties`.
    Property,
    /// The schemas of properties, by name.
    Properties,
    /// Any other value that may be a schema or contain one, including unknown keywords.
    Elsewhere,
    /// Other schemas, by names that the author chose.
    NamesElsewhere,
    /// A value without annotations: data that may look like a schema, or a number.
    Data,
}

impl Position {
    /// Returns the position of a keyword's value in a schema at this position.
    fn behind(self, keyword: &str) -> Self {
        match keyword {
            // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-015]
            "properties" if matches!(self, Self::Root | Self::Property) => Self::Properties,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependentRequired" | "dependencies" => Self::NamesElsewhere,
            // Numbers outside of binary64 would end the walk.
            "const" | "default" | "enum" | "examples" | "maximum" | "minimum"
            | "exclusiveMaximum" | "exclusiveMinimum" | "multipleOf" => Self::Data,
            _ => Self::Elsewhere,
        }
    }
}

/// The types of a property in its schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    /// No type is given.
    Any,
    /// One type that a header can mirror.
    Mirrored,
    /// Other types.
    Other,
}

impl Types {
    // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-013]: `null` in
    // addition to the type is accepted, because the page defines how to handle a null argument.
    fn from_value(value: &RawValue) -> Self {
        let value = RawJson::trusted(value.get());
        let names = match value.to_text() {
            Some(name) => Vec::from([Key(name)]),
            None => value.decode::<Vec<Key<'_>>>().unwrap_or_default(),
        };
        let mut names = names.iter().map(|name| &*name.0).filter(|name| *name != "null");
        match (names.next(), names.next()) {
            (Some("string" | "integer" | "boolean"), None) => Self::Mirrored,
            _ => Self::Other,
        }
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The annotations found below a key.
#[derive(Default)]
struct Found {
    mirror: Option<usize>,
    branches: Vec<Branch>,
}

struct Step<'w, 'de> {
    walk: &'w mut Walk<'de>,
    position: Position,
}

impl<'de> DeserializeSeed<'de> for Step<'_, 'de> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        if self.position == Position::Data {
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Found::default());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_, 'de> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found, A::Error> {
        for index in 0.. {
            self.walk.path.push(Segment::Index(index));
            let seed = Step { walk: self.walk, position: Position::Elsewhere };
            let more = items.next_element_seed(seed)?.is_some();
            self.walk.path.pop();
            if !more {
                break;
            }
        }
        Ok(Found::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let Self { walk, position } = self;
        let mut found = Found::default();
        let mut types = Types::Any;
        let mut annotation: Option<&RawValue> = None;
        while let Some(Key(key)) = members.next_key()? {
            let schema = match position {
                Position::Properties => Some(Position::Property),
                Position::NamesElsewhere => Some(Position::Elsewhere),
                _ => None,
            };
            if schema.is_none() && key == ANNOTATION {
                if annotation.replace(members.next_value()?).is_some() {
                    return Err(walk.fail(|at| InvalidHeaderParam::Repeated { at }));
                }
                continue;
            }
            if schema.is_none() && key == "type" {
                let named = Types::from_value(members.next_value()?);
                types = if types == Types::Any { named } else { Types::Other };
                continue;
            }
            let behind = schema.unwrap_or_else(|| position.behind(&key));
            walk.path.push(Segment::Key(key));
            let below = members.next_value_seed(Step { walk, position: behind })?;
            let segment = walk.path.pop();
            if position != Position::Properties {
                found.branches.extend(below.branches);
            } else if let Some(Segment::Key(property)) = segment
                && (below.mirror.is_some() || !below.branches.is_empty())
            {
                let Found { mirror, branches } = below;
                found.branches.push(Branch { property: property.into(), mirror, branches });
            }
        }
        if let Some(annotation) = annotation {
            found.mirror = Some(walk.take(annotation, types, position)?);
        }
        Ok(found)
    }
}

impl Walk<'_> {
    /// Adds an annotation, or reports its error.
    fn take<E: Error>(
        &mut self,
        annotation: &RawValue,
        types: Types,
        position: Position,
    ) -> Result<usize, E> {
        // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-015]
        if position != Position::Property {
            return Err(self.fail(|at| InvalidHeaderParam::Unreachable { at }));
        }
        let annotation = RawJson::trusted(annotation.get());
        let Some(name) = annotation.to_text() else {
            return Err(self.fail(|at| InvalidHeaderParam::NotText { at }));
        };
        // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-010]
        if name.is_empty() {
            return Err(self.fail(|at| InvalidHeaderParam::Empty { at }));
        }
        // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-011]
        if !name.bytes().all(is_token_byte) {
            return Err(self.fail(|at| InvalidHeaderParam::NotToken { at, name: name.into() }));
        }
        // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-013]
        if types != Types::Mirrored {
            return Err(self.fail(|at| InvalidHeaderParam::Type { at }));
        }
        let header = [PREFIX, &name].concat();
        // MCP 2026-07-28 basic/transports/streamable-http#schema-extension [HDR-012]
        if self.headers.iter().any(|known| known.eq_ignore_ascii_case(&header)) {
            return Err(self.fail(|at| InvalidHeaderParam::Duplicate { at, name: name.into() }));
        }
        if self.headers.len() == MIRRORS_MAX {
            return Err(self.fail(|_| InvalidHeaderParam::TooMany));
        }
        self.headers.push(header);
        Ok(self.headers.len() - 1)
    }

    /// Ends the walk and records the error with its JSON pointer.
    fn fail<E: Error>(&mut self, fault: impl FnOnce(String) -> InvalidHeaderParam) -> E {
        let mut pointer = String::new();
        for segment in &self.path {
            pointer.push('/');
            match segment {
                Segment::Key(key) if key.contains(['~', '/']) => {
                    pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
                }
                Segment::Key(key) => pointer.push_str(key),
                Segment::Index(index) => pointer.push_str(&alloc::format!("{index}")),
            }
        }
        self.fault = Some(fault(pointer));
        E::custom("")
    }
}
