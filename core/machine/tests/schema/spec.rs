//! The official schemas, used to check output.

use serde_json::{Map, Value};

use crate::{facts, validators};

/// A schema document.
pub(crate) struct Schema {
    name: String,
    root: &'static Value,
    /// The keyword for its definitions.
    definitions: &'static str,
}

impl Schema {
    /// Loads the schema of a revision, or that of an extension: `ext-tasks`.
    pub(crate) fn load(name: &str) -> Self {
        let root = facts::schema(name);
        Self { name: name.to_owned(), root, definitions: validators::keyword(root) }
    }

    /// Returns the keyword for the definitions.
    pub(crate) const fn keyword(&self) -> &'static str {
        self.definitions
    }

    /// Returns the names of the definitions.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.root[self.definitions].as_object().unwrap().keys().map(String::as_str)
    }

    /// Returns a definition.
    pub(crate) fn definition(&self, name: &str) -> Option<&Value> {
        self.root[self.definitions].get(name)
    }

    /// Returns the faults of a value: violations of the schema, and members that it does not list.
    pub(crate) fn faults(&self, value: &Value, schema: &Value) -> Vec<String> {
        let mut faults = self.violations(value, schema);
        self.leaks(value, schema, "", &mut faults);
        faults
    }

    fn violations(&self, value: &Value, schema: &Value) -> Vec<String> {
        validators::validator(&self.name, schema)
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// Follows references to the actual schema.
    pub(crate) fn resolve<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        while let Some(reference) = schema.get("$ref") {
            schema = self.root.pointer(&reference.as_str().unwrap()[1..]).unwrap();
        }
        schema
    }

    /// Returns the members that an object may have, from all parts of its schema, and the schema of
    /// other members. With a value, only the alternatives that fit it are used.
    pub(crate) fn members<'s>(
        &'s self,
        schema: &'s Value,
        value: Option<&Value>,
    ) -> (Vec<(&'s String, &'s Value)>, Option<&'s Value>) {
        let schema = self.resolve(schema);
        let list = |key| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        let fits =
            |part: &&Value| value.is_none_or(|value| self.violations(value, part).is_empty());
        let mut listed = Vec::new();
        // A part that allows other members does not make the whole schema open.
        for part in list("allOf").chain(list("anyOf").filter(fits)) {
            listed.extend(self.members(part, value).0);
        }
        // The schema's own members are last, as they are more specific than those of a base.
        listed.extend(schema.get("properties").and_then(Value::as_object).into_iter().flatten());
        (listed, schema.get("additionalProperties"))
    }

    /// Follows references and unions to the schema that describes a value.
    pub(crate) fn branch<'s>(&'s self, schema: &'s Value, value: &Value) -> &'s Value {
        let schema = self.resolve(schema);
        let branches = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
        let fitting = branches.into_iter().flatten();
        let mut fitting = fitting.filter(|branch| self.violations(value, branch).is_empty());
        fitting.next().map_or(schema, |branch| self.branch(branch, value))
    }

    /// Returns the members that an object must have, from all parts of its schema.
    pub(crate) fn required(&self, schema: &Value, value: &Value) -> Vec<String> {
        let schema = self.branch(schema, value);
        let list = |key| schema.get(key).and_then(Value::as_array).into_iter().flatten();
        let names = list("required").filter_map(Value::as_str).map(String::from);
        let parts = list("allOf").flat_map(|part| self.required(part, value));
        names.chain(parts).collect()
    }

    /// Returns whether `null` is a value of its own.
    pub(crate) fn allows_null(&self, schema: &Value) -> bool {
        self.violations(&Value::Null, schema).is_empty()
    }

    /// Returns whether all values are objects with members that the schema lists.
    pub(crate) fn is_object(&self, schema: &Value) -> bool {
        let schema = self.resolve(schema);
        let branches = ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array());
        match branches {
            Some(branches) => branches.iter().all(|branch| self.is_object(branch)),
            None => !self.members(schema, None).0.is_empty(),
        }
    }

    /// Returns whether a definition is in a union, such as `ServerResult`.
    pub(crate) fn is_in_union(&self, name: &str, union: &str) -> bool {
        let Some(union) = self.definition(union) else { return false };
        let members = union.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        let references = members.filter_map(|member| member["$ref"].as_str());
        references.filter_map(|it| it.rsplit('/').next()).any(|member| member == name)
    }

    /// Finds members that the schema does not list. They would be valid, as most schemas are open,
    /// but belong to another revision.
    fn leaks(&self, value: &Value, schema: &Value, path: &str, faults: &mut Vec<String>) {
        let schema = self.resolve(schema);
        let mut branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key));
        if let Some(branches) = branches.next() {
            let fewest = branches
                .as_array()
                .unwrap()
                .iter()
                .filter(|branch| self.violations(value, branch).is_empty())
                .map(|branch| {
                    let mut faults = Vec::new();
                    self.leaks(value, branch, path, &mut faults);
                    faults
                })
                .min_by_key(Vec::len);
            faults.extend(fewest.unwrap_or_default());
            return;
        }
        match value {
            object_value @ Value::Object(object) => {
                let (listed, others) = self.members(schema, Some(object_value));
                for (key, value) in object {
                    let path = format!("{path}/{key}");
                    let known = listed.iter().rfind(|(name, _)| *name == key).map(|(_, s)| *s);
                    match (known, others) {
                        // Metadata is open by definition.
                        (Some(_), _) if key == "_meta" => {}
                        (Some(member), _) => self.leaks(value, member, &path, faults),
                        (None, Some(Value::Object(other))) => {
                            self.leaks(value, &Value::Object(other.clone()), &path, faults);
                        }
                        (None, Some(Value::Bool(true))) => {}
                        // SEP-2133 declares extensions in the handshake of revisions whose schemas
                        // lack the member.
                        (None, None) if is_declaration(&path) => {}
                        // An object without listed members is open.
                        (None, None) if listed.is_empty() => {}
                        (None, _) => faults.push(format!("{path}: not listed in the schema")),
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.get("items") else { return };
                for (index, item) in items.iter().enumerate() {
                    self.leaks(item, schema, &format!("{path}/{index}"), faults);
                }
            }
            _ => {}
        }
    }
}

/// Returns the members of an object.
pub(crate) fn object(value: &mut Value) -> &mut Map<String, Value> {
    value.as_object_mut().unwrap()
}

fn is_declaration(path: &str) -> bool {
    ["/extensions", "/capabilities/extensions", "/params/capabilities/extensions"].contains(&path)
}
