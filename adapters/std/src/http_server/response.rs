use http::StatusCode;
use mcp_sansio::http::ResponseHead;

use crate::clock::system_time;

/// How the end of a response's body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Length(usize),
    Chunks,
    /// The connection ends with it.
    Close,
}

/// The bytes of a response's head.
pub(super) fn head_bytes(head: &ResponseHead, ending: Ending, keeps: bool) -> Vec<u8> {
    let mut text = status_line(head.status.0);
    for (name, value) in head.fields() {
        // A value that would end its line does not come from a client as it is; it is left out.
        if !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            push(&mut text, name, &value);
        }
    }
    finish(text, head.status.0, ending, keeps)
}

/// A response of HTTP alone, after which the connection is over.
pub(super) fn bare(status: u16) -> Vec<u8> {
    finish(status_line(status), status, Ending::Length(0), false)
}

fn status_line(status: u16) -> String {
    let known = StatusCode::from_u16(status).ok();
    let reason = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
    format!("HTTP/1.1 {status} {reason}\r\n")
}

fn finish(mut text: String, status: u16, ending: Ending, keeps: bool) -> Vec<u8> {
    push(&mut text, "date", &httpdate::fmt_http_date(system_time()));
    match ending {
        // RFC 9110 section 8.6
        Ending::Length(_) if status == 204 || status == 304 => {}
        Ending::Length(length) => push(&mut text, "content-length", &length.to_string()),
        Ending::Chunks => push(&mut text, "transfer-encoding", "chunked"),
        Ending::Close => {}
    }
    if !keeps {
        push(&mut text, "connection", "close");
    }
    text.push_str("\r\n");
    text.into_bytes()
}

fn push(text: &mut String, name: &str, value: &str) {
    text.extend([name, ": ", value, "\r\n"]);
}
