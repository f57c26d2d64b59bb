use crate::clock::system_time;
use http::StatusCode;

/// How the end of a response body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Length(u64),
    Chunks,
    /// The connection closes after it.
    Close,
}

/// Encodes the head of a response.
pub(super) fn head_bytes(
    head: &http::response::Parts,
    ending: Ending,
    keep_alive: bool,
) -> Vec<u8> {
    let mut text = status_line(head.status);
    for (name, value) in &head.headers {
        if let Ok(value) = value.to_str() {
            push(&mut text, name.as_str(), value);
        }
    }
    finish(text, head.status, ending, keep_alive)
}

/// Encodes a response with a status and no body, after which the connection closes.
pub(super) fn bare(status: StatusCode) -> Vec<u8> {
    finish(status_line(status), status, Ending::Length(0), false)
}

fn status_line(status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or_default();
    format!("HTTP/1.1 {} {reason}\r\n", status.as_str())
}

fn finish(mut text: String, status: StatusCode, ending: Ending, keep_alive: bool) -> Vec<u8> {
    push(&mut text, "date", &httpdate::fmt_http_date(system_time()));
    match ending {
        // RFC 9110 section 8.6
        Ending::Length(_)
            if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => {}
        Ending::Length(length) => push(&mut text, "content-length", &length.to_string()),
        Ending::Chunks => push(&mut text, "transfer-encoding", "chunked"),
        Ending::Close => {}
    }
    if !keep_alive {
        push(&mut text, "connection", "close");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn push(text: &mut String, name: &str, value: &str) {
    text.extend([name, ": ", value, "\r\n"]);
}
