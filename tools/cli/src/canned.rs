//! A host without a user, which answers every request with valid made-up values.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_sansio::Method;
use mcp_sansio::peer::{Event, Violation};
use mcp_sansio::protocol::{
    CreateMessageParams, CreateMessageResult, ElicitParams, ElicitResult, ElicitSchema,
    ElicitValue, Map, NumberKind, NumberSchema, PrimitiveSchema, Role, Root, SamplingContent,
    StringFormat, StringSchema,
};
use mcp_sansio_handlers::{Host, HostRequest};
use serde_json::{Value, json};

/// What the host received: counts of requests and notifications.
#[derive(Debug, Default)]
pub struct Seen {
    /// Elicitation requests, for forms and for URLs.
    pub elicitation: AtomicUsize,
    /// Sampling requests.
    pub sampling: AtomicUsize,
    /// Requests for the roots.
    pub roots: AtomicUsize,
    /// Log messages.
    pub logging: AtomicUsize,
    /// Whether the server has acknowledged a subscription.
    pub listening: AtomicBool,
    /// The first protocol violation of the server.
    pub violation: OnceLock<String>,
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Returns a host that accepts forms with their defaults or made-up values, answers sampling
/// requests, and counts the requests.
#[must_use]
pub fn host(name: &str, seen: &Arc<Seen>) -> Host {
    let [elicited, sampled, listed, told] = [(); 4].map(|()| Arc::clone(seen));
    Host::new(name, env!("CARGO_PKG_VERSION"))
        .on_elicit(move |question: HostRequest<ElicitParams>| {
            count(&elicited.elicitation);
            match question.params {
                ElicitParams::Form(form) => ElicitResult::accept(fill(&form.requested_schema)),
                // There is no user who could visit a URL.
                _ => ElicitResult::decline(),
            }
        })
        .on_sample(move |_: HostRequest<CreateMessageParams>| {
            count(&sampled.sampling);
            let content = SamplingContent::text("a made-up answer");
            CreateMessageResult::new(Role::Assistant, content, "canned")
        })
        .on_roots(move |_: HostRequest<()>| {
            count(&listed.roots);
            vec![Root::new("file:///tmp").name("tmp")]
        })
        .observe(move |event| match event {
            Event::Notification(notification) if notification.method == Method::Message => {
                count(&told.logging);
            }
            // They do not explain a failure: the rest of the result was read.
            Event::Violation(Violation::ElementsOmitted(_)) => {}
            Event::Violation(violation) => {
                told.violation.get_or_init(|| violation.to_string());
            }
            _ => {}
        })
}

/// Fills in a form with its defaults or with valid values.
#[must_use]
pub fn fill(form: &ElicitSchema) -> Map<ElicitValue> {
    let mut content = Map::new();
    for (name, field) in form.properties.iter() {
        let value = match field {
            PrimitiveSchema::Text(schema) => ElicitValue::Text(text(schema)),
            PrimitiveSchema::Number(schema) => number(schema),
            PrimitiveSchema::Boolean(schema) => {
                ElicitValue::Boolean(schema.default.unwrap_or(true))
            }
            PrimitiveSchema::SingleSelect(schema) => {
                let first = || schema.choices.values().next().unwrap_or_default().into();
                ElicitValue::Text(schema.default.clone().unwrap_or_else(first))
            }
            PrimitiveSchema::MultiSelect(schema) => {
                let least = usize::try_from(schema.min_items.unwrap_or(1)).unwrap_or(usize::MAX);
                let first = || schema.choices.values().take(least).map(Into::into).collect();
                ElicitValue::Choices(schema.default.clone().unwrap_or_else(first))
            }
            _ => continue,
        };
        content.insert(name, value);
    }
    content
}

fn text(schema: &StringSchema) -> String {
    if let Some(default) = &schema.default {
        return default.clone();
    }
    let made_up = match &schema.format {
        Some(StringFormat::Email) => "hello@example.com",
        Some(StringFormat::Uri) => "https://example.com/",
        Some(StringFormat::Date) => "2026-07-28",
        Some(StringFormat::DateTime) => "2026-07-28T12:00:00Z",
        _ => "hello",
    };
    let bound = |length: Option<u64>, otherwise| {
        length.map_or(otherwise, |length| usize::try_from(length).unwrap_or(otherwise).min(4096))
    };
    let (least, most) = (bound(schema.min_length, 0), bound(schema.max_length, usize::MAX));
    let mut text: String = made_up.chars().take(most).collect();
    while text.chars().count() < least {
        text.push('o');
    }
    text
}

fn number(schema: &NumberSchema) -> ElicitValue {
    let within = |number: f64| {
        number.max(schema.minimum.unwrap_or(number)).min(schema.maximum.unwrap_or(f64::MAX))
    };
    let number = schema.default.unwrap_or_else(|| within(2.0));
    // The cast saturates, which is fine for a made-up number.
    if schema.kind == NumberKind::Integer {
        ElicitValue::Integer(number.ceil() as i64)
    } else {
        ElicitValue::Number(number)
    }
}

/// How deep made-up values are nested, counting the references on the way. A schema may be recursive.
const DEPTH_MAX: usize = 16;

/// The maximum size of made-up arguments, about that in bytes. Each level of a recursive schema can
/// multiply the number of values.
const SIZE_MAX: usize = 64 * 1024;

/// Makes up the arguments that a schema requires.
#[must_use]
pub fn arguments(schema: &Value) -> Value {
    let mut room = SIZE_MAX;
    object(schema, schema, 0, &mut room)
}

/// Makes up an object with the required members. `room` is the remaining size.
fn object(schema: &Value, root: &Value, depth: usize, room: &mut usize) -> Value {
    let mut members = serde_json::Map::new();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        if depth == DEPTH_MAX || *room == 0 {
            break;
        }
        spend(room, name.len());
        let value = made_up(&schema["properties"][name], root, depth + 1, room);
        members.insert(name.to_owned(), value);
    }
    members.into()
}

