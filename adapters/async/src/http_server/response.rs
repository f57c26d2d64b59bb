use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use mcp_sansio::http::{Response, ResponseHead};

use super::send_body::ServedBody;

/// Converts a complete response.
pub(super) fn whole(response: Response) -> http::Response<ServedBody> {
    with_head(&response.head, ServedBody::whole(response.body))
}

pub(super) fn with_head(head: &ResponseHead, body: ServedBody) -> http::Response<ServedBody> {
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.status.0).unwrap_or_default();
    for (name, value) in head.fields() {
        let (name, value) = match (name, head.content) {
            // The most common field, without a copy.
            ("content-type", Some(content)) => {
                (CONTENT_TYPE, HeaderValue::from_static(content.media_type()))
            }
            _ => match HeaderValue::from_str(&value) {
                Ok(value) => (HeaderName::from_static(name), value),
                Err(_) => continue,
            },
        };
        response.headers_mut().insert(name, value);
    }
    response
}

/// Encodes a response for a connection of HTTP/1.1 that closes after it.
pub(super) fn http1_bytes(response: &Response) -> Vec<u8> {
    let Response { head, body, .. } = response;
    let status = StatusCode::from_u16(head.status.0).unwrap_or_default();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_str());
    for (name, value) in head.fields() {
        text.extend([name, ": ", &value, "\r\n"]);
    }
    text.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()));
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Returns a response with a status and no body.
pub(super) fn bare(status: StatusCode) -> http::Response<ServedBody> {
    let mut response = http::Response::new(ServedBody::default());
    *response.status_mut() = status;
    response
}
