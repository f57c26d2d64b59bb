//! The metadata of a protected resource (RFC 9728).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::http::{Content, RequestHead, Response, ResponseHead, Status};
use serde::Serialize;

use crate::discovery::PROTECTED_RESOURCE;

use super::ProtectedResource;

/// The members of the document (RFC 9728, section 2).
#[derive(Serialize)]
struct Document<'a> {
    resource: &'a str,
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHS-008]
    authorization_servers: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    scopes_supported: &'a [String],
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    dpop_signing_alg_values_supported: &'a [String],
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    dpop_bound_access_tokens_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_documentation: Option<&'a str>,
}

impl ProtectedResource {
    /// Returns the URL of the metadata, as named in challenges; `None` [without an authorization
    /// server](Self::without_issuer).
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHS-010]
    #[must_use]
    pub fn metadata_url(&self) -> Option<String> {
        let url = || format!("{}{PROTECTED_RESOURCE}{}", self.location.origin(), self.suffix());
        (!self.issuers.is_empty()).then(url)
    }

    /// Returns the paths at which to serve the metadata: that of
    /// [`metadata_url`](Self::metadata_url), and the one at the root if [enabled](Self::at_root).
    /// None [without an authorization server](Self::without_issuer).
    #[must_use]
    pub fn metadata_paths(&self) -> Vec<String> {
        if self.issuers.is_empty() {
            return Vec::new();
        }
        let path = self.suffix().split('?').next().unwrap_or_default();
        let mut paths = Vec::from([format!("{PROTECTED_RESOURCE}{path}")]);
        if self.at_root && !path.is_empty() {
            paths.push(PROTECTED_RESOURCE.to_string());
        }
        paths
    }

    /// Returns the metadata as JSON text; `None` [without an authorization
    /// server](Self::without_issuer).
    #[must_use]
    pub fn metadata(&self) -> Option<String> {
        if self.issuers.is_empty() {
            return None;
        }
        let scopes = self.scopes_supported.as_deref().unwrap_or(&self.base_scopes);
        let document = Document {
            resource: self.uri.as_str(),
            authorization_servers: &self.issuers,
            scopes_supported: scopes,
            bearer_methods_supported: ["header"],
            dpop_signing_alg_values_supported: self.proof_algorithm_list(),
            dpop_bound_access_tokens_required: self.requires_proof(),
            resource_name: self.name.as_deref(),
            resource_documentation: self.documentation.as_ref().map(|it| it.as_str()),
        };
        Some(serde_json::to_string(&document).expect("texts are JSON"))
    }

    /// Returns the response to a request for the metadata; `None` if the request is for something
    /// else.
    ///
    /// The metadata is public and readable from pages of any origin, because clients without a
    /// token start with it.
    #[must_use]
    pub fn respond(&self, head: &RequestHead<'_>) -> Option<Response> {
        if !self.metadata_paths().iter().any(|path| path == head.path()) {
            return None;
        }
        let mut response = match head.method() {
            "GET" => Response::new(
                ResponseHead::new(Status::OK, Some(Content::Json)),
                self.metadata()?.into_bytes(),
            ),
            // A browser's preflight request, which precedes custom fields.
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

    /// Returns the part after the well-known path: path and query of the resource, without a single
    /// slash (RFC 9728, section 3.1).
    fn suffix(&self) -> &str {
        let target = self.location.path_and_query();
        match target.strip_prefix('/') {
            Some(rest) if rest.is_empty() || rest.starts_with('?') => rest,
            _ => target,
        }
    }
}

const fn bare(status: Status) -> Response {
    Response::new(ResponseHead::new(status, None), Vec::new())
}

// The output of the server is parsed with the client's code.
#[cfg(test)]
mod tests {
    use mcp_sansio::Revision;
    use mcp_sansio::http::Location;

    use crate::{MetadataUrls, ProtectedResourceMetadata};

    use super::*;

    const ISSUERS: [&str; 1] = ["https://auth.example.com"];

    fn resource(uri: &str) -> ProtectedResource {
        ProtectedResource::new(uri, ISSUERS).expect(uri)
    }

    fn respond(resource: &ProtectedResource, method: &str, target: &str) -> Option<Response> {
        resource.respond(&RequestHead::new(method, target))
    }

    #[test]
    fn metadata_is_served_at_the_url_that_clients_request() {
        // Rule: [AUTHS-010].
        for (uri, url, path) in [
            ("https://a.example/mcp", "/mcp", "/mcp"),
            ("https://a.example", "", ""),
            ("https://a.example/", "", ""),
            ("https://A.example:8443/x/mcp/", "/x/mcp/", "/x/mcp/"),
            ("https://a.example/mcp?a=b", "/mcp?a=b", "/mcp"),
            ("https://a.example?a=b", "?a=b", ""),
        ] {
            let (resource, server) = (resource(uri), Location::parse(uri).expect(uri));
            assert_eq!(
                resource.metadata_url().expect("an issuer"),
                format!("{}{PROTECTED_RESOURCE}{url}", server.origin())
            );
            assert_eq!(resource.metadata_paths(), [format!("{PROTECTED_RESOURCE}{path}")]);
            let mut urls = MetadataUrls::for_resource(Revision::LATEST, &server, None);
            let found = urls.next().map(|url| url.as_str().to_string());
            assert_eq!(found, resource.metadata_url(), "{uri}");
            let response = respond(&resource, "GET", &format!("{PROTECTED_RESOURCE}{url}"));
            assert_eq!(response.expect(uri).head.status, Status::OK);
        }
    }

    #[test]
    fn metadata_names_the_issuers() {
        // Rule: [AUTHS-008].
        let resource = resource("https://a.example/mcp").base_scopes(["b", "a", "b"]);
        let resource = resource.expect("scopes").name("Files \"and\" more");
        let resource = resource.documentation("https://a.example/docs").expect("a URL");
        let response = respond(&resource, "GET", "/.well-known/oauth-protected-resource/mcp");
        let Response { head, body, .. } = response.expect("metadata");
        assert_eq!((head.status, head.content), (Status::OK, Some(Content::Json)));
        assert_eq!(
            core::str::from_utf8(&body),
            Ok(concat!(
                r#"{"resource":"https://a.example/mcp","#,
                r#""authorization_servers":["https://auth.example.com"],"#,
                r#""scopes_supported":["b","a"],"bearer_methods_supported":["header"],"#,
                r#""resource_name":"Files \"and\" more","#,
                r#""resource_documentation":"https://a.example/docs"}"#
            ))
        );
        let read = ProtectedResourceMetadata::parse(&body).expect("metadata");
        assert_eq!(read.issuers(), Ok(&["https://auth.example.com".to_string()][..]));
        let server = Location::parse("https://a.example/mcp").expect("a URL");
        assert_eq!(read.resource_for(&server).as_ref(), Ok(resource.uri()));
    }

    #[test]
    fn metadata_names_scopes_if_there_are_any() {
        let scopes = |resource: &ProtectedResource| {
            let read = ProtectedResourceMetadata::parse(
                resource.metadata().expect("an issuer").as_bytes(),
            );
            read.expect("metadata").scopes_supported
        };
        let resource = resource("https://a.example/mcp");
        let resource = resource
            .scopes_for(crate::protected_resource::Operation::tool("t"), ["x"])
            .expect("a scope");
        assert_eq!(scopes(&resource), None);
        let resource = resource.scopes_supported(["y"]).expect("a scope");
        assert_eq!(scopes(&resource), Some(["y".to_string()].into()));
    }

    #[test]
    fn a_resource_without_an_issuer_has_no_metadata() {
        // Rule: [AUTHC-001].
        let resource = ProtectedResource::without_issuer("https://a.example/mcp").expect("a URI");
        let resource = resource.at_root();
        assert_eq!((resource.metadata_url(), resource.metadata()), (None, None));
        for path in [PROTECTED_RESOURCE.to_string(), format!("{PROTECTED_RESOURCE}/mcp")] {
            assert_eq!(respond(&resource, "GET", &path), None, "{path}");
        }
    }

    #[test]
    fn metadata_at_the_root_is_optional() {
        // Rule: [AUTHS-010].
        let root = "/.well-known/oauth-protected-resource";
        let resource = resource("https://a.example/mcp");
        assert_eq!(respond(&resource, "GET", root), None);
        let resource = resource.at_root();
        assert_eq!(resource.metadata_paths(), [format!("{root}/mcp"), root.to_string()]);
        assert!(respond(&resource, "GET", root).is_some());
        for other in ["/mcp", "/", "/.well-known", "/.well-known/oauth-protected-resource/other"] {
            assert_eq!(respond(&resource, "GET", other), None, "{other}");
        }
    }

    #[test]
    fn pages_of_all_origins_may_read_the_metadata() {
        let (resource, path) = (resource("https://a.example"), PROTECTED_RESOURCE);
        for (method, status) in [("GET", 200), ("OPTIONS", 204), ("POST", 405)] {
            let head = respond(&resource, method, path).expect(method).head;
            assert_eq!(head.status.0, status);
            let fields: Vec<_> = head.fields().collect();
            for name in ["access-control-allow-origin", "access-control-allow-headers"] {
                assert!(fields.contains(&(name, "*".into())), "{method}: {fields:?}");
            }
        }
    }
}
