//! Random operations of many clients: no operation panics, every request is answered once and on
//! one stream, the tables are consistent, all clients become idle, and the same seed gives the same
//! bytes, as does a replay.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_sansio::http::{EventStore, HttpServerOptions, NotStored, ResponseMode};
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{Event, Request, RequestHandle, ServerMachine, Subject};
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::{LoggingLevel, Principal, Revision};
use proptest::prelude::*;
use seeded_random::{Random, scaled};

use crate::answers::ask_for_roots;
use crate::fixtures::*;
use crate::played::recorded_http_server;
use crate::reply::State;
use crate::test_server::{TestServer, Ticket};
use crate::test_store::{TestStore, complete};

struct World {
    server: TestServer,
    store: TestStore,
    random: Random,
    sessions: Vec<(Session, Option<Principal>)>,
    /// Event ids to resume from, with the session of each.
    endings: Vec<(usize, String)>,
    tickets: Vec<Ticket>,
    requests: Vec<Request<'static>>,
    /// How each request ended.
    ended: BTreeMap<RequestHandle, &'static str>,
    next_id: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut options = limits(|limits| {
            limits.unread_bytes_max = 50 + random.below(1500) as usize;
            limits.replay_events_max = 1 + random.below(20) as usize;
            limits.replay_bytes_max = 100 + random.below(3000) as usize;
            limits.replay_bytes_total_max = 2000 + random.below(20_000) as usize;
            limits.finished_streams_max = random.below(4) as usize;
            limits.store_actions_max = 1 + random.below(100) as usize;
            limits.store_bytes_max = 100 + random.below(10_000) as usize;
            limits.store_page_events_max = random.below(4) as usize;
            limits.store_page_bytes_max = random.below(2000) as usize;
            limits.store_replays_max = random.below(4) as usize;
            limits.sessions_max = 6;
            limits.exchanges_max = 5 + random.below(200) as usize;
        });
        let wanted = random.below(3);
        options = options.timeouts({
            let mut timeouts = mcp_sansio::http::ServerTimeouts::default();
            timeouts.poll_after = (wanted == 0).then_some(Duration::from_secs(12));
            timeouts.replay = Duration::from_secs(60);
            timeouts
        });
        if random.below(3) == 0 {
            options = options.answers(ResponseMode::Stream);
        }
        if random.below(3) > 0 {
            options = options.event_store(EventStore::External);
        }
        let options = HttpServerOptions::legacy_sse(options, "/sse", "/post");
        let server = TestServer::over(recorded_http_server(full_server(), options));
        Self {
            server,
            store: TestStore::default(),
            random,
            sessions: Vec::new(),
            endings: Vec::new(),
            tickets: Vec::new(),
            requests: Vec::new(),
            ended: BTreeMap::new(),
            next_id: 0,
        }
    }

    fn look(&mut self) {
        for event in std::mem::take(&mut self.server.events) {
            match event {
                Event::Request(request) => {
                    let before = self.ended.get(&request.handle);
                    assert_eq!(before, None, "a request is delivered after its end");
                    self.requests.push(request);
                }
                Event::Cancelled(cancelled) => {
                    let Subject::Request(handle) = cancelled.subject else { panic!() };
                    let before = self.ended.insert(handle, "cancelled");
                    assert_eq!(before, None, "cancelled after the end");
                }
                Event::Closed(reason) => panic!("closed: {reason}"),
                _ => {}
            }
        }
    }

    fn next(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    fn session(&mut self) -> Option<(usize, Session)> {
        let at = self.random.index(self.sessions.len());
        let (session, principal) = self.sessions.get(at)?.clone();
        self.server.principal = principal;
        Some((at, session))
    }

    fn send(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &str) -> Ticket {
        let ticket = if self.random.below(4) == 0 {
            self.server.request_unread(method, target, fields, body)
        } else {
            self.server.request(method, target, fields, body)
        };
        self.tickets.push(ticket);
        ticket
    }

    fn operate(&mut self) {
        match self.random.below(20) {
            0 => self.open(),
            1 => {
                if let Some((_, session)) = self.session() {
                    let own = [HOST, ("Accept", "text/event-stream")];
                    self.send("GET", "/mcp", &join(&own, &session.fields()), "");
                }
            }
            2..=5 => {
                let id = self.next();
                if let Some((at, session)) = self.session() {
                    let body = match self.random.below(6) {
                        0 if session.revision == Revision::V2025_03_26 => {
                            let more = self.next();
                            format!("[{},{}]", call(id), call(more))
                        }
                        0 => request(id, "no/such", "{}"),
                        1 => request(id, "ping", "{}"),
                        _ => call(id),
                    };
                    let fields = join(&POST, &session.fields());
                    let ticket = self.send("POST", "/mcp", &fields, &body);
                    self.note_ending(at, ticket);
                }
            }
            6..=8 => {
                let id = self.next();
                let body = match self.random.below(4) {
                    0 => modern(
                        id,
                        "subscriptions/listen",
                        r#""notifications":{"toolsListChanged":true}"#,
                    ),
                    _ => modern_with(
                        id,
                        "tools/call",
                        r#""name":"t""#,
                        "2026-07-28",
                        r#"{"roots":{}}"#,
                    ),
                };
                self.server.principal = None;
                let header = header_of(&body);
                self.send("POST", "/mcp", &header.fields(), &body);
            }
            9 => {
                if let Some(ticket) = self.random.pick(&self.tickets).copied()
                    && !self.server.reply(ticket).is_over()
                {
                    self.server.disconnect(ticket);
                }
            }
            10 => self.come_back(),
            11 => {
                if let Some(ticket) = self.random.pick(&self.tickets).copied()
                    && !self.server.reply(ticket).is_over()
                {
                    let steps = if self.random.below(2) == 0 { usize::MAX } else { 2 };
                    self.server.read(ticket, steps);
                }
            }
            12..=14 => self.end_one(),
            15 => {
                if let Some(handle) = self.random.pick(&self.requests).map(|it| it.handle) {
                    let progress = self.random.below(1000) as f64;
                    self.server.progress(handle, progress);
                    if self.random.below(8) == 0 {
                        self.server.server.release_connection(handle, Duration::from_secs(1));
                    }
                }
            }
            16 => {
                self.server.tools_changed();
                let now = self.server.now;
                self.server.server.log(None, LoggingLevel::Error, None, "x", now).unwrap();
            }
            17 => {
                let id = 1 + self.random.below(u64::from(self.next_id.max(1))) as u32;
                if let Some((_, session)) = self.session() {
                    let body = match self.random.below(3) {
                        0 => format!(
                            r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[]}}}}"#,
                            id % 20
                        ),
                        1 => r#"{"jsonrpc":"2.0","id":3,"result":{},"error":{}}"#.into(),
                        _ => cancel(id),
                    };
                    self.server.post(&session, &body);
                }
            }
            18 => {
                let seconds = self.random.below(30);
                self.server.advance(Duration::from_secs(seconds));
            }
            _ => {
                if self.random.below(6) == 0
                    && let Some((at, session)) = self.session()
                {
                    self.server.delete(&session);
                    self.sessions.remove(at);
                    self.endings.clear();
                }
            }
        }
        self.server.pump();
        self.look();
        if self.random.below(2) == 0 {
            self.store();
        }
    }

    /// Performs the store actions, sometimes with an error. Some reads take longer than others.
    fn store(&mut self) {
        self.store.take_actions(&mut self.server);
        let reads = self.store.reads.len() as u64;
        if reads == 0 || self.random.below(4) == 0 {
            return;
        }
        let (read, from, events_max, bytes_max) =
            self.store.reads.swap_remove(self.random.below(reads) as usize);
        let mut found = self.store.find(&from, events_max, bytes_max);
        let one = self.random.index(found.len());
        let outcome = match self.random.below(13) {
            0 => Err(NotStored),
            1 => {
                found.get_mut(one).into_iter().for_each(|event| event.position.stream += 1);
                Ok(found)
            }
            2 => {
                found.drain(..one);
                Ok(found)
            }
            3 => {
                let now = self.server.now;
                self.server.server.fail_read(read, now);
                self.server.pump();
                Ok(found)
            }
            _ => Ok(found),
        };
        complete(&mut self.server, read, outcome.clone());
        if self.random.below(4) == 0 {
            complete(&mut self.server, read, outcome);
        }
        self.look();
    }

    fn open(&mut self) {
        let principal = (self.random.below(2) == 0).then(|| Principal::new("ann"));
        self.server.principal = principal.clone();
        let revisions = [
            Revision::V2024_11_05,
            Revision::V2025_03_26,
            Revision::V2025_06_18,
            Revision::V2025_11_25,
        ];
        let revision = self.random.one_of(revisions);
        if self.random.below(5) == 0 {
            self.send("GET", "/sse", &[HOST], "");
            return;
        }
        let body = initialize(revision, r#"{"roots":{}}"#);
        let opened = self.server.request("POST", "/mcp", &POST, &body);
        if let Some(id) = self.server.reply(opened).field("mcp-session-id") {
            let session = Session { id: id.into(), revision };
            self.server.post(&session, INITIALIZED);
            self.sessions.push((session, principal));
        }
    }

    fn note_ending(&mut self, session: usize, ticket: Ticket) {
        if let Some(last) = self.server.reply(ticket).last_id() {
            self.endings.push((session, last));
        }
    }

    fn come_back(&mut self) {
        let last = self.random.pick(&self.endings).cloned();
        let (at, last) = match last {
            Some(ending) if self.random.below(4) > 0 => ending,
            _ => (0, format!("{}-{}", self.random.below(9), self.random.below(5))),
        };
        let Some((session, principal)) = self.sessions.get(at).cloned() else { return };
        self.server.principal = principal;
        let own = [HOST, ("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
        let ticket = self.send("GET", "/mcp", &join(&own, &session.fields()), "");
        self.note_ending(at, ticket);
    }

    fn end_one(&mut self) {
        if self.requests.is_empty() {
            return;
        }
        let at = self.random.index(self.requests.len());
        let request = self.requests.swap_remove(at);
        let (handle, now) = (request.handle, self.server.now);
        let (outcome, how) = match self.random.below(6) {
            0 => (self.server.server.require_input(&request, &ask_for_roots(), now), "asked"),
            1 => (self.server.server.reject(handle, ErrorObject::internal("no"), now), "rejected"),
            2 => {
                let error = ErrorObject::invalid_request("not you");
                let refusal = HttpRejection::new(Status::FORBIDDEN, error);
                (self.server.server.refuse(handle, refusal, now), "refused")
            }
            _ => (self.server.server.respond_with(handle, &raw("{}"), now), "answered"),
        };
        let before = self.ended.get(&handle).copied();
        assert_eq!(outcome.is_err(), before.is_some(), "{how} after {before:?}");
        if outcome.is_ok() && how != "asked" {
            self.ended.insert(handle, how);
        }
    }

    /// Checks that every request has at most one response in all exchanges, except for replays.
    fn check(&self) -> String {
        let mut answers: BTreeMap<(String, String), Option<String>> = BTreeMap::new();
        let mut transcript = String::new();
        for ticket in 0..self.server.count() {
            let reply = self.server.reply(ticket);
            transcript.push_str(&reply.transcript());
            if !reply.is_stream() {
                continue;
            }
            // An HTTP+SSE stream ends when its session is closed for another one, without a
            // response.
            let sse =
                reply.events().first().is_some_and(|it| it.kind.as_deref() == Some("endpoint"));
            let is_modern = reply.conversation.starts_with('#') && !sse;
            if is_modern && reply.state == State::Complete {
                let last = reply.messages().pop().expect("a modern stream has a response");
                assert!(last.get("id").is_some(), "ended without a response: {last}");
            }
            let ids: Vec<_> = reply.events().into_iter().filter_map(|event| event.id).collect();
            for pair in ids.windows(2) {
                let [before, after] = [0, 1].map(|at| pair[at].split_once('-').unwrap());
                let [one, next] = [before.1, after.1].map(|it| it.parse::<u64>().unwrap());
                assert_eq!((before.0, one + 1), (after.0, next), "in order and without a gap");
            }
            for event in reply.events() {
                let Ok(message) = serde_json::from_str::<serde_json::Value>(&event.data) else {
                    continue;
                };
                if message.get("method").is_some() || message.is_array() {
                    continue;
                }
                let key = (reply.conversation.clone(), message["id"].to_string());
                match answers.get(&key) {
                    None => {
                        answers.insert(key, event.id);
                    }
                    Some(before) => {
                        // A replay of the same event, or the same client made the same call twice.
                        assert_eq!(before, &event.id, "answered twice: {message}");
                    }
                }
            }
        }
        transcript
    }
}

fn run(seed: u64) -> String {
    let mut world = World::new(seed);
    for _ in 0..250 {
        world.operate();
    }
    // At the end every request is answered, and every client reads its response or disconnects.
    while let Some(request) = world.requests.pop() {
        let _late = world.server.server.respond_with(request.handle, &raw("{}"), world.server.now);
        world.server.pump();
        world.look();
    }
    for ticket in world.tickets.clone() {
        if !world.server.reply(ticket).is_over() {
            world.server.read(ticket, usize::MAX);
        }
        if !world.server.reply(ticket).is_over() {
            world.server.disconnect(ticket);
        }
    }
    world.look();
    world.server.advance(Duration::from_secs(20_000));
    world.look();
    while let Some(request) = world.requests.pop() {
        let _late = world.server.server.respond_with(request.handle, &raw("{}"), world.server.now);
        world.server.pump();
        world.look();
    }
    world.server.advance(Duration::from_secs(20_000));
    world.look();
    world.server.expect_empty();
    world.store.take_actions(&mut world.server);
    let all_stored = world.server.server.dropped_store_actions() == 0;
    assert!(!all_stored || world.store.events.is_empty(), "ended streams are forgotten");
    let transcript = world.check();
    assert!(world.tickets.iter().all(|it| world.server.reply(*it).state != State::UnderWay));
    transcript
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scaled(8), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_operations_answers_every_request_once(seed: u64) {
        run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in 0..3 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
}
