//! MCP Apps: pages of a server that a host shows to its user, `io.modelcontextprotocol/ui`.
//!
//! A server registers a page, [`App`], together with the tool whose results the page shows. A host
//! that declares [the extension](host_extension) reads the page with [`read_page`], which also says
//! under which [content security policy](AppPage::content_security_policy) to show it. Other hosts
//! show the text of the result.
//!
//! ```
//! use mcp_sansio_extensions::apps::{self, App, ServeApps as _};
//! use mcp_sansio_handlers::{Call, Host, NoArguments, Server, ServerItem};
//!
//! let page = "<!DOCTYPE html><title>Clock</title><p id=time></p>";
//! let clock = App::new("ui://clock/face", "clock_face", page)?;
//! let now = ServerItem::tool("now", "The time", |_: Call<NoArguments>| "about noon");
//! let server = Server::new("clock", "1.0.0").app_tool(now, clock);
//!
//! let host = Host::new("demo", "1.0.0").extension(apps::host_extension());
//! # let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
//! # let application = async {
//! let tools = client.all_tools().await?;
//! let ui = apps::tool_ui(&tools[0]).expect("a tool with a page");
//! let page = apps::read_page(&client, ui.resource_uri.as_deref().unwrap_or_default()).await?;
//! assert!(page.content_security_policy().starts_with("default-src 'none'"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) };
//! # pair.run(application)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything that a page and its host say to each other happens in the host and is not part of
//! this crate.

mod app;
mod metadata;
mod page;
mod policy;
mod tools;

use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_handlers::Context;
use mcp_sansio_handlers::extension::{HostExtension, ServerExtension};
use mcp_sansio_handlers::handler::Threading;
use serde::{Deserialize, Serialize};

pub use app::{App, InvalidApp, ServeApps};
pub use metadata::{PageUi, Permissions, ToolUi, Visibility, WithUi};
pub use page::{AppPage, PageError, read_page};
pub use policy::ContentDomains;
pub use tools::{AppCallError, check_app_call, model_tools, tool_ui};

/// The identifier of the extension.
// MCP 2026-07-28 apps:apps#extension-identifier [APPS-001]
pub const ID: &str = "io.modelcontextprotocol/ui";

/// The media type of a page.
// MCP 2026-07-28 apps:apps#content-requirements [APPS-012]
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The URI scheme for pages, and nothing else.
// MCP 2026-07-28 apps:apps#reservations-in-mcp [APPS-038]
const SCHEME: &str = "ui://";

/// The settings of a host.
#[derive(Debug, Default, Deserialize, Serialize)]
struct HostSettings {
    #[serde(rename = "mimeTypes", default)]
    mime_types: Vec<String>,
}

/// Returns the extension for a server. [`ServeApps`] registers it with the first page.
// MCP 2026-07-28 extensions:overview#server-capabilities [APPS-005]
#[must_use]
pub fn server_extension<K: Threading>() -> ServerExtension<K> {
    ServerExtension::new(ID).expect("a valid identifier")
}

/// Returns the extension for a host that shows pages of [`MIME_TYPE`].
// MCP 2025-11-25 apps:apps#client-host-capabilities [APPS-002] [APPS-004]
// MCP 2026-07-28 extensions:overview#client-capabilities [APPS-003]
#[must_use]
pub fn host_extension<K: Threading>() -> HostExtension<K> {
    let settings = HostSettings { mime_types: [MIME_TYPE.into()].into() };
    let extension = HostExtension::new(ID).expect("a valid identifier");
    extension.settings(&settings).expect("an object")
}

/// Returns whether the client of a request shows pages. Handlers use it to leave out data for
/// the page; the text of a result is needed in either case.
// MCP 2026-07-28 apps:apps#server-behavior [APPS-006]
#[must_use]
pub fn is_supported(call: &Context) -> bool {
    let settings = call.extension(ID).and_then(|settings| settings.decode::<HostSettings>().ok());
    settings.is_some_and(|settings| settings.mime_types.iter().any(|it| it == MIME_TYPE))
}
