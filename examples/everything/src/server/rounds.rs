//! Tools that request several inputs, in one or more rounds, with a protected request state.

use mcp_sansio::Capability;
use mcp_sansio::protocol::{ElicitSchema, InputRequest, ListRootsParams, StringSchema};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, NoArguments, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use super::input_requests::{ask, sampling, text_of};

#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    /// Your name
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Confirmation {
    /// Is this all right?
    ok: bool,
}

pub(super) fn offer(server: Server) -> Server {
    server
        .tool("test_input_required_result_elicitation", "Asks for a name", elicitation)
        .tool("test_input_required_result_sampling", "Asks the model for a capital", capital)
        .tool("test_input_required_result_list_roots", "Asks for the client's roots", roots)
        .tool(
            "test_input_required_result_request_state",
            "Asks for a confirmation, with a state",
            confirm,
        )
        .tool(
            "test_input_required_result_tampered_state",
            "Refuses a state that was tampered with",
            confirm,
        )
        .tool(
            "test_input_required_result_multiple_inputs",
            "Asks for three things at once",
            all_inputs,
        )
        .tool(
            "test_input_required_result_multi_round",
            "Asks for one thing after the other",
            step_by_step,
        )
        .tool(
            "test_input_required_result_capabilities",
            "Asks for everything that the client supports",
            all_supported,
        )
}

fn who() -> InputRequest {
    Elicit::form::<Name>("What is your name?")
}

fn where_to_work() -> InputRequest {
    ListRootsParams::new().into()
}

fn elicitation(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.input::<Name>("user_name")? {
        None => ask(&call, [("user_name", who())], None),
        Some(answer) => Ok(greet(answer.content)),
    }
}

fn greet(name: Option<Name>) -> String {
    name.map_or_else(|| "Hello, whoever you are!".into(), |who| format!("Hello, {}!", who.name))
}

fn capital(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.sampled("capital_question")? {
        None => {
            ask(&call, [("capital_question", sampling("What is the capital of France?"))], None)
        }
        Some(message) => Ok(format!("The model says: {}", text_of(&message))),
    }
}

fn roots(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.roots("client_roots")? {
        None => ask(&call, [("client_roots", where_to_work())], None),
        Some(roots) => Ok(format!("The client has {} roots.", roots.roots.len())),
    }
}

fn confirm(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match (call.input::<Confirmation>("confirm")?, call.state()) {
        (Some(answer), Some(_)) => Ok(if answer.content.is_some_and(|content| content.ok) {
            "state-ok: confirmed".into()
        } else {
            "state-ok: not confirmed".into()
        }),
        _ => {
            let question = Elicit::form::<Confirmation>("Please confirm");
            ask(&call, [("confirm", question)], Some("confirm".into()))
        }
    }
}

fn all_inputs(call: Call<NoArguments>) -> Result<String, HandlerError> {
    let name = call.input::<Name>("user_name")?;
    let greeting = call.sampled("greeting")?;
    let roots = call.roots("client_roots")?;
    let (Some(name), Some(greeting), Some(roots)) = (name, greeting, roots) else {
        let questions = [
            ("user_name", who()),
            ("greeting", sampling("Write a greeting.")),
            ("client_roots", where_to_work()),
        ];
        return ask(&call, questions, Some("all".into()));
    };
    let greeting = text_of(&greeting);
    let (name, count) = (greet(name.content), roots.roots.len());
    Ok(format!("{name} The model says: {greeting}. There are {count} roots."))
}

fn step_by_step(call: Call<NoArguments>) -> Result<String, HandlerError> {
    match call.state() {
        None => ask(&call, [("step1", who())], Some("step 2".into())),
        Some("step 2") => {
            let Some(answer) = call.input::<Name>("step1")? else {
                return ask(&call, [("step1", who())], Some("step 2".into()));
            };
            let name = answer.content.map_or_else(|| "unknown".into(), |content| content.name);
            // The state carries the input of the first round, because the client does not send it
            // again.
            ask(&call, [("step2", colour())], Some(format!("step 3 {name}")))
        }
        Some(state) => {
            let name = state.strip_prefix("step 3 ").unwrap_or_default();
            let Some(answer) = call.input::<serde_json::Value>("step2")? else {
                return ask(&call, [("step2", colour())], Some(state.into()));
            };
            let content = answer.content.unwrap_or_default();
            let color = content["color"].as_str().unwrap_or("none");
            Ok(format!("{name} likes {color} best."))
        }
    }
}

fn colour() -> InputRequest {
    let schema = ElicitSchema::new().field("color", StringSchema::new());
    Elicit::form_with("What is your favourite colour?", schema)
}

fn all_supported(call: Call<NoArguments>) -> Result<String, HandlerError> {
    if !call.inputs().is_empty() {
        return Ok("Thank you.".into());
    }
    let declared = call.capabilities();
    let mut questions = Vec::new();
    if declared.contains(Capability::Sampling) {
        questions.push(("model", sampling("Say hello.")));
    }
    if declared.contains(Capability::ElicitationForm) {
        questions.push(("user", who()));
    }
    if declared.contains(Capability::Roots) {
        questions.push(("roots", where_to_work()));
    }
    if questions.is_empty() {
        return Ok("The client supports no input requests.".into());
    }
    ask(&call, questions, None)
}
