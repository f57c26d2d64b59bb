use crate::conformance::ConformanceChecker;
use mcp_sansio::framing::SseDecoder;
use mcp_sansio::http::{Content, ResponseHead};
use mcp_sansio::peer::Limits;
use mcp_sansio::peer::Status;

use super::heads::check_fields;

/// The data received on an exchange.
pub(super) struct Reply {
    pub(super) head: Option<ResponseHead>,
    pub(super) body: Vec<u8>,
    pub(super) over: bool,
    /// Checks the response against the body of the request.
    pub(super) conformance: ConformanceChecker,
    /// Whether the request is not a message that a client sends at the modern revision.
    pub(super) unwanted: bool,
}

impl Reply {
    /// Creates an empty reply of a machine with these limits.
    pub(super) fn new(limits: &Limits, unwanted: bool) -> Self {
        let conformance = ConformanceChecker::new(limits);
        Self { head: None, body: Vec::new(), over: false, conformance, unwanted }
    }

    /// Checks the reply, and returns the id of the session that it opens.
    pub(super) fn check(&mut self) -> Option<String> {
        let head = self.head.as_ref()?;
        check_fields(head.fields().map(|(_, value)| value.into_owned()));
        let refused = [Status::BAD_REQUEST, Status::CONTENT_TOO_LARGE].contains(&head.status);
        assert!(!self.unwanted || refused, "{:?} to what no client sends", head.status);
        let named = head.fields().find(|(name, _)| *name == "mcp-session-id");
        let mut session = named.map(|(_, value)| value.into_owned()).filter(|_| self.over);
        match head.content {
            None => assert!(self.body.is_empty(), "a body of no kind"),
            Some(Content::Json) if self.over => self.conformance.check(&self.body),
            Some(Content::Json) => {}
            Some(Content::EventStream) => {
                // It accepts no more at a time than it has space for.
                let mut decoder = SseDecoder::growing(1 << 20);
                let mut rest = self.body.as_slice();
                while !rest.is_empty() {
                    let taken = decoder.feed(rest);
                    assert!(taken > 0, "no space although every event was taken");
                    rest = &rest[taken..];
                    while let Some(event) = decoder.next_event() {
                        let event = event.expect("the event is within the limit");
                        if event.event == "endpoint" {
                            let target = std::str::from_utf8(event.data).expect("a URL is ASCII");
                            session = target.split_once("sessionId=").map(|(_, name)| name.into());
                        }
                    }
                }
            }
            Some(other) => panic!("a body of {other:?}"),
        }
        session
    }
}
