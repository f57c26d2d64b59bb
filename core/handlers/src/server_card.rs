//! The card of a server on HTTP, from the draft SEP-2127.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher as _;
use core::num::NonZeroU32;

use mcp_sansio::http::{Content, Location, RequestHead, Response, ResponseHead};
use mcp_sansio::jsonrpc::{Json, Omissions, RawJson, lossy_list};
use mcp_sansio::peer::Status;
use mcp_sansio::{InvalidValue, Revision, Revisions};
use mcp_sansio_collections::KeyedHash;
use serde::{Deserialize, Serialize};

use super::server::Server;
use super::threading::Threading;

/// The schema of a card.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// The suffix of a card's URL, after the URL of its server.
// MCP 2026-07-28 server-card:discovery#alternatives-considered [CARD-029]
const SUFFIX: &str = "/server-card";
/// The bounds of the draft, in characters: of the name, of the version, and of other texts.
const NAME_LENGTH_MAX: usize = 200;
const VERSION_LENGTH_MAX: usize = 255;
const TEXT_LENGTH_MAX: usize = 100;

/// A public description of a server on HTTP, which clients and registries read without a
/// connection.
///
/// It implements the draft SEP-2127: its format, its place and this type may change with any
/// version of this crate. A card does not list tools or other items. Its content is not verified:
/// after connecting, the statements of the server take precedence.
///
/// ```
/// use mcp_sansio_handlers::{Server, ServerCard};
///
/// let card = ServerCard::new("com.example/weather", "1.0.0", "Weather at a place")?
///     .title("Weather")?
///     .remote("https://mcp.example.com/mcp")?;
/// // GET https://mcp.example.com/mcp/server-card
/// let server = Server::new("weather", "1.0.0").card(card);
/// # let _ = server;
/// # Ok::<(), mcp_sansio::InvalidValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerCard {
    /// The URL of the JSON Schema for the card.
    #[serde(rename = "$schema")]
    pub schema: String,
    /// The name of the server: a namespace in reverse DNS order, a slash, and a name.
    pub name: String,
    /// The version of the server.
    pub version: String,
    /// The purpose of the server, for people.
    pub description: String,
    /// The name to display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The home page of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// The repository of the source code, as the server describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Json>,
    /// A list of icons, as the server describes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Json>,
    /// Where to connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "lossy_list")]
    pub remotes: Vec<RemoteEndpoint>,
    /// Metadata of vendors.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Json>,
}

/// An endpoint of a [`ServerCard`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteEndpoint {
    /// The transport: `streamable-http` or `sse`.
    #[serde(rename = "type")]
    pub transport: String,
    /// The URL, which may be a template: replace each variable in braces with its value in
    /// [`variables`](Self::variables) before connecting.
    pub url: String,
    /// An object that describes the variables of the URL: their defaults, their choices, and
    /// whether the user is to be asked.
    // MCP 2026-07-28 server-card:schema.ts#Remote [CARD-010]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Json>,
    /// A list of the header fields that the endpoint requires or accepts, described alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Json>,
    /// The revisions of the protocol that it supports.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "lossy_list")]
    pub supported_protocol_versions: Vec<String>,
}

