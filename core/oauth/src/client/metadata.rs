//! The metadata of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID
//! Connect).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::http::{DOCUMENT_LENGTH_MAX, Location};
use serde::de::{DeserializeOwned, Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::token::AnswerFault;
use crate::discovery::{UrlFault, endpoint, is_secure};
use crate::resource::ResourceUri;

/// The metadata of a protected resource, which is an MCP server. As received and not validated;
/// members without a use for clients are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResourceMetadata {
    /// The URI of the resource. See [`ProtectedResourceMetadata::resource_for`].
    #[serde(default)]
    pub resource: String,
    /// The issuers whose tokens the server accepts.
    #[serde(default, deserialize_with = "texts_or_none")]
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use requires.
    #[serde(default, deserialize_with = "texts")]
    pub scopes_supported: Option<Vec<String>>,
}

/// The metadata of an authorization server. As received and not validated; members without a use
/// for clients are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationServerMetadata {
    /// The issuer identifier. See [`AuthorizationServerMetadata::check_issuer`].
    #[serde(default)]
    pub issuer: String,
    /// See [`AuthorizationServerMetadata::authorization_endpoint`].
    pub authorization_endpoint: Option<String>,
    /// See [`AuthorizationServerMetadata::token_endpoint`].
    pub token_endpoint: Option<String>,
    /// See [`AuthorizationServerMetadata::registration_endpoint`].
    #[serde(default, deserialize_with = "filled")]
    pub registration_endpoint: Option<String>,
    /// The scopes that may be requested.
    #[serde(default, deserialize_with = "texts")]
    pub scopes_supported: Option<Vec<String>>,
    /// The supported grants.
    #[serde(default, deserialize_with = "texts")]
    pub grant_types_supported: Option<Vec<String>>,
    /// The authentication methods of the token endpoint; `client_secret_basic` if absent (RFC 8414,
    /// section 2), as a list without any must be (section 3.2).
    #[serde(default, deserialize_with = "texts_if_any")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// See [`AuthorizationServerMetadata::check_pkce`].
    #[serde(default, deserialize_with = "texts")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// Whether a client may be identified by the URL of its metadata.
    #[serde(default, deserialize_with = "offer")]
    pub client_id_metadata_document_supported: bool,
    /// Whether every authorization response names its issuer (RFC 9207).
    #[serde(default, deserialize_with = "declaration")]
    pub authorization_response_iss_parameter_supported: bool,
}

