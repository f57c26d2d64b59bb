//! The published schemas without their texts, which `cargo run -p xtask -- spec-facts` writes.

use serde_json::Value;

/// Returns the schema of a revision, or that of an extension: `ext-tasks`.
pub(crate) fn schema(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules/schema");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}
