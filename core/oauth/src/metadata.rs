//! What protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect) say of
//! themselves.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::http::{DOCUMENT_LENGTH_MAX, Location};
use serde::{Deserialize, Deserializer};

use super::endpoint::{InvalidEndpoint, endpoint};
use super::json_response::printable;
use super::resource::{ResourceMismatch, ResourceUri};

/// The metadata of a protected resource: of an MCP server. As it was written, unchecked; members
/// that a client has no use for are not kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResourceMetadata {
    /// Which resource this is. See [`ProtectedResourceMetadata::resource_for`].
    pub resource: String,
    /// The issuers whose tokens the server takes.
    #[serde(default, deserialize_with = "null_as_absent")]
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use needs.
    pub scopes_supported: Option<Vec<String>>,
}

/// The metadata of an authorization server. As it was written, unchecked; members that a client has
/// no use for are not kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationServerMetadata {
    /// Whose metadata this is. See [`AuthorizationServerMetadata::check_issuer`].
    pub issuer: String,
    /// See [`AuthorizationServerMetadata::authorization_endpoint`].
    pub authorization_endpoint: Option<String>,
    /// See [`AuthorizationServerMetadata::token_endpoint`].
    pub token_endpoint: Option<String>,
    /// See [`AuthorizationServerMetadata::registration_endpoint`].
    pub registration_endpoint: Option<String>,
    /// The scopes that may be asked for.
    pub scopes_supported: Option<Vec<String>>,
    /// The grants that may be used.
    pub grant_types_supported: Option<Vec<String>>,
    /// How a client may authenticate at the token endpoint; `client_secret_basic` where this is
    /// absent (RFC 8414, section 2).
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// See [`AuthorizationServerMetadata::check_pkce`].
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether a client may be known by the URL of its metadata.
    #[serde(default, deserialize_with = "null_as_absent")]
    pub client_id_metadata_document_supported: bool,
    /// Whether every authorization response says who issued it (RFC 9207).
    #[serde(default, deserialize_with = "null_as_absent")]
    pub authorization_response_iss_parameter_supported: bool,
}

