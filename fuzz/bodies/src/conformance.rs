//! Properties of all messages that a machine sends, for any input.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::jsonrpc::{Frame, Message, RequestId, parse};
use mcp_sansio::peer::Limits;

/// Checks both directions of a connection.
#[derive(Debug)]
pub(super) struct ConformanceChecker {
    /// The limits of the machine's parser: whether a message is nested too deeply or is not JSON
    /// depends on which error comes first.
    limits: ParseLimits,
    /// How many requests or errors were received for each id.
    asked: BTreeMap<Option<RequestId>, usize>,
    /// How many responses were sent for each id.
    answered: BTreeMap<Option<RequestId>, usize>,
    /// Ids of requests that this side has sent.
    used: BTreeSet<RequestId>,
}

impl ConformanceChecker {
    /// Creates a checker for a machine with these limits.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: unlimited(limits.depth_max),
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            used: BTreeSet::new(),
        }
    }

    /// Records an incoming frame.
    ///
    /// A frame refused as a whole is answered once, without an id.
    pub(super) fn receive(&mut self, frame: &[u8]) {
        self.ask(None);
        match parse(frame, self.limits) {
            Ok(Frame::Single(message)) => self.note(&message),
            Ok(Frame::Batch(batch)) => {
                for element in batch {
                    match element {
                        Ok(message) => self.note(&message),
                        Err(malformed) => self.ask(malformed.id),
                    }
                }
            }
            Err(malformed) => self.ask(malformed.id),
        }
    }

    /// Records a framing error.
    pub(super) fn receive_error(&mut self) {
        self.ask(None);
    }

    fn note(&mut self, message: &Message<'_>) {
        if let Message::Request(request) = message {
            self.ask(Some(request.id.clone()));
        }
    }

    fn ask(&mut self, id: Option<RequestId>) {
        *self.asked.entry(id).or_default() += 1;
    }

    /// Checks outgoing bytes: whole lines of one message or batch each.
    pub(super) fn check_lines(&mut self, bytes: &[u8]) {
        let lines = bytes.strip_suffix(b"\n").expect("whole lines");
        for line in lines.split(|byte| *byte == b'\n') {
            assert!(!line.contains(&b'\r'), "a carriage return in {}", shown(line));
            self.check(line);
        }
    }

    /// Checks one outgoing frame.
    pub(super) fn check(&mut self, frame: &[u8]) {
        for_each_message(frame, |message| self.check_message(message));
    }

    fn check_message(&mut self, message: &Message<'_>) {
        match message {
            Message::Request(request) => {
                assert!(self.used.insert(request.id.clone()), "an id twice: {}", request.id);
            }
            Message::Notification(_) => {}
            Message::Response(response) => {
                let count = self.answered.entry(response.id.clone()).or_default();
                *count += 1;
                let asked = self.asked.get(&response.id).copied().unwrap_or_default();
                assert!(*count <= asked, "{:?} is answered {count} times", response.id);
            }
        }
    }

    /// Returns the number of responses sent.
    pub(super) fn answers(&self) -> usize {
        self.answered.values().sum()
    }
}

/// Panics unless a frame is a message or a batch of messages.
pub(super) fn check_form(frame: &[u8]) {
    for_each_message(frame, |_| {});
}

/// Returns limits for output. A request refused for its long id is answered with that id.
fn unlimited(depth: usize) -> ParseLimits {
    let mut limits = ParseLimits::default();
    (limits.depth, limits.batch, limits.id_length) = (depth, usize::MAX, usize::MAX);
    limits
}

fn for_each_message(frame: &[u8], mut check: impl FnMut(&Message<'_>)) {
    match parse(frame, unlimited(ParseLimits::DEPTH_MAX)) {
        Ok(Frame::Single(message)) => check(&message),
        Ok(Frame::Batch(batch)) => {
            for element in batch {
                check(&element.unwrap_or_else(|e| panic!("{e}: {}", shown(frame))));
            }
        }
        Err(malformed) => panic!("{malformed}: {}", shown(frame)),
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
