//! Tools that request one input from the user or the model.

use mcp_sansio::Era;
use mcp_sansio::protocol::{
    BooleanSchema, Choices, CreateMessageParams, CreateMessageResult, ElicitSchema, EnumOption,
    InputRequest, MultiSelectSchema, NumberSchema, OneOrMany, SamplingContent, SamplingMessage,
    SingleSelectSchema, StringFormat, StringSchema,
};
use mcp_sansio_handlers::{
    Call, Context, Elicit, HandlerError, InputRequired, NoArguments, Server,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The key of the only input request of a tool.
const KEY: &str = "answer";

#[derive(Debug, Deserialize, JsonSchema)]
struct Prompt {
    /// The prompt for the model
    prompt: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Message {
    /// The message for the user
    message: String,
}

pub(super) fn offer(server: Server) -> Server {
    server
        .tool("test_sampling", "Asks the model", test_sampling)
        .tool("test_missing_capability", "Needs a client with a model", test_missing_capability)
        .tool("test_elicitation", "Asks the user for a name and an address", test_elicitation)
        .tool("test_streaming_elicitation", "Asks the user to continue", test_streaming_elicitation)
        .tool(
            "test_elicitation_sep1034_defaults",
            "Asks with a form that has default values",
            |call: Call<NoArguments>| show_form(&call, "Review and update", defaults()),
        )
        .tool(
            "test_elicitation_sep1330_enums",
            "Asks with every kind of choice",
            |call: Call<NoArguments>| show_form(&call, "Choose", choices()),
        )
}

/// Suspends a handler with input requests by key.
///
/// If the client lacks a capability, the protocol refuses the request of a modern client. A legacy
/// client gets a tool error, so that its model can work without the input.
pub(super) fn ask<'k, T>(
    call: &Context,
    questions: impl IntoIterator<Item = (&'k str, InputRequest)>,
    state: Option<String>,
) -> Result<T, HandlerError> {
    let mut all = InputRequired::default();
    for (key, question) in questions {
        let mut needs = question.needs(call.revision());
        if call.revision().era() == Era::Legacy
            && let Some(missing) = needs.find(|need| !call.capabilities().contains(*need))
        {
            return Err(HandlerError::failed(format!("the client does not offer `{missing}`")));
        }
        drop(needs);
        all = all.and(key, question);
    }
    match state {
        Some(state) => all.state(state).into_result(),
        None => all.into_result(),
    }
}

/// Returns a sampling request.
pub(super) fn sampling(prompt: &str) -> InputRequest {
    CreateMessageParams::new([SamplingMessage::user(prompt)], 100_i64).into()
}

/// Returns the text of a sampling result.
pub(super) fn text_of(message: &CreateMessageResult) -> &str {
    let first = match &message.content {
        OneOrMany::One(content) => Some(content),
        OneOrMany::Many(contents) => contents.first(),
    };
    match first {
        Some(SamplingContent::Text(content)) => &content.text,
        _ => "something other than text",
    }
}

fn test_sampling(call: Call<Prompt>) -> Result<String, HandlerError> {
    match call.sampled(KEY)? {
        None => ask(&call, [(KEY, sampling(&call.arguments.prompt))], None),
        Some(message) => Ok(format!("LLM response: {}", text_of(&message))),
    }
}

fn test_missing_capability(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.sampled(KEY)? {
        None => ask(&call, [(KEY, sampling("Say something."))], None),
        Some(message) => Ok(text_of(&message).into()),
    }
}

fn test_elicitation(call: Call<Message>) -> Result<String, HandlerError> {
    let schema = ElicitSchema::new()
        .field("username", StringSchema::new().description("User's response"))
        .field(
            "email",
            StringSchema::new().description("User's email address").format(StringFormat::Email),
        );
    show_form(&call, &call.arguments.message, schema)
}

fn test_streaming_elicitation(call: Call<NoArguments>) -> Result<String, HandlerError> {
    let schema = ElicitSchema::new().field("ok", BooleanSchema::new().description("Go on"));
    show_form(&call, "Continue?", schema)
}

/// Shows a form and reports the user's response.
fn show_form(call: &Context, message: &str, schema: ElicitSchema) -> Result<String, HandlerError> {
    let Some(answer) = call.input::<serde_json::Value>(KEY)? else {
        return ask(call, [(KEY, Elicit::form_with(message, schema))], None);
    };
    let content = answer.content.unwrap_or_default();
    Ok(format!("User response: action={}, content={content}", answer.action))
}

fn defaults() -> ElicitSchema {
    let status = SingleSelectSchema::new(["active", "inactive", "pending"])
        .description("User status")
        .default("active");
    ElicitSchema::new()
        .optional_field("name", StringSchema::new().description("User name").default("John Doe"))
        .optional_field("age", NumberSchema::integer().description("User age").default(30.0))
        .optional_field("score", NumberSchema::number().description("User score").default(95.5))
        .optional_field("status", status)
        .optional_field(
            "verified",
            BooleanSchema::new().description("Verification status").default(true),
        )
}

fn choices() -> ElicitSchema {
    let plain = || Choices::from(["option1", "option2", "option3"]);
    let titled = || {
        Choices::from(vec![
            EnumOption::new("value1", "First Option"),
            EnumOption::new("value2", "Second Option"),
            EnumOption::new("value3", "Third Option"),
        ])
    };
    let legacy = Choices::LegacyTitled {
        values: vec!["opt1".into(), "opt2".into(), "opt3".into()],
        names: vec!["Option One".into(), "Option Two".into(), "Option Three".into()],
    };
    ElicitSchema::new()
        .optional_field("untitledSingle", SingleSelectSchema::new(plain()))
        .optional_field("titledSingle", SingleSelectSchema::new(titled()))
        .optional_field("legacyEnum", SingleSelectSchema::new(legacy))
        .optional_field("untitledMulti", MultiSelectSchema::new(plain()))
        .optional_field("titledMulti", MultiSelectSchema::new(titled()))
}
