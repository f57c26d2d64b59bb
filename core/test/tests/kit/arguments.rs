//! Enums in the arguments of tools, with the schemas that are derived for them.

use mcp_sansio::protocol::SerializeAt;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_handlers::{Call, Host, Server};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::text;

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Reading {
    unit: Unit,
    other: Option<Unit>,
}

/// What to do with a note.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
enum Edit {
    /// Adds a line.
    Add {
        line: String,
    },
    Remove {
        at: u32,
    },
    Clear,
}

/// An enum as serde writes it without attributes: an object with one member.
#[derive(Deserialize, JsonSchema, Serialize)]
enum Shape {
    Circle { radius: u32 },
    Square(u32),
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Forecast {
    city: String,
    #[serde(default)]
    days: u8,
    #[serde(default)]
    notes: Value,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Stop {
    city: Value,
    #[serde(default)]
    days: u8,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Trip {
    stops: Vec<Stop>,
    #[serde(default)]
    notes: Value,
}

fn written(arguments: &impl Serialize) -> String {
    serde_json::to_string(arguments).unwrap()
}

fn server() -> Server {
    Server::new("s", "1")
        .tool("read", "", |call: Call<Reading>| written(&call.arguments))
        .tool("edit", "", |call: Call<Edit>| written(&call.arguments))
        .tool("draw", "", |call: Call<Shape>| written(&call.arguments))
        .tool("forecast", "", |call: Call<Forecast>| written(&call.arguments))
        .tool("trip", "", |call: Call<Trip>| written(&call.arguments))
}

#[test]
fn an_enum_is_an_argument_or_all_arguments_at_every_revision() {
    for revision in Revision::ALL {
        let host = Host::new("test", "1").revisions(Revisions::only(revision));
        let (client, mut pair) = mcp_sansio_test::connect(&server(), &host);
        for (tool, arguments, decoded) in [
            ("read", json!({ "unit": "celsius" }), r#"{"unit":"celsius","other":null}"#),
            (
                "read",
                json!({ "unit": "celsius", "other": "fahrenheit" }),
                r#"{"unit":"celsius","other":"fahrenheit"}"#,
            ),
            ("edit", json!({ "action": "add", "line": "tea" }), r#"{"action":"add","line":"tea"}"#),
            ("edit", json!({ "line": "tea", "action": "add" }), r#"{"action":"add","line":"tea"}"#),
            ("edit", json!({ "action": "remove", "at": 2 }), r#"{"action":"remove","at":2}"#),
            ("edit", json!({ "action": "clear" }), r#"{"action":"clear"}"#),
            ("draw", json!({ "Circle": { "radius": 2 } }), r#"{"Circle":{"radius":2}}"#),
            ("draw", json!({ "Square": 2 }), r#"{"Square":2}"#),
        ] {
            let result = pair.run(client.call_tool(tool, &arguments)).unwrap();
            assert_eq!(text(&result), decoded, "{revision} {arguments}");
        }
    }
}

#[test]
fn models_see_the_choices() {
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &Host::new("test", "1"));
    let tools = pair.run(client.all_tools()).unwrap();
    let schemas: Vec<Value> = tools
        .iter()
        .map(|tool| serde_json::from_str(tool.input_schema.as_str()).unwrap())
        .collect();
    assert_eq!(schemas[0]["properties"]["unit"]["enum"], json!(["celsius", "fahrenheit"]));
    assert_eq!(schemas[1]["type"], "object");
    assert_eq!(schemas[1]["description"], "What to do with a note.");
    assert_eq!(schemas[1]["properties"]["action"]["enum"], json!(["add", "remove", "clear"]));
    assert_eq!(schemas[1]["required"], json!(["action"]));
    assert_eq!(schemas[2]["type"], "object");
}

#[test]
fn a_value_that_is_not_a_choice_is_refused_and_the_choices_are_named() {
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &Host::new("test", "1"));
    for (tool, arguments, named) in [
        ("read", json!({ "unit": "kelvin" }), "`celsius` or `fahrenheit`"),
        ("edit", json!({ "action": "shred" }), "`add`, `remove`, `clear`"),
        ("edit", json!({}), "`action`"),
    ] {
        let reason = match pair.run(client.call_tool(tool, &arguments)) {
            Ok(result) => result.to_json_at(Revision::LATEST).unwrap().as_str().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(reason.contains(named), "{arguments}: {reason}");
    }
}

#[test]
fn an_enum_of_names_alone_is_refused_with_what_to_do() {
    let server = Server::new("s", "1").tool("t", "", |call: Call<Unit>| written(&call.arguments));
    let refused = server.endpoint(7).unwrap_err().to_string();
    assert!(refused.contains("\"t\"") && refused.contains("an enum with a tag"), "{refused}");
}

#[test]
fn a_null_argument_that_its_type_does_not_take_is_absent() {
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &Host::new("test", "1"));
    for (arguments, expected) in [
        (json!({ "city": "Oslo", "days": null }), r#"{"city":"Oslo","days":0,"notes":null}"#),
        (
            json!({ "days": null, "city": "\"O\"", "notes": { "a": null }, "other": null }),
            r#"{"city":"\"O\"","days":0,"notes":{"a":null}}"#,
        ),
        (
            json!({ "city": null }),
            "invalid arguments: `/city`: invalid type: null, expected a string",
        ),
        (json!({ "days": 1 }), "invalid arguments: missing field `city`"),
        (
            json!({ "city": "Oslo", "days": "1", "notes": null }),
            "invalid arguments: `/days`: invalid type: string \"1\", expected an integer from 0 to 255",
        ),
    ] {
        let result = pair.run(client.call_tool("forecast", &arguments)).unwrap();
        assert_eq!(text(&result), expected, "{arguments}");
    }
}

#[test]
fn a_null_member_of_a_nested_argument_that_its_type_does_not_take_is_absent() {
    let (client, mut pair) = mcp_sansio_test::connect(&server(), &Host::new("test", "1"));
    for (arguments, expected) in [
        (
            json!({ "stops": [{ "city": "Oslo", "days": null }] }),
            r#"{"stops":[{"city":"Oslo","days":0}],"notes":null}"#,
        ),
        // The reason refers to what was sent.
        (
            json!({ "stops": [{ "city": null }, { "city": "Oslo", "days": "1" }] }),
            "invalid arguments: `/stops/1/days`: invalid type: string \"1\", expected an integer from 0 to 255",
        ),
        (json!({ "stops": [], "notes": { "a": null } }), r#"{"stops":[],"notes":{"a":null}}"#),
    ] {
        let result = pair.run(client.call_tool("trip", &arguments)).unwrap();
        assert_eq!(text(&result), expected, "{arguments}");
    }
}
