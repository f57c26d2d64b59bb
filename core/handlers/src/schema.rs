use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::CallToolResult;
use mcp_sansio::protocol::GetPromptResult;
use mcp_sansio::protocol::{
    ElicitSchema, InputRequest, PrimitiveSchema, Prompt, PromptArgument, Tool,
};
use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde_json::Value;

use super::ask::Elicit;
use super::context::{Call, NoArguments};
use super::function::{Handler, HandlerInput};
use super::reply::Structured;
use super::server::Server;
use super::server_item::ServerItem;
use super::threading::Threading;

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
        root(SchemaSettings::default().for_serialize(), T::json_schema)
    }
}

impl<T: DescribedOutput, E> DescribedOutput for Result<T, E> {
    fn schema() -> Json {
        T::schema()
    }
}

// Without the description that a derived schema has: models would read the documentation of this
// library.
impl schemars::JsonSchema for NoArguments {
    fn schema_name() -> Cow<'static, str> {
        "NoArguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

impl<K: Threading> Server<K> {
    /// Registers a tool. The schema of its arguments is derived from the handler's `Call<T>`. Wrap
    /// a function that is long-running or blocks with [`blocking`](super::blocking()).
    ///
    /// To set its title, annotations and icons, [`add_item`](Self::add_item) a
    /// [`ServerItem::tool`](super::ServerItem::tool).
    #[must_use]
    pub fn tool<M, H>(self, name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described>,
        H: Handler<K, CallToolResult, M>,
    {
        self.add_item(ServerItem::tool(name, description, handler))
    }

    /// Registers a tool whose handler returns [`Structured<T>`](super::Structured), or a `Result`
    /// of it. The schema of its results is derived from `T`, that of its arguments from the
    /// handler's `Call<T>`.
    #[must_use]
    pub fn structured_tool<M, H>(self, name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described, Out: DescribedOutput>,
        H: Handler<K, CallToolResult, M>,
    {
        self.add_item(ServerItem::structured_tool(name, description, handler))
    }

    /// Registers a prompt. Its arguments are derived from the handler's `Call<T>`: the fields of
    /// `T`, which are strings.
    #[must_use]
    pub fn prompt<M, H>(self, name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described>,
        H: Handler<K, GetPromptResult, M>,
    {
        self.add_item(ServerItem::prompt(name, description, handler))
    }
}

impl<K: Threading> ServerItem<Tool, K> {
    /// Creates a tool. The schema of its arguments is derived from the handler's `Call<T>`.
    pub fn tool<M, H>(name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described>,
        H: Handler<K, CallToolResult, M>,
    {
        let definition = Tool::new(name, <M::In as Described>::schema()).description(description);
        Self::new(definition, handler)
    }

    /// Like [`tool`](Self::tool), for a handler that returns
    /// [`Structured<T>`](super::Structured), or a `Result` of it: the output schema of the tool is
    /// derived from `T`.
    pub fn structured_tool<M, H>(name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described, Out: DescribedOutput>,
        H: Handler<K, CallToolResult, M>,
    {
        let schema = <M::Out as DescribedOutput>::schema();
        Self::tool(name, description, handler).define(|tool| tool.output_schema(schema))
    }
}

impl<K: Threading> ServerItem<Prompt, K> {
    /// Creates a prompt. Its arguments are derived from the handler's `Call<T>`: the fields of `T`,
    /// with their descriptions, and required unless they are optional. Clients send strings only.
    // MCP 2026-07-28 schema.json#Prompt [PRMT-001]
    pub fn prompt<M, H>(name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described>,
        H: Handler<K, GetPromptResult, M>,
    {
        let mut definition = Prompt::new(name).description(description);
        let arguments = prompt_arguments(&<M::In as Described>::schema());
        definition.arguments = (!arguments.is_empty()).then_some(arguments);
        Self::new(definition, handler)
    }
}

impl Elicit {
    /// Asks the user to fill in a form with the fields of `T`, a flat struct of strings, numbers,
    /// booleans and plain enums. For any other type,
    /// [`InputRequired::into_result`](crate::InputRequired::into_result) makes the
    /// request fail.
    ///
    /// The fields are shown in the order of their declaration. The documentation of a field is its
    /// description, and that of the variant of an enum is the title of a choice.
    #[must_use]
    pub fn form<T>(message: impl Into<String>) -> InputRequest
    where
        T: schemars::JsonSchema + DeserializeOwned,
    {
        let schema = of_form::<T>();
        let text = schema.as_raw();
        let is_struct = text.get("type").is_some_and(|kind| kind.as_str() == "\"object\"");
        let form = is_struct.then(|| schema.decode().ok()).flatten();
        let form = form.map(|form: ElicitSchema| in_order(form, declared_fields::<T>()));
        // A type that is no struct counts as a field that forms cannot have.
        let form = form.unwrap_or_else(|| {
            ElicitSchema::new().field(T::schema_name(), PrimitiveSchema::Unknown(schema))
        });
        Self::form_with(message, form)
    }
}

/// Sorts the fields of a form, which a JSON Schema has in alphabetical order.
fn in_order(mut form: ElicitSchema, names: &[&str]) -> ElicitSchema {
    let fields = form.properties.iter().map(|(name, field)| (String::from(name), field.clone()));
    let mut fields: Vec<_> = fields.collect();
    let place = |name: &str| names.iter().position(|known| *known == name);
    fields.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    form.properties = fields.into_iter().collect();
    form
}

/// Returns the names of the fields of a struct in the order of their declaration; none for other
/// types.
fn declared_fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    let _never = T::deserialize(FieldNames(&mut names));
    names
}

/// A deserializer that learns the names of the fields, and fails.
struct FieldNames<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(serde::de::Error::custom(""))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
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

/// Returns the JSON Schema of arguments, as the hosts of models convert it: it has `properties`,
/// and an optional property is one that is not required, not one that may be `null`.
// Hosts look for `properties` without a check, and for one name in `type`: smolagents, Semantic
// Kernel and AutoGen fail to convert all tools of a server if one has another schema.
fn of<T: schemars::JsonSchema>() -> Json {
    let settings = SchemaSettings::default()
        .with_transform(RecursiveTransform(without_null_properties))
        .with_transform(with_object_type)
        .with_transform(with_properties);
    root(settings, T::json_schema)
}

/// Returns the JSON Schema of a form with the fields of `T`: without references, and an optional
/// field is one that is not required, not one that may be `null`.
pub(super) fn of_form<T: schemars::JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(with_titles));
    root(settings, T::json_schema)
}

/// Writes an enum with documented variants as forms have choices: with titles.
fn with_titles(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    let Some(Value::Array(variants)) = members.get("oneOf") else { return };
    let mut choices = Vec::new();
    for variant in variants {
        let single = variant.get("const").cloned();
        let several = variant.get("enum").and_then(Value::as_array).cloned();
        let values = single.map(|value| alloc::vec![value]).or(several).unwrap_or_default();
        if values.is_empty() || !values.iter().all(Value::is_string) {
            return;
        }
        let title = variant.get("title").or_else(|| variant.get("description"));
        choices.extend(
            values.iter().map(
                |value| serde_json::json!({ "const": value, "title": title.unwrap_or(value) }),
            ),
        );
    }
    members.insert("oneOf".into(), choices.into());
    members.insert("type".into(), "string".into());
}

/// Returns the complete schema of a type, from the part that `describe` returns.
// A copy of `SchemaGenerator::into_root_schema_for` that is not generic over the type. The result
// differs for recursive types, whose references point to `$defs` and not to the root, and has no
// title but that of an attribute: the name of a Rust type tells nothing to a model.
fn root(settings: SchemaSettings, describe: fn(&mut SchemaGenerator) -> Schema) -> Json {
    let mut generator = settings.into_generator();
    let mut schema = describe(&mut generator);
    let definitions = generator.take_definitions(false);
    let members = schema.ensure_object();
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

/// States the type of an enum whose variants all are objects, such as one with a tag, as a tool's
/// arguments have to.
fn with_object_type(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    let Some(Value::Array(variants)) = members.get("oneOf").or_else(|| members.get("anyOf")) else {
        return;
    };
    let are_objects = variants.iter().all(|it| it.get("type").is_some_and(|it| it == "object"));
    if are_objects && !members.contains_key("type") {
        members.insert("type".into(), "object".into());
    }
}

/// Adds the `properties` of an object without any.
fn with_properties(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    if members.get("type").is_some_and(|kind| kind == "object") {
        members.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
}

/// Removes `null` from the properties that are not required. It stays where it is the only way to
/// write that there is no value: in lists, and in properties that are required.
fn without_null_properties(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
    for (name, property) in properties {
        if !required.iter().any(|it| it == name)
            && let Ok(property) = <&mut Schema>::try_from(property)
        {
            without_null(property);
        }
    }
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
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;

    use serde_json::json;

    use super::*;

    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Place {
        /// Where it is
        at: Point,
        names: Vec<String>,
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

    fn arguments<T: schemars::JsonSchema>() -> Value {
        of::<T>().decode().unwrap()
    }

    fn is_nullable(schema: &Value) -> bool {
        schema.to_string().contains("null")
    }

    #[test]
    fn a_schema_is_that_of_the_schemars_generator_without_the_name_of_the_type() {
        let mut theirs = SchemaGenerator::default().into_root_schema_for::<Place>();
        assert!(theirs.get("$defs").is_some());
        assert_eq!(theirs.remove("title"), Some("Place".into()));
        assert_eq!(of::<Place>(), Json::from_serialize(&theirs).unwrap());
    }

    #[test]
    fn a_recursive_type_refers_to_its_definition() {
        let schema = arguments::<Node>();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["properties"]["next"], json!({ "$ref": "#/$defs/Node" }));
        assert_eq!(schema["$defs"]["Node"]["properties"]["next"], schema["properties"]["next"]);
    }

    #[test]
    fn a_schema_says_nothing_that_the_author_of_the_tool_did_not_write() {
        /// A place and its weather
        #[derive(schemars::JsonSchema)]
        #[schemars(title = "Weather")]
        struct Titled {}

        let own = arguments::<Titled>();
        assert_eq!(
            (&own["title"], &own["description"]),
            (&json!("Weather"), &json!("A place and its weather"))
        );
        let results: Value = <Structured<Point> as DescribedOutput>::schema().decode().unwrap();
        let form: Value = of_form::<Point>().decode().unwrap();
        for schema in [arguments::<NoArguments>(), arguments::<Point>(), results, form] {
            assert_eq!((schema.get("title"), schema.get("description")), (None, None), "{schema}");
        }
    }

    #[test]
    fn arguments_always_have_properties() {
        #[derive(schemars::JsonSchema)]
        struct Empty {}

        for schema in
            [arguments::<NoArguments>(), arguments::<Empty>(), arguments::<BTreeMap<String, u8>>()]
        {
            assert_eq!((&schema["type"], &schema["properties"]), (&json!("object"), &json!({})));
        }
    }

    #[test]
    fn an_optional_argument_has_the_schema_of_its_value() {
        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        enum Unit {
            Celsius,
            Kelvin,
        }

        #[derive(schemars::JsonSchema)]
        #[schemars(inline)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        enum Order {
            Up,
            Down,
        }

        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        struct Optional {
            #[schemars(range(max = 7))]
            days: Option<u8>,
            /// How to write it
            unit: Option<Unit>,
            order: Option<Order>,
            #[serde(default)]
            near: Option<Point>,
            twice: Option<Option<String>>,
            names: Option<Vec<String>>,
        }

        assert_eq!(arguments::<Optional>().get("required"), None);
        let days = json!({ "type": "integer", "format": "uint8", "minimum": 0, "maximum": 7 });
        let expected = json!({
            "days": days,
            "unit": { "$ref": "#/$defs/Unit", "description": "How to write it" },
            "order": { "type": "string", "enum": ["Up", "Down"] },
            "near": { "$ref": "#/$defs/Point" },
            "twice": { "type": "string" },
            "names": { "type": "array", "items": { "type": "string" } },
        });
        assert_eq!(arguments::<Optional>()["properties"], expected);
    }

    #[test]
    fn optional_members_of_nested_types_have_the_schema_of_their_values() {
        #[derive(schemars::JsonSchema)]
        #[serde(tag = "by")]
        #[expect(dead_code, reason = "only its schema is wanted")]
        enum Search {
            Name { name: Option<String> },
            Place { at: Option<Point>, within: [Part; 1] },
        }

        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        struct Part {
            kind: Option<u8>,
        }

        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        struct Nested {
            search: Search,
            others: Vec<Part>,
            #[serde(flatten)]
            part: Part,
        }

        let schema = arguments::<Nested>();
        assert!(!is_nullable(&schema), "{schema}");
    }

    #[test]
    fn null_stays_where_a_value_cannot_be_left_out() {
        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        struct Present {
            list: Option<Vec<Option<String>>>,
            map: Option<BTreeMap<String, Option<bool>>>,
        }

        let schema = arguments::<Present>();
        for name in ["list", "map"] {
            assert!(is_nullable(&schema["properties"][name]), "{name}: {schema}");
        }
        let mut required = schemars::json_schema!({
            "properties": { "a": { "type": ["string", "null"] } }, "required": ["a"],
        });
        without_null_properties(&mut required);
        assert!(is_nullable(required.as_value()), "{required:?}");
        let results: Value = <Structured<Node> as DescribedOutput>::schema().decode().unwrap();
        assert!(is_nullable(&results["properties"]["next"]), "{results}");
    }
}
