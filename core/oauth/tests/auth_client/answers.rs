//! Responses of the scripted servers.

use mcp_sansio::http::ExchangeFailure;
use mcp_sansio::jsonrpc::RawJson;

use crate::network::{AS, MCP};
use crate::sent::Sent;

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Reply(Reply),
    Fails(ExchangeFailure),
    /// The request is never answered.
    Silence,
}

impl Reply {
    pub(crate) fn new(status: u16, body: &str) -> Self {
        let json = ("content-type".into(), "application/json".into());
        Self { status, fields: vec![json], body: body.into() }
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

/// Returns a response with status 200 and this body, as JSON.
pub(crate) fn ok(body: &str) -> Answer {
    Reply::new(200, body).into()
}

pub(crate) fn status(status: u16) -> Answer {
    Reply::new(status, "").into()
}

/// Returns an OAuth error response.
pub(crate) fn error(status: u16, code: &str) -> Answer {
    Reply::new(status, &format!(r#"{{"error":"{code}"}}"#)).into()
}

/// Returns a 401 or 403 with this challenge.
pub(crate) fn challenge(status: u16, challenge: &str) -> Answer {
    Reply::new(status, "").field("WWW-Authenticate", challenge).into()
}

/// Returns a bearer token with this value; `rest` is added to the members: `,"expires_in":60`.
pub(crate) fn token(name: &str, rest: &str) -> Answer {
    ok(&format!(r#"{{"access_token":"{name}","token_type":"Bearer"{rest}}}"#))
}

/// Returns metadata of a resource at `MCP`; `rest` is added to the members.
pub(crate) fn resource(rest: &str) -> Answer {
    ok(&format!(r#"{{"resource":"{MCP}","authorization_servers":["{AS}"]{rest}}}"#))
}

/// Returns metadata of an authorization server; `rest` is added to the members.
pub(crate) fn issuer(issuer: &str, rest: &str) -> Answer {
    ok(&format!(
        r#"{{"issuer":"{issuer}","authorization_endpoint":"{issuer}/authorize","token_endpoint":"{issuer}/token","code_challenge_methods_supported":["S256"]{rest}}}"#
    ))
}

/// Returns the response of an MCP server that accepts the token.
pub(crate) fn mcp_answer(request: &Sent) -> Answer {
    if request.method != "POST" {
        return status(405);
    }
    let message = RawJson::parse(&request.body).expect("a message");
    let Some(id) = message.get("id") else { return status(202) };
    let result = match &*request.asks() {
        "server/discover" => {
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#
        }
        "initialize" => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#
        }
        _ => r#"{"resultType":"complete","content":[]}"#,
    };
    let reply = Reply::new(200, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    reply.field("mcp-session-id", "s1").into()
}
