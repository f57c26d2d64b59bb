use std::task::Poll;

use mcp_sansio::protocol::{ListRootsParams, Root};
use mcp_sansio::{ErrorCode, Revision, Revisions};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Host, HostRequest, NoArguments, Server, blocking,
};

/// Yields once.
async fn pause() {
    let mut first = true;
    std::future::poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

/// Returns a server with handlers that panic in every possible way.
#[must_use]
pub fn panicking_server() -> Server {
    Server::new("panicking", "1")
        .tool("plain", "Works", |_: Call<NoArguments>| "plain")
        .tool("at-once", "Panics", |_: Call<NoArguments>| -> &str { panic!("at once") })
        .tool("first", "Panics", async |_: Call<NoArguments>| -> &str { panic!("polled") })
        .tool("later", "Panics", async |_: Call<NoArguments>| -> &str {
            pause().await;
            panic!("later")
        })
        .tool("blocking", "Panics", blocking(|_: Call<NoArguments>| -> &str { panic!("blocks") }))
        .tool("ask", "Asks", |call: Call<NoArguments>| match call.roots("roots")? {
            None => call.require_input("roots", ListRootsParams::default()).into_result(),
            Some(roots) => Ok(roots.roots.len().to_string()),
        })
}

/// Returns a host whose handler for roots panics. It speaks a revision in which the server asks for
/// roots with a request.
#[must_use]
pub fn panicking_host() -> Host {
    Host::new("panicking", "1").revisions(Revisions::only(Revision::V2025_11_25)).on_roots(
        async |_: HostRequest<()>| -> Vec<Root> {
            pause().await;
            panic!("asked")
        },
    )
}

/// Triggers every panic and checks that each one only fails its own request.
///
/// # Panics
///
/// Panics if a panic has any other effect.
pub async fn survive(client: Client) {
    let call = |tool| client.call_tool(tool, &NoArguments {});
    let works = async || {
        let result = call("plain").await.expect("the connection stays open");
        assert_eq!(result.content[0].as_text(), Some("plain"));
    };
    client.opened().await.expect("it opens");
    for tool in ["at-once", "first", "later", "blocking"] {
        let error: ClientError = call(tool).await.expect_err("it panics");
        let refusal = error.as_refusal().expect("the server answers");
        assert_eq!(refusal.code, ErrorCode::INTERNAL_ERROR, "{tool}");
        assert_eq!(refusal.message, format!("the handler of tool `{tool}` panicked"));
        works().await;
    }
    let asked = call("ask").await;
    assert!(asked.as_ref().map_or(true, |it| it.is_error == Some(true)), "{asked:?}");
    works().await;
}
