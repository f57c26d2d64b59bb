use std::fmt::Write;

use jsonschema::{PatternOptions, Validator as Compiled};
use mcp_sansio::catalog::{CompiledSchema, Validator};
use mcp_sansio::jsonrpc::{Json, RawJson};
use serde_json::Value;

/// Validates arguments and structured results against the schemas of tools, using the crate
/// `jsonschema`.
///
/// It supports drafts 4, 6, 7, 2019-09 and 2020-12; the last is the default for schemas without a
/// dialect. `format` is an annotation in the drafts that define it so. Nothing is fetched.
///
/// A schema may have 256 KiB of text and 10,000 objects, and its patterns may backtrack 10,000
/// times for each string. Within these limits the work of a validation grows with the value and
/// with the schema, whose author is trusted otherwise: subschemas that refer to each other under
/// `anyOf` multiply.
///
/// ```
/// use mcp_sansio_handlers::Server;
/// use mcp_sansio_async::names::SchemaValidator;
///
/// let server = Server::new("weather", "1.0.0").catalog(|catalog| {
///     catalog.validator(SchemaValidator::new()).expect("the schemas are valid");
/// });
/// ```
// MCP 2026-07-28 basic/index#schema-dialect [JSCH-002]: 2020-12 and others, which are listed here.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SchemaValidator;

/// The longest schema, in bytes. 256 KiB: far more than a model can use.
const SCHEMA_LENGTH_MAX: usize = 256 * 1024;

/// The most objects in a schema. Each may be a subschema. 10,000: likewise.
const OBJECTS_MAX: usize = 10_000;

/// Backtracking steps of a pattern for one string. 10,000: enough for reasonable patterns, and far
/// less than a millisecond.
const BACKTRACK_MAX: usize = 10_000;

/// The largest compiled pattern, in bytes. 1 MiB.
const PATTERN_SIZE_MAX: usize = 1024 * 1024;

/// Errors reported at once. 5: a model can correct them together.
const ERRORS_MAX: usize = 5;

/// The longest error text, in bytes. 2 KiB: it contains member names chosen by the peer.
const TEXT_LENGTH_MAX: usize = 2048;

impl SchemaValidator {
    /// Creates a validator.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Validator for SchemaValidator {
    fn compile(&self, schema: &Json) -> Result<Box<dyn CompiledSchema>, String> {
        // MCP 2026-07-28 basic/index#composition-keyword-resource-use [JSCH-008]
        if schema.as_str().len() > SCHEMA_LENGTH_MAX {
            return Err(format!("the schema is longer than {SCHEMA_LENGTH_MAX} bytes"));
        }
        let schema: Value = schema.decode().map_err(|error| error.to_string())?;
        if count_objects(&schema) > OBJECTS_MAX {
            return Err(format!("the schema has more than {OBJECTS_MAX} objects"));
        }
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACK_MAX)
            .size_limit(PATTERN_SIZE_MAX)
            .dfa_size_limit(PATTERN_SIZE_MAX);
        // MCP 2026-07-28 basic/index#implementation-requirements [JSCH-001] [JSCH-003]: the dialect
        // is the one in `$schema`, or 2020-12 by default; an unknown one is an error.
        // MCP 2026-07-28 basic/index#schema-validation [JSCH-004]: a schema that is invalid in its
        // dialect is an error, too.
        // MCP 2026-07-28 basic/index#ref-resolution [JSCH-005] [JSCH-007]: so is a `$ref` to an
        // external schema, as nothing is fetched.
        let options = jsonschema::options().offline().with_pattern_options(patterns);
        match options.build(&schema) {
            Ok(compiled) => Ok(Box::new(Schema(compiled))),
            Err(error) => Err(shortened(format!("{error} (at `{}`)", error.instance_path()))),
        }
    }

    fn clone_boxed(&self) -> Box<dyn Validator> {
        Box::new(*self)
    }
}

#[derive(Clone, Debug)]
struct Schema(Compiled);

impl CompiledSchema for Schema {
    fn validate(&self, value: &RawJson<'_>) -> Result<(), String> {
        let value: Value = value.decode().map_err(|error| error.to_string())?;
        if self.0.is_valid(&value) {
            return Ok(());
        }
        let mut text = String::new();
        for error in self.0.iter_errors(&value).take(ERRORS_MAX) {
            let separator = if text.is_empty() { "" } else { "; " };
            let path = error.instance_path().as_str();
            let place = if path.is_empty() { "the whole" } else { path };
            // Omit the value: the sender knows it, and it may be long.
            let what = error.masked_with("the value");
            // Writing to a `String` does not fail.
            let _ = write!(text, "{separator}{place}: {what}");
            if text.len() > TEXT_LENGTH_MAX {
                break;
            }
        }
        Err(shortened(text))
    }

