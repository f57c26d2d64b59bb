//! How errors of handlers appear to clients.

use std::error::Error;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::protocol::{
    CallToolResult, ElicitParams, ElicitResult, Map, Resource, TextResourceContents,
};
use mcp_sansio::{ErrorCode, Revision};
use mcp_sansio_handlers::{
    Call, Client, Elicit, HandlerError, Host, HostRequest, IntoHandlerError, NoArguments,
    ReadResource, Server, State, Structured, blocking, fallible,
};

use crate::{ASKING, Both, connect, connect_host, text};

type AnyError = Box<dyn Error + Send + Sync>;

const SECRET: &str = "connection to 10.0.0.7 refused";

/// An error that says how it is shown.
#[derive(Debug)]
enum StoreError {
    NotFound(&'static str),
    Quota,
    Handler(HandlerError),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(SECRET)
    }
}

impl Error for StoreError {}

impl IntoHandlerError for StoreError {
    fn into_handler_error(self) -> HandlerError {
        match self {
            Self::NotFound(name) => HandlerError::failed(format!("no note `{name}`")),
            Self::Quota => {
                let error = ErrorObject::new(ErrorCode(429), "too many notes");
                HandlerError::Protocol(error.with_data(RawJson::parse("[7]").unwrap()))
            }
            Self::Handler(error) => error,
        }
    }
}

impl From<HandlerError> for StoreError {
    fn from(error: HandlerError) -> Self {
        Self::Handler(error)
    }
}

fn secret() -> Result<(), std::io::Error> {
    Err(std::io::Error::other(SECRET))
}

async fn not_found(_: Call<NoArguments>) -> Result<String, StoreError> {
    Err(StoreError::NotFound("a"))
}

fn quota(_: Call<NoArguments>) -> Result<(), StoreError> {
    Err(StoreError::Quota)
}

fn call(both: &mut Both, tool: &str) -> CallToolResult {
    both.1.run(both.0.call_tool(tool, &NoArguments {})).unwrap()
}

fn refusal(both: &mut Both, tool: &str) -> ErrorObject<'static> {
    let error = both.1.run(both.0.call_tool(tool, &NoArguments {})).unwrap_err();
    error.as_refusal().unwrap().clone()
}

#[test]
fn an_error_of_the_application_says_how_it_is_shown() {
    // Rule: [TOOL-008].
    let structured = |_: Call<NoArguments>| -> Result<Structured<u8>, StoreError> {
        Err(StoreError::NotFound("s"))
    };
    let server = Server::new("s", "1")
        .state("n")
        .tool("failed", "", fallible(not_found))
        .tool("quota", "", fallible(quota))
        .structured_tool("structured", "", fallible(structured))
        .tool("blocking", "", fallible(blocking(quota)))
        .tool(
            "blocking_state",
            "",
            fallible(blocking(|_: Call<NoArguments>, name: State<&'static str>| {
                Err::<(), _>(StoreError::NotFound(*name))
            })),
        )
        .tool(
            "state",
            "",
            fallible(async |_: Call<NoArguments>, name: State<&'static str>| {
                Err::<(), _>(StoreError::NotFound(*name))
            }),
        )
        .tool("text", "", fallible(|_: Call<NoArguments>| Err::<(), _>("no such note")));
    let unmet = Server::new("s", "1").tool(
        "blocking",
        "",
        fallible(blocking(|_: Call<NoArguments>, _: State<&'static str>| Ok::<_, StoreError>(()))),
    );
    assert!(unmet.endpoint(42).unwrap_err().to_string().contains("&str"));
    for revision in Revision::ALL {
        let mut both = connect(&server, revision);
        for (tool, message) in [
            ("failed", "no note `a`"),
            ("structured", "no note `s`"),
            ("state", "no note `n`"),
            ("blocking_state", "no note `n`"),
            ("text", "no such note"),
        ] {
            let result = call(&mut both, tool);
            assert_eq!((result.is_error, text(&result)), (Some(true), message), "{tool}");
        }
        for tool in ["quota", "blocking"] {
            let error = refusal(&mut both, tool);
            assert_eq!((error.code.0, &*error.message), (429, "too many notes"), "{tool}");
            assert_eq!(error.data.unwrap().as_str(), "[7]");
        }
    }
}

#[test]
fn a_tool_shows_any_error_to_the_model() {
    // Rule: [TOOL-008].
    let server = Server::new("s", "1")
        .tool("question_mark", "", |_: Call<NoArguments>| Ok(secret()?))
        .tool(
            "boxed",
            "",
            fallible(|_: Call<NoArguments>| -> Result<(), AnyError> { Ok(secret()?) }),
        )
        .tool(
            "local",
            "",
            fallible(|_: Call<NoArguments>| -> Result<(), Box<dyn Error>> { Ok(secret()?) }),
        );
    let server = server.tool(
        "later",
        "",
        fallible(async |_: Call<NoArguments>| {
            secret()?;
            Ok::<_, AnyError>("done")
        }),
    );
    let mut both = connect(&server, Revision::LATEST);
    for tool in ["question_mark", "boxed", "local", "later"] {
        let result = call(&mut both, tool);
        assert_eq!((result.is_error, text(&result)), (Some(true), SECRET), "{tool}");
    }
}

/// Reads a resource and gets a prompt, and returns the texts of the two errors.
fn other_errors((client, pair): &mut Both) -> [String; 2] {
    let shown = |result: Result<(), mcp_sansio_handlers::ClientError>| {
        let error = result.unwrap_err();
        let refusal = error.as_refusal().unwrap();
        assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR);
        refusal.message.to_string()
    };
    let client: &Client = client;
    [
        shown(pair.run(client.read_resource("a:b")).map(drop)),
        shown(pair.run(client.get_prompt("p", [])).map(drop)),
    ]
}

