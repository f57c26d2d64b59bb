//! The schemas that are derived for tools, compared with those that `schemars` derives.

use std::collections::BTreeMap;

use jsonschema::Validator;
use mcp_sansio::protocol::{PromptMessage, Tool};
use mcp_sansio_handlers::{Call, Host, NoArguments, Server, Structured};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use seeded_random::Random;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Deserialize, JsonSchema, Serialize)]
struct Order {
    /// Where it goes
    place: Place,
    #[serde(default)]
    days: u8,
    #[schemars(range(min = -3, max = 4))]
    offset: Option<i64>,
    #[schemars(length(min = 1, max = 3), regex(pattern = "^[a-z]*$"))]
    tag: Option<String>,
    units: Vec<Unit>,
    weights: Option<(f64, f32)>,
    near: Option<Place>,
    kind: Option<Kind>,
    extra: Option<Value>,
    counts: BTreeMap<String, u16>,
    gaps: Vec<Option<Unit>>,
    edit: Option<Edit>,
    letter: Option<char>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Place {
    city: String,
    level: Option<i16>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    /// As in most countries
    Celsius,
    Fahrenheit,
    /// From absolute zero
    Kelvin,
}

#[derive(Deserialize, JsonSchema, Serialize)]
enum Kind {
    Plain,
    /// With a place
    At(Place),
    Twice {
        first: u32,
    },
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct Closed {
    a: f64,
    b: bool,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Flattened {
    name: String,
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Node {
    name: Option<String>,
    next: Option<Box<Self>>,
    list: Vec<Self>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Edit {
    /// Adds a line.
    Add {
        line: String,
        at: Option<Place>,
    },
    Remove {
        #[schemars(range(min = 1, max = 3))]
        index: u8,
    },
    Clear,
}

#[derive(Deserialize, JsonSchema, Serialize)]
enum Shape {
    Circle { radius: u32 },
    Square(i8),
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "kind", content = "value")]
enum Adjacent {
    Number(u8),
    Text(String),
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(untagged)]
enum Key {
    Name { name: String },
    Number { number: u8 },
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Command {
    user: String,
    #[serde(flatten)]
    edit: Edit,
}

/// Returns the schema that `schemars` derives for arguments, without the `null` of optional members.
fn schema_of_schemars<T: JsonSchema>() -> Value {
    fn without_null(schema: &mut Schema) {
        let Some(members) = schema.as_object_mut() else { return };
        let required = members.get("required").cloned().unwrap_or_default();
        let Some(Value::Object(properties)) = members.get_mut("properties") else { return };
        let is_required =
            |name: &String| required.as_array().is_some_and(|it| it.contains(&json!(name)));
        for (_, property) in
            properties.iter_mut().filter(|(name, it)| it.is_object() && !is_required(name))
        {
            *property = json!({ "allOf": [property, { "not": { "type": "null" } }] });
        }
    }
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // Arguments are an object.
    schema.insert("type".into(), "object".into());
    schema.to_value()
}

fn schema_of_results<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Generates values that mostly fit a schema.
struct Values<'a> {
    root: &'a Value,
    random: Random,
}

impl Values<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth == 0 || self.random.once_in(60) {
            return self.any();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = self.root.pointer(&reference[1..]).unwrap();
            return self.value(target, depth - 1);
        }
        let several = ["allOf", "anyOf", "oneOf"].into_iter().find_map(|it| schema[it].as_array());
        if let Some(variants) = several {
            let chosen = match schema["allOf"].is_array() {
                true => variants[0].clone(),
                false => self.random.pick(variants).unwrap().clone(),
            };
            let mut value = self.value(&chosen, depth);
            if let (Some(members), true) = (value.as_object_mut(), schema["properties"].is_object())
            {
                members.extend(self.members(schema, depth));
            }
            return value;
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.random.pick(values).unwrap().clone();
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        match self.random.pick(&kinds).unwrap().as_str() {
            Some("object") => self.members(schema, depth).into(),
            Some("array") => self.elements(schema, depth),
            Some("string") => json!(self.random.one_of(["", "a", "ab", "abcd", "A", "é"])),
            Some("integer") => {
                let bound = self.random.one_of(["minimum", "maximum"]);
                let near = schema[bound].as_i64().unwrap_or_default();
                json!(near + self.random.one_of([-1, 0, 1]))
            }
            Some("number") => json!(self.random.one_of([-0.5, 0.0, 1e9])),
            Some("boolean") => json!(self.random.once_in(2)),
            Some("null") => Value::Null,
            _ => self.any(),
        }
    }

    fn members(&mut self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut members = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|it| it == name);
            if !self.random.once_in(if is_required { 60 } else { 2 }) {
                members.insert(name.clone(), self.value(property, depth - 1));
            }
        }
        if self.random.once_in(8) || schema["properties"].is_null() {
            let others = schema["additionalProperties"].clone();
            members.insert("other".into(), self.value(&others, depth - 1));
        }
        members
    }

