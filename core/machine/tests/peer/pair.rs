//! A client and a server, the bytes between them, and a virtual clock.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use mcp_sansio::framing::LineDecoder;
use mcp_sansio::peer::{ClientOptions, Ended, Event, InputRequested, Request, ServerOptions};
use mcp_sansio::{Instant, Revision, Side};

use crate::machine::{Machine, describe};
use crate::played::{self, Client, Played, Server};
use crate::schema_checker::SchemaChecker;
use crate::wire::assert_progress;

/// Both sides of a connection.
pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) now: Instant,
    pub(crate) client_events: VecDeque<Event<'static>>,
    pub(crate) server_events: VecDeque<Event<'static>>,
    to_server: LineDecoder<'static>,
    to_client: LineDecoder<'static>,
    checker: SchemaChecker,
    transcript: String,
    _played: [Played; 2],
}

/// More steps than any test needs.
const STEPS_MAX: usize = 10_000;

impl Pair {
    pub(crate) fn new(client: ClientOptions, server: ServerOptions) -> Self {
        let ((client, of_client), (server, of_server)) =
            (played::client(client), played::server(server));
        Self {
            client,
            server,
            now: Instant::ZERO,
            client_events: VecDeque::new(),
            server_events: VecDeque::new(),
            to_server: LineDecoder::growing(1 << 20),
            to_client: LineDecoder::growing(1 << 20),
            checker: SchemaChecker::default(),
            transcript: String::new(),
            _played: [of_client, of_server],
        }
    }

    /// Creates a pair that is open at `revision`, with an empty transcript.
    pub(crate) fn open_at(
        revision: Revision,
        client: ClientOptions,
        server: ServerOptions,
    ) -> Self {
        let client = client.revisions(mcp_sansio::Revisions::only(revision));
        let mut pair = Self::new(client, server);
        pair.drive();
        assert_eq!(pair.client.session().expect("an open session").revision(), revision);
        pair.client_events.clear();
        pair.server_events.clear();
        pair.transcript.clear();
        pair
    }

    /// Transfers the output of each side once, in reads of at most `piece` bytes. Returns whether
    /// there was progress.
    pub(crate) fn step_in_pieces(&mut self, piece: usize) -> bool {
        let told = self.pull_events();
        let sent = {
            let Self { client, server, now, server_events, to_server, checker, transcript, .. } =
                self;
            carry(client, server, to_server, piece, *now, checker, transcript, server_events)
        };
        let answered = {
            let Self { client, server, now, client_events, to_client, checker, transcript, .. } =
                self;
            carry(server, client, to_client, piece, *now, checker, transcript, client_events)
        };
        mcp_sansio::peer::Machine::assert_consistent(&self.client);
        mcp_sansio::peer::Machine::assert_consistent(&self.server);
        self.pull_events() || told || sent || answered
    }

    /// Transfers bytes until neither side has output or events.
    pub(crate) fn drive(&mut self) {
        self.drive_in_pieces(usize::MAX);
    }

    pub(crate) fn drive_in_pieces(&mut self, piece: usize) {
        for _ in 0..STEPS_MAX {
            if !self.step_in_pieces(piece) {
                return;
            }
        }
        panic!("never became idle:\n{}", self.transcript);
    }

    /// Advances the clock, wakes both sides, and transfers bytes until both are idle.
    pub(crate) fn advance(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        self.pull_events();
        assert_progress(&self.client, self.now);
        assert_progress(&self.server, self.now);
        self.drive();
    }

    /// Returns the earlier of the two deadlines.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    /// Returns the messages and events since the last call.
    pub(crate) fn take_transcript(&mut self) -> String {
        core::mem::take(&mut self.transcript)
    }

    fn pull_events(&mut self) -> bool {
        let Self { client, server, now, client_events, server_events, transcript, .. } = self;
        let told = pull(client, *now, transcript, client_events);
        pull(server, *now, transcript, server_events) || told
    }

    /// Returns the next request of the server, dropping other events before it.
    #[track_caller]
    pub(crate) fn request(&mut self) -> Request<'static> {
        while let Some(event) = self.server_events.pop_front() {
            if let Event::Request(request) = event {
                return request;
            }
        }
        panic!("no request:\n{}", self.transcript);
    }

    /// Returns the next input request of the client, dropping other events before it.
    #[track_caller]
    pub(crate) fn input(&mut self) -> InputRequested<'static> {
        while let Some(event) = self.client_events.pop_front() {
            if let Event::InputRequested(input) = event {
                return input;
            }
        }
        panic!("no input:\n{}", self.transcript);
    }

    /// Returns the next ended call of the client, dropping other events before it.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Ended<'static> {
        while let Some(event) = self.client_events.pop_front() {
            if let Event::Ended(ended) = event {
                return ended;
            }
        }
        panic!("no call ended:\n{}", self.transcript);
    }
}

const fn letter(role: Side) -> char {
    match role {
        Side::Client => 'C',
        Side::Server => 'S',
    }
}

fn write(transcript: &mut String, now: Instant, role: Side, kind: char, text: &str) {
    let millis = now.as_nanos() / 1_000_000;
    writeln!(transcript, "{millis:>6}ms {}{kind} {text}", letter(role)).unwrap();
}

fn pull<M: Machine>(
    machine: &mut M,
    now: Instant,
    transcript: &mut String,
    events: &mut VecDeque<Event<'static>>,
) -> bool {
    let before = events.len();
    while let Some(event) = machine.event() {
        write(transcript, now, M::ROLE, '!', &describe(&event));
        events.push_back(event);
    }
    events.len() > before
}

/// Transfers the output of `from` to `to`, in reads of at most `piece` bytes.
#[expect(clippy::too_many_arguments, reason = "the fields of a pair are borrowed separately")]
fn carry<F: Machine, T: Machine>(
    from: &mut F,
    to: &mut T,
    decoder: &mut LineDecoder<'_>,
    piece: usize,
    now: Instant,
    checker: &mut SchemaChecker,
    transcript: &mut String,
    events: &mut VecDeque<Event<'static>>,
) -> bool {
    let Some(bytes) = from.transmit() else { return false };
    assert!(bytes.ends_with(b"\n"), "whole lines");
    for line in bytes.strip_suffix(b"\n").unwrap().split(|byte| *byte == b'\n') {
        let line = core::str::from_utf8(line).expect("UTF-8");
        checker.examine(F::ROLE, line);
        write(transcript, now, F::ROLE, '>', line);
    }
    for mut read in bytes.chunks(piece.min(bytes.len())) {
        while !read.is_empty() {
            read = &read[decoder.feed(read)..];
            while let Some(frame) = decoder.next_frame() {
                let event = match frame {
                    Ok(frame) => to.take(frame, now),
                    Err(error) => to.take_error(error),
                };
                // A closed side accepts no input; its end is a separate event.
                if let Ok(Some(event)) = event {
                    write(transcript, now, T::ROLE, '!', &describe(&event));
                    events.push_back(event);
                }
                pull(to, now, transcript, events);
            }
        }
    }
    true
}
