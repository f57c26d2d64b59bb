//! The same server in two variants.

use rmcp::handler::server::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{ProgressNotificationParam, RequestMetaObject};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Echo {
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Add {
    a: f64,
    b: f64,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Count {
    count: u32,
}

/// The variant that the documentation shows first. It builds the router for each call.
#[derive(Clone)]
pub(crate) struct Documented;

#[tool_router(server_handler)]
impl Documented {
    #[tool(description = "Sends the text back")]
    fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.text
    }

    #[tool(description = "Adds two numbers")]
    fn add(&self, Parameters(add): Parameters<Add>) -> String {
        (add.a + add.b).to_string()
    }

    #[tool(description = "Reports progress, step by step")]
    async fn progress(
        &self,
        meta: RequestMetaObject,
        peer: Peer<RoleServer>,
        Parameters(count): Parameters<Count>,
    ) -> Result<String, ErrorData> {
        report(meta, peer, count.count).await
    }
}

/// The variant that builds the router once.
#[derive(Clone)]
pub(crate) struct Cached {
    tool_router: ToolRouter<Self>,
}

impl Cached {
    pub(crate) fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }
}

#[tool_router]
impl Cached {
    #[tool(description = "Sends the text back")]
    fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.text
    }

    #[tool(description = "Adds two numbers")]
    fn add(&self, Parameters(add): Parameters<Add>) -> String {
        (add.a + add.b).to_string()
    }

    #[tool(description = "Reports progress, step by step")]
    async fn progress(
        &self,
        meta: RequestMetaObject,
        peer: Peer<RoleServer>,
        Parameters(count): Parameters<Count>,
    ) -> Result<String, ErrorData> {
        report(meta, peer, count.count).await
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Cached {}

async fn report(
    meta: RequestMetaObject,
    peer: Peer<RoleServer>,
    count: u32,
) -> Result<String, ErrorData> {
    if let Some(token) = meta.get_progress_token() {
        for step in 1..=count {
            let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
            let sent = peer.notify_progress(progress.with_total(f64::from(count))).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
    }
    Ok(format!("{count} steps"))
}