#[test]
fn resources_and_prompts_show_only_errors_that_are_written_for_the_client() {
    // Rule: [RSRC-010] [PRMT-006].
    let resource = Resource::new("a:b", "b");
    let question_mark = Server::new("s", "1")
        .resource(resource.clone(), |_: Call<ReadResource>| {
            secret()?;
            Ok(TextResourceContents::new("a:b", ""))
        })
        .prompt("p", "", async |_: Call<NoArguments>| {
            secret()?;
            Ok(String::new())
        });
    let boxed = Server::new("s", "1")
        .resource(
            resource.clone(),
            fallible(|_: Call<ReadResource>| -> Result<TextResourceContents, AnyError> {
                secret()?;
                Ok(TextResourceContents::new("a:b", ""))
            }),
        )
        .prompt(
            "p",
            "",
            fallible(async |_: Call<NoArguments>| {
                secret()?;
                Ok::<_, AnyError>(String::new())
            }),
        );
    for server in [question_mark, boxed] {
        let shown = other_errors(&mut connect(&server, Revision::LATEST));
        assert_eq!(shown, ["internal error", "internal error"]);
    }
    let failed = Server::new("s", "1")
        .resource(resource, |_: Call<ReadResource>| {
            Err::<TextResourceContents, _>(HandlerError::failed("the shelf is empty"))
        })
        .prompt("p", "", fallible(|_: Call<NoArguments>| Err::<String, _>("closed today")));
    let shown = other_errors(&mut connect(&failed, Revision::LATEST));
    assert_eq!(shown, ["the shelf is empty", "closed today"]);
}

#[test]
fn a_handler_error_inside_another_error_stays_what_it_is() {
    async fn ask(call: Call<NoArguments>) -> Result<String, AnyError> {
        match call.input::<NoArguments>("sure")? {
            Some(answer) if answer.accepted() => Err(HandlerError::invalid_params("no").into()),
            Some(_) => Ok("declined".into()),
            None => {
                let form = Elicit::form::<NoArguments>("Sure?");
                Ok(call.require_input("sure", form).into_result()?)
            }
        }
    }
    async fn ask_own(call: Call<NoArguments>) -> Result<String, StoreError> {
        let asked: Result<String, AnyError> = ask(call).await;
        asked.map_err(|error| StoreError::Handler(error.into_handler_error()))
    }
    let server =
        Server::new("s", "1").tool("boxed", "", fallible(ask)).tool("own", "", fallible(ask_own));
    for revision in ASKING {
        let accept = |_: HostRequest<ElicitParams>| ElicitResult::accept(Map::default());
        let host = Host::new("h", "1").on_elicit(accept);
        let mut both = connect_host(&server, host, revision);
        for tool in ["boxed", "own"] {
            let error = refusal(&mut both, tool);
            assert_eq!((error.code, &*error.message), (ErrorCode::INVALID_PARAMS, "no"));
        }
    }
}

#[test]
fn anyhow_errors_are_shown_like_other_errors() {
    use anyhow::Context;

    let server = Server::new("s", "1")
        .tool(
            "failed",
            "",
            fallible(async |_: Call<NoArguments>| {
                secret().context("the notes cannot be read")?;
                anyhow::Ok("done")
            }),
        )
        .tool(
            "handler",
            "",
            fallible(|_: Call<NoArguments>| -> anyhow::Result<()> {
                Err(HandlerError::invalid_params("no"))?
            }),
        );
    let mut both = connect(&server, Revision::LATEST);
    let result = call(&mut both, "failed");
    assert_eq!((result.is_error, text(&result)), (Some(true), "the notes cannot be read"));
    assert_eq!(refusal(&mut both, "handler").code, ErrorCode::INVALID_PARAMS);
}
