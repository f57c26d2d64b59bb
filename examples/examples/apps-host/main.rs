//! A host of MCP Apps with a browser: a server with a page, a host that reads it, and the page that
//! the host shows. Open the printed address; `--listen ADDR` chooses another one.

use std::io::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use mcp_sansio_tokio::apps::{
    self, App, ContentDomains, PageUi, ServeApps as _, ToolUi, Visibility, WithUi as _,
};
use mcp_sansio_tokio::protocol::{CallToolResult, Tool};
use mcp_sansio_tokio::{
    Call, Client, ClientError, Host, NoArguments, Server, ServerItem, Structured, connect_over,
    serve,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// City name or postal code
    location: String,
}

#[derive(Serialize, JsonSchema)]
struct Forecast {
    location: String,
    celsius: f64,
}

/// The server: a tool with a page, and a tool that only the page calls.
fn weather() -> Result<Server, apps::InvalidApp> {
    let ui = PageUi::new().csp(ContentDomains::new()).prefers_border(true);
    let page = App::new("ui://weather/forecast", "forecast_view", include_str!("forecast.html"))?;
    let forecast =
        ServerItem::structured_tool("forecast", "Weather at a place", |call: Call<Place>| {
            Structured(Forecast { location: call.arguments.location.clone(), celsius: 21.5 })
        });
    let refresh = ServerItem::tool("refresh", "Measures again", |_: Call<NoArguments>| "22.0");
    let refresh = refresh.ui(&ToolUi::new().visibility([Visibility::App]));
    Ok(Server::new("weather", "1.0.0").app_tool(forecast, page.ui(ui)).add_item(refresh))
}

/// The host: its connection to the server, and the tools of the server.
struct Browser {
    client: Client,
    tools: Vec<Tool>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = match arguments.next().as_deref() {
        Some("--listen") => arguments.next().ok_or("--listen needs an address")?,
        Some(other) => return Err(format!("unknown argument {other:?}").into()),
        None => "127.0.0.1:0".into(),
    };
    let (theirs, ours) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(serve(weather()?, reader, writer));
    let host = Host::new("apps-host", "1.0.0").extension(apps::host_extension());
    let (reader, writer) = tokio::io::split(ours);
    let client = connect_over(reader, writer, &host).await?;
    let tools = client.all_tools().await?;

    let names: Vec<_> = apps::model_tools(&tools).map(|tool| tool.name.clone()).collect();
    let router = Router::new()
        .route("/", get(async || Html(include_str!("host.html"))))
        .route("/tools", get(list))
        .route("/page", get(page))
        .route("/call", post(call))
        .with_state(Arc::new(Browser { client, tools }));
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut stderr = std::io::stderr();
    writeln!(stderr, "listening on http://{}/", listener.local_addr()?)?;
    for name in names {
        writeln!(stderr, "for the model: {name}")?;
    }
    Ok(axum::serve(listener, router).await?)
}

/// The tools with a page, for the host's own page.
async fn list(State(browser): State<Arc<Browser>>) -> Response {
    let with_page = browser.tools.iter().filter_map(|tool| {
        Some(json!({ "name": tool.name, "page": apps::tool_ui(tool)?.resource_uri? }))
    });
    respond(&with_page.collect())
}

/// A page of the server, under its policy and without access to the host: the `iframe` is sandboxed
/// as well.
async fn page(State(browser): State<Arc<Browser>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let uri = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "uri");
    let uri = uri.map(|(_, uri)| uri).unwrap_or_default();
    match apps::read_page(&browser.client, &uri).await {
        Ok(page) => {
            let policy = page.content_security_policy() + "; sandbox allow-scripts";
            let headers =
                [(CONTENT_TYPE, "text/html".to_owned()), (CONTENT_SECURITY_POLICY, policy)];
            (headers, page.html).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    #[serde(default)]
    arguments: Value,
    /// Whether the page made the call, and not the user.
    from_page: bool,
}

/// A call of a tool, which the page of a server may make only for tools of the same server.
async fn call(State(browser): State<Arc<Browser>>, body: String) -> Response {
    let call: ToolCall = match serde_json::from_str(&body) {
        Ok(call) => call,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    if call.from_page
        && let Err(error) = apps::check_app_call(&browser.tools, &call.name)
    {
        return respond(&json!({ "error": { "code": -32600, "message": error.to_string() } }));
    }
    let arguments = if call.arguments.is_null() { json!({}) } else { call.arguments };
    respond(&match browser.client.call_tool(&call.name, &arguments).await {
        Ok(result) => json!({ "result": {
            "content": [{ "type": "text", "text": result.first_text().unwrap_or_default() }],
            "structuredContent": structured(&result),
        } }),
        Err(error) => json!({ "error": { "code": -32603, "message": message(&error) } }),
    })
}

fn structured(result: &CallToolResult) -> Value {
    let value = result.structured_content.as_ref().and_then(|it| it.decode().ok());
    value.unwrap_or_default()
}

fn message(error: &ClientError) -> String {
    error.as_refusal().map_or_else(|| error.to_string(), |refusal| refusal.message.to_string())
}

fn respond(value: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
