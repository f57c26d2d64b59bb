use std::rc::Rc;

use mcp_sansio::jsonrpc::{ErrorObject, Json, RawJson};
use mcp_sansio::protocol::{
    CallToolResult, CompleteParams, CompletionArgument, Prompt, PromptMessage, PromptReference,
    Resource, ResourceContents, ResourceTemplate, TextResourceContents, Tool,
};
use mcp_sansio::{Capability, ErrorCode, Revision};
use mcp_sansio_handlers::{Call, HandlerError, NoArguments, ReadResource, Server, Structured};

use crate::{Place, connect, text};

fn server() -> Server {
    Server::new("weather", "1.0.0")
        .tool("plain", "Weather", |call: Call<Place>| {
            format!("Sunny in {}", call.arguments.location)
        })
        .tool("later", "Weather", async |call: Call<Place>| {
            Ok(format!("Sunny in {}", call.arguments.location))
        })
        .tool("nothing", "Nothing", |_: Call<NoArguments>| ())
        .tool("parse", "Parses", async |call: Call<Place>| {
            let number: i32 = call.arguments.location.parse()?;
            Ok(number.to_string())
        })
        .tool("refuse", "Refuses", |_: Call<NoArguments>| -> Result<String, HandlerError> {
            Err(HandlerError::Protocol(ErrorObject::new(ErrorCode(-32000), "not today")))
        })
}

#[test]
fn plain_and_async_handlers_answer_at_every_revision() {
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(), revision);
        for tool in ["plain", "later"] {
            let place = Place { location: "Oslo".into() };
            let result = pair.run(client.call_tool(tool, &place)).unwrap();
            assert_eq!(text(&result), "Sunny in Oslo");
        }
        let result = pair.run(client.call_tool("nothing", &NoArguments {})).unwrap();
        assert!(result.content.is_empty());
    }
}

