//! Tools with metadata for pages, in a host.

use alloc::string::String;

use mcp_sansio::protocol::Tool;

use super::SCHEME;
use super::metadata::{ToolUi, Visibility, get};

/// The deprecated key for the page of a tool.
const FLAT_KEY: &str = "ui/resourceUri";

/// Returns the metadata of a tool for pages, if it has any. A page whose URI is not `ui://` is left
/// out.
// MCP 2026-07-28 apps:apps#resource-discovery [APPS-016]
#[must_use]
pub fn tool_ui(tool: &Tool) -> Option<ToolUi> {
    let meta = tool.meta.as_ref()?;
    let flat = meta.get(FLAT_KEY).and_then(|uri| uri.decode::<String>().ok());
    let mut ui = match get::<ToolUi>(Some(meta)) {
        Some(ui) => ui,
        None => ToolUi::new().page(flat.clone()?),
    };
    ui.resource_uri = ui.resource_uri.or(flat).filter(|uri| uri.starts_with(SCHEME));
    Some(ui)
}

/// Returns the tools that the model may see and call.
// MCP 2026-07-28 apps:apps#visibility [APPS-023]
pub fn model_tools<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
) -> impl Iterator<Item = &'t Tool> {
    tools.into_iter().filter(|tool| is_visible(tool, &Visibility::Model))
}

/// Checks a call that a page makes. `tools` are those of the server that the page came from.
///
/// # Errors
///
/// The page must not make the call: answer it with the error.
// MCP 2026-07-28 apps:apps#visibility [APPS-024] [APPS-025]
pub fn check_app_call<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
    name: &str,
) -> Result<(), AppCallError> {
    match tools.into_iter().find(|tool| tool.name == name) {
        None => Err(AppCallError::UnknownTool { name: name.into() }),
        Some(tool) if is_visible(tool, &Visibility::App) => Ok(()),
        Some(_) => Err(AppCallError::NotForApps { name: name.into() }),
    }
}

/// Why a page must not call a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppCallError {
    /// The server of the page has no such tool.
    #[error("the server of the page has no tool {name:?}")]
    UnknownTool {
        /// The name.
        name: String,
    },
    /// Only the model may call the tool.
    #[error("the tool {name:?} is not for pages")]
    NotForApps {
        /// The name.
        name: String,
    },
}

fn is_visible(tool: &Tool, caller: &Visibility) -> bool {
    tool_ui(tool).is_none_or(|ui| ui.is_visible_to(caller))
}
