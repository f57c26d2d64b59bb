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

mod metadata;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::{Meta, Resource, ResourceContents, TextResourceContents, Tool};
use mcp_sansio_handlers::extension::Extension;
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{
    Call, Client, ClientError, Context, Local, ReadResource, Server, ServerItem, ThreadSafe,
};
use serde::{Deserialize, Serialize};

use metadata::get;

pub use metadata::{ContentDomains, PageUi, Permissions, ToolUi, Visibility, WithUi};

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
pub fn server_extension<K: Threading>() -> Extension<K> {
    Extension::new(ID).expect("a valid identifier")
}

/// Returns the extension for a host that shows pages of [`MIME_TYPE`].
// MCP 2025-11-25 apps:apps#client-host-capabilities [APPS-002] [APPS-004]
// MCP 2026-07-28 extensions:overview#client-capabilities [APPS-003]
#[must_use]
pub fn host_extension<K: Threading>() -> Extension<K> {
    let settings = HostSettings { mime_types: [MIME_TYPE.into()].into() };
    let extension = Extension::new(ID).expect("a valid identifier");
    extension.settings(&settings).expect("an object")
}

/// Returns whether the client of a request shows pages. Handlers use it to leave out data for
/// the page; the text of a result is needed in either case.
// MCP 2026-07-28 apps:apps#server-behavior [APPS-006]
#[must_use]
pub fn is_supported(call: &Context) -> bool {
    let settings =
        call.client_extension(ID).and_then(|settings| settings.decode::<HostSettings>().ok());
    settings.is_some_and(|settings| settings.mime_types.iter().any(|it| is_page_type(it)))
}

/// Returns whether a media type is that of pages. Frameworks write it with a space, quotes, or a
/// `charset` (RFC 9110, section 8.3.1).
// MCP 2026-07-28 apps:apps#content-requirements [APPS-012]
fn is_page_type(media_type: &str) -> bool {
    let mut parts = media_type.split(';').map(str::trim);
    let is_profile = |part: &str| {
        part.split_once('=').is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("profile") && matches!(value, "mcp-app" | "\"mcp-app\"")
        })
    };
    parts.next().is_some_and(|name| name.eq_ignore_ascii_case("text/html")) && parts.any(is_profile)
}

// ------------------------------------------------------------------ pages, in a server

/// A page of a server.
#[derive(Clone, Debug)]
pub struct App {
    resource: Resource,
    html: Arc<str>,
    ui: PageUi,
}

/// A page cannot be served: a mistake of the application.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidApp {
    /// The URI does not start with `ui://`.
    #[error("the URI of a page starts with `ui://`: {uri:?}")]
    Uri {
        /// The URI.
        uri: String,
    },
    /// The document does not start with `<!DOCTYPE html>`.
    #[error("the page {uri:?} is not an HTML5 document: it starts with `<!DOCTYPE html>`")]
    Document {
        /// The URI.
        uri: String,
    },
}

impl App {
    /// Creates a page from its URI, which starts with `ui://`, its name in the list of resources,
    /// and its document, which starts with `<!DOCTYPE html>`.
    ///
    /// # Errors
    ///
    /// See [`InvalidApp`].
    // MCP 2026-07-28 apps:apps#content-requirements [APPS-011] [APPS-015]
    // MCP 2026-07-28 apps:apps#ui-resource-format [APPS-013]
    pub fn new(
        uri: impl Into<String>,
        name: impl Into<String>,
        html: impl Into<Arc<str>>,
    ) -> Result<Self, InvalidApp> {
        let (uri, html) = (uri.into(), html.into());
        if !uri.starts_with(SCHEME) {
            return Err(InvalidApp::Uri { uri });
        }
        let start = html.trim_start().get(.."<!doctype html".len());
        if !start.is_some_and(|start| start.eq_ignore_ascii_case("<!doctype html")) {
            return Err(InvalidApp::Document { uri });
        }
        let resource = Resource::new(uri, name).mime_type(MIME_TYPE);
        Ok(Self { resource, html, ui: PageUi::new() })
    }

    /// Sets what the page needs, and how it wants to be shown.
    // MCP 2026-07-28 apps:apps#ui-resource-format [APPS-026]
    #[must_use]
    pub fn ui(mut self, ui: PageUi) -> Self {
        self.ui = ui;
        self
    }

    /// Changes the entry in the list of resources: its title, its description, its icons.
    #[must_use]
    pub fn define(mut self, change: impl FnOnce(Resource) -> Resource) -> Self {
        self.resource = change(self.resource);
        self
    }

    /// Returns the URI.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.resource.uri
    }

    fn contents(&self) -> TextResourceContents {
        let contents = TextResourceContents::new(self.uri(), &*self.html).mime_type(MIME_TYPE);
        if self.ui == PageUi::new() { contents } else { contents.ui(&self.ui) }
    }
}

/// A server with pages.
pub trait ServeApps: Sized {
    /// A tool with its handler.
    type ToolItem;

    /// Registers a page. The first one also registers the [extension](server_extension).
    #[must_use]
    fn app(self, app: App) -> Self;

    /// Registers a tool and the page that shows its results. The results still need text, for the
    /// model and for hosts that do not show pages.
    #[must_use]
    fn app_tool(self, tool: Self::ToolItem, app: App) -> Self;
}