#[test]
fn the_schema_of_a_tool_is_derived_from_its_arguments() {
    // Rule: [TOOL-001] [TOOL-021].
    let (client, mut pair) = connect(&server(), Revision::LATEST);
    let tools = pair.run(client.all_tools()).unwrap();
    let schema = tools[0].input_schema.as_str();
    assert!(schema.contains(r#""type":"object""#), "{schema}");
    assert!(schema.contains(r#""required":["location"]"#), "{schema}");
    assert!(schema.contains("City name or postal code."), "{schema}");
    assert!(tools[2].input_schema.as_str().contains(r#""type":"object""#));
}

#[test]
fn invalid_arguments_are_a_protocol_error_at_older_revisions_and_a_tool_error_later() {
    // Rule: [TOOL-009] [TOOL-010].
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(), revision);
        let answer = pair.run(client.call_tool("plain", &NoArguments {}));
        if revision < Revision::V2025_11_25 {
            let error = answer.unwrap_err();
            assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS);
        } else {
            let result = answer.unwrap();
            assert_eq!(result.is_error, Some(true));
            assert!(text(&result).contains("location"), "{}", text(&result));
        }
    }
}

#[test]
fn an_unknown_tool_is_a_protocol_error() {
    // Rule: [TOOL-007].
    let (client, mut pair) = connect(&server(), Revision::LATEST);
    let error = pair.run(client.call_tool("missing", &NoArguments {})).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS);
}

#[test]
fn a_tool_error_is_a_result_and_a_protocol_error_is_not() {
    // Rule: [TOOL-008].
    let (client, mut pair) = connect(&server(), Revision::LATEST);
    let place = RawJson::parse(r#"{"location":"x"}"#).unwrap();
    let result = pair.run(client.call_tool("parse", &place)).unwrap();
    assert_eq!((result.is_error, text(&result)), (Some(true), "invalid digit found in string"));
    let error = pair.run(client.call_tool("refuse", &NoArguments {})).unwrap_err();
    assert_eq!(error.to_string(), error.as_refusal().unwrap().to_string());
    assert!(error.to_string().contains("not today"));
}

/// Accepts only objects with a member `n`.
#[derive(Clone, Debug)]
struct WantsN;

impl mcp_sansio::catalog::Validator for WantsN {
    fn compile(&self, _: &Json) -> Result<Box<dyn mcp_sansio::catalog::CompiledSchema>, String> {
        Ok(Box::new(Self))
    }
    fn clone_boxed(&self) -> Box<dyn mcp_sansio::catalog::Validator> {
        Box::new(Self)
    }
}

impl mcp_sansio::catalog::CompiledSchema for WantsN {
    fn validate(&self, value: &RawJson<'_>) -> Result<(), String> {
        value.get("n").map(|_| ()).ok_or_else(|| "`n` is missing".into())
    }
    fn clone_boxed(&self) -> Box<dyn mcp_sansio::catalog::CompiledSchema> {
        Box::new(Self)
    }
}

#[test]
fn structured_results_carry_their_text_and_conform_to_their_schema() {
    // Rule: [TOOL-018].
    let object: Json = RawJson::parse(r#"{"type":"object"}"#).unwrap().into();
    let tool = |name: &str| Tool::new(name, object.clone()).output_schema(object.clone());
    let value = |text: &str| Structured(Json::from(RawJson::parse(text).unwrap()));
    let (good, bad, later) = (value(r#"{"n":1}"#), value(r#"{"m":1}"#), value(r#"{"m":1}"#));
    let server = Server::new("s", "1")
        .catalog(|catalog| catalog.validator(WantsN).unwrap())
        .tool_with(tool("good"), move |_: Call<Json>| good.clone())
        .tool_with(tool("bad"), move |_: Call<Json>| bad.clone())
        .tool_with(tool("failed"), |_: Call<Json>| {
            let reason = RawJson::parse(r#"{"code":"NOT_FOUND"}"#).unwrap();
            let mut failed = CallToolResult::error("no such city");
            failed.structured_content = Some(reason.into());
            failed
        })
        .tool_with(tool("later"), {
            move |_: Call<Json>| {
                let later = later.clone();
                async move { later }
            }
        });
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let (client, mut pair) = connect(&server, revision);
        let arguments = RawJson::parse(r#"{"n":0}"#).unwrap();
        let result = pair.run(client.call_tool("good", &arguments)).unwrap();
        assert_eq!(text(&result), r#"{"n":1}"#);
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"n":1}"#);
        // The structured content of an error describes the error.
        let failed = pair.run(client.call_tool("failed", &arguments)).unwrap();
        assert_eq!((failed.is_error, text(&failed)), (Some(true), "no such city"));
        for name in ["bad", "later"] {
            let error = pair.run(client.call_tool(name, &arguments)).unwrap_err();
            let refusal = error.as_refusal().unwrap();
            assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR);
            assert!(refusal.message.contains("`n` is missing"), "{refusal}");
        }
    }
}

#[test]
fn a_tool_with_an_output_schema_returns_a_structured_result_or_fails() {
    let object: Json = RawJson::parse(r#"{"type":"object"}"#).unwrap().into();
    let tool = |name: &str| Tool::new(name, object.clone()).output_schema(object.clone());
    // No validator is set: a missing result is detected without one.
    let server = Server::new("s", "1")
        .tool_with(tool("text"), |_: Call<Json>| "only words")
        .tool_with(tool("blocks"), |_: Call<Json>| CallToolResult::new([]))
        .tool_with(tool("later"), |_: Call<Json>| async { "only words" })
        .tool_with(tool("failed"), |_: Call<Json>| CallToolResult::error("no such city"))
        .tool_with(tool("good"), |_: Call<Json>| {
            CallToolResult::structured(&NoArguments {}).unwrap()
        })
        .tool("plain", "", |_: Call<NoArguments>| "only words");
    // Revisions without output schemas do not require a structured result.
    let (client, mut pair) = connect(&server, Revision::V2025_03_26);
    let result = pair.run(client.call_tool("text", &NoArguments {})).unwrap();
    assert_eq!(text(&result), "only words");
    for revision in [Revision::V2025_06_18, Revision::LATEST] {
        let (client, mut pair) = connect(&server, revision);
        for name in ["text", "blocks", "later"] {
            let error = pair.run(client.call_tool(name, &NoArguments {})).unwrap_err();
            let refusal = error.as_refusal().unwrap();
            assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR, "{name}");
            assert!(refusal.message.contains("no structured result"), "{refusal}");
        }
        let failed = pair.run(client.call_tool("failed", &NoArguments {})).unwrap();
        assert_eq!((failed.is_error, text(&failed)), (Some(true), "no such city"));
        assert!(pair.run(client.call_tool("good", &NoArguments {})).is_ok());
        assert_eq!(
            text(&pair.run(client.call_tool("plain", &NoArguments {})).unwrap()),
            "only words"
        );
    }
}

#[test]
fn prompts_resources_templates_and_completions_have_handlers() {
    // Rule: [PRMT-006] [RSRC-003] [RSRC-009] [RSRC-010] [RSRC-011].
    let contents = |call: &Call<ReadResource>, text: &str| {
        ResourceContents::from(TextResourceContents::new(&*call.arguments.uri, text))
    };
    let server = Server::new("s", "1")
        .prompt_with(Prompt::new("greet"), |call: Call<Place>| {
            PromptMessage::user(format!("Hello {}", call.arguments.location))
        })
        .resource(Resource::new("mem://a", "a"), move |call: Call<ReadResource>| {
            contents(&call, "A")
        })
        .resource_template(
            ResourceTemplate::new("mem://{kind}/{id}", "thing"),
            move |call: Call<ReadResource>| async move {
                match call.arguments.variable("id") {
                    Some("0") => Err(HandlerError::resource_not_found(&call.arguments.uri)),
                    id => {
                        let text = format!("{:?} {id:?}", call.arguments.variable("kind"));
                        Ok(contents(&call, &text))
                    }
                }
            },
        )
        .completion(|call: Call<CompleteParams>| {
            vec![format!("{}!", call.arguments.argument.value)]
        });
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, revision);
        // Rule: [CAP-005]: declared by every revision that has the capability.
        let declared = client.session().unwrap().capabilities.contains(Capability::Completions);
        assert_eq!(declared, revision > Revision::V2024_11_05);
        let place = [("location".to_owned(), "Oslo".to_owned())];
        let prompt = pair.run(client.get_prompt("greet", place)).unwrap();
        assert_eq!(prompt.messages[0].content.as_text(), Some("Hello Oslo"));
        let error = pair.run(client.get_prompt("greet", [])).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS);
        assert!(!error.is_resource_not_found());
        let mut read = |uri: &str| {
            pair.run(client.read_resource(uri)).map(|mut result| match result.contents.remove(0) {
                ResourceContents::Text(contents) => contents.text,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(read("mem://a").unwrap(), "A");
        assert_eq!(read("mem://b/7").unwrap(), r#"Some("b") Some("7")"#);
        let expected = if revision == Revision::LATEST {
            ErrorCode::INVALID_PARAMS
        } else {
            ErrorCode::RESOURCE_NOT_FOUND
        };
        for uri in ["mem://b/0", "other://x"] {
            let error = read(uri).unwrap_err();
            assert_eq!(error.as_refusal().unwrap().code, expected, "{uri}");
            assert!(error.is_resource_not_found(), "{uri}");
        }
        let params = CompleteParams::new(
            PromptReference::new("greet"),
            CompletionArgument::new("location", "Os"),
        );
        let completed = pair.run(client.complete(&params)).unwrap();
        assert_eq!(completed.completion.values, ["Os!"]);
    }
}

#[test]
fn extension_requests_reach_their_handler_and_unknown_methods_are_refused() {
    // Rule: [RPC-018].
    let server = Server::new("s", "1").request("x/echo", |call: Call<Json>| call.arguments.clone());
    for revision in [Revision::V2025_11_25, Revision::LATEST] {
        let (client, mut pair) = connect(&server, revision);
        let params = RawJson::parse(r#"{"a":1}"#).unwrap();
        let result = pair.run(client.call_other("x/echo", params.clone())).unwrap();
        assert_eq!(result.as_raw().get("a").unwrap().as_str(), "1");
        let error = pair.run(client.call_other("x/other", params)).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code, ErrorCode::METHOD_NOT_FOUND);
    }
}

#[test]
fn a_local_server_may_hold_values_that_are_not_send() {
    let calls = Rc::new(std::cell::Cell::new(0));
    let seen = Rc::clone(&calls);
    let server =
        Server::local("s", "1").tool("count", "Counts", async move |_: Call<NoArguments>| {
            seen.set(seen.get() + 1);
            Ok(seen.get().to_string())
        });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    pair.run(client.call_tool("count", &NoArguments {})).unwrap();
    assert_eq!(text(&pair.run(client.call_tool("count", &NoArguments {})).unwrap()), "2");
    assert_eq!(calls.get(), 2);
}

#[test]
fn a_bad_name_is_reported_when_the_server_is_connected() {
    let server = Server::new("s", "1").tool("not a name", "", |_: Call<NoArguments>| ());
    assert!(server.endpoint(0).is_err());
}

#[test]
fn endpoints_of_shared_handlers_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<mcp_sansio_handlers::endpoint::ServerEndpoint>();
    is_send::<mcp_sansio_handlers::endpoint::ClientEndpoint>();
    is_send::<mcp_sansio_handlers::Client>();
}
