use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::jsonrpc::Json;
use mcp_sansio::protocol::{
    CallToolResult, ElicitSchema, GetPromptResult, InputRequest, PrimitiveSchema, Prompt,
    PromptArgument, Tool,
};
use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, transform_subschemas};
use serde::Deserialize;
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
    note = "return `Structured<T>` or a `Result` of it, and derive `schemars::JsonSchema` for `T`",
    note = "a tool that returns a `CallToolResult` sets its schema: `ServerItem::tool(..).define(|tool| tool.output_schema(..))`"
)]
pub trait DescribedOutput {
    /// Returns the schema of the structured content.
    fn schema() -> Json;
}

impl<T: schemars::JsonSchema> DescribedOutput for Structured<T> {
    fn schema() -> Json {
        let settings = settings().for_serialize().with_transform(plain);
        root(settings, SchemaGenerator::subschema_for::<T>)
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
    ///
    /// To return other content as well, such as an image, register a [`ServerItem::tool`] that
    /// returns a [`CallToolResult`], and set the schema of [`DescribedOutput::schema`] with
    /// [`define`](ServerItem::define).
    #[must_use]
    pub fn structured_tool<M, H>(self, name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described, Out: DescribedOutput>,
        H: Handler<K, CallToolResult, M>,
    {
        self.add_item(ServerItem::structured_tool(name, description, handler))
    }

    /// Registers a prompt. Its arguments are derived from the handler's `Call<T>`: the fields of
    /// `T`, which must be strings, or enums of strings.
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
    /// with their descriptions, and required unless they are optional. Clients send strings only:
    /// a field that is a number, a boolean, an array or an object is an error where the prompt is
    /// added.
    // MCP 2026-07-28 schema.json#Prompt [PRMT-001]
    pub fn prompt<M, H>(name: &str, description: &str, handler: H) -> Self
    where
        M: HandlerInput<In: Described>,
        H: Handler<K, GetPromptResult, M>,
    {
        let (definition, problem) = prompt(name, description, &<M::In as Described>::schema());
        let mut item = Self::new(definition, handler);
        if problem.is_some() {
            item.details().problem = problem;
        }
        item
    }
}

impl Elicit {
    /// Asks the user to fill in a form with the fields of `T`, a flat struct of strings, numbers,
    /// booleans, plain enums and, since 2025-11-25, a `Vec` of a plain enum. For any other type,
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

/// The members of a schema.
type Members = serde_json::Map<String, Value>;

/// The fields that an object's schema describes.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    properties: Members,
    #[serde(default)]
    required: Vec<String>,
}

/// Returns a prompt of a schema's fields, required ones first, and an error if one is not a string.
fn prompt(name: &str, description: &str, schema: &Json) -> (Prompt, Option<CatalogError>) {
    let mut prompt = Prompt::new(name).description(description);
    let Ok(Fields { properties, required }) = schema.decode() else { return (prompt, None) };
    let mut problem = None;
    for (argument, field) in properties {
        let mut added = PromptArgument::new(&*argument);
        added.description = field["description"].as_str().map(String::from);
        added.required = required.contains(&argument).then_some(true);
        prompt.arguments.get_or_insert_default().push(added);
        if field["type"].as_str().is_some_and(|kind| kind != "string") {
            let prompt = prompt.name.clone();
            problem = Some(CatalogError::ArgumentNotString { prompt, argument });
        }
    }
    prompt.arguments.iter_mut().for_each(|all| all.sort_by_key(|it| it.required.is_none()));
    (prompt, problem)
}

/// Returns the JSON Schema of arguments, as the hosts of models convert it: an object with
/// `properties`, in which an optional property is one that is not required, not one that may be
/// `null`.
// Hosts look for `properties` without a check, and for one name in `type`: smolagents, Semantic
// Kernel and AutoGen fail to convert all tools of a server if one has another schema.
fn of<T: schemars::JsonSchema>() -> Json {
    let settings = settings()
        .with_transform(RecursiveTransform(without_null_properties))
        .with_transform(plain)
        .with_transform(as_one_object)
        .with_transform(with_object_type)
        .with_transform(with_properties);
    root(settings, SchemaGenerator::subschema_for::<T>)
}

/// Returns the JSON Schema of a form with the fields of `T`: without references, and an optional
/// field is one that is not required, not one that may be `null`.
pub(super) fn of_form<T: schemars::JsonSchema>() -> Json {
    let settings = settings()
        .with_transform(RecursiveTransform(without_null))
        .with_transform(RecursiveTransform(with_titles));
    root(settings, SchemaGenerator::subschema_for::<T>)
}

/// The settings of all schemas: only recursive types have references, and there is no `$schema`,
/// because many hosts know no other schema than the dialect that they assume.
// MCP 2026-07-28 basic/index#schema-dialect [JSCH-001]: 2020-12 is the dialect without `$schema`.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    })
}

/// Writes an enum with documented variants as forms have choices: with titles.
fn with_titles(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    let Some(choices) = choices(members) else { return };
    let titled = choices.into_iter().map(|(value, text)| {
        let title = text.unwrap_or_else(|| value.clone());
        serde_json::json!({ "const": value, "title": title })
    });
    members.insert("oneOf".into(), titled.collect());
    members.insert("type".into(), "string".into());
}

/// Returns the names of an enum of names, each with the text of its variant.
fn choices(members: &Members) -> Option<Vec<(Value, Option<Value>)>> {
    const KNOWN: [&str; 6] = ["const", "enum", "type", "title", "description", "deprecated"];
    let mut choices = Vec::new();
    for variant in members.get("oneOf")?.as_array()? {
        let single = variant.get("const").map(core::slice::from_ref);
        let values = single.or_else(|| variant.get("enum")?.as_array().map(Vec::as_slice))?;
        let is_plain = variant.as_object()?.keys().all(|key| KNOWN.contains(&key.as_str()));
        if values.is_empty() || !is_plain || !values.iter().all(Value::is_string) {
            return None;
        }
        let text = variant.get("title").or_else(|| variant.get("description"));
        choices.extend(values.iter().map(|value| (value.clone(), text.cloned())));
    }
    Some(choices)
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

/// The formats of JSON Schema. Validators know them; some, such as Ajv, refuse a schema with
/// another one, as `schemars` has for numbers.
const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Replaces what hosts of models refuse by what means the same: schemas that are `true`, `const`,
/// enums of names whose variants are schemas, and formats that JSON Schema does not have.
// Gemini has neither `const` nor `true`. Claude drops the tools of a server with the latter.
fn plain(schema: &mut Schema) {
    let members = schema.ensure_object();
    // Every host knows `false` here, and it is no schema for a value.
    let is_boolean = members.get("additionalProperties").is_some_and(Value::is_boolean);
    let boolean = is_boolean.then(|| members.remove("additionalProperties")).flatten();
    transform_subschemas(&mut plain, schema);
    let members = schema.ensure_object();
    members.extend(boolean.map(|boolean| ("additionalProperties".into(), boolean)));
    let format = members.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        members.remove("format");
    }
    if !members.contains_key("enum")
        && let Some(value) = members.remove("const")
    {
        members.insert("enum".into(), Value::Array(alloc::vec![value]));
    }
    if let Some(choices) = choices(members)
        && !members.contains_key("enum")
    {
        members.remove("oneOf");
        let lines =
            choices.iter().filter_map(|(name, text)| line(name.as_str(), &[], text.as_ref()));
        describe(members, &lines.collect::<Vec<_>>());
        members.insert("enum".into(), choices.into_iter().map(|(name, _)| name).collect());
        members.insert("type".into(), "string".into());
    }
}

/// Returns a line that describes a variant: its name, its fields and its text.
fn line(name: Option<&str>, fields: &[&str], text: Option<&Value>) -> Option<String> {
    let (mut line, text) = (String::from("-"), text.and_then(Value::as_str));
    if fields.is_empty() && text.is_none() {
        return None;
    }
    for (index, field) in name.iter().chain(fields).enumerate() {
        let separator = match index {
            0 if name.is_some() => " ",
            0 | 1 if index == usize::from(name.is_some()) => " with ",
            _ => ", ",
        };
        line.extend([separator, "`", field, "`"]);
    }
    line.extend(text.into_iter().flat_map(|text| [": ", text]));
    Some(line)
}

/// Adds lines to the description of a schema.
fn describe(members: &mut Members, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let own = members.get("description").and_then(Value::as_str).map(String::from);
    let all: Vec<String> = own.into_iter().chain(lines.iter().cloned()).collect();
    members.insert("description".into(), all.join("\n").into());
}

/// Writes the arguments that an enum describes as one object with the fields of all variants.
/// Descriptions say which of them a variant has, and serde checks it. Without change, if a constraint
/// would be lost that serde does not check.
// Anthropic and OpenAI refuse a request with a tool whose schema is a `oneOf`, `anyOf` or `allOf`.
fn as_one_object(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    let key = if members.contains_key("oneOf") { "oneOf" } else { "anyOf" };
    if let Some(Value::Array(variants)) = members.get(key)
        && let Some(merged) = merged(members, variants)
    {
        members.remove(key);
        members.extend(merged);
    }
}

/// A variant of an enum whose values are objects.
struct Variant<'a> {
    fields: Fields,
    is_closed: bool,
    text: Option<&'a Value>,
}