/// Why metadata must not be used. The error of its author, unless it is an attack.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataFault {
    /// The document is longer than [`DOCUMENT_LENGTH_MAX`].
    #[error("the metadata is longer than {DOCUMENT_LENGTH_MAX} bytes")]
    TooLong,
    /// The document is not a JSON object, lacks a required member, has a duplicate member, or a
    /// member of the wrong type. The text explains it for developers, in at most 1,024 characters.
    #[error("the metadata is malformed: {0}")]
    Malformed(String),
    /// The document is a JSON object that describes something else, such as an error: it has none
    /// of the members that metadata must have.
    #[error("the answer is not metadata")]
    Unrelated,
    /// The document describes another resource.
    #[error("the metadata describes another server: {0}")]
    Resource(#[from] UrlFault),
    /// The resource names no authorization server.
    #[error("the metadata names no authorization server")]
    NoAuthorizationServer,
    /// The document describes another authorization server.
    #[error("the metadata describes another issuer than the requested one")]
    Issuer,
    /// The authorization server does not declare support for PKCE with `S256`.
    #[error("the authorization server does not announce PKCE with S256")]
    Pkce,
    /// A required endpoint is absent.
    #[error("the metadata has no `{0}`")]
    NoEndpoint(&'static str),
    /// An endpoint is not the URL of a server, or has a fragment.
    #[error("`{0}` is not usable: {1}")]
    Endpoint(&'static str, UrlFault),
}

impl ProtectedResourceMetadata {
    /// Parses a document. Linear in its length.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::TooLong`], [`MetadataFault::Malformed`] or [`MetadataFault::Unrelated`],
    /// the MCP server's error.
    pub fn parse(document: &[u8]) -> Result<Self, MetadataFault> {
        let it: Self = parse(document)?;
        match it.resource.is_empty() {
            true => Err(unnamed("resource", it.authorization_servers.is_empty())),
            false => Ok(it),
        }
    }

    /// Returns the value of `resource` for requests about `server`, after checking that this
    /// metadata describes it.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Resource`]: it does not; stop before any authorization.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#sequence-diagram [AUTHC-020]
    pub fn resource_for(&self, server: &Location) -> Result<ResourceUri, MetadataFault> {
        Ok(ResourceUri::from_metadata(&self.resource, server)?)
    }

    /// Returns the issuers to choose from, at least one.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::NoAuthorizationServer`], the MCP server's error.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHC-019]
    pub fn issuers(&self) -> Result<&[String], MetadataFault> {
        match &*self.authorization_servers {
            [] => Err(MetadataFault::NoAuthorizationServer),
            issuers => Ok(issuers),
        }
    }
}

impl AuthorizationServerMetadata {
    /// Parses a document. Linear in its length.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::TooLong`], [`MetadataFault::Malformed`] or [`MetadataFault::Unrelated`],
    /// the authorization server's error.
    pub fn parse(document: &[u8]) -> Result<Self, MetadataFault> {
        let it: Self = parse(document)?;
        let endpoints = [&it.authorization_endpoint, &it.token_endpoint, &it.registration_endpoint];
        match it.issuer.is_empty() {
            true => Err(unnamed("issuer", endpoints.into_iter().all(Option::is_none))),
            false => Ok(it),
        }
    }

    /// Checks that this metadata describes the issuer that its URL was derived from.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Issuer`]: do not use the metadata.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery [AUTHC-025]:
    // except for a final slash; nothing else is normalized.
    pub fn check_issuer(&self, asked_for: &str) -> Result<(), MetadataFault> {
        if is_same_issuer(&self.issuer, asked_for) { Ok(()) } else { Err(MetadataFault::Issuer) }
    }

    /// Checks that the server declares PKCE with `S256`.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Pkce`], the authorization server's error: stop the authorization.
    // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection
    // [AUTHC-012] [AUTHC-013]: if the member is absent PKCE is not supported, in OpenID Connect
    // too.
    pub fn check_pkce(&self) -> Result<(), MetadataFault> {
        let methods = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if methods.iter().any(|it| it == "S256") { Ok(()) } else { Err(MetadataFault::Pkce) }
    }

    /// Returns the metadata of a 2025-03-26 server that publishes none: it is its own authorization
    /// server, called `issuer`, with the endpoints `/authorize`, `/token` and `/register` on its
    /// host. `None` if a user must not be sent there, because it is neither `https` nor on this
    /// machine.
    // MCP 2025-03-26 basic/authorization#fallbacks-for-servers-without-metadata-discovery [AUTHC-008]
    #[must_use]
    pub fn implied_by(server: &Location, issuer: String) -> Option<Self> {
        if !is_secure(server) {
            return None;
        }
        let endpoint = |path| server.resolve(path).ok().map(|url| url.to_string());
        Some(Self {
            issuer,
            authorization_endpoint: Some(endpoint("/authorize")?),
            token_endpoint: Some(endpoint("/token")?),
            registration_endpoint: Some(endpoint("/register")?),
            scopes_supported: None,
            grant_types_supported: None,
            token_endpoint_auth_methods_supported: None,
            // That revision requires PKCE of every server, and defines no metadata to declare it.
            code_challenge_methods_supported: Some(alloc::vec!["S256".into()]),
            client_id_metadata_document_supported: false,
            authorization_response_iss_parameter_supported: false,
        })
    }

    /// Returns the authorization endpoint.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::NoEndpoint`] or [`MetadataFault::Endpoint`], the authorization server's
    /// error.
    pub fn authorization_endpoint(&self) -> Result<Location, MetadataFault> {
        required("authorization_endpoint", self.authorization_endpoint.as_deref())
    }

    /// Returns the token endpoint.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::NoEndpoint`] or [`MetadataFault::Endpoint`], the authorization server's
    /// error.
    pub fn token_endpoint(&self) -> Result<Location, MetadataFault> {
        required("token_endpoint", self.token_endpoint.as_deref())
    }

    /// Returns the registration endpoint, if the server has one.
    ///
    /// # Errors
    ///
    /// [`MetadataFault::Endpoint`], the authorization server's error.
    pub fn registration_endpoint(&self) -> Result<Option<Location>, MetadataFault> {
        let url = self.registration_endpoint.as_deref();
        url.map(|url| required("registration_endpoint", Some(url))).transpose()
    }
}

/// Whether two texts are the same issuer: identical, or different in a final slash only.
///
/// The URLs of the metadata are derived without that slash (RFC 8414, section 3.1), so that both
/// have the same document: no server can pass itself off as another one.
pub(crate) fn is_same_issuer(one: &str, other: &str) -> bool {
    let bare = |issuer| str::strip_suffix(issuer, '/').unwrap_or(issuer);
    bare(one) == bare(other)
}

fn required(name: &'static str, url: Option<&str>) -> Result<Location, MetadataFault> {
    let url = url.ok_or(MetadataFault::NoEndpoint(name))?;
    endpoint(url).map_err(|reason| MetadataFault::Endpoint(name, reason))
}

fn parse<'de, T: Deserialize<'de>>(document: &'de [u8]) -> Result<T, MetadataFault> {
    if document.len() > DOCUMENT_LENGTH_MAX {
        return Err(MetadataFault::TooLong);
    }
    let document = without_mark(document);
    // The derived deserializers also accept an array for an object.
    if document.trim_ascii_start().first() != Some(&b'{') {
        return Err(MetadataFault::Malformed("not a JSON object".into()));
    }
    // The parser does not check the encoding of unknown members, so it is checked here.
    let document = core::str::from_utf8(document)
        .map_err(|error| MetadataFault::Malformed(error.to_string()))?;
    serde_json::from_str(document)
        .map_err(|error| MetadataFault::Malformed(printable(&error.to_string())))
}

/// Returns the fault of a document without the member that names its subject. `unrelated`: it has
/// no other important member either.
fn unnamed(member: &str, unrelated: bool) -> MetadataFault {
    match unrelated {
        true => MetadataFault::Unrelated,
        false => MetadataFault::Malformed(alloc::format!("no `{member}`")),
    }
}

/// Reads the texts of a list; none if the member has another type.
fn texts_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    texts(deserializer).map(Option::unwrap_or_default)
}

/// Reads whether a server offers something, which it does not with a value of another type.
fn offer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    lenient(deserializer).map(Option::unwrap_or_default)
}

