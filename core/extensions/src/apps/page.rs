//! Pages, in a host.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_sansio::protocol::{Meta, Resource, ResourceContents};
use mcp_sansio_handlers::{Client, ClientError};

use super::metadata::{PageUi, get};
use super::{MIME_TYPE, SCHEME, policy};

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

/// Why a page cannot be shown.
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
        policy::policy(self.ui.csp.as_ref())
    }
}

fn page(contents: &ResourceContents, uri: &str) -> Option<AppPage> {
    let (found, mime_type, meta, html): (_, _, Option<&Meta>, String) = match contents {
        ResourceContents::Text(text) => {
            (&text.uri, &text.mime_type, text.meta.as_ref(), text.text.clone())
        }
        ResourceContents::Blob(blob) => {
            let bytes: Vec<u8> = STANDARD.decode(&blob.blob).ok()?;
            let html = String::from_utf8(bytes).ok()?;
            (&blob.uri, &blob.mime_type, blob.meta.as_ref(), html)
        }
        _ => return None,
    };
    // MCP 2026-07-28 apps:apps#content-requirements [APPS-012] [APPS-014]
    let is_page = found == uri && mime_type.as_deref() == Some(MIME_TYPE);
    is_page.then(|| AppPage { uri: uri.to_string(), html, ui: get(meta).unwrap_or_default() })
}
