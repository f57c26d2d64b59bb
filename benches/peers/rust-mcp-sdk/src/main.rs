//! rust-mcp-sdk in the comparison.

use std::sync::Arc;

use async_trait::async_trait;
use rust_mcp_sdk::mcp_server::{McpServerOptions, ServerHandler, server_runtime};
use rust_mcp_sdk::schema::{
    CallToolError, CallToolRequestParams, CallToolResult, Implementation, ListToolsResult,
    ListToolsResultCacheScope, PaginatedRequestParams, RpcError, ServerCapabilities,
    ServerCapabilitiesTools, ServerResult,
};
use rust_mcp_sdk::{
    McpServer, RequestContext, ServerDetails, StdioTransport, ToMcpServerHandler, TransportOptions,
    macros,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shape::{Subject, Task};

#[macros::mcp_tool(name = "echo", description = "Sends the text back")]
#[derive(Debug, Deserialize, Serialize, macros::JsonSchema)]
struct Echo {
    text: String,
}

#[macros::mcp_tool(name = "add", description = "Adds two numbers")]
#[derive(Debug, Deserialize, Serialize, macros::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[macros::mcp_tool(name = "progress", description = "Reports progress, step by step")]
#[derive(Debug, Deserialize, Serialize, macros::JsonSchema)]
struct Count {
    count: u32,
}

struct Handler;

#[async_trait]
impl ServerHandler for Handler {
    async fn handle_list_tools_request(
        &self,
        _: Option<PaginatedRequestParams>,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        let tools = vec![Echo::tool(), Add::tool(), Count::tool()];
        Ok(ListToolsResult {
            tools,
            meta: None,
            next_cursor: None,
            cache_scope: ListToolsResultCacheScope::Private,
            result_type: "complete".into(),
            ttl_ms: 0,
        })
    }

    async fn handle_call_tool_request(
        &self,
        mut params: CallToolRequestParams,
        _: &RequestContext,
        server: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        let text = match &*params.name {
            "echo" => arguments::<Echo>(&mut params)?.text,
            "add" => {
                let add: Add = arguments(&mut params)?;
                (add.a + add.b).to_string()
            }
            "progress" => {
                let count = arguments::<Count>(&mut params)?.count;
                let token = params.meta.progress_token;
                for step in 1..=count {
                    let (step, total) = (f64::from(step), Some(f64::from(count)));
                    let sent = server.report_progress(token.clone(), step, total, None).await;
                    sent.map_err(|error| CallToolError::from_message(error.to_string()))?;
                }
                format!("{count} steps")
            }
            _ => return Err(CallToolError::unknown_tool(params.name)),
        };
        Ok(CallToolResult::text_content(vec![text.into()]).into())
    }
}

fn arguments<T: DeserializeOwned>(params: &mut CallToolRequestParams) -> Result<T, CallToolError> {
    let arguments = params.arguments.take().unwrap_or_default();
    serde_json::from_value(arguments.into()).map_err(CallToolError::new)
}

fn main() {
    let Task::Stdio = Subject::from_args().task else {
        panic!("this server only supports standard input and output");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let details = ServerDetails {
            server_info: Implementation {
                name: "bench-server".into(),
                version: "1.0.0".into(),
                title: None,
                description: None,
                icons: vec![],
                website_url: None,
            },
            capabilities: ServerCapabilities {
                tools: Some(ServerCapabilitiesTools { list_changed: None }),
                ..ServerCapabilities::default()
            },
            instructions: None,
            meta: None,
        };
        let transport = StdioTransport::new(TransportOptions::default()).expect("streams");
        let server = server_runtime::create_server(McpServerOptions {
            server_details: details,
            transport,
            handler: Handler.to_mcp_server_handler(),
            message_observer: None,
        });
        server.start().await.expect("serves");
    });
}