/// Reads a list of texts like [`texts`]; one without texts counts as absent.
fn texts_if_any<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(texts(deserializer)?.filter(|it| !it.is_empty()))
}

/// Reads an optional text. An empty one, or a value of another type, counts as absent.
fn filled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(lenient(deserializer)?.filter(|it: &String| !it.is_empty()))
}

/// Reads a declaration that the client relies on. Some servers write `null`, or a boolean as text;
/// any other value has no safe meaning.
fn declaration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(false),
        Value::Bool(value) => Ok(value),
        Value::String(text) => text.parse().map_err(D::Error::custom),
        _ => Err(D::Error::custom("not a boolean")),
    }
}

// ------------------------------------------------------------------ responses of an authorization server

/// The most characters of a server's error text that are kept.
const TEXT_LENGTH_MAX: usize = 1024;

/// Parses the known members of a JSON object. Linear in its length.
// The fault contains no details: the text around it may be secret.
pub(crate) fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, AnswerFault> {
    if body.len() > DOCUMENT_LENGTH_MAX {
        return Err(AnswerFault::TooLong);
    }
    let body = without_mark(body);
    // The derived deserializers also accept an array for an object.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(AnswerFault::Malformed);
    }
    // The parser does not check the encoding of unknown members, so it is checked here.
    let body = core::str::from_utf8(body).map_err(|_| AnswerFault::Malformed)?;
    serde_json::from_str(body).map_err(|_| AnswerFault::Malformed)
}

/// Returns a document without its byte order mark, which a parser may ignore (RFC 8259, section
/// 8.1).
pub(crate) fn without_mark(document: &[u8]) -> &[u8] {
    document.strip_prefix("\u{feff}".as_bytes()).unwrap_or(document)
}

/// Returns the printable characters of a server's error text, which should be ASCII (RFC 6749,
/// section 5.2). Linear.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|it| matches!(it, ' '..='~')).take(TEXT_LENGTH_MAX).collect()
}

