//! What holds of everything that a machine sends, whatever came in.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sansio::jsonrpc::{Frame, Message, ParseLimits, RequestId, parse};
use mcp_sansio::peer::Limits;

/// Looks over both directions of a connection.
#[derive(Debug)]
pub(super) struct ConformanceChecker {
    /// How the machine reads: a message that goes too deep is told from one that is no JSON by what
    /// comes first.
    limits: ParseLimits,
    /// How often each id came with what may be answered under it.
    asked: BTreeMap<Option<RequestId>, usize>,
    /// How often each was answered.
    answered: BTreeMap<Option<RequestId>, usize>,
    /// Ids of requests that this side sent.
    used: BTreeSet<RequestId>,
}

impl ConformanceChecker {
    /// Of a machine with these limits.
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            // What is refused for its long id is answered under it.
            limits: ParseLimits {
                depth: limits.depth_max,
                batch: usize::MAX,
                id_length: usize::MAX,
            },
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            used: BTreeSet::new(),
        }
    }

    /// Takes note of a frame that comes in.
    ///
    /// What is refused as a whole is answered once, without an id.
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

    /// Takes note of something that is no frame.
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

    /// Judges what is sent: whole lines of one message or batch each.
    pub(super) fn check_lines(&mut self, bytes: &[u8]) {
        let lines = bytes.strip_suffix(b"\n").expect("whole lines");
        for line in lines.split(|byte| *byte == b'\n') {
            assert!(!line.contains(&b'\r'), "a carriage return in {}", shown(line));
            self.check(line);
        }
    }

    /// Judges one frame that is sent.
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

    /// How many answers were sent.
    pub(super) fn answers(&self) -> usize {
        self.answered.values().sum()
    }
}

/// Panics unless a frame is a message or a batch of messages.
pub(super) fn check_form(frame: &[u8]) {
    for_each_message(frame, |_| {});
}

fn for_each_message(frame: &[u8], mut check: impl FnMut(&Message<'_>)) {
    let unlimited =
        ParseLimits { batch: usize::MAX, id_length: usize::MAX, ..ParseLimits::default() };
    match parse(frame, unlimited) {
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
