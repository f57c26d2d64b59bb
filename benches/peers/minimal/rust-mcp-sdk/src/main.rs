//! A small server on standard input and output.

use std::sync::Arc;

use async_trait::async_trait;
use rust_mcp_sdk::error::SdkResult;
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
use serde::{Deserialize, Serialize};

#[macros::mcp_tool(name = "forecast", description = "Weather at a place")]
#[derive(Debug, Deserialize, Serialize, macros::JsonSchema)]
struct Forecast {
    /// City name or postal code
    location: String,
}

struct Weather;

#[async_trait]
impl ServerHandler for Weather {
    async fn handle_list_tools_request(
        &self,
        _: Option<PaginatedRequestParams>,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ListToolsResult, RpcError> {
        Ok(ListToolsResult {
            tools: vec![Forecast::tool()],
            meta: None,
            next_cursor: None,
            cache_scope: ListToolsResultCacheScope::Private,
            result_type: "complete".into(),
            ttl_ms: 0,
        })
    }

    async fn handle_call_tool_request(
        &self,
        params: CallToolRequestParams,
        _: &RequestContext,
        _: Arc<dyn McpServer>,
    ) -> Result<ServerResult, CallToolError> {
        if params.name != "forecast" {
            return Err(CallToolError::unknown_tool(params.name));
        }
        let arguments = params.arguments.unwrap_or_default();
        let forecast: Forecast =
            serde_json::from_value(arguments.into()).map_err(CallToolError::new)?;
        let text = format!("Sunny in {}", forecast.location);
        Ok(CallToolResult::text_content(vec![text.into()]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> SdkResult<()> {
    let details = ServerDetails {
        server_info: Implementation {
            name: "weather".into(),
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
    let transport = StdioTransport::new(TransportOptions::default())?;
    let server = server_runtime::create_server(McpServerOptions {
        server_details: details,
        transport,
        handler: Weather.to_mcp_server_handler(),
        message_observer: None,
    });
    server.start().await
}