/// Makes up a value for the schema of one argument. References are resolved in `root`.
fn made_up(schema: &Value, root: &Value, depth: usize, room: &mut usize) -> Value {
    if let Some(reference) = schema["$ref"].as_str()
        && depth < DEPTH_MAX
        && let Some(target) = reference.strip_prefix('#').and_then(|path| root.pointer(path))
    {
        spend(room, reference.len());
        return made_up(target, root, depth + 1, room);
    }
    let first = || schema["enum"].as_array().and_then(|values| values.first());
    if let Some(value) = schema.get("default").or_else(|| schema.get("const")).or_else(first) {
        spend(room, value.to_string().len());
        return value.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("integer") => json!(2),
        Some("number") => json!(2.0),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => object(schema, root, depth, room),
        Some("null") => Value::Null,
        _ => json!("hello"),
    }
}

fn spend(room: &mut usize, size: usize) {
    *room = room.saturating_sub(size.max(1));
}

#[cfg(test)]
mod tests {
    use mcp_sansio::Revision;
    use mcp_sansio::protocol::{BooleanSchema, MultiSelectSchema, SerializeAt, SingleSelectSchema};

    use super::*;

    #[test]
    fn a_form_is_filled_in_with_defaults_or_valid_values() {
        let form = ElicitSchema::new()
            .field("name", StringSchema::new().min_length(7))
            .field("mail", StringSchema::new().format(StringFormat::Email))
            .field("age", NumberSchema::integer().minimum(18.0))
            .field("score", NumberSchema::number().default(95.5))
            .field("sure", BooleanSchema::new().default(false))
            .field("one", SingleSelectSchema::new(["a", "b"]).default("b"))
            .field("some", MultiSelectSchema::new(["a", "b", "c"]).min_items(2));
        assert_eq!(
            fill(&form).to_json_at(Revision::LATEST).unwrap().as_str(),
            r#"{"name":"hellooo","mail":"hello@example.com","age":18,"score":95.5,"sure":false,"one":"b","some":["a","b"]}"#
        );
    }

    #[test]
    fn only_required_arguments_are_made_up() {
        let schema = json!({
            "$defs": { "mode": { "enum": ["fast", "slow"] } },
            "properties": {
                "text": { "type": "string" }, "count": { "type": "integer" },
                "mode": { "$ref": "#/$defs/mode" }, "other": { "type": "string" },
            },
            "required": ["text", "count", "mode"],
        });
        let expected = json!({ "text": "hello", "count": 2, "mode": "fast" });
        assert_eq!(arguments(&schema), expected);
        assert_eq!(arguments(&json!({ "type": "object" })), json!({}));
    }

    #[test]
    fn references_are_resolved_in_the_whole_schema_at_any_depth() {
        let schema = json!({
            "$defs": {
                "request": {
                    "type": "object", "required": ["inner"],
                    "properties": { "inner": { "$ref": "#/$defs/alias" } },
                },
                "alias": { "$ref": "#/$defs/inner" },
                "inner": {
                    "type": "object", "required": ["count"],
                    "properties": { "count": { "type": "integer" } },
                },
            },
            "properties": { "request": { "$ref": "#/$defs/request" } },
            "required": ["request"],
        });
        assert_eq!(arguments(&schema), json!({ "request": { "inner": { "count": 2 } } }));
    }

    #[test]
    fn a_recursive_schema_has_bounded_arguments() {
        let size = |schema| arguments(&schema).to_string().len();
        let loops =
            json!({ "properties": { "a": { "$ref": "#/properties/a" } }, "required": ["a"] });
        assert_eq!(arguments(&loops), json!({ "a": "hello" }));
        let itself = json!({ "$ref": "#" });
        let deep = json!({ "type": "object", "properties": { "a": itself }, "required": ["a"] });
        assert!(size(deep) < 1000);
        let wide = json!({
            "type": "object", "properties": { "a": itself, "b": itself, "c": itself },
            "required": ["a", "b", "c"],
        });
        assert!(size(wide) < 40 * SIZE_MAX);
        let large = json!({
            "properties": { "a": { "default": "x".repeat(SIZE_MAX) } },
            "required": vec!["a"; 10_000],
        });
        assert!(size(large) < 2 * SIZE_MAX);
    }
}
