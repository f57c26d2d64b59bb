//! What a protected resource says of itself (RFC 9728).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;

use super::ProtectedResource;
use crate::auth::discovery::PROTECTED_RESOURCE;
use crate::http::{Content, RequestHead, Response, ResponseHead, Status};

/// The document, member by member (RFC 9728, section 2).
#[derive(Serialize)]
struct Document<'a> {
    resource: &'a str,
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHS-008]
    authorization_servers: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scopes_supported: &'a [String],
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_documentation: Option<&'a str>,
}

impl ProtectedResource {
    /// Where the metadata is: what challenges name.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHS-010]
    #[must_use]
    pub fn metadata_url(&self) -> String {
        format!("{}{PROTECTED_RESOURCE}{}", self.location.origin(), self.suffix())
    }

    /// The paths at which the metadata is served, for whoever routes requests: that of
    /// [`metadata_url`](Self::metadata_url), and the one at the root if it is
    /// [to be there](Self::at_root) too.
    #[must_use]
    pub fn metadata_paths(&self) -> Vec<String> {
        let path = self.suffix().split('?').next().unwrap_or_default();
        let mut paths = Vec::from([format!("{PROTECTED_RESOURCE}{path}")]);
        if self.at_root && !path.is_empty() {
            paths.push(PROTECTED_RESOURCE.to_string());
        }
        paths
    }

    /// The metadata, a JSON text.
    #[must_use]
    pub fn metadata(&self) -> String {
        let scopes = self.scopes_supported.as_deref().unwrap_or(&self.base_scopes);
        let document = Document {
            resource: self.uri.as_str(),
            authorization_servers: &self.issuers,
            scopes_supported: scopes,
            bearer_methods_supported: ["header"],
            resource_name: self.name.as_deref(),
            resource_documentation: self.documentation.as_ref().map(|it| it.as_str()),
        };
        serde_json::to_string(&document).expect("texts are JSON")
    }

    /// The response to a request for the metadata; `None` if the request is for something else.
    ///
    /// Everybody may have it, from whichever page: it is what clients without a token start from.
    #[must_use]
    pub fn respond(&self, head: &RequestHead<'_>) -> Option<Response> {
        if !self.metadata_paths().iter().any(|path| path == head.path) {
            return None;
        }
        let mut response = match head.method {
            "GET" => Response {
                head: ResponseHead::new(Status::OK, Some(Content::Json)),
                body: self.metadata().into_bytes(),
            },
            // What a browser asks before it lets a page send fields of its own.
            "OPTIONS" => bare(Status::NO_CONTENT),
            _ => {
                let mut response = bare(Status::METHOD_NOT_ALLOWED);
                response.head.allow = Some("GET, OPTIONS");
                response
            }
        };
        response.head.public = true;
        Some(response)
    }

    /// What comes after the well-known path: path and query of the resource, of which a slash alone
    /// is none (RFC 9728, section 3.1).
    fn suffix(&self) -> &str {
        let target = self.location.path_and_query();
        match target.strip_prefix('/') {
            Some(rest) if rest.is_empty() || rest.starts_with('?') => rest,
            _ => target,
        }
    }
}

const fn bare(status: Status) -> Response {
    Response { head: ResponseHead::new(status, None), body: Vec::new() }
}