macro_rules! serve_apps {
    ($($threading:ty),+) => { $(
        impl ServeApps for Server<$threading> {
            type ToolItem = ServerItem<Tool, $threading>;

            fn app(self, app: App) -> Self {
                let is_registered = self.extensions().iter().any(|it| it.id() == ID);
                let server =
                    if is_registered { self } else { self.extension(server_extension()) };
                let resource = app.resource.clone();
                server.resource(resource, move |_: Call<ReadResource>| app.contents())
            }

            // MCP 2026-07-28 apps:apps#behavior [APPS-018]
            fn app_tool(self, tool: Self::ToolItem, app: App) -> Self {
                let tool = tool.define(|tool| {
                    let ui = tool_ui(&tool).unwrap_or_else(ToolUi::new);
                    tool.ui(&ui.page(app.uri()))
                });
                self.app(app).add_item(tool)
            }
        }
    )+ };
}

serve_apps!(ThreadSafe, Local);

// ------------------------------------------------------------------ tools with metadata for pages, in a host

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
) -> Result<(), PageError> {
    match tools.into_iter().find(|tool| tool.name == name) {
        None => Err(PageError::UnknownTool { name: name.into() }),
        Some(tool) if is_visible(tool, &Visibility::App) => Ok(()),
        Some(_) => Err(PageError::NotForApps { name: name.into() }),
    }
}

/// Returns whether a caller may see a tool. A visibility that cannot be read hides the tool; other
/// members of the metadata do not matter.
fn is_visible(tool: &Tool, caller: &Visibility) -> bool {
    let ui = tool.meta.as_ref().and_then(|meta| meta.get(metadata::KEY));
    let callers = ui.as_ref().and_then(|ui| ui.get("visibility"));
    let callers = callers.filter(|it| *it != RawJson::NULL);
    callers.is_none_or(|it| it.decode::<Vec<Visibility>>().is_ok_and(|all| all.contains(caller)))
}

// ------------------------------------------------------------------ pages, in a host

/// A page that was read from its server. It is untrusted: show it in a sandbox, under its policy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppPage {
    /// The URI.
    pub uri: String,
    /// The document.
    pub html: String,
    /// The needs of the page.
    pub ui: PageUi,
}

/// Why a page cannot be shown, or must not call a tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The URI is not `ui://`: nothing was read.
    #[error("{uri:?} is not the URI of a page")]
    NotAPage {
        /// The URI.
        uri: String,
    },
    /// The server did not return the page.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The contents are not a page: another media type, or no text.
    #[error("the contents of {uri:?} are not a page")]
    InvalidContents {
        /// The URI.
        uri: String,
    },
    /// The page calls a tool that its server does not have.
    #[error("the server of the page has no tool {name:?}")]
    UnknownTool {
        /// The name.
        name: String,
    },
    /// The page calls a tool that only the model may call.
    #[error("the tool {name:?} is not for pages")]
    NotForApps {
        /// The name.
        name: String,
    },
}

/// Reads a page from its server. With a [cache](mcp_sansio_handlers::Host::cache), a page is read
/// again only when the server's hints say so.
///
/// # Errors
///
/// See [`PageError`].
// MCP 2026-07-28 apps:apps#behavior [APPS-019] [APPS-020]
pub async fn read_page(client: &Client, uri: &str) -> Result<AppPage, PageError> {
    if !uri.starts_with(SCHEME) {
        return Err(PageError::NotAPage { uri: uri.to_string() });
    }
    let result = client.read_resource(uri).await?;
    let found = result.contents.iter().find_map(|contents| page(contents, uri));
    found.ok_or_else(|| PageError::InvalidContents { uri: uri.to_string() })
}

impl AppPage {
    /// Adds the metadata of the page's entry in the list of resources. The page itself wins.
    // MCP 2026-07-28 apps:summary#draft-after-2026-01-26 [APPS-039]
    #[must_use]
    pub fn listed_as(mut self, entry: &Resource) -> Self {
        if let Some(listed) = get::<PageUi>(entry.meta.as_ref()) {
            let PageUi { csp, permissions, domain, prefers_border } = self.ui;
            self.ui = PageUi {
                csp: csp.or(listed.csp),
                permissions: permissions.or(listed.permissions),
                domain: domain.or(listed.domain),
                prefers_border: prefers_border.or(listed.prefers_border),
            };
        }
        self
    }

    /// Returns the value of the header `Content-Security-Policy` to show the page under. It allows
    /// the domains that the page declared, and without any only the document.
    #[must_use]
    pub fn content_security_policy(&self) -> String {
        metadata::policy(self.ui.csp.as_ref())
    }
}

fn page(contents: &ResourceContents, uri: &str) -> Option<AppPage> {
    let (found, mime_type, meta, html): (_, _, Option<&Meta>, String) = match contents {
        ResourceContents::Text(text) => {
            (&text.uri, &text.mime_type, text.meta.as_ref(), text.text.clone())
        }
        ResourceContents::Blob(blob) => {
            let html = String::from_utf8(blob.bytes().ok()?).ok()?;
            (&blob.uri, &blob.mime_type, blob.meta.as_ref(), html)
        }
        _ => return None,
    };
    // MCP 2026-07-28 apps:apps#content-requirements [APPS-012] [APPS-014]
    let is_page = found == uri && mime_type.as_deref().is_some_and(is_page_type);
    is_page.then(|| AppPage { uri: uri.to_string(), html, ui: get(meta).unwrap_or_default() })
}