/// Why metadata must not be used. The fault of whoever wrote it, unless it is an attack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// The document is longer than [`DOCUMENT_LENGTH_MAX`].
    #[error("the metadata is longer than {DOCUMENT_LENGTH_MAX} bytes")]
    TooLong,
    /// The document is no JSON object, lacks a required member, has a member twice, or has one of
    /// another type than it should. What is wrong, in words for a developer: at most 1,024
    /// characters.
    #[error("the metadata is malformed: {0}")]
    Malformed(String),
    /// The document describes another resource.
    #[error("the metadata is of another server: {0}")]
    Resource(#[from] ResourceMismatch),
    /// The resource names no authorization server.
    #[error("the metadata names no authorization server")]
    NoAuthorizationServer,
    /// The document describes another authorization server.
    #[error("the metadata is of another issuer than was asked for")]
    Issuer,
    /// The authorization server does not say that it knows PKCE with `S256`.
    #[error("the authorization server does not announce PKCE with S256")]
    Pkce,
    /// An endpoint that is needed is absent.
    #[error("the metadata has no `{0}`")]
    NoEndpoint(&'static str),
    /// An endpoint is no URL of a server, or has a fragment.
    #[error("`{0}` is not usable: {1}")]
    Endpoint(&'static str, InvalidEndpoint),
}

impl ProtectedResourceMetadata {
    /// Reads a document. Linear in its length.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::TooLong`] or [`MetadataFault::Malformed`], the MCP server's fault.
    pub fn parse(document: &[u8]) -> Result<Self, MetadataFault> {
        parse(document)
    }

    /// The value of `resource` for requests that concern `server`, whose metadata this claims to
    /// be.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Resource`]: it is not; stop before any authorization.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#sequence-diagram [AUTHC-020]
    pub fn resource_for(&self, server: &Location) -> Result<ResourceUri, MetadataFault> {
        Ok(ResourceUri::from_metadata(&self.resource, server)?)
    }

    /// The issuers to choose from, at least one.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::NoAuthorizationServer`], the MCP server's fault.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHC-019]
    pub fn issuers(&self) -> Result<&[String], MetadataFault> {
        match &*self.authorization_servers {
            [] => Err(MetadataFault::NoAuthorizationServer),
            issuers => Ok(issuers),
        }
    }
}

impl AuthorizationServerMetadata {
    /// Reads a document. Linear in its length.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::TooLong`] or [`MetadataFault::Malformed`], the authorization server's
    /// fault.
    pub fn parse(document: &[u8]) -> Result<Self, MetadataFault> {
        parse(document)
    }

    /// Checks that this is the metadata of the issuer from whose identifier its URL was made.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Issuer`]: use nothing of it.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery [AUTHC-025]:
    // identical, so nothing is normalised.
    pub fn check_issuer(&self, asked_for: &str) -> Result<(), MetadataFault> {
        if self.issuer == asked_for { Ok(()) } else { Err(MetadataFault::Issuer) }
    }

    /// Checks that PKCE with `S256` is announced.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Pkce`], the authorization server's fault: do not go on.
    // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-012] [AUTHC-013]:
    // absent means that there is no PKCE, in OpenID Connect too.
    pub fn check_pkce(&self) -> Result<(), MetadataFault> {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if methods.iter().any(|it| it == "S256") { Ok(()) } else { Err(MetadataFault::Pkce) }
    }

    /// Where the user is sent.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::NoEndpoint`] or [`MetadataFault::Endpoint`], the authorization server's
    /// fault.
    pub fn authorization_endpoint(&self) -> Result<Location, MetadataFault> {
        required("authorization_endpoint", self.authorization_endpoint.as_deref())
    }

    /// Where a code is exchanged for a token.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::NoEndpoint`] or [`MetadataFault::Endpoint`], the authorization server's
    /// fault.
    pub fn token_endpoint(&self) -> Result<Location, MetadataFault> {
        required("token_endpoint", self.token_endpoint.as_deref())
    }

    /// Where a client registers itself; `None` where it cannot.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Endpoint`], the authorization server's fault.
    pub fn registration_endpoint(&self) -> Result<Option<Location>, MetadataFault> {
        let url = self.registration_endpoint.as_deref();
        url.map(|url| required("registration_endpoint", Some(url))).transpose()
    }
}

fn required(name: &'static str, url: Option<&str>) -> Result<Location, MetadataFault> {
    let url = url.ok_or(MetadataFault::NoEndpoint(name))?;
    endpoint(url).map_err(|reason| MetadataFault::Endpoint(name, reason))
}

fn parse<'de, T: Deserialize<'de>>(document: &'de [u8]) -> Result<T, MetadataFault> {
    if document.len() > DOCUMENT_LENGTH_MAX {
        return Err(MetadataFault::TooLong);
    }
    // The derived readers take an array for an object too.
    if document.trim_ascii_start().first() != Some(&b'{') {
        return Err(MetadataFault::Malformed("it is no object".into()));
    }
    // What is not wanted of a document is passed over without a look at its encoding.
    let document = core::str::from_utf8(document)
        .map_err(|error| MetadataFault::Malformed(error.to_string()))?;
    serde_json::from_str(document)
        .map_err(|error| MetadataFault::Malformed(printable(&error.to_string())))
}

/// Some servers write `null` for what they leave out.
fn null_as_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use mcp_sansio::http::InvalidUrl;

    use super::*;

    fn server(members: &str) -> AuthorizationServerMetadata {
        let document = format!(r#"{{"issuer":"https://a.example"{members}}}"#);
        AuthorizationServerMetadata::parse(document.as_bytes()).expect(members)
    }

    #[test]
    fn unknown_metadata_members_are_ignored() {
        let it = ProtectedResourceMetadata::parse(
            br#"{"resource":"https://r.example/mcp","authorization_servers":["https://a.example"],
                "scopes_supported":null,"x":{"y":[1]}}"#,
        );
        assert_eq!(
            it,
            Ok(ProtectedResourceMetadata {
                resource: "https://r.example/mcp".into(),
                authorization_servers: ["https://a.example".into()].into(),
                scopes_supported: None,
            })
        );
        let it = server(r#","jwks_uri":5,"client_id_metadata_document_supported":null"#);
        assert!(!it.client_id_metadata_document_supported);
        assert!(!it.authorization_response_iss_parameter_supported);
    }

    #[test]
    fn invalid_utf8_is_refused_even_in_ignored_members() {
        let document = b"{\"issuer\":\"https://a.example\",\"x\":\"\xff\"}";
        let parsed = AuthorizationServerMetadata::parse(document);
        assert!(matches!(parsed, Err(MetadataFault::Malformed(_))), "{parsed:?}");
    }

    #[test]
    fn invalid_metadata_is_refused() {
        for document in [
            "",
            "{}",
            r#"["a",[],[]]"#,
            r#"{"resource":5}"#,
            r#"{"resource":"","resource":""}"#,
            r#"{"resource":""}x"#,
        ] {
            let it = ProtectedResourceMetadata::parse(document.as_bytes());
            assert!(matches!(it, Err(MetadataFault::Malformed(_))), "{document}");
        }
        let long = alloc::vec![b' '; DOCUMENT_LENGTH_MAX + 1];
        assert_eq!(AuthorizationServerMetadata::parse(&long), Err(MetadataFault::TooLong));
    }

    #[test]
    fn a_resource_names_itself_and_an_authorization_server() {
        // Rule: [AUTHC-019] [AUTHC-020].
        let it = ProtectedResourceMetadata::parse(br#"{"resource":"https://r.example"}"#);
        let it = it.expect("metadata");
        assert_eq!(it.issuers(), Err(MetadataFault::NoAuthorizationServer));
        let resource = |url| it.resource_for(&Location::parse(url).expect(url));
        let uri = resource("https://r.example/mcp");
        assert_eq!(uri.as_ref().map(ResourceUri::as_str), Ok("https://r.example"));
        let fault = MetadataFault::Resource(ResourceMismatch::Origin);
        assert_eq!(resource("https://s.example/mcp"), Err(fault));
    }

    #[test]
    fn an_issuer_is_compared_as_it_is_written() {
        // Rule: [AUTHC-025].
        assert_eq!(server("").check_issuer("https://a.example"), Ok(()));
        for other in ["https://a.example/", "https://A.example", "https://a.example:443", ""] {
            assert_eq!(server("").check_issuer(other), Err(MetadataFault::Issuer), "{other}");
        }
    }

    #[test]
    fn without_s256_there_is_no_authorization() {
        // Rule: [AUTHC-012] [AUTHC-013].
        let check = |methods| {
            server(&format!(r#","code_challenge_methods_supported":{methods}"#)).check_pkce()
        };
        assert_eq!(check(r#"["plain","S256"]"#), Ok(()));
        for methods in ["null", "[]", r#"["plain"]"#, r#"["s256"]"#] {
            assert_eq!(check(methods), Err(MetadataFault::Pkce), "{methods}");
        }
        assert_eq!(server("").check_pkce(), Err(MetadataFault::Pkce));
    }

    #[test]
    fn an_endpoint_is_https_or_on_this_machine() {
        // Rule: [AUTHC-067].
        let name = "token_endpoint";
        let token = |url| server(&format!(r#","token_endpoint":"{url}""#)).token_endpoint();
        for url in ["https://t.example/x?y", "http://127.0.0.1:80/", "http://localhost:3000/t"] {
            assert!(token(url).is_ok(), "{url}");
        }
        for (url, reason) in [
            ("http://t.example/x", InvalidEndpoint::Insecure),
            ("https://t.example/#x", InvalidEndpoint::Fragment),
            ("/token", InvalidEndpoint::Url(InvalidUrl::Scheme)),
        ] {
            assert_eq!(token(url), Err(MetadataFault::Endpoint(name, reason)), "{url}");
        }
        assert_eq!(server("").token_endpoint(), Err(MetadataFault::NoEndpoint(name)));
        assert!(server("").authorization_endpoint().is_err());
        assert_eq!(server("").registration_endpoint(), Ok(None));
        assert!(server(r#","registration_endpoint":"x""#).registration_endpoint().is_err());
    }
}