impl<'a> Variant<'a> {
    fn read(schema: &'a Value) -> Option<Self> {
        const KNOWN: [&str; 7] = [
            "type",
            "properties",
            "required",
            "additionalProperties",
            "title",
            "description",
            "deprecated",
        ];
        let members = schema.as_object()?;
        let is_known = members.keys().all(|key| KNOWN.contains(&key.as_str()));
        let is_closed = match members.get("additionalProperties") {
            None => false,
            Some(Value::Bool(false)) => true,
            Some(_) => return None,
        };
        (is_known && members.get("type")? == "object").then_some(())?;
        let text = members.get("description").or_else(|| members.get("title"));
        Some(Self { fields: Fields::deserialize(schema).ok()?, is_closed, text })
    }

    /// Returns the name of the variant, if the field `tag` contains it.
    fn name(&self, tag: &str) -> Option<&str> {
        match &self.fields.properties.get(tag)?.get("enum")?.as_array()?[..] {
            [name] => name.as_str(),
            _ => None,
        }
    }

    /// Whether it is what serde writes without a tag: an object with one member.
    fn is_one_member(&self) -> bool {
        self.is_closed && self.fields.required.len() == 1 && self.fields.properties.len() == 1
    }
}

/// Returns the members of a schema that replace the `variants` of an enum in the schema `outer`.
fn merged(outer: &Members, variants: &[Value]) -> Option<Members> {
    if ["allOf", "additionalProperties"].iter().any(|key| outer.contains_key(*key)) {
        return None;
    }
    let Fields { mut properties, mut required } = Fields::deserialize(outer).ok()?;
    let variants: Vec<Variant<'_>> = variants.iter().map(Variant::read).collect::<Option<_>>()?;
    let in_all = |name: &&String| variants.iter().all(|it| it.fields.required.contains(name));
    let mut common: Vec<String> =
        variants.first()?.fields.required.iter().filter(in_all).cloned().collect();
    let is_tag = |name: &&String| variants.iter().all(|it| it.name(name).is_some());
    let tag = common.iter().find(is_tag).map(String::as_str);
    let is_closed = properties.is_empty() && variants.iter().all(|variant| variant.is_closed);
    let of_one_member = is_closed && variants.iter().all(Variant::is_one_member);
    let mut merged = Members::new();
    let mut lines = Vec::new();
    for variant in &variants {
        let fields = &variant.fields.properties;
        let names = fields.keys().map(String::as_str).filter(|name| Some(*name) != tag);
        let name = tag.and_then(|tag| variant.name(tag));
        lines.extend(line(name, &names.collect::<Vec<_>>(), variant.text));
        for (name, field) in fields {
            unite(&mut properties, name, field, tag == Some(name))?;
        }
    }
    if of_one_member {
        merged.extend(["minProperties", "maxProperties"].map(|key| (key.into(), 1.into())));
    }
    match tag {
        Some(tag) => describe(properties.get_mut(tag)?.as_object_mut()?, &lines),
        None => {
            merged
                .extend(outer.get("description").map(|text| ("description".into(), text.clone())));
            describe(&mut merged, &lines);
        }
    }
    if is_closed {
        merged.insert("additionalProperties".into(), false.into());
    }
    common.retain(|name| !required.contains(name));
    required.extend(common);
    if !required.is_empty() {
        merged.insert("required".into(), required.into());
    }
    merged.extend([("type".into(), "object".into()), ("properties".into(), properties.into())]);
    Some(merged)
}

