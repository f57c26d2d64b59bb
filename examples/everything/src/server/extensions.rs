//! Extensions of the protocol.

use mcp_sansio_handlers::extension::{Extension, ExtensionMethod};
use mcp_sansio_handlers::{Call, NoArguments, Server, ServerItem};
use mcp_sansio_tokio::apps::{App, ServeApps as _};
use serde::{Deserialize, Serialize};

/// Adds numbers: `{"numbers":[1,2]}` gives `{"sum":3}`.
const ADD: ExtensionMethod<Numbers, Sum> = ExtensionMethod::new("com.example/sums", "sums/add");

#[derive(Deserialize, Serialize)]
struct Numbers {
    numbers: Vec<f64>,
}

#[derive(Deserialize, Serialize)]
struct Sum {
    sum: f64,
}

/// Offers MCP Apps, and an extension of this server.
#[must_use]
pub fn with_extensions(server: Server) -> Server {
    let sums = Extension::new(ADD.extension()).expect("a valid identifier");
    let sums =
        sums.request(&ADD, |call: Call<Numbers>| Sum { sum: call.arguments.numbers.iter().sum() });
    let html = "<!DOCTYPE html><title>Clock</title><p>The time is in the result of the tool.</p>";
    let page = App::new("ui://everything/clock", "clock_page", html).expect("an HTML5 document");
    let clock = ServerItem::tool("clock", "The time, with a page", |_: Call<NoArguments>| "noon");
    server.extension(sums).app_tool(clock, page)
}
