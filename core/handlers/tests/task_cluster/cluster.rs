//! Nodes, their store and the network between them, on a virtual clock.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, RequestHead, ServerTransmit, SharedOptions, StoreAction,
};
use mcp_sansio::{Instant, Principal};
use mcp_sansio_handlers::Server;
use mcp_sansio_handlers::endpoint::{HandlerCall, HandlerPoll, HttpServer, PendingHandler};
use seeded_random::Random;
use serde_json::Value;

use crate::ends::{Ends, Owner};
use crate::handlers::{Clock, server};
use crate::store::{Completion, Store};

/// A response, as its client received it.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    client: usize,
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    body: Vec<u8>,
    complete: bool,
    /// Whether its connection was lost.
    broken: bool,
    /// The node and the exchange, while it lasts.
    place: Option<(usize, ExchangeId)>,
    /// The process that has handled the request.
    pub(crate) owner: Option<Owner>,
}

impl Reply {
    pub(crate) fn is_over(&self) -> bool {
        self.complete || self.broken
    }

    /// Returns the response to the request with an id, if it has arrived as a whole.
    pub(crate) fn answer(&self, id: u64) -> Option<Value> {
        let text = std::str::from_utf8(&self.body).expect("UTF-8");
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.into_iter().find(|it| it["id"] == id && it.get("method").is_none())
    }
}

#[derive(Default)]
pub(crate) struct Node {
    pub(crate) server: Option<HttpServer>,
    running: Vec<PendingHandler>,
    /// Distinguishes the processes of a node.
    pub(crate) life: u32,
    /// It does nothing before this time.
    pub(crate) paused_until: Instant,
    /// It does not reach the store before this time.
    pub(crate) cut_until: Instant,
    sent_at: Instant,
    heard_at: Instant,
    exchanges: BTreeMap<ExchangeId, usize>,
}

/// A planned step.
#[derive(Debug)]
enum Due {
    Arrive(usize, u32, StoreAction),
    Complete(usize, u32, Completion),
    Message(usize, u32, Vec<u8>),
    Start(usize),
    Wake(usize),
    Request(usize, u32, usize, Box<Outgoing>),
}

/// A request of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) session: Option<String>,
    /// At 2026-07-28.
    pub(crate) method: Option<&'static str>,
    pub(crate) name: Option<String>,
    pub(crate) body: String,
    pub(crate) principal: Option<&'static str>,
}

pub(crate) struct Cluster {
    pub(crate) now: Instant,
    pub(crate) random: Random,
    pub(crate) store: Store,
    /// The store does not answer before this time.
    pub(crate) store_down_until: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) replies: Vec<Reply>,
    /// Clients with news.
    pub(crate) woken: Vec<usize>,
    agenda: BTreeMap<(Instant, u64), Due>,
    count: u64,
    clock: Clock,
    template: Server,
    pub(crate) ends: Ends,
    /// Whether the store has lost writes.
    pub(crate) has_lost: bool,
}

