//! The server's metadata documents.

use serde_json::{Value, json};

use super::clients::GrantType;
use super::options::Options;

/// Paths relative to the issuer.
pub(super) const AUTHORIZATION: &str = "/authorize";
pub(super) const APPROVAL: &str = "/approve";
pub(super) const TOKENS: &str = "/token";
pub(super) const REGISTRATION: &str = "/register";
pub(super) const KEYS: &str = "/jwks";
pub(super) const OAUTH_METADATA: &str = "/.well-known/oauth-authorization-server";
pub(super) const OPENID_METADATA: &str = "/.well-known/openid-configuration";

/// Returns the metadata of RFC 8414.
// MCP 2025-06-18 basic/authorization#overview [AUTHS-023]
// MCP 2026-07-28 basic/authorization/index#overview [AUTHS-024]: clients that use OpenID Connect
// Discovery find the same metadata with the fields that it requires.
pub(super) fn oauth(issuer: &str, options: &Options) -> Value {
    let at = |path| format!("{issuer}{path}");
    json!({
        "issuer": issuer,
        "authorization_endpoint": at(AUTHORIZATION),
        "token_endpoint": at(TOKENS),
        "registration_endpoint": at(REGISTRATION),
        "jwks_uri": at(KEYS),
        "scopes_supported": options.scopes,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        // MCP 2025-03-26 basic/authorization#oauth-grant-types [AUTHS-004]: grants for users and
        // for machine-to-machine clients.
        "grant_types_supported": GrantType::ALL.map(GrantType::name),
        "token_endpoint_auth_methods_supported":
            ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
        "code_challenge_methods_supported": ["S256"],
        // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHS-026]:
        // announces that every authorization response has `iss`.
        "authorization_response_iss_parameter_supported": true,
    })
}

/// Returns the metadata of OpenID Connect Discovery. The server issues no ID tokens; the document
/// only lets clients find the endpoints.
pub(super) fn openid(issuer: &str, options: &Options) -> Value {
    let mut metadata = oauth(issuer, options);
    metadata["subject_types_supported"] = json!(["public"]);
    metadata["id_token_signing_alg_values_supported"] = json!(["ES256"]);
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_documents_announce_pkce_and_the_issuer_in_responses() {
        // Rule: [AUTHS-004] [AUTHS-023] [AUTHS-024] [AUTHS-026].
        for metadata in [oauth, openid] {
            let metadata = metadata("http://127.0.0.1:1", &Options::new());
            assert_eq!(metadata["issuer"], "http://127.0.0.1:1");
            assert_eq!(metadata["token_endpoint"], "http://127.0.0.1:1/token");
            let names = GrantType::ALL.map(GrantType::name);
            assert_eq!(metadata["grant_types_supported"], json!(names));
            assert_eq!(metadata["registration_endpoint"], "http://127.0.0.1:1/register");
            assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
            assert_eq!(metadata["authorization_response_iss_parameter_supported"], true);
        }
    }
}
