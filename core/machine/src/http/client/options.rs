use alloc::string::String;

use bytestring::ByteString;

use crate::Backoff;
use crate::binding::{HeaderFields, InvalidHeader, is_token_byte};
use crate::http::Location;
use crate::protocol::Implementation;

use super::ClientLimits;

/// The server URL and the HTTP options of a client.
#[derive(Clone, Debug)]
pub struct HttpClientOptions {
    pub(crate) url: Location,
    pub(crate) headers: HeaderFields,
    pub(crate) limits: ClientLimits,
    pub(crate) backoff: Backoff,
    pub(crate) lost_session: LostSession,
    pub(crate) listen: bool,
    pub(crate) old_transport: bool,
}

/// How to end calls that are in flight when the server ends the session.
///
/// A call that the server refused because its session had ended did not run: it is sent again in
/// the new session in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LostSession {
    /// They end with [`TransportFailure::SessionLost`](crate::peer::TransportFailure::SessionLost),
    /// because it is unknown whether they ran.
    #[default]
    FailCalls,
    /// They are sent again in the new session. For servers whose tools may run twice.
    RepeatCalls,
}

impl HttpClientOptions {
    /// Options for the server at `url`, its MCP endpoint or the SSE endpoint of an old server.
    #[must_use]
    pub const fn new(url: Location) -> Self {
        Self {
            url,
            headers: HeaderFields::new(),
            limits: ClientLimits::DEFAULT,
            backoff: Backoff::DEFAULT,
            lost_session: LostSession::FailCalls,
            listen: true,
            old_transport: true,
        }
    }

    /// Returns the server URL.
    #[must_use]
    pub const fn url(&self) -> &Location {
        &self.url
    }

    /// Adds a header field to each request to the server: an API key, a static token, the name of
    /// a tenant. It replaces a field of the same name. A token that the host obtains with OAuth
    /// replaces an `Authorization` field.
    ///
    /// It is never sent to another origin: the client does not follow redirects there, and requests
    /// to an authorization server contain no field but `User-Agent`, which by default has the names
    /// and versions of the client and this library. Recordings do not contain it, and `Debug` omits
    /// its value.
    ///
    /// # Errors
    ///
    /// The name or the value is invalid, or the protocol, HTTP or the adapter determines this
    /// field: `Mcp-*`, `Content-*`, `Proxy-*`, `Host`, `Accept` and so on.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, InvalidHeader> {
        self.headers.insert(name, value)?;
        Ok(self)
    }

    /// Adds the names and versions of the client and of this library as `User-Agent`, unless the
    /// application has set it.
    // RFC 9110, section 10.1.5: "A user agent SHOULD send a User-Agent header field in each
    // request". Some firewalls refuse requests without it.
    pub(super) fn identified_as(mut self, client: &Implementation) -> Self {
        if !self.headers.contains(USER_AGENT) {
            self.headers.0.push((USER_AGENT.into(), ByteString::from(products(client))));
        }
        self
    }

    /// Sets the limits on the resources that the server can use.
    #[must_use]
    pub const fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the delays between attempts to reopen a lost stream.
    #[must_use]
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how to end calls that are in flight when the server ends the session.
    #[must_use]
    pub const fn lost_session(mut self, lost_session: LostSession) -> Self {
        self.lost_session = lost_session;
        self
    }

    /// Sets whether to open a separate stream for messages of a legacy server that belong to no
    /// request; on by default. Without it, requests and notifications of such a server arrive only
    /// on the streams of calls.
    // MCP 2025-11-25 basic/transports#listening-for-messages-from-the-server [HCLI-007]
    #[must_use]
    pub const fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Sets whether to try the HTTP+SSE transport of 2024-11-05 if a server refuses the handshake;
    /// on by default.
    ///
    /// Deprecated by the specification in 2025-03-26, and removed when its policy for deprecated
    /// features has been final for three months: servers use Streamable HTTP.
    // MCP 2026-07-28 basic/transports/streamable-http#httpsse-transport-2024-11-05 [LSSE-009]
    #[must_use]
    pub const fn old_transport(mut self, old_transport: bool) -> Self {
        self.old_transport = old_transport;
        self
    }
}

const USER_AGENT: &str = "user-agent";

/// Returns the names and versions of a client and of this library as products of `User-Agent`,
/// which consist of tokens.
fn products(client: &Implementation) -> String {
    let library = concat!("mcp-sansio/", env!("CARGO_PKG_VERSION"));
    let length = client.name.len() + client.version.len() + library.len() + 2;
    let mut text = String::with_capacity(length);
    for part in [&client.name, &client.version].into_iter().take_while(|it| !it.is_empty()) {
        if !text.is_empty() {
            text.push('/');
        }
        let allowed = |it: char| u8::try_from(it).is_ok_and(is_token_byte);
        text.extend(part.chars().take(64).map(|it| if allowed(it) { it } else { '-' }));
    }
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(library);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_agent_consists_of_tokens() {
        let client = |name: &str, version: &str| {
            let products = products(&Implementation::new(name, version));
            let library = concat!("mcp-sansio/", env!("CARGO_PKG_VERSION"));
            String::from(products.strip_suffix(library).expect("the library"))
        };
        assert_eq!(client("demo", "1.0.0"), "demo/1.0.0 ");
        assert_eq!(client("Caf\u{e9} (Pro)/x\r\ny", "2\u{2603}b"), "Caf---Pro--x--y/2-b ");
        assert_eq!(client("demo", ""), "demo ");
        assert_eq!(client("", "1"), "");
        assert_eq!(client(&"x".repeat(1_000), "1").len(), 67);
    }
}