/// Adds the field of a variant to those of the variants before. `None`: they have another field of
/// this name. Only the tag may differ, which serde checks.
fn unite(properties: &mut Members, name: &str, field: &Value, is_tag: bool) -> Option<()> {
    let Some(known) = properties.get_mut(name) else {
        properties.insert(name.into(), field.clone());
        return Some(());
    };
    let (mut others, mut own) = (known.clone(), field.clone());
    for schema in [&mut others, &mut own] {
        let schema = schema.as_object_mut()?;
        schema.remove("description");
        if is_tag {
            schema.remove("enum");
        }
    }
    (others == own).then_some(())?;
    let known = known.as_object_mut()?;
    if is_tag {
        known.get_mut("enum")?.as_array_mut()?.extend(field["enum"].as_array()?.iter().cloned());
    }
    if let Some(text) = field["description"].as_str()
        && known.get("description").and_then(Value::as_str) != Some(text)
    {
        describe(known, &[text.into()]);
    }
    Some(())
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
    fn a_schema_has_nothing_that_hosts_of_models_refuse() {
        let point = json!({
            "type": "object",
            "properties": { "x": { "type": "number" }, "y": { "type": "number" } },
            "required": ["x", "y"],
        });
        let place = json!({
            "type": "object",
            "properties": {
                "at": {
                    "description": "Where it is",
                    "type": point["type"], "properties": point["properties"],
                    "required": point["required"],
                },
                "names": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["at", "names"],
        });
        assert_eq!(arguments::<Place>(), place);
        let results: Value = <Structured<Place> as DescribedOutput>::schema().decode().unwrap();
        assert_eq!(results, place);

        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        struct Any {
            value: Value,
            values: Vec<Value>,
            members: BTreeMap<String, Value>,
            #[schemars(extend("format" = "date"))]
            day: String,
            letter: char,
            count: core::num::NonZeroU32,
        }
        let expected = json!({
            "value": {},
            "values": { "type": "array", "items": {} },
            "members": { "type": "object", "additionalProperties": true },
            "day": { "type": "string", "format": "date" },
            "letter": { "type": "string", "minLength": 1, "maxLength": 1 },
            "count": { "type": "integer", "minimum": 1 },
        });
        assert_eq!(arguments::<Any>()["properties"], expected);
    }

    /// What to do with a note.
    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[serde(tag = "action", rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is wanted")]
    enum Edit {
        /// Adds a line.
        Add {
            /// Its text
            line: String,
            place: Option<u32>,
        },
        Remove {
            /// Counted from 1
            #[schemars(range(min = 1))]
            at: u32,
        },
        /// Removes all lines.
        Clear,
    }

    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        /// As in most countries
        Celsius,
        Fahrenheit,
        /// From absolute zero
        Kelvin,
    }

    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    enum Shape {
        /// Around the middle
        Circle {
            radius: u32,
        },
        Square(u32),
    }

    #[derive(schemars::JsonSchema, serde::Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    enum Key {
        /// The newest one
        Name {
            name: String,
        },
        Number {
            number: u8,
            name: Option<String>,
        },
    }

    #[test]
    fn the_names_of_an_enum_are_one_list_with_the_documentation_in_the_description() {
        #[derive(schemars::JsonSchema)]
        #[expect(dead_code, reason = "only its schema is wanted")]
        struct Reading {
            /// How to write it
            unit: Unit,
            other: Option<Unit>,
        }

        let names = json!(["fahrenheit", "celsius", "kelvin"]);
        let lines = "- `celsius`: As in most countries\n- `kelvin`: From absolute zero";
        let schema = arguments::<Reading>();
        let text = alloc::format!("How to write it\n{lines}");
        let unit = json!({ "type": "string", "enum": names, "description": text });
        assert_eq!(schema["properties"]["unit"], unit);
        let other = json!({ "type": "string", "enum": names, "description": lines });
        assert_eq!(schema["properties"]["other"], other);
    }

    #[test]
    fn an_enum_of_all_arguments_is_one_object() {
        let edit = json!({
            "type": "object",
            "description": "What to do with a note.",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["add", "remove", "clear"],
                    "description": "- `add` with `line`, `place`: Adds a line.\n\
                        - `remove` with `at`\n- `clear`: Removes all lines.",
                },
                "line": { "type": "string", "description": "Its text" },
                "place": { "type": "integer", "minimum": 0 },
                "at": { "type": "integer", "minimum": 1, "description": "Counted from 1" },
            },
            "required": ["action"],
        });
        assert_eq!(arguments::<Edit>(), edit);
        let circle = json!({
            "type": "object",
            "properties": { "radius": { "type": "integer", "minimum": 0 } },
            "required": ["radius"],
        });
        let shape = json!({
            "type": "object",
            "description": "- with `Circle`: Around the middle\n- with `Square`",
            "properties": { "Circle": circle, "Square": { "type": "integer", "minimum": 0 } },
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1,
        });
        assert_eq!(arguments::<Shape>(), shape);
        let key = json!({
            "type": "object",
            "description": "- with `name`: The newest one\n- with `name`, `number`",
            "properties": {
                "name": { "type": "string" },
                "number": { "type": "integer", "minimum": 0, "maximum": 255 },
            },
        });
        assert_eq!(arguments::<Key>(), key);
    }

    #[test]
    fn variants_whose_fields_have_different_constraints_stay_apart() {
        #[derive(schemars::JsonSchema)]
        #[serde(tag = "action")]
        #[expect(dead_code, reason = "only its schema is wanted")]
        enum Access {
            Read {
                path: String,
            },
            Write {
                #[schemars(regex(pattern = "^/tmp/"))]
                path: String,
            },
        }

        let schema = arguments::<Access>();
        assert_eq!(schema["oneOf"][1]["properties"]["path"]["pattern"], "^/tmp/");
        assert_eq!(schema["oneOf"][1]["properties"]["action"]["enum"], json!(["Write"]));
        assert_eq!(schema["type"], "object");
        let results: Value = <Structured<Edit> as DescribedOutput>::schema().decode().unwrap();
        assert!(results["oneOf"].is_array(), "{results}");
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
        let expected = json!({
            "days": { "type": "integer", "minimum": 0, "maximum": 7 },
            "unit": {
                "type": "string", "enum": ["Celsius", "Kelvin"], "description": "How to write it",
            },
            "order": { "type": "string", "enum": ["Up", "Down"] },
            "near": arguments::<Point>(),
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