/// A value of the expected type, or any other.
#[derive(Deserialize)]
#[serde(untagged)]
enum Either<T> {
    Expected(T),
    Other(IgnoredAny),
}

impl<T> Either<T> {
    fn expected(self) -> Option<T> {
        match self {
            Self::Expected(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

/// Reads an optional member. One of another type counts as absent: a member that the client can do
/// without must not make an answer useless.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Either::deserialize(deserializer).map(Either::expected)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<Either<String>>),
}

/// Reads a list of texts, without elements of another type. A single text has its elements between
/// spaces.
pub(crate) fn texts<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(lenient(deserializer)?.map(|texts| match texts {
        OneOrMany::One(text) => {
            text.split(' ').filter(|it| !it.is_empty()).map(Into::into).collect()
        }
        OneOrMany::Many(list) => list.into_iter().filter_map(Either::expected).collect(),
    }))
}

/// Reads an error code. An object or another value that says that there is an error is kept as
/// JSON; an empty text, zero and `false` are not errors.
pub(crate) fn error_code<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Value::deserialize(deserializer)? {
        Value::Null | Value::Bool(false) => None,
        Value::String(code) => Some(code).filter(|it| !it.is_empty()),
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        other => Some(other.to_string()),
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Whole(u64),
    Number(f64),
    Text(String),
}

/// Parses a time in seconds, which some servers write as a string or with a fraction. A negative
/// time is zero. A value of another type counts as absent.
pub(crate) fn seconds<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(lenient(deserializer)?.and_then(|seconds| match seconds {
        Seconds::Whole(seconds) => Some(seconds),
        // The casts saturate.
        Seconds::Number(seconds) => Some(seconds as u64),
        Seconds::Text(seconds) => seconds.parse().ok().map(|it: f64| it as u64),
    }))
}

/// Returns the authorization base URL of 2025-03-26: the URL of the MCP server without its path.
// MCP 2025-03-26 basic/authorization#authorization-base-url [AUTHC-006]
#[must_use]
pub(crate) fn base_issuer(server: &Location) -> String {
    server.origin().to_string()
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
    fn a_2025_03_26_server_without_metadata_has_its_endpoints_at_the_root() {
        // Rule: [AUTHC-008].
        let location = |url: &str| Location::parse(url).expect(url);
        let implied = |url| AuthorizationServerMetadata::implied_by(&location(url), "i".into());
        let metadata = implied("https://api.example.com/v1/mcp?a").expect("secure");
        let urls = [
            metadata.authorization_endpoint(),
            metadata.token_endpoint(),
            metadata.registration_endpoint().map(|url| url.expect("one")),
        ];
        let expected = ["authorize", "token", "register"]
            .map(|path| Ok(location(&alloc::format!("https://api.example.com/{path}"))));
        assert_eq!(urls, expected);
        assert_eq!(metadata.check_pkce(), Ok(()));
        assert_eq!(implied("http://api.example.com"), None);
    }

    #[test]
    fn invalid_metadata_is_refused() {
        for document in [
            "",
            r#"["a",[],[]]"#,
            r#"{"resource":5}"#,
            r#"{"resource":"","resource":""}"#,
            r#"{"resource":""}x"#,
            r#"{"authorization_servers":["https://a.example"]}"#,
        ] {
            let it = ProtectedResourceMetadata::parse(document.as_bytes());
            assert!(matches!(it, Err(MetadataFault::Malformed(_))), "{document}");
        }
        let long = alloc::vec![b' '; DOCUMENT_LENGTH_MAX + 1];
        assert_eq!(AuthorizationServerMetadata::parse(&long), Err(MetadataFault::TooLong));
        let it = AuthorizationServerMetadata::parse(br#"{"token_endpoint":"https://a.example/"}"#);
        assert_eq!(it, Err(MetadataFault::Malformed("no `issuer`".into())));
    }

    #[test]
    fn an_object_about_something_else_is_not_metadata() {
        for document in ["{}", r#"{"detail":"Not Found"}"#, r#"{"status":"healthy","issuer":""}"#] {
            let it = ProtectedResourceMetadata::parse(document.as_bytes());
            assert_eq!(it, Err(MetadataFault::Unrelated), "{document}");
            let it = AuthorizationServerMetadata::parse(document.as_bytes());
            assert_eq!(it, Err(MetadataFault::Unrelated), "{document}");
        }
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
        let fault = MetadataFault::Resource(UrlFault::Origin);
        assert_eq!(resource("https://s.example/mcp"), Err(fault));
    }

    #[test]
    fn an_issuer_is_compared_byte_for_byte_except_for_a_final_slash() {
        // Rule: [AUTHC-025].
        for same in ["https://a.example", "https://a.example/"] {
            assert_eq!(server("").check_issuer(same), Ok(()));
        }
        for other in [
            "https://A.example",
            "https://a.example:443",
            "https://a.example//",
            "https://a.example/x",
            "https://a.example/x/",
            "https://a.exampl",
            "/",
            "",
        ] {
            assert_eq!(server("").check_issuer(other), Err(MetadataFault::Issuer), "{other}");
        }
    }

    #[test]
    fn the_same_issuer_has_the_same_metadata_urls() {
        let urls = |issuer: &str| -> Vec<String> {
            let urls = crate::MetadataUrls::for_issuer(mcp_sansio::Revision::LATEST, issuer);
            urls.expect("an issuer").map(|url| url.to_string()).collect()
        };
        let issuers = ["https://a.example", "https://a.example/x", "https://b.example/x//y"];
        let spelled = issuers.iter().flat_map(|it| ["", "/", "//"].map(|end| format!("{it}{end}")));
        let spelled: Vec<_> = spelled.collect();
        let mut pairs = 0;
        for one in &spelled {
            for other in spelled.iter().filter(|it| is_same_issuer(one, it)) {
                assert_eq!(urls(one), urls(other), "{one} {other}");
                pairs += 1;
            }
        }
        assert_eq!(pairs, 3 * 5);
    }

    #[test]
    fn a_member_of_another_type_does_not_hide_the_others() {
        let document = br#"{"resource":"https://r.example/mcp","scopes_supported":5,
            "authorization_servers":[null,"https://a.example",{"x":1},"https://b.example"]}"#;
        let it = ProtectedResourceMetadata::parse(document).expect("metadata");
        assert_eq!(it.authorization_servers, ["https://a.example", "https://b.example"]);
        assert_eq!(it.scopes_supported, None);
        let it = server(
            r#","scopes_supported":"a b","grant_types_supported":{},"token_endpoint_auth_methods_supported":[1],"code_challenge_methods_supported":"S256","client_id_metadata_document_supported":"yes""#,
        );
        assert_eq!(it.scopes_supported.as_deref(), Some(&["a".into(), "b".into()][..]));
        assert_eq!(it.grant_types_supported, None);
        assert_eq!(it.token_endpoint_auth_methods_supported, None);
        assert_eq!(it.check_pkce(), Ok(()));
        assert!(!it.client_id_metadata_document_supported);
        for url in [r#""""#, "false", "null", "{}"] {
            let it = server(&format!(r#","registration_endpoint":{url}"#));
            assert_eq!(it.registration_endpoint(), Ok(None), "{url}");
        }
    }

    #[test]
    fn a_member_that_protects_the_client_has_a_clear_value() {
        let read = |value| {
            let name = "authorization_response_iss_parameter_supported";
            let document = format!(r#"{{"issuer":"https://a.example","{name}":{value}}}"#);
            AuthorizationServerMetadata::parse(document.as_bytes())
                .map(|it| it.authorization_response_iss_parameter_supported)
        };
        for (value, expected) in [
            ("true", true),
            ("false", false),
            ("null", false),
            (r#""true""#, true),
            (r#""false""#, false),
        ] {
            assert_eq!(read(value), Ok(expected), "{value}");
        }
        for value in [r#""yes""#, r#""""#, r#""TRUE""#, "1", "[true]"] {
            assert!(matches!(read(value), Err(MetadataFault::Malformed(_))), "{value}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        let document = "\u{feff}{\"issuer\":\"https://a.example\"}".as_bytes();
        let it = AuthorizationServerMetadata::parse(document);
        assert_eq!(it.map(|it| it.issuer), Ok("https://a.example".into()));
        assert!(read_object::<Value>("\u{feff}{}".as_bytes()).is_ok());
        assert!(read_object::<Value>("\u{feff}\u{feff}{}".as_bytes()).is_err());
    }

    #[test]
    fn metadata_without_s256_is_refused() {
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
            ("http://t.example/x", UrlFault::Insecure),
            ("https://t.example/#x", UrlFault::Fragment),
            ("/token", UrlFault::Url(InvalidUrl::Scheme)),
        ] {
            assert_eq!(token(url), Err(MetadataFault::Endpoint(name, reason)), "{url}");
        }
        assert_eq!(server("").token_endpoint(), Err(MetadataFault::NoEndpoint(name)));
        assert!(server("").authorization_endpoint().is_err());
        assert_eq!(server("").registration_endpoint(), Ok(None));
        assert!(server(r#","registration_endpoint":"x""#).registration_endpoint().is_err());
    }
}

#[cfg(test)]
mod json_response_tests {
    use alloc::format;

    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Time {
        #[serde(default, deserialize_with = "seconds")]
        time: Option<u64>,
    }

    #[test]
    fn every_form_of_a_time_is_parsed() {
        for (text, time) in [
            ("3600", Some(3600)),
            (r#""3600""#, Some(3600)),
            ("3599.9", Some(3599)),
            ("0", Some(0)),
            ("-1", Some(0)),
            ("-0.5", Some(0)),
            (r#""-7""#, Some(0)),
            ("1e300", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("null", None),
            (r#""soon""#, None),
            ("[]", None),
            (r#"{"x":{}}"#, None),
            ("true", None),
        ] {
            let body = format!(r#"{{"time":{text}}}"#);
            assert_eq!(read_object(body.as_bytes()), Ok(Time { time }), "{text}");
        }
        assert_eq!(read_object(b"{}"), Ok(Time { time: None }));
    }

    #[test]
    fn an_object_with_wrong_members_is_refused() {
        for body in ["", "null", "[1]", r#"{"time":1,"time":1}"#, "{}x"] {
            assert_eq!(read_object::<Time>(body.as_bytes()), Err(AnswerFault::Malformed), "{body}");
        }
        let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
        assert_eq!(read_object::<Time>(deep.as_bytes()), Err(AnswerFault::Malformed));
        let long = alloc::vec![b' '; DOCUMENT_LENGTH_MAX + 1];
        assert_eq!(read_object::<Time>(&long), Err(AnswerFault::TooLong));
    }

    #[test]
    fn an_error_is_what_says_so() {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default, deserialize_with = "error_code")]
            error: Option<String>,
        }
        for (text, error) in [
            (r#""invalid_grant""#, Some("invalid_grant")),
            (r#"{"code":400}"#, Some(r#"{"code":400}"#)),
            ("true", Some("true")),
            ("7", Some("7")),
            ("null", None),
            ("false", None),
            ("0", None),
            ("\"\"", None),
        ] {
            let body = format!(r#"{{"error":{text}}}"#);
            let answer: Answer = read_object(body.as_bytes()).expect(text);
            assert_eq!(answer.error.as_deref(), error, "{text}");
        }
    }

    #[test]
    fn a_list_is_read_without_its_odd_elements() {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default, deserialize_with = "texts")]
            list: Option<Vec<String>>,
        }
        for (text, list) in [
            (r#"["a","b"]"#, Some("a,b")),
            (r#"["a",null,["c"],5,"b"]"#, Some("a,b")),
            (r#"" a  b ""#, Some("a,b")),
            ("[]", Some("")),
            ("null", None),
            ("{}", None),
            ("5", None),
        ] {
            let body = format!(r#"{{"list":{text}}}"#);
            let answer: Answer = read_object(body.as_bytes()).expect(text);
            assert_eq!(answer.list.map(|it| it.join(",")).as_deref(), list, "{text}");
        }
    }

    #[test]
    fn invalid_utf8_is_refused_even_in_ignored_members() {
        let body = b"{\"time\":1,\"x\":\"\xff\"}";
        assert_eq!(read_object::<Time>(body), Err(AnswerFault::Malformed));
    }

    #[test]
    fn an_error_shows_only_printable_characters() {
        assert_eq!(printable("No.\r\n\u{1b}[31m\u{202e}\u{e9}!"), "No.[31m!");
        assert_eq!(printable(&"x".repeat(TEXT_LENGTH_MAX + 1)).len(), TEXT_LENGTH_MAX);
    }
}
