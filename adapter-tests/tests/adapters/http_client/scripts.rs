//! Common server scripts.

use mcp_sansio_tokio::{Host, Revision, Revisions};

use super::server::{Action, RecordedRequest, answer, respond};

pub(crate) fn host() -> Host {
    Host::new("host", "1")
}

/// Returns a host that does not probe for a modern server.
pub(crate) fn legacy_host() -> Host {
    host().revisions(Revisions::only(Revision::V2025_11_25))
}

/// Answers as a modern server. `rest` answers all other requests.
pub(crate) fn modern(
    asked: &RecordedRequest,
    rest: impl Fn(&RecordedRequest) -> Vec<Action>,
) -> Vec<Action> {
    if asked.is("tools/list") {
        let none = r#"{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}"#;
        return answer(asked, "", none);
    }
    if !asked.is("server/discover") {
        return rest(asked);
    }
    answer(
        asked,
        "",
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#,
    )
}

/// Answers as a legacy server with sessions and without a listening stream. `rest` answers all
/// other requests.
pub(crate) fn legacy(
    asked: &RecordedRequest,
    session: &str,
    rest: impl Fn(&RecordedRequest) -> Vec<Action>,
) -> Vec<Action> {
    if asked.is("server/discover") {
        respond(400, "content-type: text/plain\r\n", "Bad Request: no session")
    } else if asked.is("initialize") {
        answer(
            asked,
            &format!("Mcp-Session-Id: {session}\r\n"),
            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}"#,
        )
    } else if asked.is("notifications/initialized") {
        respond(202, "", "")
    } else if asked.method == "GET" && asked.field("last-event-id").is_none() {
        respond(405, "", "")
    } else if asked.method == "DELETE" {
        respond(200, "", "")
    } else {
        rest(asked)
    }
}

/// Returns a tool result.
pub(crate) fn said(text: &str) -> String {
    format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":"{text}"}}]}}"#)
}

/// Returns an event with the response to a request.
pub(crate) fn answer_event(asked_id: &str, text: &str) -> String {
    let result = said(text);
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{asked_id},\"result\":{result}}}\n\n")
}

/// Returns the progress token of the request.
pub(crate) fn progress_token(asked: &RecordedRequest) -> String {
    let (_, rest) =
        asked.body.split_once("\"progressToken\":").expect("the request has a progress token");
    rest[..rest.find([',', '}']).unwrap_or(rest.len())].to_owned()
}

pub(crate) fn progress_event(token: &str, progress: u32) -> String {
    format!(
        "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\
         \"params\":{{\"progressToken\":{token},\"progress\":{progress}}}}}\n\n"
    )
}
