//! A host for a language model: it offers the tools of all servers in an `mcpServers` file to a model,
//! calls those that the model chooses, and shows the model the results, until the model answers the
//! user. `chat-host FILE` reads the user's messages from standard input, one a line.
//!
//! The model here is a script, so that the program runs without one: send what `Model::reply` gets to
//! yours.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::env;
use std::error::Error;
use std::time::Duration;

use mcp_sansio_tokio::{self as mcp, AnyConnection, Host, Servers, ServersConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{sleep, timeout};

/// How often the model may call tools before it must answer.
const CALLS_MAX: usize = 8;

/// A message of the conversation, as the interfaces of models have them.
enum Message {
    User(String),
    /// The model calls a tool with arguments in JSON.
    Call {
        tool: String,
        arguments: Value,
    },
    /// The result of that call. A failed one is for the model, too: it may call again.
    Result {
        text: String,
        failed: bool,
    },
    Answer(String),
}

/// A tool as the interfaces of models describe it.
struct Tool {
    name: String,
    /// The JSON Schema of its arguments.
    schema: Value,
}

/// A script in place of a language model.
struct Model;

impl Model {
    /// Returns the next message of the conversation: a call of one of the tools, or an answer.
    ///
    /// The script calls the tool whose name is the first word of the user's message, gives the rest as
    /// each argument that is required, and answers with the result.
    async fn reply(&self, tools: &[Tool], conversation: &[Message]) -> Message {
        match conversation.last() {
            Some(Message::Result { text, failed: false }) => Message::Answer(text.clone()),
            Some(Message::Result { text, .. }) => Message::Answer(format!("That failed: {text}")),
            Some(Message::User(text)) => {
                let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
                let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
                    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
                    return Message::Answer(format!("I have {}.", names.join(", ")));
                };
                let required = tool.schema["required"].as_array().into_iter().flatten();
                let arguments = required.filter_map(|name| Some((name.as_str()?, json!(rest))));
                Message::Call { tool: name.to_owned(), arguments: arguments.collect() }
            }
            _ => Message::Answer("Yes?".to_owned()),
        }
    }
}

/// Calls a tool. What goes wrong is text for the model, not the end of the conversation.
async fn call(servers: &Servers<AnyConnection>, tool: &str, arguments: &Value) -> Message {
    let result = match servers.call_tool(tool, arguments) {
        Ok(call) => call.timeout(Duration::from_secs(60)).await,
        Err(error) => return Message::Result { text: error.to_string(), failed: true },
    };
    match result {
        Ok(result) => {
            let texts: Vec<_> = result.content.iter().filter_map(|it| it.as_text()).collect();
            Message::Result { text: texts.join("\n"), failed: result.is_error == Some(true) }
        }
        Err(error) => Message::Result { text: error.to_string(), failed: true },
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("which `mcpServers` file?")?;
    let config = ServersConfig::parse(&std::fs::read_to_string(file)?, |name| env::var(name).ok())?;
    let servers = Servers::<AnyConnection>::new();
    mcp::connect_servers(&servers, config, &Host::new("chat-host", "1.0.0"))?;
    for error in servers.ready(sleep(Duration::from_secs(10))).await {
        eprintln!("{error}"); // go on with the others
    }

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut conversation = Vec::new();
    while let Some(line) = lines.next_line().await? {
        conversation.push(Message::User(line));
        // Servers may have got other tools meanwhile.
        let tools: Vec<_> = servers.all_tools().await.items.into_iter().map(|it| it.item).collect();
        let tools: Vec<_> = tools
            .into_iter()
            .map(|it| Ok(Tool { schema: it.input_schema.decode()?, name: it.name }))
            .collect::<Result<_, mcp::jsonrpc::JsonError>>()?;
        for calls in 0.. {
            let reply =
                Model.reply(if calls < CALLS_MAX { &tools } else { &[] }, &conversation).await;
            match &reply {
                Message::Call { tool, arguments } => {
                    eprintln!("{tool} {arguments}"); // ask the user before a tool that changes things
                    let result = call(&servers, tool, arguments).await;
                    conversation.extend([reply, result]);
                }
                Message::Answer(text) => {
                    println!("{text}");
                    conversation.push(reply);
                    break;
                }
                _ => break,
            }
        }
    }
    for (_, connection) in servers.close() {
        timeout(Duration::from_secs(10), connection.shutdown()).await??;
    }
    Ok(())
}
