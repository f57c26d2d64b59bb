//! Variants of a message that break a rule and have only one meaning: they are read like the
//! message itself.

use mcp_sansio::Revision;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::SerializeAt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::spec::{Schema, object};

/// A value that is read as a `T`, with its schema.
pub(crate) struct Subject<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) definition: &'a Value,
    pub(crate) value: Value,
    pub(crate) revision: Revision,
}

/// Members whose content is passed on as it is written: metadata, and data of the application.
const VERBATIM: &[&str] =
    &["_meta", "inputSchema", "outputSchema", "metadata", "structuredContent", "input"];

/// Members of elements of lists that only help to display or to use them: a malformed one is left
/// out alone.
const HINTS: &[&str] = &["annotations", "icons", "size", "sizes", "theme", "title"];

/// The schema of a place in a value.
struct Place<'a> {
    pointer: String,
    schema: &'a Value,
}

impl Subject<'_> {
    /// Returns the differences between what is read of the value and of its variants, and the
    /// number of variants.
    pub(crate) fn faults<T: SerializeAt + DeserializeOwned>(&self) -> (usize, Vec<String>) {
        let mut faults = Vec::new();
        let mut places = Vec::new();
        self.places(&self.value, self.definition, String::new(), &mut places);
        let (mut count, same) = (0, self.read::<T>(&self.value));
        let mut check = |variant: Value, like: &Value, what: String| {
            count += 1;
            let read = self.read::<T>(&variant);
            let expected = if *like == self.value { same.clone() } else { self.read::<T>(like) };
            if read != expected {
                faults.push(format!("{what}: {read:?}, not {expected:?}\n    {variant}"));
            }
        };
        for Place { pointer, schema } in places {
            let at = self.value.pointer(&pointer).unwrap();
            // JSON Schema counts a number with a fraction of zero as an integer.
            if let Some(number) = at.as_i64() {
                let mut variant = self.value.clone();
                *variant.pointer_mut(&pointer).unwrap() = json!(number as f64);
                check(variant, &self.value, format!("{pointer}: a fraction of zero"));
            }
            if !at.is_object() {
                continue;
            }
            // `null` in an optional member is absence.
            let (members, _) = self.schema.members(schema, Some(at));
            let required = self.schema.required(schema, at);
            for (name, member) in members {
                if required.contains(name) || self.schema.allows_null(member) {
                    continue;
                }
                let (mut null, mut absent) = (self.value.clone(), self.value.clone());
                object(null.pointer_mut(&pointer).unwrap()).insert(name.clone(), Value::Null);
                object(absent.pointer_mut(&pointer).unwrap()).remove(name);
                check(null, &absent, format!("{pointer}/{name}: null"));
            }
        }
        (count, faults)
    }

    /// Returns the faults of reading the value with a malformed element at each place of each list
    /// of objects: it alone, or its malformed hint alone, must be left out and described. Also
    /// returns the number of variants.
    pub(crate) fn faults_of_lists<T: SerializeAt + DeserializeOwned>(
        &self,
    ) -> (usize, Vec<String>) {
        let (mut count, mut faults) = (0, Vec::new());
        let mut places = Vec::new();
        self.places(&self.value, self.definition, String::new(), &mut places);
        for Place { pointer, schema } in places {
            let Some(elements) = self.value.pointer(&pointer).unwrap().as_array() else { continue };
            let Some(element) = schema.get("items") else { continue };
            let objects = self.schema.is_object(element);
            // Requests inside of a result are not part of it.
            if !objects || elements.is_empty() || pointer.contains("/inputRequests/") {
                continue;
            }
            for index in 0..=elements.len() {
                let near = &elements[index.min(elements.len() - 1)];
                let with = |element: Value| {
                    let mut variant = self.value.clone();
                    let list = variant.pointer_mut(&pointer).unwrap().as_array_mut().unwrap();
                    list.insert(index, element);
                    variant
                };
                for (malformed, hint) in self.malformed(element, near) {
                    let text = with(malformed.clone()).to_string();
                    let raw = RawJson::trusted(&text);
                    if raw.decode::<T>().is_ok() {
                        // It was read all the same, as of an unknown kind.
                        continue;
                    }
                    count += 1;
                    let what = format!("{pointer}/{index}: {malformed}");
                    let mut place = format!("{pointer}/{index}");
                    let expected = match hint {
                        Some(hint) => {
                            let mut without = malformed.clone();
                            object(&mut without).remove(hint);
                            place.extend(["/", hint]);
                            self.read::<T>(&with(without))
                        }
                        None => self.read::<T>(&self.value),
                    };
                    match raw.decode_lossy::<T>() {
                        Ok((value, omissions)) => {
                            let read = self.written(&value);
                            if read != expected {
                                faults.push(format!("{what}: {read:?}, not {expected:?}"));
                            }
                            let places: Vec<_> =
                                omissions.iter().map(|omission| &*omission.pointer).collect();
                            if places != [place] || omissions.count() != 1 {
                                faults.push(format!("{what}: {omissions}"));
                            }
                        }
                        Err(error) => faults.push(format!("{what}: {error}")),
                    }
                }
            }
        }
        (count, faults)
    }

    /// Returns values that are no elements: of other types, and `near` without one of its required
    /// members or with a member of another type, which may be a hint.
    fn malformed<'n>(&self, schema: &Value, near: &'n Value) -> Vec<(Value, Option<&'n str>)> {
        let others = [json!(7), json!(null), json!("a"), json!([[]])];
        let mut all: Vec<_> = others.map(|other| (other, None)).into();
        for name in near.as_object().unwrap().keys() {
            let mut wrong = near.clone();
            wrong[name] = json!({ "not": ["a", "value"] });
            all.push((wrong, HINTS.contains(&&**name).then_some(&**name)));
        }
        for name in self.schema.required(schema, near) {
            let mut lacking = near.clone();
            object(&mut lacking).remove(&name);
            all.push((lacking, None));
        }
        all
    }

    fn read<T: SerializeAt + DeserializeOwned>(&self, value: &Value) -> Result<String, String> {
        let text = value.to_string();
        // What is wrong is not compared, only whether anything is.
        let read = RawJson::trusted(&text).decode::<T>().map_err(|_| "refused".to_owned())?;
        self.written(&read)
    }

    fn written<T: SerializeAt>(&self, value: &T) -> Result<String, String> {
        let written = value.to_json_at(self.revision).map_err(|error| error.to_string())?;
        Ok(written.as_str().to_owned())
    }

    /// Lists the places in a value that its schema describes, without the content of open objects.
    fn places<'s>(
        &'s self,
        value: &Value,
        schema: &'s Value,
        pointer: String,
        found: &mut Vec<Place<'s>>,
    ) {
        let schema = self.schema.branch(schema, value);
        match value {
            Value::Object(members) => {
                let (listed, others) = self.schema.members(schema, Some(value));
                let read = members.iter().filter(|(name, _)| !VERBATIM.contains(&name.as_str()));
                for (name, value) in read {
                    let known = listed.iter().rfind(|(key, _)| *key == name).map(|(_, it)| *it);
                    let described = known.or_else(|| others.filter(|others| others.is_object()));
                    if let Some(schema) = described {
                        let name = name.replace('~', "~0").replace('/', "~1");
                        self.places(value, schema, format!("{pointer}/{name}"), found);
                    }
                }
                // Their own schema says nothing of their members.
                if listed.is_empty() {
                    return;
                }
            }
            Value::Array(elements) => {
                if let Some(schema) = schema.get("items") {
                    for (index, element) in elements.iter().enumerate() {
                        self.places(element, schema, format!("{pointer}/{index}"), found);
                    }
                }
            }
            // Without a type it is any value, whose numbers stay as they are written.
            _ if schema.get("type").is_none() && schema.get("const").is_none() => return,
            _ => {}
        }
        found.push(Place { pointer, schema });
    }
}
