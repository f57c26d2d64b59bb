//! Prompts of all kinds, with completion for one of them.

use mcp_sansio::protocol::{
    CompleteParams, CompletionReference, ElicitSchema, ImageContent, PromptMessage, StringSchema,
};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, NoArguments, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use super::input_requests::ask;
use super::media;
use super::tools::embedded;
use authorization_server::protected::SCOPED_PROMPT;

#[derive(Debug, Deserialize, JsonSchema)]
struct Two {
    /// First
    arg1: String,
    /// Second
    arg2: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct About {
    /// URI of the resource
    resource_uri: String,
}

#[derive(Debug, Deserialize)]
struct UserContext {
    context: String,
}

pub(super) fn offer(server: Server) -> Server {
    server
        .prompt("test_simple_prompt", "One message", |_: Call<NoArguments>| {
            String::from("This is a simple prompt for testing.")
        })
        .prompt("test_prompt_with_arguments", "Repeats its arguments", |call: Call<Two>| {
            let Two { arg1, arg2 } = call.arguments;
            format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
        })
        .prompt("test_prompt_with_embedded_resource", "Contains a resource", |call: Call<About>| {
            let uri = &call.arguments.resource_uri;
            vec![
                PromptMessage::user(embedded(uri, "Embedded resource content for testing.")),
                PromptMessage::user("Please process the embedded resource above."),
            ]
        })
        .prompt("test_prompt_with_image", "Contains an image", |_: Call<NoArguments>| {
            vec![
                PromptMessage::user(ImageContent::new(media::PNG, media::PNG_TYPE)),
                PromptMessage::user("Please analyze the image above."),
            ]
        })
        .prompt("test_input_required_result_prompt", "Asks for its context", with_context)
        .prompt(
            SCOPED_PROMPT,
            "One message; with --auth it needs the scope mcp:prompt",
            |_: Call<NoArguments>| String::from("This is the scoped prompt."),
        )
        .completion(complete)
}

fn with_context(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.input::<UserContext>("user_context")? {
        None => {
            let schema = ElicitSchema::new().field("context", StringSchema::new());
            let question = Elicit::form_with("What is this about?", schema);
            ask(&call, [("user_context", question)], None)
        }
        Some(answer) => Ok(answer.content.map_or_else(
            || "There is no context.".into(),
            |content| format!("In the context of {}:", content.context),
        )),
    }
}

fn complete(call: Call<CompleteParams>) -> Vec<String> {
    let known: &[&str] = match &call.arguments.reference {
        CompletionReference::Prompt(prompt) if prompt.name == "test_prompt_with_arguments" => {
            &["paris", "park", "party", "seoul", "tokyo"]
        }
        CompletionReference::Resource(_) => &["123", "124", "200"],
        _ => &[],
    };
    let typed = &call.arguments.argument.value;
    known.iter().filter(|value| value.starts_with(typed)).map(|value| (*value).into()).collect()
}
