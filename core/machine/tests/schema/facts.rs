//! The published schemas without their texts, which `cargo run -p xtask -- spec-facts` writes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

static READ: Mutex<BTreeMap<String, &'static Value>> = Mutex::new(BTreeMap::new());

/// Returns the schema of a revision, or that of an extension: `ext-tasks`.
pub(crate) fn schema(name: &str) -> &'static Value {
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.entry(name.to_owned()).or_insert_with(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules/schema");
        let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
        Box::leak(Box::new(serde_json::from_str(&text).unwrap()))
    })
}
