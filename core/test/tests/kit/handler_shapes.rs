//! Functions and closures that are handlers: what `tests/mistakes` asks for instead of its mistakes.

use std::sync::Arc;

use mcp_sansio_handlers::{Call, Host, NoArguments, Server, State, blocking};
use serde_json::json;

struct Name(&'static str);

async fn function(_: Call<NoArguments>, name: State<Name>) -> String {
    name.0.0.to_owned()
}

async fn suffixed(name: &str, suffix: &str) -> String {
    format!("{name}{suffix}")
}

#[test]
fn each_shape_of_a_handler_reads_the_state() {
    let suffix = Arc::new(String::from("!"));
    let captured = suffix.clone();
    let server = Server::new("demo", "1.0.0")
        .state(Name("Oslo"))
        .tool("function", "Name", function)
        .tool("plain", "Name", |_: Call<NoArguments>, name: State<Name>| name.0.0.to_owned())
        .tool("captured", "Suffix", async move |_: Call<NoArguments>| {
            suffixed("Oslo", &captured).await
        })
        .tool("fallible", "Name", async move |_: Call<NoArguments>, name: State<Name>| {
            Ok(suffixed(name.0.0, &suffix).await)
        })
        .tool(
            "blocking",
            "Name",
            blocking(|_: Call<NoArguments>, name: State<Name>| name.0.0.to_owned()),
        );
    let (client, mut pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
    for (tool, expected) in [
        ("function", "Oslo"),
        ("plain", "Oslo"),
        ("captured", "Oslo!"),
        ("fallible", "Oslo!"),
        ("blocking", "Oslo"),
    ] {
        let result = pair.run(client.call_tool(tool, &json!({}))).unwrap();
        assert_eq!(result.first_text(), Some(expected), "{tool}");
    }
}
