//! Pages, in a server.

use alloc::string::String;
use alloc::sync::Arc;

use mcp_sansio::protocol::{Resource, TextResourceContents, Tool};
use mcp_sansio_handlers::{Call, Local, ReadResource, Server, ServerItem, ThreadSafe};

use super::metadata::{PageUi, ToolUi, WithUi as _};
use super::{ID, MIME_TYPE, SCHEME, server_extension, tool_ui};

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
    /// Creates a page from its URI, which starts with `ui://`, its name in the list of resources, and
    /// its document, which starts with `<!DOCTYPE html>`.
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
