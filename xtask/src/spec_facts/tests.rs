//! Tests of `spec_facts`.

use super::*;

#[test]
fn a_reduced_schema_has_its_facts_and_none_of_its_texts() {
    let schema = serde_json::json!({
        "$schema": "dialect", "$id": "address", "title": "A schema", "definitions": {
            "B": { "$schema": "dialect", "enum": ["description"], "description": "A text." },
            "A": { "type": "object", "required": ["title"], "$comment": "A text.", "properties": {
                "title": { "type": "string", "description": "A text." },
                "items": { "items": { "$ref": "#/definitions/B", "examples": ["b"] } },
            } },
        }
    });
    assert_eq!(
        facts(&schema).as_deref(),
        Ok("{\"$schema\":\"dialect\",\"definitions\":{\n\
             \"A\":{\"properties\":{\"items\":{\"items\":{\"$ref\":\"#/definitions/B\"}},\
             \"title\":{\"type\":\"string\"}},\"required\":[\"title\"],\"type\":\"object\"},\n\
             \"B\":{\"enum\":[\"description\"]}\n}}\n")
    );
    assert_eq!(facts(&serde_json::json!({})), Err("no definitions".into()));
    let unknown = serde_json::json!({ "$defs": { "A": { "items": { "contains": {} } } } });
    assert_eq!(facts(&unknown), Err("A: unknown keyword `contains`".into()));
}