    fn clone_boxed(&self) -> Box<dyn CompiledSchema> {
        Box::new(self.clone())
    }
}

fn count_objects(value: &Value) -> usize {
    match value {
        Value::Object(members) => 1 + members.values().map(count_objects).sum::<usize>(),
        Value::Array(items) => items.iter().map(count_objects).sum(),
        _ => 0,
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > TEXT_LENGTH_MAX {
        let end = (0..=TEXT_LENGTH_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile(schema: &Value) -> Result<Box<dyn CompiledSchema>, String> {
        SchemaValidator::new().compile(&Json::from_serialize(schema).unwrap())
    }

    fn check(schema: &Value, value: &Value) -> Result<(), String> {
        compile(schema).unwrap().validate(&RawJson::from_serialize(value).unwrap())
    }

    #[test]
    fn the_dialect_is_the_declared_one_or_2020_12() {
        // Rule: [JSCH-001] [JSCH-002] [JSCH-003]. `prefixItems` exists since 2020-12; earlier
        // drafts use an array of `items`.
        let new = json!({"prefixItems": [{"type": "string"}]});
        check(&new, &json!([1])).unwrap_err();
        let draft7 = "http://json-schema.org/draft-07/schema#";
        let old = json!({"$schema": draft7, "prefixItems": [{"type": "string"}]});
        check(&old, &json!([1])).unwrap();
        let old = json!({"$schema": draft7, "items": [{"type": "string"}]});
        check(&old, &json!([1])).unwrap_err();
        let unknown = json!({"$schema": "https://example.com/dialect"});
        assert!(compile(&unknown).unwrap_err().contains("example.com"));
    }

    #[test]
    fn a_schema_that_is_not_valid_in_its_dialect_is_refused() {
        // Rule: [JSCH-004].
        let reason = compile(&json!({"properties": {"a": {"type": "nonsense"}}})).unwrap_err();
        assert!(reason.contains("nonsense") && reason.contains("/properties/a"), "{reason}");
        compile(&json!({"required": "a"})).unwrap_err();
        compile(&json!({"pattern": "("})).unwrap_err();
    }

    #[test]
    fn external_and_missing_references_are_refused() {
        // Rule: [JSCH-005] [JSCH-007] [JSCH-009].
        for uri in ["https://example.com/a", "file:///etc/passwd", "other.json", "#/$defs/missing"]
        {
            let reason = compile(&json!({"$ref": uri})).unwrap_err();
            assert!(reason.contains(uri) || reason.contains("missing"), "{reason}");
        }
        let inside = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}});
        check(&inside, &json!("x")).unwrap();
        check(&inside, &json!(1)).unwrap_err();
    }

    #[test]
    fn work_is_bounded() {
        // Rule: [JSCH-008].
        let long = json!({"description": "x".repeat(SCHEMA_LENGTH_MAX)});
        assert!(compile(&long).unwrap_err().contains("longer"));
        let wide = json!({"anyOf": vec![json!({}); OBJECTS_MAX]});
        assert!(compile(&wide).unwrap_err().contains("objects"));
        compile(&json!({"pattern": "(a{1000}){1000}"})).unwrap_err();
        // Circular references and exponential patterns terminate.
        let round = json!({
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        });
        let _ = check(&round, &json!(1));
        let exploding = json!({"pattern": r"^(?=(a+)+$)\1b"});
        let _ = check(&exploding, &json!("a".repeat(100_000)));
    }

    #[test]
    fn errors_name_the_location_but_not_the_value() {
        let schema = json!({
            "type": "object",
            "properties": {"name": true, "count": {"type": "integer"}},
            "required": ["name"],
            "additionalProperties": false,
        });
        let long = "x".repeat(100_000);
        let reason = check(&schema, &json!({"count": long})).unwrap_err();
        assert!(reason.contains("/count: ") && reason.contains("name"), "{reason}");
        assert!(reason.len() < 300, "{reason}");
        let reason = check(&schema, &json!({ "name": 1, long: 1 })).unwrap_err();
        assert!(reason.len() <= TEXT_LENGTH_MAX + '…'.len_utf8());
        check(&schema, &json!({"name": 1, "count": 2})).unwrap();
    }
}