impl ServerCard {
    /// Creates a card without endpoints.
    ///
    /// # Errors
    ///
    /// The caller's error: the name is not a namespace and a name, in letters, digits and `.-_`; the
    /// version is a range, or longer than 255 characters; or the description is empty or longer than
    /// 100 characters.
    // MCP 2026-07-28 server-card:schema.json#ServerCard [CARD-004] [CARD-007]
    // MCP 2026-07-28 server-card:schema.ts#ServerCard [CARD-006]
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        description: impl Into<String>,
    ) -> Result<Self, InvalidValue> {
        let (name, version, description) = (name.into(), version.into(), description.into());
        if !is_name(&name) {
            return Err(not_a_name(&name));
        }
        if !is_version(&version) {
            return Err(InvalidValue::new(format!("`{version}` is not one version of a server")));
        }
        if !is_short(&description) {
            return Err(InvalidValue::new("the description of a server has 1 to 100 characters"));
        }
        Ok(Self {
            schema: SCHEMA.to_string(),
            name,
            version,
            description,
            title: None,
            website_url: None,
            repository: None,
            icons: None,
            remotes: Vec::new(),
            meta: None,
        })
    }

    /// Sets the name to display.
    ///
    /// # Errors
    ///
    /// The caller's error: it is empty or longer than 100 characters.
    // MCP 2026-07-28 server-card:schema.json#ServerCard [CARD-007]
    pub fn title(mut self, title: impl Into<String>) -> Result<Self, InvalidValue> {
        let title = title.into();
        if !is_short(&title) {
            return Err(InvalidValue::new("the title of a server has 1 to 100 characters"));
        }
        self.title = Some(title);
        Ok(self)
    }

    /// Sets the home page of the server.
    #[must_use]
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.website_url = Some(url.into());
        self
    }

    /// Adds an endpoint of Streamable HTTP, with all revisions: the URL that clients use. A server
    /// with this card answers at `/server-card` below its path.
    ///
    /// # Errors
    ///
    /// The caller's error: the URL is invalid.
    pub fn remote(self, url: &str) -> Result<Self, InvalidValue> {
        self.remote_with(url, Revisions::ALL)
    }

    /// Like [`remote`](Self::remote), with the revisions that the server is limited to.
    ///
    /// # Errors
    ///
    /// Those of [`remote`](Self::remote).
    pub fn remote_with(mut self, url: &str, revisions: Revisions) -> Result<Self, InvalidValue> {
        // MCP 2026-07-28 server-card:schema.json#Remote [CARD-009]
        Location::parse(url)
            .map_err(|error| InvalidValue::new(format!("not the URL of a server: {error}")))?;
        let revisions = Revision::ALL.into_iter().filter(|it| revisions.contains(*it));
        self.remotes.push(RemoteEndpoint {
            transport: "streamable-http".to_string(),
            url: url.to_string(),
            variables: None,
            headers: None,
            supported_protocol_versions: revisions.map(|it| it.as_str().to_string()).collect(),
        });
        Ok(self)
    }

    /// Returns the URL at which the server at `server` has its card, unless it is elsewhere.
    #[must_use]
    pub fn url_of(server: &Location) -> String {
        let target = server.path_and_query().split('?').next().unwrap_or_default();
        let path = target.strip_suffix('/').unwrap_or(target);
        format!("{}{path}{SUFFIX}", server.origin())
    }

    /// Parses a card. Members that this type does not have are ignored. Malformed endpoints are left
    /// out, and described.
    ///
    /// # Errors
    ///
    /// The fault of the server: the document is not a card, has another schema, or an invalid name.
    // MCP 2026-07-28 server-card:schema.json#ServerCard [CARD-002] [CARD-003]
    // MCP 2026-07-28 server-card:README#schema [CARD-016]
    pub fn parse(document: &[u8]) -> Result<(Self, Omissions), InvalidValue> {
        let text = String::from_utf8_lossy(document);
        // RFC 8259, section 8.1.
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let read = RawJson::parse(text).and_then(|card| card.decode_lossy());
        let (card, omissions): (Self, _) = read.map_err(|error| {
            InvalidValue::new(format!("the document is not the card of a server: {error}"))
        })?;
        if card.schema != SCHEMA {
            return Err(unknown_schema(&card.schema));
        }
        if is_name(&card.name) { Ok((card, omissions)) } else { Err(not_a_name(&card.name)) }
    }

    /// Returns the response to a request for the card; `None` if the request is for something else.
    /// Pages of any origin may read it.
    pub(super) fn respond(&self, head: &RequestHead<'_>) -> Option<Response> {
        let is_path = |endpoint: &RemoteEndpoint| {
            let server = Location::parse(&endpoint.url).ok()?;
            let card = Location::parse(&Self::url_of(&server)).ok()?;
            (card.path_and_query() == head.path()).then_some(())
        };
        self.remotes.iter().find_map(is_path)?;
        let bare = |status| Response::new(ResponseHead::new(status, None), Vec::new());
        let mut response = match head.method() {
            // The adapter leaves out the body of a response to HEAD.
            "GET" | "HEAD" => {
                let body = serde_json::to_vec(self).ok()?;
                let hash = KeyedHash::default().hash_one(&*body);
                let etag = NonZeroU32::MIN | u32::try_from(hash >> 32).unwrap_or_default();
                // MCP 2026-07-28 server-card:discovery#caching [CARD-037] [CARD-039]
                let mut response = match head.has(etag) {
                    true => bare(Status(304)),
                    // MCP 2026-07-28 server-card:discovery#hosted-server-card-location [CARD-026]
                    false => Response::new(
                        ResponseHead::new(Status::OK, Some(Content::ServerCard)),
                        body,
                    ),
                };
                response.head.etag = Some(etag);
                response
            }
            // A browser's preflight request.
            "OPTIONS" => bare(Status::NO_CONTENT),
            _ => {
                let mut response = bare(Status::METHOD_NOT_ALLOWED);
                response.head.allow = Some("GET, HEAD, OPTIONS");
                response
            }
        };
        response.head.public = true;
        Some(response)
    }
}

