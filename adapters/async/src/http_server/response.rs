use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use mcp_sansio::http::{Response, ResponseHead};

use super::body::ServedBody;

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

/// Returns a response with a status and no body.
pub(super) fn bare(status: StatusCode) -> http::Response<ServedBody> {
    let mut response = http::Response::new(ServedBody::default());
    *response.status_mut() = status;
    response
}
