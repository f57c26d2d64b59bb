use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http_body::Body;
use mcp_sansio::http::RequestHead;

/// The head of a request as the machine takes it.
pub(super) fn head_of(parts: &http::request::Parts) -> RequestHead<'_> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let mut head = RequestHead::new(parts.method.as_str(), target);
    // HTTP/2 has the host in the target.
    if let Some(authority) = parts.uri.authority() {
        head.field("host", authority.as_str().as_bytes());
    }
    for (name, value) in &parts.headers {
        head.field(name.as_str(), value.as_bytes());
    }
    head
}

/// A body that is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// There is more of it than there may be.
    TooLong,
    /// It breaks off. What there is of it may happen to be a message, but not the client's.
    Broken,
}

/// Reads a body, as far as it may go.
pub(super) async fn read_body<B: Body>(
    mut body: Pin<&mut B>,
    most: usize,
) -> Result<Bytes, Unusable> {
    if body.size_hint().lower() > most as u64 {
        return Err(Unusable::TooLong);
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        let frame = frame.map_err(|_| Unusable::Broken)?;
        let Ok(mut data) = frame.into_data() else { continue };
        let length = data.remaining();
        if first.len() + rest.len() + length > most {
            return Err(Unusable::TooLong);
        }
        if first.is_empty() && rest.is_empty() {
            // The common case, which copies nothing.
            first = data.copy_to_bytes(length);
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.put(data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
