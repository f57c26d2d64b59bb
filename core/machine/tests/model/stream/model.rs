//! The events that a client receives on a resumed stream.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::Outcome;
use crate::transcript::Subject;

use super::operation::{Operation, Setting};

pub(super) struct Model {
    kept: usize,
    /// The first is the standalone stream, the others belong to one call each.
    streams: Vec<Stream>,
    /// The number of exchanges.
    exchanges: usize,
    /// Exchanges that the client does not read for now.
    stalled: BTreeSet<usize>,
    /// Output of each exchange that the client has not read.
    said: BTreeMap<usize, Vec<String>>,
    steps: u32,
}

#[derive(Default)]
struct Stream {
    /// All events of the stream, by number. An event may have only an id.
    events: Vec<String>,
    /// The number of the first event that is kept.
    first: usize,
    /// How many events its readers have received. A reader without an event id continues there.
    taken: usize,
    /// The exchange of the stream.
    reader: Option<usize>,
    answered: bool,
    /// The numbers of the events that the client received, in the order of receipt.
    seen: Vec<usize>,
}

impl Model {
    pub(super) fn new(setting: &Setting) -> Self {
        Self {
            kept: setting.kept,
            streams: vec![Stream::default()],
            exchanges: 0,
            stalled: BTreeSet::new(),
            said: BTreeMap::new(),
            steps: 0,
        }
    }

    fn exchange(&mut self) -> usize {
        self.exchanges += 1;
        self.exchanges - 1
    }

    fn say(&mut self, exchange: usize, what: impl Into<String>) {
        self.said.entry(exchange).or_default().push(what.into());
    }

    /// Adds an event to a stream, once and to no other stream.
    // [HSRV-016] [HSRV-017] [RESUME-007] [SSE-011] [CANC-012].
    fn push(&mut self, number: usize, event: String) {
        let stream = &mut self.streams[number];
        // [SSE-005]: the stream starts with an id.
        if stream.events.is_empty() {
            stream.events.push("an id".into());
        }
        stream.events.push(event);
        self.deliver(number);
    }

    /// Applies the limit of kept events: the latest ones, and those that a connected reader has not
    /// received.
    fn drop_old(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        let had = if stream.reader.is_some() { stream.taken } else { stream.events.len() };
        stream.first = stream.first.max(had.saturating_sub(self.kept));
    }

    /// Sends the reader all events that it has not received, in order and without a gap.
    // [RESUME-006] [SSE-001] [SSE-004].
    fn deliver(&mut self, number: usize) {
        let stream = &mut self.streams[number];
        let Some(reader) = stream.reader.filter(|it| !self.stalled.contains(it)) else {
            return self.drop_old(number);
        };
        let fresh: Vec<_> = stream.events[stream.taken..].to_vec();
        stream.seen.extend(stream.taken..stream.events.len());
        stream.taken = stream.events.len();
        self.drop_old(number);
        let stream = &mut self.streams[number];
        let over = stream.answered;
        if over {
            stream.reader = None;
        }
        fresh.into_iter().for_each(|event| self.say(reader, event));
        if over {
            self.say(reader, "end");
        }
    }

    /// Attaches a new exchange to a stream, starting at an event. The old exchange, which must have
    /// broken, ends.
    fn attach(&mut self, number: usize, exchange: usize, from: usize) {
        self.say(exchange, "200");
        if let Some(before) = self.streams[number].reader.replace(exchange) {
            self.say(before, "end");
        }
        self.streams[number].taken = from;
        self.deliver(number);
    }

    /// Attaches a reader without an event id. It gets the events that were not received, or an id
    /// to resume from.
    // [HSRV-013] [SSE-005] [RESUME-001].
    fn attach_anew(&mut self, number: usize, exchange: usize) {
        let stream = &mut self.streams[number];
        let from = stream.taken.max(stream.first);
        if from == stream.events.len() {
            stream.events.push("an id".into());
        }
        self.attach(number, exchange, from);
    }

    // [RESUME-004] [RESUME-005] [RESUME-006] [RESUME-007].
    fn resume(&mut self, number: usize, back: usize) {
        let stream = &self.streams[number];
        let Some(last) = stream.seen.len().checked_sub(1 + back) else { return };
        let from = stream.seen[last] + 1;
        let lost = from < stream.first;
        let exchange = self.exchange();
        if lost {
            // The loss is reported.
            self.say(exchange, "410");
        } else {
            self.attach(number, exchange, from);
        }
    }

    fn carried_by(&self, exchange: usize) -> Option<usize> {
        self.streams.iter().position(|stream| stream.reader == Some(exchange))
    }

    fn call(&self, number: usize) -> Option<usize> {
        Some(1 + number.checked_rem(self.streams.len() - 1)?)
    }
}

impl Subject<Operation> for Model {
    fn apply(&mut self, operation: &Operation) -> Outcome {
        self.steps += 1;
        let (step, none) = (self.steps, Outcome::default());
        match *operation {
            Operation::Post => {
                let exchange = self.exchange();
                self.streams.push(Stream::default());
                self.attach_anew(self.streams.len() - 1, exchange);
            }
            Operation::Listen => {
                let exchange = self.exchange();
                self.attach_anew(0, exchange);
            }
            Operation::Resume { stream, back } => self.resume(stream % self.streams.len(), back),
            // [RESUME-002].
            Operation::Invent => {
                let exchange = self.exchange();
                self.say(exchange, "400");
            }
            // [SSE-011] [CANC-012]: the call continues.
            Operation::Break(exchange) => {
                let Some(exchange) = exchange.checked_rem(self.exchanges) else { return none };
                self.stalled.remove(&exchange);
                self.said.remove(&exchange);
                if let Some(number) = self.carried_by(exchange) {
                    self.streams[number].reader = None;
                    // A completed stream gets no more events.
                    if !self.streams[number].answered {
                        self.drop_old(number);
                    }
                }
            }
            Operation::Stall(exchange) => {
                let Some(exchange) = exchange.checked_rem(self.exchanges) else { return none };
                if self.stalled.insert(exchange) {
                    return none;
                }
                self.stalled.remove(&exchange);
                self.carried_by(exchange).into_iter().for_each(|it| self.deliver(it));
            }
            Operation::Progress(call) => {
                if let Some(number) = self.call(call).filter(|it| !self.streams[*it].answered) {
                    self.push(number, format!("progress {step}"));
                }
            }
            Operation::Answer(call) => {
                if let Some(number) = self.call(call).filter(|it| !self.streams[*it].answered) {
                    self.streams[number].answered = true;
                    self.push(number, "answer".into());
                }
            }
            Operation::Log => self.push(0, format!("log {step}")),
        }
        let stalled = |exchange: &usize| self.stalled.contains(exchange);
        let (later, said): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.said).into_iter().partition(|(it, _)| stalled(it));
        self.said = later;
        let spell = |(exchange, what): (usize, Vec<String>)| {
            what.into_iter().map(move |what| format!("exchange {exchange}: {what}"))
        };
        Outcome { sent: said.into_iter().flat_map(spell).collect(), ..Outcome::default() }
    }
}
