//! A client that uses every feature of a server over HTTP. It is the client under test of the
//! official conformance suite.

mod sign_in;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::http::{HttpClientOptions, Location};
use mcp_sansio::protocol::TaskSupport;
use mcp_sansio::{Revision, Revisions};
use mcp_sansio_cli::arguments::{Argument, Arguments, Stop};
use mcp_sansio_cli::canned::{self, Seen};
use mcp_sansio_handlers::{Client, ClientError};
use mcp_sansio_tokio::{Connector, connect_with};
use serde_json::{Value, json};

const USAGE: &str = "\
everything-client URL

Lists and uses everything that the server at URL offers, and exits with 0 on success. Signs in if
the server requires it, at authorization pages that need no user. The official conformance suite
selects a scenario with the environment variables MCP_CONFORMANCE_SCENARIO,
MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT.
";

/// The time limit of the whole run. The suite gives up after 30 s.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of a fallible step.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The task given by the environment.
#[derive(Debug)]
struct Task {
    scenario: String,
    revisions: Revisions,
    context: Value,
}

fn parse(mut arguments: Arguments) -> Result<String, Stop> {
    let mut url = None;
    while let Some(argument) = arguments.shift()? {
        match argument {
            Argument::Word(word) if url.is_none() => url = Some(word),
            Argument::Word(word) => {
                return Err(Stop::Wrong(format!("unexpected argument `{word}`")));
            }
            Argument::Flag(flag) => return Err(Stop::unknown(&flag)),
            Argument::Rest(_) => return Err(Stop::wrong("unexpected argument `--`")),
        }
    }
    url.ok_or_else(|| Stop::wrong("the URL of the server is missing"))
}

fn task() -> Outcome<Task> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let revisions = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() {
        "" => Revisions::ALL,
        named => Revisions::only(
            Revision::parse(named)
                .ok_or("MCP_CONFORMANCE_PROTOCOL_VERSION is not a known revision")?,
        ),
    };
    let context = match variable("MCP_CONFORMANCE_CONTEXT").as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text)?,
    };
    Ok(Task { scenario: variable("MCP_CONFORMANCE_SCENARIO"), revisions, context })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let url = match Arguments::from_args().and_then(parse) {
        Ok(url) => url,
        Err(stop) => return stop.report("everything-client", USAGE),
    };
    let outcome = tokio::time::timeout(PATIENCE, run(&url)).await;
    let outcome = outcome.unwrap_or_else(|_| Err("the run did not finish within 20 s".into()));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // There is nothing left to report a failure to.
            let _ = writeln!(std::io::stderr(), "everything-client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str) -> Outcome {
    let task = task()?;
    let seen = Arc::new(Seen::default());
    let connector = Connector::new()?;
    let host = canned::host("everything-client", &seen)
        .revisions(task.revisions)
        .authorization(sign_in::authorization(&task, &connector)?);
    // The stream for server messages would disturb the timing of reconnections.
    let listens = task.scenario != "sse-retry";
    let options = HttpClientOptions::new(Location::parse(url)?).listen(listens);
    let client = connect_with(options, &connector, &host).await?;
    let outcome = play(&client, &task).await;
    client.close().await;
    outcome
}

/// Runs a scenario. Most scenarios only use the tools of the server.
async fn play(client: &Client, task: &Task) -> Outcome {
    match task.scenario.as_str() {
        "elicitation-sep1034-client-defaults" => {
            // The elicitation requests arrive on the stream for server messages, which may take a
            // moment to open.
            tokio::time::sleep(Duration::from_millis(300)).await;
            use_tools(client, task).await
        }
        "http-custom-headers" => {
            client.all_tools().await?;
            for call in task.context["toolCalls"].as_array().into_iter().flatten() {
                let name = call["name"].as_str().ok_or("a call without a name")?;
                client.call_tool(name, &call["arguments"]).await?;
            }
            Ok(())
        }
        "http-invalid-tool-headers" => {
            client.all_tools().await?;
            client.call_tool("valid_tool", &json!({ "region": "us-west1" })).await?;
            Ok(())
        }
        "json-schema-2020-12-preservation" => {
            let tools = client.all_tools().await?;
            let tool = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = &tool.ok_or("the tool is missing")?.input_schema;
            let schema: Value = serde_json::from_str(schema.as_str())?;
            client.call_tool("json_schema_echo", &json!({ "schema": schema })).await?;
            Ok(())
        }
        "initialize" | "json-schema-ref-no-deref" => {
            client.all_tools().await?;
            Ok(())
        }
        "http-standard-headers" | "" => {
            use_tools(client, task).await?;
            use_resources(client).await?;
            use_prompts(client).await
        }
        _ => use_tools(client, task).await,
    }
}

/// Calls every tool with arguments that fit its schema.
async fn use_tools(client: &Client, _task: &Task) -> Outcome {
    for tool in client.all_tools().await? {
        let schema = serde_json::from_str(tool.input_schema.as_str())?;
        let arguments = canned::arguments(&schema);
        if tool.execution.as_ref().is_some_and(|it| it.task_support == Some(TaskSupport::Required))
        {
            let called = client.call_tool_as_task(&tool, &arguments).await?;
            match called.result().await {
                // An error response counts as an answer, because some tools only return errors.
                Err(error) if error.as_refusal().is_some() => {}
                outcome => drop(outcome?),
            }
            continue;
        }
        client.call_tool(&tool.name, &arguments).await?;
    }
    Ok(())
}

async fn use_resources(client: &Client) -> Outcome {
    for resource in offered(client.all_resources().await)? {
        client.read_resource(&resource.uri).await?;
    }
    Ok(())
}

async fn use_prompts(client: &Client) -> Outcome {
    for prompt in offered(client.all_prompts().await)? {
        let arguments = prompt.arguments.iter().flatten();
        let arguments = arguments.map(|argument| (argument.name.clone(), "made up".into()));
        client.get_prompt(&prompt.name, arguments.collect::<Vec<_>>()).await?;
    }
    Ok(())
}

/// Returns a list, or an empty list if the server does not offer that kind of item.
fn offered<T>(listed: Result<Vec<T>, ClientError>) -> Result<Vec<T>, ClientError> {
    match listed {
        Err(ClientError::NotSent(_)) => Ok(Vec::new()),
        other => other,
    }
}