    fn elements(&mut self, schema: &Value, depth: usize) -> Value {
        let length = match schema["prefixItems"].as_array() {
            Some(items) if !self.random.once_in(60) => items.len(),
            _ => self.random.index(3),
        };
        let item = |at: usize| match schema["prefixItems"].get(at) {
            Some(item) => item.clone(),
            None => schema["items"].clone(),
        };
        (0..length).map(|at| self.value(&item(at), depth - 1)).collect()
    }

    fn any(&mut self) -> Value {
        let values =
            [json!(null), json!(true), json!(3), json!(-0.5), json!("a"), json!([]), json!({})];
        self.random.pick(&values).unwrap().clone()
    }
}

fn compile(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap()
}

/// Checks that two schemas accept and refuse the same values, of those that `fits` accepts.
fn compare(theirs: &Value, ours: &Value, fits: impl Fn(&Value) -> bool) {
    let (old, new) = (compile(theirs), compile(ours));
    let mut values = Values { root: theirs, random: Random::new(7) };
    let mut counts = [0; 2];
    for _ in 0..seeded_random::scaled(2_000) {
        let value = values.value(theirs, 6);
        let accepted = old.is_valid(&value) && fits(&value);
        assert_eq!(accepted, new.is_valid(&value) && fits(&value), "{value} by {ours}");
        counts[usize::from(accepted)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 10), "{counts:?} by {ours}");
}

fn compare_arguments<T: JsonSchema + DeserializeOwned + 'static>() {
    compare(&schema_of_schemars::<T>(), &arguments::<T>(), |_| true);
}

fn compare_results<T: JsonSchema + Serialize + 'static>() {
    compare(&schema_of_results::<T>(), &results::<T>(), |_| true);
}

/// Compares what a tool accepts whose arguments are an enum: the schema has all members of the
/// variants, and serde refuses those of none.
fn compare_variants<T: JsonSchema + DeserializeOwned + 'static>() {
    let fits = |value: &Value| serde_json::from_value::<T>(value.clone()).is_ok();
    compare(&schema_of_schemars::<T>(), &arguments::<T>(), fits);
}

/// Returns the only tool of a server.
fn tool(server: &Server) -> Tool {
    let (client, mut pair) = mcp_sansio_test::connect(server, &Host::new("test", "1"));
    pair.run(client.all_tools()).unwrap().remove(0)
}

fn arguments<T: JsonSchema + DeserializeOwned + 'static>() -> Value {
    let server = Server::new("s", "1").tool("t", "", |_: Call<T>| "");
    tool(&server).input_schema.decode().unwrap()
}

fn results<T: JsonSchema + Serialize + 'static>() -> Value {
    let handler = |_: Call<NoArguments>| -> Structured<T> { unreachable!("never called") };
    let server = Server::new("s", "1").structured_tool("t", "", handler);
    tool(&server).output_schema.unwrap().decode().unwrap()
}

#[test]
fn a_derived_schema_accepts_and_refuses_what_that_of_schemars_does() {
    compare_arguments::<Order>();
    compare_arguments::<Place>();
    compare_arguments::<Closed>();
    compare_arguments::<Flattened>();
    compare_arguments::<Node>();
    compare_results::<Order>();
    compare_results::<Unit>();
    compare_results::<Kind>();
    compare_results::<Node>();
    compare_results::<Edit>();
    compare_results::<Adjacent>();
    compare_results::<Command>();
}

#[test]
fn a_tool_whose_arguments_are_an_enum_accepts_and_refuses_what_it_does_with_that_of_schemars() {
    // Without a tag the schema alone says it all.
    compare_arguments::<Shape>();
    compare_variants::<Edit>();
    compare_variants::<Key>();
    compare_variants::<Command>();
    compare_variants::<Adjacent>();
}

#[test]
fn required_arguments_of_a_prompt_come_before_optional_ones() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Review {
        audience: Option<String>,
        code: String,
        level: Option<String>,
        purpose: String,
    }
    let server =
        Server::new("s", "1").prompt("review", "", |_: Call<Review>| PromptMessage::user(""));
    let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("h", "1"));
    let prompts = pair.run(client.all_prompts()).unwrap();
    let arguments = prompts[0].arguments.as_ref().unwrap();
    let names: Vec<_> = arguments.iter().map(|argument| &*argument.name).collect();
    assert_eq!(names, ["code", "purpose", "audience", "level"]);
}
