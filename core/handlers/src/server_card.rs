//! The card of a server on HTTP, from the draft SEP-2127.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcp_sansio::http::{Content, InvalidUrl, Location, RequestHead, Response, ResponseHead};
use mcp_sansio::peer::Status;
use mcp_sansio::{Revision, Revisions};
use serde::{Deserialize, Serialize};

use super::server::Server;
use super::threading::Threading;

/// The schema of a card.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// The suffix of a card's URL, after the URL of its server.
const SUFFIX: &str = "/server-card";
/// The bounds of the draft, in characters.
const NAME_LENGTH_MAX: usize = 200;
const DESCRIPTION_LENGTH_MAX: usize = 100;

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
///     .title("Weather")
///     .remote("https://mcp.example.com/mcp")?;
/// // GET https://mcp.example.com/mcp/server-card
/// let server = Server::new("weather", "1.0.0").card(card);
/// # let _ = server;
/// # Ok::<(), mcp_sansio_handlers::InvalidServerCard>(())
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
    /// Where to connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<RemoteEndpoint>,
}

/// An endpoint of a [`ServerCard`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RemoteEndpoint {
    /// The transport: `streamable-http` or `sse`.
    #[serde(rename = "type")]
    pub transport: String,
    /// The URL, which may be a template with variables in braces.
    pub url: String,
    /// The revisions of the protocol that it supports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supported_protocol_versions: Vec<String>,
}

/// Why a card is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidServerCard {
    /// The name is not a namespace and a name, in letters, digits and `.-_`. The caller's error.
    #[error("`{0}` is not the name of a server, such as `com.example/weather`")]
    Name(String),
    /// The description is empty or longer than 100 characters. The caller's error.
    #[error("the description of a server has 1 to 100 characters")]
    Description,
    /// The URL of an endpoint is invalid. The caller's error.
    #[error("not the URL of a server: {0}")]
    Url(#[from] InvalidUrl),
    /// A document is not a card. The error of the server that it is from.
    #[error("the document is not the card of a server")]
    Malformed,
}

impl ServerCard {
    /// Creates a card without endpoints.
    ///
    /// # Errors
    ///
    /// The caller's error: [`InvalidServerCard::Name`] or [`InvalidServerCard::Description`].
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        description: impl Into<String>,
    ) -> Result<Self, InvalidServerCard> {
        let (name, description) = (name.into(), description.into());
        if !is_name(&name) {
            return Err(InvalidServerCard::Name(name));
        }
        if !(1..=DESCRIPTION_LENGTH_MAX).contains(&description.chars().count()) {
            return Err(InvalidServerCard::Description);
        }
        Ok(Self {
            schema: SCHEMA.to_string(),
            name,
            version: version.into(),
            description,
            title: None,
            website_url: None,
            remotes: Vec::new(),
        })
    }

    /// Sets the name to display.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
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
    /// The caller's error: [`InvalidServerCard::Url`].
    pub fn remote(self, url: &str) -> Result<Self, InvalidServerCard> {
        self.remote_with(url, Revisions::ALL)
    }

    /// Like [`remote`](Self::remote), with the revisions that the server is limited to.
    ///
    /// # Errors
    ///
    /// Those of [`remote`](Self::remote).
    pub fn remote_with(
        mut self,
        url: &str,
        revisions: Revisions,
    ) -> Result<Self, InvalidServerCard> {
        Location::parse(url)?;
        let revisions = Revision::ALL.into_iter().filter(|it| revisions.contains(*it));
        self.remotes.push(RemoteEndpoint {
            transport: "streamable-http".to_string(),
            url: url.to_string(),
            supported_protocol_versions: revisions.map(|it| it.as_str().to_string()).collect(),
        });
        Ok(self)
    }

    /// Returns the URL at which the server at `server` has its card, unless it is elsewhere.
    #[must_use]
    pub fn url_of(server: &Location) -> String {
        let target = server.path_and_query().split('?').next().unwrap_or_default();
        let path = target.strip_suffix('/').unwrap_or(target);
        alloc::format!("{}{path}{SUFFIX}", server.origin())
    }

    /// Parses a card. Members that this type does not have are ignored.
    ///
    /// # Errors
    ///
    /// [`InvalidServerCard::Malformed`]: the fault of the server.
    pub fn parse(document: &[u8]) -> Result<Self, InvalidServerCard> {
        let card: Self =
            serde_json::from_slice(document).map_err(|_| InvalidServerCard::Malformed)?;
        if is_name(&card.name) { Ok(card) } else { Err(InvalidServerCard::Malformed) }
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
            "GET" => Response::new(
                ResponseHead::new(Status::OK, Some(Content::ServerCard)),
                serde_json::to_vec(self).ok()?,
            ),
            // A browser's preflight request.
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
    use super::*;

    fn card() -> ServerCard {
        let card = ServerCard::new("com.example/weather", "1.0.0", "Weather at a place").unwrap();
        card.title("Weather").remote("https://mcp.example.com/mcp").unwrap()
    }

    #[test]
    fn a_card_is_served_below_the_endpoint() {
        let card = card();
        let respond = |method: &str, path: &str| card.respond(&RequestHead::new(method, path));
        let response = respond("GET", "/mcp/server-card").unwrap();
        let fields: Vec<_> = response.head.fields().collect();
        for field in [
            ("content-type", "application/mcp-server-card+json"),
            ("cache-control", "public, max-age=3600"),
            ("access-control-allow-origin", "*"),
        ] {
            assert!(fields.contains(&(field.0, field.1.into())), "{fields:?}");
        }
        assert_eq!(ServerCard::parse(&response.body), Ok(card.clone()));
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
        for name in ["", "weather", "a/b/c", "/weather", "com.example/", "com example/x", "é/x"] {
            assert!(ServerCard::new(name, "1", "x").is_err(), "{name}");
        }
        let long = "x".repeat(101);
        for description in ["", &long] {
            assert!(ServerCard::new("a/b", "1", description).is_err());
        }
        assert!(ServerCard::new("a/b", "1", "x").unwrap().remote("mcp.example.com").is_err());
        for document in
            ["", "[]", "{}", r#"{"$schema":"x","name":"x","version":"1","description":"x"}"#]
        {
            let parsed = ServerCard::parse(document.as_bytes());
            assert_eq!(parsed, Err(InvalidServerCard::Malformed), "{document}");
        }
    }
}