impl Cluster {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        let clock = Clock::default();
        let mut cluster = Self {
            now: Instant::from_millis(1000),
            random: Random::new(seed),
            store: Store::default(),
            store_down_until: Instant::ZERO,
            nodes: (0..count).map(|_| Node::default()).collect(),
            replies: Vec::new(),
            woken: Vec::new(),
            agenda: BTreeMap::new(),
            count: 0,
            template: server(&clock),
            clock,
            ends: Ends::default(),
            has_lost: false,
        };
        for at in 0..count {
            cluster.start(at);
        }
        cluster
    }

    /// Starts the process of a node.
    fn start(&mut self, at: usize) {
        let mut secret = [0; 32];
        secret.iter_mut().for_each(|byte| *byte = self.random.below(256) as u8);
        let options = HttpServerOptions::new().shared(SharedOptions::new());
        let server = self.template.http(options, secret, at as u64).expect("valid tools");
        self.nodes[at].server = Some(server);
        self.pump(at);
    }

    /// Ends the process of a node, and starts another one after `pause`.
    pub(crate) fn kill(&mut self, at: usize, pause: Duration) {
        let node = &mut self.nodes[at];
        if node.server.take().is_none() {
            return;
        }
        node.running.clear();
        node.life += 1;
        node.paused_until = Instant::ZERO;
        for (_, reply) in core::mem::take(&mut node.exchanges) {
            self.replies[reply].broken = true;
            self.replies[reply].place = None;
            self.woken.push(self.replies[reply].client);
        }
        self.plan(self.now + pause, Due::Start(at));
    }

    fn plan(&mut self, at: Instant, due: Due) {
        self.count += 1;
        self.agenda.insert((at, self.count), due);
    }

    pub(crate) fn wake_client(&mut self, client: usize, pause: Duration) {
        self.plan(self.now + pause, Due::Wake(client));
    }

    fn latency(&mut self) -> Duration {
        // An action and its completion take less than the server's patience.
        let long = self.random.once_in(40);
        Duration::from_micros(200 + self.random.below(if long { 2_000_000 } else { 4000 }))
    }

    /// Returns a running node.
    pub(crate) fn any_node(&mut self) -> Option<usize> {
        let up: Vec<usize> =
            (0..self.nodes.len()).filter(|at| self.nodes[*at].server.is_some()).collect();
        self.random.pick(&up).copied()
    }

    /// Returns the process of a node.
    pub(crate) fn owner(&self, at: usize) -> Owner {
        let Node { server, life, .. } = &self.nodes[at];
        let id = server.as_ref().and_then(|server| server.machine().node_id());
        Owner { node: at, life: *life, id }
    }

    /// Checks that a task may have failed with its node: the process has ended, has lost its lease,
    /// or may not know yet that it has.
    pub(crate) fn check_failed(&self, owner: Owner) {
        let node = &self.nodes[owner.node];
        let silent_until = node.paused_until.max(node.cut_until).max(self.store_down_until);
        let may_be_deposed = self.now <= silent_until + SharedOptions::new().lease;
        assert!(self.owner(owner.node) != owner || may_be_deposed, "a node that lives has failed");
    }

    /// Returns whether a node may not have reached the store since its last heartbeat, as far as it
    /// knows: after a pause, its actions have taken too long.
    pub(crate) fn is_isolated(&self, at: usize) -> bool {
        let Node { cut_until, paused_until, .. } = &self.nodes[at];
        let until = (*cut_until).max(*paused_until).max(self.store_down_until);
        until > Instant::ZERO && self.now <= until + SharedOptions::new().lease
    }

    /// Returns whether a process still has a task.
    pub(crate) fn has_task(&self, owner: Owner, task: &str) -> bool {
        self.owner(owner.node) == owner && !self.ends.declared.contains(task)
    }

    /// Returns the number of running handlers.
    pub(crate) fn running(&self) -> usize {
        self.nodes.iter().map(|node| node.running.len()).sum()
    }

    /// Sends a request to a node. Returns the index of its reply.
    pub(crate) fn request(&mut self, at: usize, client: usize, request: Outgoing) -> usize {
        let reply = self.replies.len();
        self.replies.push(Reply { client, ..Reply::default() });
        let life = self.nodes[at].life;
        let latency = self.latency();
        self.plan(self.now + latency, Due::Request(at, life, reply, Box::new(request)));
        reply
    }

    fn receive(&mut self, at: usize, reply: usize, request: &Outgoing) {
        let now = self.now;
        if self.replies[reply].broken {
            return;
        }
        let owner = self.owner(at);
        let Node { server: Some(server), running, exchanges, .. } = &mut self.nodes[at] else {
            return;
        };
        let mut head = RequestHead::new("POST", "/mcp");
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        if let Some(session) = &request.session {
            head.field("mcp-session-id", session.as_bytes());
            head.field("mcp-protocol-version", b"2025-11-25");
        }
        if let Some(method) = request.method {
            head.field("mcp-protocol-version", b"2026-07-28");
            head.field("mcp-method", method.as_bytes());
        }
        if let Some(name) = &request.name {
            head.field("mcp-name", name.as_bytes());
        }
        let caller = request.principal.map(Principal::new).into();
        let body = request.body.as_bytes();
        let (exchange, call) = server.handle_request(&head, body, &caller, now);
        if let Some(call) = call {
            run(server, running, call, now);
        }
        exchanges.insert(exchange, reply);
        (self.replies[reply].place, self.replies[reply].owner) =
            (Some((at, exchange)), Some(owner));
        self.pump(at);
    }

    /// Disconnects a client from its response.
    pub(crate) fn disconnect(&mut self, reply: usize) {
        self.replies[reply].broken = true;
        let now = self.now;
        if let Some((at, exchange)) = self.replies[reply].place.take() {
            self.nodes[at].exchanges.remove(&exchange);
            if let Some(server) = &mut self.nodes[at].server {
                server.handle_disconnect(exchange, now);
                self.pump(at);
            }
        }
    }

    /// Runs the handlers of a node, and handles its output.
    fn pump(&mut self, at: usize) {
        let now = self.now;
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let Node { server: Some(server), running, life, .. } = &mut self.nodes[at] else {
                return;
            };
            let life = *life;
            let mut moved = false;
            server.poll_handlers(&mut cx, now);
            while let Some(call) = server.poll_call() {
                run(server, running, call, now);
                moved = true;
            }
            server.assert_consistent();
            for mut handler in core::mem::take(running) {
                match Pin::new(&mut handler).poll(&mut cx) {
                    Poll::Ready(Some(finished)) => {
                        server.finish(finished, now);
                        moved = true;
                    }
                    Poll::Ready(None) => moved = true,
                    Poll::Pending => running.push(handler),
                }
            }
            let mut actions = Vec::new();
            while let Some(action) = server.poll_store() {
                actions.push(action);
            }
            for action in actions {
                moved = true;
                let latency = self.latency();
                let arrival = (now + latency).max(self.nodes[at].sent_at);
                self.nodes[at].sent_at = arrival;
                self.plan(arrival, Due::Arrive(at, life, action));
            }
            if !moved {
                break;
            }
        }
        let Node { server: Some(server), exchanges, .. } = &mut self.nodes[at] else { return };
        while let Some(exchange) = server.poll_ready() {
            let Some(index) = exchanges.get(&exchange).copied() else { continue };
            let reply = &mut self.replies[index];
            while let Some(transmit) = server.poll_transmit(exchange, now) {
                match transmit {
                    ServerTransmit::Respond(response) => {
                        reply.status = response.head.status.0;
                        let session =
                            response.head.fields().find(|(name, _)| *name == "mcp-session-id");
                        reply.session = session.map(|(_, id)| String::from(id));
                        reply.body = response.body;
                        reply.complete = true;
                    }
                    ServerTransmit::Open(head) => reply.status = head.status.0,
                    ServerTransmit::Chunk(bytes) => reply.body.extend_from_slice(bytes),
                    ServerTransmit::Finish => reply.complete = true,
                    ServerTransmit::Abort => reply.broken = true,
                }
            }
            if reply.is_over() {
                reply.place = None;
                exchanges.remove(&exchange);
            }
            self.woken.push(reply.client);
        }
    }

    fn arrive(&mut self, at: usize, life: u32, action: StoreAction) {
        let now = self.now;
        if self.nodes[at].cut_until > now || self.store_down_until > now {
            if let StoreAction::PutTask { key, record, .. } = &action
                && record.ended
            {
                self.ends.lost.insert(key.task.clone());
            }
            // Sometimes the node only notices that there is no answer.
            if let Some(completion) = Store::failure(&action).filter(|_| !self.random.once_in(3)) {
                let latency = self.latency();
                self.plan(now + latency, Due::Complete(at, life, completion));
            }
            return;
        }
        if let StoreAction::PutTask { key, ttl: None, .. } = &action {
            self.ends.declared.insert(key.task.clone());
        }
        let effects = self.store.execute(action, now);
        if let Some(message) = effects.message {
            for other in 0..self.nodes.len() {
                if self.owner(other).id.is_some_and(|id| message.is_for(id)) {
                    // The store keeps it for a node that does not reach it.
                    let reached = now.max(self.nodes[other].cut_until).max(self.store_down_until);
                    let when = (reached + self.latency()).max(self.nodes[other].heard_at);
                    self.nodes[other].heard_at = when;
                    let life = self.nodes[other].life;
                    self.plan(when, Due::Message(other, life, message.text.clone()));
                }
            }
        }
        if let Some(completion) = effects.completion {
            let latency = self.latency();
            self.plan(now + latency, Due::Complete(at, life, completion));
        }
    }

    /// Removes everything from the store, as a restart without persistence does.
    pub(crate) fn empty_store(&mut self) {
        self.has_lost = true;
        self.ends.lost.extend(self.store.lose_tasks(Instant::ZERO));
        self.store.empty();
        self.agenda.retain(|_, due| !matches!(due, Due::Message(..)));
    }

    /// Fails over to a replica of the store that does not have the last writes of tasks, nor the
    /// last message to each node.
    pub(crate) fn fail_over(&mut self, delay: Duration) {
        self.has_lost = true;
        let since = Instant::from_nanos(self.now.as_nanos() - delay.as_nanos() as u64);
        self.ends.lost.extend(self.store.lose_tasks(since));
        for node in 0..self.nodes.len() {
            let of_node = |due: &Due| matches!(due, Due::Message(to, ..) if *to == node);
            let last = self.agenda.iter().rev().find(|(_, due)| of_node(due));
            if let Some(at) = last.map(|(at, _)| *at) {
                self.agenda.remove(&at);
            }
        }
    }

    /// Returns when the next thing happens.
    fn next(&self) -> Option<Instant> {
        let timers = self.nodes.iter().filter_map(|node| {
            let due = node.server.as_ref()?.poll_timeout()?;
            Some(due.max(node.paused_until))
        });
        let planned = self.agenda.first_key_value().map(|((at, _), _)| *at);
        timers.chain(planned).chain(self.clock.next()).min()
    }

    /// Advances the clock to the next thing that happens before `end`. Returns whether there was
    /// one.
    pub(crate) fn step(&mut self, end: Instant) -> bool {
        let Some(next) = self.next().filter(|next| *next <= end) else {
            self.now = self.now.max(end);
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        let continues = self.clock.next().is_some_and(|due| due <= now);
        self.clock.set(now);
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            if node.paused_until > now {
                continue;
            }
            let Some(server) = &mut node.server else { continue };
            let is_due = server.poll_timeout().is_some_and(|due| due <= now);
            if is_due {
                server.handle_timeout(now);
            }
            if is_due || continues {
                self.pump(at);
            }
        }
        if self.agenda.first_key_value().is_some_and(|((at, _), _)| *at <= now)
            && let Some((_, due)) = self.agenda.pop_first()
        {
            self.happen(due);
        }
        true
    }

    fn happen(&mut self, due: Due) {
        let now = self.now;
        let node = match &due {
            Due::Complete(at, life, _) | Due::Message(at, life, _) | Due::Request(at, life, ..) => {
                Some((*at, *life))
            }
            // Actions that a node has sent before its end may still arrive.
            _ => None,
        };
        if let Some((at, life)) = node {
            let Node { server, life: current, paused_until, .. } = &self.nodes[at];
            if *current != life || server.is_none() {
                if let Due::Request(_, _, reply, _) = due {
                    self.replies[reply].broken = true;
                    self.woken.push(self.replies[reply].client);
                }
                return;
            }
            if *paused_until > now {
                let until = *paused_until;
                return self.plan(until, due);
            }
        }
        match due {
            Due::Arrive(at, life, action) => self.arrive(at, life, action),
            Due::Complete(at, _, completion) => {
                if let Some(server) = &mut self.nodes[at].server {
                    match completion {
                        Completion::Action(action, result) => {
                            server.handle_store(action, result, now);
                        }
                        Completion::Events(read, events) => server.handle_stored(read, events, now),
                        Completion::ReadFailed(read) => server.fail_read(read, now),
                        Completion::Refused(place) => server.handle_append_refused(&place, now),
                        Completion::Appended(place) => server.handle_appended(&place),
                    }
                }
                self.pump(at);
            }
            Due::Message(at, _, message) => {
                if let Some(server) = &mut self.nodes[at].server {
                    server.handle_node_message(&message, now);
                }
                self.pump(at);
            }
            Due::Request(at, _, reply, request) => self.receive(at, reply, &request),
            Due::Start(at) => self.start(at),
            Due::Wake(client) => self.woken.push(client),
        }
    }
}

/// Runs a handler.
fn run(
    server: &mut HttpServer,
    running: &mut Vec<PendingHandler>,
    call: HandlerCall<'_>,
    now: Instant,
) {
    let mut cx = Context::from_waker(Waker::noop());
    match call.run() {
        HandlerPoll::Ready(finished) => server.finish(finished, now),
        HandlerPoll::Pending(mut pending) => match Pin::new(&mut pending).poll(&mut cx) {
            Poll::Ready(Some(finished)) => server.finish(finished, now),
            Poll::Ready(None) => {}
            Poll::Pending => {
                server.track(&pending);
                running.push(pending);
            }
        },
    }
}
