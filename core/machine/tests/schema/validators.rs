//! Validators for parts of the published schemas, compiled once for all tests of a program.

#![allow(dead_code, reason = "each test crate uses some of the functions")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::facts;

type Compiled = BTreeMap<(String, String), &'static Validator>;

static COMPILED: Mutex<Compiled> = Mutex::new(BTreeMap::new());

/// Returns the keyword for the definitions of a schema.
pub(crate) fn keyword(schema: &Value) -> &'static str {
    if schema.get("$defs").is_some() { "$defs" } else { "definitions" }
}

/// Panics if `value` is not valid against a definition of a schema.
#[track_caller]
pub(crate) fn assert_valid(name: &str, definition: &str, value: &Value) {
    let keyword = keyword(facts::schema(name));
    let part = json!({ "$ref": format!("#/{keyword}/{definition}") });
    let faults: Vec<_> =
        validator(name, &part).iter_errors(value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "not a {definition} of {name}: {value}\n{faults:#?}");
}

/// Returns the validator for a part of a schema.
pub(crate) fn validator(name: &str, part: &Value) -> &'static Validator {
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled.entry((name.to_owned(), part.to_string())).or_insert_with(|| {
        let schema = facts::schema(name);
        let keyword = keyword(schema);
        let mut definitions = Map::new();
        add_definitions(schema, part, &mut definitions);
        // The whole document would be copied and searched for each part.
        let root = json!({ "$schema": schema["$schema"], keyword: definitions, "allOf": [part] });
        Box::leak(Box::new(jsonschema::validator_for(&root).unwrap()))
    })
}

/// Adds the definitions that a part of a schema refers to.
fn add_definitions(schema: &Value, part: &Value, definitions: &mut Map<String, Value>) {
    match part {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                let definition = schema.pointer(&reference[1..]);
                let definition = definition.unwrap_or_else(|| panic!("no {reference}"));
                let (_, name) = reference.rsplit_once('/').unwrap();
                if definitions.insert(name.to_owned(), definition.clone()).is_none() {
                    add_definitions(schema, definition, definitions);
                }
            }
            members.values().for_each(|member| add_definitions(schema, member, definitions));
        }
        Value::Array(items) => {
            items.iter().for_each(|item| add_definitions(schema, item, definitions));
        }
        _ => {}
    }
}