impl<K: Threading> Server<K> {
    /// Serves a card over HTTP, at `/server-card` below the path of each of its endpoints, without
    /// a token. It implements a draft: see [`ServerCard`].
    #[must_use]
    pub fn card(mut self, card: ServerCard) -> Self {
        self.functions().http.card = Some(Arc::new(card));
        self
    }
}

fn not_a_name(name: &str) -> InvalidValue {
    InvalidValue::new(format!(
        "`{name}` is not the name of a server, such as `com.example/weather`"
    ))
}

fn unknown_schema(schema: &str) -> InvalidValue {
    InvalidValue::new(format!(
        "`{schema}` is not the schema of a server card that this version knows"
    ))
}

fn is_short(text: &str) -> bool {
    (1..=TEXT_LENGTH_MAX).contains(&text.chars().count())
}

/// Whether a text may be a version, and is not a range.
fn is_version(version: &str) -> bool {
    version.chars().count() <= VERSION_LENGTH_MAX
        && !version.starts_with(['^', '~', '<', '>', '='])
        && !version.split('.').any(|part| matches!(part, "x" | "X" | "*"))
}

fn is_name(name: &str) -> bool {
    let allowed = |text: &str, marks: &str| {
        !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || marks.contains(it))
    };
    name.len() <= NAME_LENGTH_MAX
        && name
            .split_once('/')
            .is_some_and(|(namespace, name)| allowed(namespace, ".-") && allowed(name, "._-"))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn card() -> ServerCard {
        let card = ServerCard::new("com.example/weather", "1.0.0", "Weather at a place").unwrap();
        card.title("Weather").unwrap().remote("https://mcp.example.com/mcp").unwrap()
    }

    #[test]
    fn an_unchanged_card_is_not_sent_again() {
        // Rule: [CARD-037] [CARD-039].
        let card = card();
        let first = card.respond(&RequestHead::new("GET", "/mcp/server-card")).unwrap();
        let tag = first.head.fields().find(|(name, _)| *name == "etag").unwrap().1.into_owned();
        for (known, status) in [
            (tag.clone(), 304),
            (format!("\"x\", W/{tag}"), 304),
            ("*".into(), 304),
            ("\"x\"".into(), 200),
        ] {
            let mut head = RequestHead::new("HEAD", "/mcp/server-card");
            head.field("if-none-match", known.as_bytes());
            let response = card.respond(&head).unwrap();
            assert_eq!(response.head.status.0, status, "{known}");
            let fields: Vec<_> = response.head.fields().collect();
            assert!(fields.contains(&("etag", tag.as_str().into())), "{fields:?}");
            assert!(fields.contains(&("cache-control", "public, max-age=3600".into())));
        }
    }

    #[test]
    fn members_that_a_host_needs_are_kept() {
        // Rule: [CARD-002] [CARD-010] [CARD-016].
        let text = concat!(
            r#"{"$schema":"https://static.modelcontextprotocol.io/schemas/v1/"#,
            r#"server-card.schema.json","name":"a/b","version":"1","description":"x","#,
            r#""repository":{"url":"https://a.example","source":"github"},"icons":[{"src":"x"}],"#,
            r#""remotes":[{"type":"sse","url":"https://{tenant}.example","#,
            r#""variables":{"tenant":{"isRequired":true}},"headers":[{"name":"x-key"}]}],"#,
            r#""_meta":{"com.example/a":1}}"#
        );
        let (card, _) = ServerCard::parse(text.as_bytes()).unwrap();
        assert_eq!(serde_json::to_string(&card).unwrap(), text);
    }

    #[test]
    fn a_card_is_served_below_the_endpoint() {
        let card = card();
        let respond = |method: &str, path: &str| card.respond(&RequestHead::new(method, path));
        let response = respond("GET", "/mcp/server-card").unwrap();
        // Rule: [CARD-026] [CARD-029] [CARD-035] [CARD-036].
        let fields: Vec<_> = response.head.fields().collect();
        for field in [
            ("content-type", "application/mcp-server-card+json"),
            ("cache-control", "public, max-age=3600"),
            ("access-control-allow-origin", "*"),
            ("access-control-allow-methods", "GET"),
            ("access-control-allow-headers", "*"),
            ("access-control-expose-headers", "ETag"),
        ] {
            assert!(fields.contains(&(field.0, field.1.into())), "{fields:?}");
        }
        assert_eq!(ServerCard::parse(&response.body), Ok((card.clone(), Omissions::default())));
        // Published as a file, it may begin with a byte order mark.
        let file = ["\u{feff}".as_bytes(), &response.body].concat();
        assert_eq!(ServerCard::parse(&file), Ok((card.clone(), Omissions::default())));
        assert_eq!(respond("OPTIONS", "/mcp/server-card").unwrap().head.status.0, 204);
        assert_eq!(respond("POST", "/mcp/server-card").unwrap().head.status.0, 405);
        for path in ["/mcp", "/server-card", "/mcp/server-card/", "/other/server-card"] {
            assert_eq!(respond("GET", path), None, "{path}");
        }
    }

    #[test]
    fn a_card_has_the_members_of_the_draft() {
        let card = card().website_url("https://example.com/");
        let card = ServerCard { remotes: card.remotes[..1].to_vec(), ..card };
        assert_eq!(
            serde_json::to_string(&card).unwrap(),
            concat!(
                r#"{"$schema":"https://static.modelcontextprotocol.io/schemas/v1/"#,
                r#"server-card.schema.json","name":"com.example/weather","version":"1.0.0","#,
                r#""description":"Weather at a place","title":"Weather","#,
                r#""websiteUrl":"https://example.com/","remotes":[{"type":"streamable-http","#,
                r#""url":"https://mcp.example.com/mcp","supportedProtocolVersions":["2024-11-05","#,
                r#""2025-03-26","2025-06-18","2025-11-25","2026-07-28"]}]}"#,
            )
        );
    }

    #[test]
    fn the_url_of_a_card_follows_from_that_of_the_server() {
        for (server, card) in [
            ("https://a.example/mcp", "https://a.example/mcp/server-card"),
            ("https://a.example", "https://a.example/server-card"),
            ("https://a.example/x/?y", "https://a.example/x/server-card"),
        ] {
            assert_eq!(ServerCard::url_of(&Location::parse(server).unwrap()), card);
        }
    }

    #[test]
    fn an_invalid_card_is_refused() {
        // Rule: [CARD-003] [CARD-004] [CARD-006] [CARD-007] [CARD-009].
        for version in ["^1.2.3", "~1", ">=1", "1.x", "1.*", &"1".repeat(256)] {
            let refused = ServerCard::new("a/b", version, "x");
            assert!(refused.unwrap_err().reason.contains(version), "{version}");
        }
        assert!(card().title("").unwrap_err().reason.contains("the title"));
        for name in ["", "weather", "a/b/c", "/weather", "com.example/", "com example/x", "é/x"] {
            assert!(ServerCard::new(name, "1", "x").is_err(), "{name}");
        }
        let long = "x".repeat(101);
        for description in ["", &long] {
            assert!(ServerCard::new("a/b", "1", description).is_err());
        }
        assert!(ServerCard::new("a/b", "1", "x").unwrap().remote("mcp.example.com").is_err());
        for document in ["", "[]", "{}"] {
            let parsed = ServerCard::parse(document.as_bytes());
            let reason = parsed.unwrap_err().reason;
            assert!(reason.starts_with("the document is not the card of a server: "), "{document}");
        }
        let card = |schema: &str, name: &str| {
            let members = r#""version":"1","description":"x""#;
            format!(r#"{{"$schema":"{schema}","name":"{name}",{members}}}"#)
        };
        for (card, error) in
            [(card(SCHEMA, "x"), not_a_name("x")), (card("x", "a/b"), unknown_schema("x"))]
        {
            assert_eq!(ServerCard::parse(card.as_bytes()), Err(error));
        }
    }

    #[test]
    fn an_odd_endpoint_is_reported_and_an_error_says_what_is_missing() {
        let members = r#""name":"a/b","version":"1","description":"x","remotes":"#;
        let card = format!(r#"{{"$schema":"{SCHEMA}",{members}"#);
        let endpoint =
            r#"{"type":"sse","url":"https://a.example","supportedProtocolVersions":null}"#;
        for (remotes, count, expected) in [
            ("null", 0, &[][..]),
            (r#"[{"type":"sse"},7,ENDPOINT]"#, 1, &["/remotes/0", "/remotes/1"]),
        ] {
            let text = [&*card, &remotes.replace("ENDPOINT", endpoint), "}"].concat();
            let (card, omissions) = ServerCard::parse(text.as_bytes()).unwrap();
            let omitted: Vec<_> = omissions.iter().map(|it| &*it.pointer).collect();
            assert_eq!((card.remotes.len(), &omitted[..]), (count, expected));
        }
        let error = ServerCard::parse(br#"{"$schema":"x","name":"a/b"}"#).unwrap_err();
        assert!(error.to_string().contains("version"), "{error}");
    }
}
