use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::PromptArgument;
use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use super::context::Call;
use super::reply::Structured;

/// A handler parameter with a known JSON Schema.
#[diagnostic::on_unimplemented(
    message = "the JSON Schema of `{Self}` is not known",
    note = "derive `schemars::JsonSchema` for the arguments, or register the tool with its schema by `tool_with`"
)]
pub trait Described {
    /// Returns the schema of the arguments.
    fn schema() -> Json;
}

impl<A: schemars::JsonSchema> Described for Call<A> {
    fn schema() -> Json {
        of::<A>()
    }
}

impl<C: Described, S> Described for (C, S) {
    fn schema() -> Json {
        C::schema()
    }
}

/// The result of a tool's handler whose structured content has a known JSON Schema:
/// [`Structured`], or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "the JSON Schema of the result `{Self}` is not known",
    note = "return `Structured<T>` or a `Result` of it, and derive `schemars::JsonSchema` for `T`"
)]
pub trait DescribedOutput {
    /// Returns the schema of the structured content.
    fn schema() -> Json;
}

impl<T: schemars::JsonSchema> DescribedOutput for Structured<T> {
    fn schema() -> Json {
        root(SchemaSettings::default().for_serialize(), T::schema_name(), T::json_schema)
    }
}

impl<T: DescribedOutput, E> DescribedOutput for Result<T, E> {
    fn schema() -> Json {
        T::schema()
    }
}

/// The parts of an object's schema that prompt arguments are made of.
#[derive(serde::Deserialize)]
struct Fields {
    #[serde(default)]
    properties: serde_json::Map<String, Value>,
    #[serde(default)]
    required: Vec<String>,
}

/// Returns the arguments of a prompt with the fields of an object's `schema`.
pub(super) fn prompt_arguments(schema: &Json) -> Vec<PromptArgument> {
    let Ok(Fields { properties, required }) = schema.decode() else { return Vec::new() };
    let argument = |(name, field): (String, Value)| {
        let required = required.contains(&name);
        let mut argument = PromptArgument::new(name);
        argument.description = field["description"].as_str().map(String::from);
        argument.required = required.then_some(true);
        argument
    };
    properties.into_iter().map(argument).collect()
}

/// Returns the JSON Schema of `T`.
fn of<T: schemars::JsonSchema>() -> Json {
    root(SchemaSettings::default(), T::schema_name(), T::json_schema)
}

/// Returns the JSON Schema of a form with the fields of `T`: without references, and an optional
/// field is one that is not required, not one that may be `null`.
pub(super) fn of_form<T: schemars::JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(without_null));
    root(settings, T::schema_name(), T::json_schema)
}

/// Returns the complete schema of a type with this name, from the part that `describe` returns.
// A copy of `SchemaGenerator::into_root_schema_for` that is not generic over the type. The result
// differs only for recursive types, whose references point to `$defs` and not to the root.
fn root(
    settings: SchemaSettings,
    name: Cow<'static, str>,
    describe: fn(&mut SchemaGenerator) -> Schema,
) -> Json {
    let mut generator = settings.into_generator();
    let mut schema = describe(&mut generator);
    let definitions = generator.take_definitions(false);
    let members = schema.ensure_object();
    members.entry("title").or_insert_with(|| name.into());
    if let Some(meta_schema) = &generator.settings().meta_schema {
        members.insert("$schema".into(), meta_schema.as_ref().into());
    }
    if !definitions.is_empty() {
        match members.get_mut("$defs") {
            Some(Value::Object(own)) => own.extend(definitions),
            _ => drop(members.insert("$defs".into(), definitions.into())),
        }
    }
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    Json::from_serialize(&schema).expect("a schema is JSON")
}

fn without_null(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    if members.get("default").is_some_and(Value::is_null) {
        members.remove("default");
    }
    if let Some(values) = members.get_mut("enum").and_then(|values| values.as_array_mut()) {
        values.retain(|value| !value.is_null());
    }
    if let Some(kind) = members.get_mut("type")
        && let Some(kinds) = kind.as_array_mut()
    {
        kinds.retain(|kind| kind != "null");
        if let [only] = &mut kinds[..] {
            *kind = only.take();
        }
    }
    if let Some(kinds) = members.get_mut("anyOf").and_then(|kinds| kinds.as_array_mut()) {
        kinds.retain(|kind| kind.get("type").is_none_or(|kind| kind != "null"));
        if let [only] = &mut kinds[..]
            && let Value::Object(only) = only.take()
        {
            members.remove("anyOf");
            for (key, value) in only {
                members.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Place {
        /// Where it is
        at: Point,
        names: Option<String>,
    }

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Point {
        x: f64,
        y: f64,
    }

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Node {
        next: Option<Box<Self>>,
    }

    #[test]
    fn a_schema_equals_that_of_the_schemars_generator() {
        let theirs = SchemaGenerator::default().into_root_schema_for::<Place>();
        assert!(theirs.get("$defs").is_some());
        assert_eq!(of::<Place>(), Json::from_serialize(&theirs).unwrap());
    }

    #[test]
    fn a_recursive_type_refers_to_its_definition() {
        let schema: Value = of::<Node>().decode().unwrap();
        assert_eq!((&schema["type"], &schema["title"]), (&"object".into(), &"Node".into()));
        let next = schema["properties"]["next"]["anyOf"][0]["$ref"].as_str();
        assert_eq!(next, Some("#/$defs/Node"));
        assert_eq!(schema["$defs"]["Node"]["type"], "object");
    }
}
