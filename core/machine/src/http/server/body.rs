//! The parsed body of a request.

use crate::jsonrpc::{Frame, Malformed, Message, ParseLimits, RawJson};
use crate::peer::metadata::{self, CachedPrefix, Metadata, Read};
use crate::protocol::Method;

/// The parsed body of a request, including the parameters of its message.
///
/// Access checks and the machine use the same value: the parameters of a single request are read
/// when it is parsed, each member once. Those of a batch are read when each of its messages is
/// handled, always by the same parser, which refuses JSON that another parser could read
/// differently.
#[derive(Debug)]
pub struct ParsedBody<'f> {
    pub(super) frame: Frame<'f>,
    /// The parameters of a single request.
    pub(super) read: Option<Read<'f>>,
}

impl<'f> ParsedBody<'f> {
    /// Parses a body. Linear in its length.
    ///
    /// # Errors
    ///
    /// The body contains no valid message. See [`parse`].
    ///
    /// [`parse`]: crate::jsonrpc::parse
    pub fn parse(body: &'f [u8], limits: ParseLimits) -> Result<Self, Malformed> {
        Self::parse_after(body, limits, CachedPrefix::default())
    }

    /// Parses a body when the metadata of the last modern client is known: see
    /// [`Metadata::read_after`].
    pub(super) fn parse_after(
        body: &'f [u8],
        limits: ParseLimits,
        prefix: CachedPrefix<'_>,
    ) -> Result<Self, Malformed> {
        let mut read = None;
        let frame = metadata::parse(body, limits, prefix, &mut read)?;
        if let (Frame::Single(Message::Request(_)), None) = (&frame, &read) {
            read = Some(Metadata::read(&RawJson::EMPTY_OBJECT));
        }
        Ok(Self { frame, read })
    }

    /// Returns the messages in the body.
    #[must_use]
    pub const fn frame(&self) -> &Frame<'f> {
        &self.frame
    }

    /// Calls `show` for each request, with its method and the item that it names. A request with
    /// invalid parameters is shown without an item. `subscriptions/listen` is shown without an item,
    /// and once more for each resource that it subscribes to.
    pub fn for_each_request(&self, mut show: impl FnMut(&str, Option<&str>)) {
        let mut one = |method: &str, read: &Read<'_>, params: Option<&RawJson<'_>>| {
            let known = Method::parse(method);
            let read = read.as_ref().ok();
            if known == Some(Method::SubscriptionsListen) {
                show(method, None);
                let filter =
                    params.filter(|_| read.is_some()).and_then(|it| it.get("notifications"));
                if let Some(uris) = filter.as_ref().and_then(|it| it.get("resourceSubscriptions")) {
                    uris.for_each_element(|uri| {
                        if let Some(uri) = uri.to_text() {
                            show(method, Some(&uri));
                        }
                    });
                }
                return;
            }
            show(method, known.and_then(|method| read?.subject(method)));
        };
        match (&self.frame, &self.read) {
            (Frame::Single(Message::Request(request)), Some(read)) => {
                one(&request.method, read, request.params.as_ref());
            }
            (Frame::Batch(batch), _) => {
                for message in batch.clone() {
                    if let Ok(Message::Request(request)) = message {
                        let params = request.params.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT);
                        one(&request.method, &Metadata::read(params), Some(params));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The parsed body that a machine consumes. The metadata is borrowed, because it is too large to be
/// moved.
pub(super) struct Body<'m, 'f> {
    pub(super) frame: Result<Frame<'f>, Malformed>,
    pub(super) read: Option<&'m mut Read<'f>>,
}
