//! The metadata of a protected resource (RFC 9728).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::http::{Content, RequestHead, Response, ResponseHead};
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{HttpRejection, Status};
use serde::Serialize;

use super::dpop::{ProofRefusal, Unaccepted};
use super::{Grant, ProtectedResource, TokenRefusal, scope};
use crate::discovery::PROTECTED_RESOURCE;
use crate::dpop::USE_DPOP_NONCE;

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

// ------------------------------------------------------------------ responses to refused requests

/// How the token of a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presented {
    /// As `Bearer` (RFC 6750).
    Bearer,
    /// As `DPoP`, with a proof (RFC 9449).
    WithProof,
}

impl ProtectedResource {
    /// Returns the response to a request without a token.
    #[must_use]
    // MCP 2026-07-28 basic/authorization/index#error-handling [AUTHS-001]
    pub fn no_token(&self) -> HttpRejection {
        // RFC 6750, section 3.1: no error code if the client did not present a token.
        let challenge = |presented| self.challenge(presented, None, &self.base_scopes, None);
        let challenge = match &self.dpop {
            None => challenge(Presented::Bearer),
            Some(_) if self.requires_proof() => challenge(Presented::WithProof),
            // RFC 9449, section 7.1: a server that accepts both has two challenges.
            Some(_) => [Presented::Bearer, Presented::WithProof].map(challenge).join(", "),
        };
        refused(Status::UNAUTHORIZED, challenge, "this server requires an access token")
    }

    /// Returns the response to a request that presents a token in a forbidden way.
    // MCP 2026-07-28 basic/authorization/index#error-handling [AUTHS-002]
    pub(super) fn malformed(&self, what: &'static str) -> HttpRejection {
        let presented =
            if self.requires_proof() { Presented::WithProof } else { Presented::Bearer };
        let challenge = self.challenge(presented, Some("invalid_request"), &[], Some(what));
        refused(Status::BAD_REQUEST, challenge, what)
    }

    /// Returns the response to a request whose token is refused.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-001] [AUTHS-012]
    pub(super) fn refused_token(
        &self,
        refusal: &TokenRefusal,
        presented: Presented,
    ) -> HttpRejection {
        let what = match refusal.without_cause() {
            TokenRefusal::Invalid => "the access token is not valid for this resource",
            TokenRefusal::Expired => "the access token has expired",
            _ => return self.unavailable(),
        };
        self.unauthorized(presented, "invalid_token", what)
    }

    /// Returns the response to a request whose token needs a proof and was sent without one.
    pub(super) fn unproven_token(&self) -> HttpRejection {
        // Without a verifier, the client cannot do any better than to get another token.
        let presented = if self.dpop.is_some() { Presented::WithProof } else { Presented::Bearer };
        self.unauthorized(presented, "invalid_token", "the access token was sent without a proof")
    }

    /// Returns the response to a request whose proof does not fit.
    // MCP 2026-07-28 auth:dpop-extension#mcp-server-validation [DPOP-007]
    // RFC 9449, sections 7.1 and 9.
    pub(super) fn refused_proof(&self, refusal: ProofRefusal) -> HttpRejection {
        let refuse = |error, what| self.unauthorized(Presented::WithProof, error, what);
        match refusal {
            ProofRefusal::Invalid(what) => refuse("invalid_dpop_proof", what),
            ProofRefusal::Nonce(nonce) => {
                refuse(USE_DPOP_NONCE, "the proof needs a nonce of this server").dpop_nonce(nonce)
            }
        }
    }

    /// Returns the response to a request whose proof has fitting claims.
    pub(super) fn unaccepted_proof(&self, fault: Unaccepted) -> HttpRejection {
        let what = match fault {
            Unaccepted::Signature => "the signature of the proof is not valid",
            Unaccepted::Repeated => "the proof was used before",
            Unaccepted::Full => return self.unavailable(),
        };
        self.refused_proof(ProofRefusal::Invalid(what))
    }

    fn unauthorized(&self, presented: Presented, error: &str, what: &'static str) -> HttpRejection {
        let challenge = self.challenge(presented, Some(error), &self.base_scopes, Some(what));
        refused(Status::UNAUTHORIZED, challenge, what)
    }

    /// Returns the response to a request whose token could not be checked: because of a timeout, a
    /// panic, or too many concurrent checks. It does not refuse the token.
    #[must_use]
    pub fn unavailable(&self) -> HttpRejection {
        let error = ErrorObject::internal("the access token cannot be checked at the moment");
        let mut refusal = HttpRejection::new(Status::SERVICE_UNAVAILABLE, error);
        refusal.retry_after = Some(10);
        refusal
    }

    /// Returns the response to a request whose token lacks a scope that the request `needs`.
    ///
    /// The challenge always names all scopes that the request needs, and those of the token that
    /// this resource uses. So a client that requests exactly the named scopes loses none, whether
    /// or not it accumulates earlier ones.
    // MCP 2026-07-28 basic/authorization/index#runtime-insufficient-scope-errors [AUTHS-002] [AUTHS-015] [AUTHS-016] [AUTHS-018]
    // MCP 2025-11-25 basic/authorization#runtime-insufficient-scope-errors [AUTHS-017]
    pub(super) fn insufficient(&self, grant: &Grant, needs: &[String]) -> HttpRejection {
        let mut scopes = needs.to_vec();
        for scope in grant.scopes().iter().filter(|it| self.knows_scope(it)) {
            scope::add(&mut scopes, scope);
        }
        let what = "the access token lacks a scope that the request needs";
        let presented = grant.presented();
        let challenge = self.challenge(presented, Some("insufficient_scope"), &scopes, Some(what));
        let message = format!("{what}: `{}`", needs.join(" "));
        refused(Status::FORBIDDEN, challenge, message)
    }

    /// Returns a challenge of `WWW-Authenticate`. No part of it needs an escape: scopes and URLs
    /// are validated, and the rest is constant.
    // MCP 2025-06-18 basic/authorization#authorization-server-location [AUTHS-009]
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHS-010]
    // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHS-011]
    fn challenge(
        &self,
        presented: Presented,
        error: Option<&str>,
        scopes: &[String],
        description: Option<&str>,
    ) -> String {
        let scheme = match presented {
            Presented::Bearer => "Bearer",
            Presented::WithProof => "DPoP",
        };
        let mut challenge = match self.metadata_url() {
            Some(url) => format!("{scheme} resource_metadata=\"{url}\""),
            // RFC 6750, section 3: the scheme is followed by at least one parameter.
            None => format!("{scheme} realm=\"MCP\""),
        };
        let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
        // RFC 9449, section 7.1.
        let algorithms = self.proof_algorithms().filter(|_| presented == Presented::WithProof);
        let params = [
            ("algs", algorithms.as_deref()),
            ("error", error),
            ("scope", scope.as_deref()),
            ("error_description", description),
        ];
        for (name, value) in params {
            if let Some(value) = value {
                challenge.push_str(&format!(", {name}=\"{value}\""));
            }
        }
        challenge
    }
}

fn refused(
    status: Status,
    challenge: String,
    message: impl Into<alloc::borrow::Cow<'static, str>>,
) -> HttpRejection {
    let error = ErrorObject::invalid_request(message);
    HttpRejection::new(status, error).challenge(challenge)
}

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
