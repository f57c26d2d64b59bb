//! Nodes, their store and the network between them, on a virtual clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_sansio::http::{
    ExchangeId, HttpServerOptions, NodeId, RemoteAddress, RequestHead, Server, ServerTransmit,
    SharedOptions, StoreAction,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    Event, OperationObserver, Request, RequestHandle, ServerMachine, ServerOptions, Violation,
};
use mcp_sansio::protocol::{
    CapabilitySettings, Implementation, InputRequest, InputRequiredResult, ListRootsParams, Map,
    ResourcesCapability, ServerCapabilities, ToolsCapability,
};
use mcp_sansio::{Caller, Instant, Principal};
use seeded_random::Random;

use crate::store::{Completion, LATENCY, Store};

/// A response, as its client received it.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) client: usize,
    pub(crate) status: Option<u16>,
    pub(crate) session: Option<String>,
    pub(crate) body: Vec<u8>,
    /// Whether it is complete.
    pub(crate) complete: bool,
    /// Whether its connection was lost.
    pub(crate) broken: bool,
    /// How much of the body the client has handled.
    pub(crate) read: usize,
    /// The node and the exchange, while it lasts.
    pub(crate) place: Option<(usize, ExchangeId)>,
}

impl Reply {
    pub(crate) fn is_over(&self) -> bool {
        self.complete || self.broken
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

pub(crate) struct Node {
    pub(crate) server: Option<Server>,
    /// Distinguishes the processes of a node.
    pub(crate) life: u32,
    /// It does nothing before this time.
    pub(crate) paused_until: Instant,
    /// It does not reach the store before this time.
    pub(crate) cut_until: Instant,
    sent_at: Instant,
    /// The number of actions that have not arrived at the store.
    pending: usize,
    heard_at: Instant,
    exchanges: BTreeMap<ExchangeId, usize>,
}

/// A planned step.
#[derive(Debug)]
enum Due {
    Arrive(usize, u32, StoreAction),
    Complete(usize, u32, Completion),
    Message(usize, u32, Vec<u8>, (NodeId, String)),
    Work(usize, u32, RequestHandle, Step),
    Start(usize),
    Wake(usize),
    Request(usize, u32, usize, Box<Outgoing>),
}

/// The next step of a handler.
#[derive(Clone, Copy, Debug)]
enum Step {
    Progress { at: u32, of: u32, pause: Duration },
    Respond,
}

/// A request of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    pub(crate) method: &'static str,
    pub(crate) session: Option<String>,
    pub(crate) last_event: Option<String>,
    pub(crate) body: String,
    pub(crate) principal: Option<&'static str>,
    /// The last byte of the sender's address, if it is known.
    pub(crate) address: Option<u8>,
    /// The endpoint if it is empty.
    pub(crate) target: String,
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
    options: SharedOptions,
    /// Whether latencies vary.
    pub(crate) jitter: bool,
    /// Whether the store did not get an event, or has lost some.
    lost_events: bool,
    /// How much later a node gets the result of a heartbeat.
    pub(crate) heartbeat_delay: Duration,
    /// How many actions of a node the store executes at the same time, and how long each takes.
    pub(crate) throughput: Option<(usize, Duration)>,
    /// How much later a node learns that an event is stored.
    pub(crate) append_delay: Duration,
    /// Observes the nodes that start from now on.
    pub(crate) observer: Option<Arc<dyn OperationObserver>>,
}

pub(crate) fn capabilities() -> ServerCapabilities {
    ServerCapabilities::new()
        .tools(ToolsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().list_changed(true).subscribe(true))
        .logging(CapabilitySettings::default())
}

fn ask_for_roots() -> InputRequiredResult {
    let mut questions = Map::<InputRequest>::default();
    questions.insert("where", InputRequest::from(ListRootsParams::new()));
    InputRequiredResult::new().input_requests(questions)
}

impl Cluster {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        Self::with(count, seed, SharedOptions::new())
    }

    pub(crate) fn with(count: usize, seed: u64, options: SharedOptions) -> Self {
        let node = || Node {
            server: None,
            life: 0,
            paused_until: Instant::ZERO,
            cut_until: Instant::ZERO,
            sent_at: Instant::ZERO,
            pending: 0,
            heard_at: Instant::ZERO,
            exchanges: BTreeMap::new(),
        };
        let mut cluster = Self {
            now: Instant::from_millis(1000),
            random: Random::new(seed),
            store: Store::default(),
            store_down_until: Instant::ZERO,
            nodes: (0..count).map(|_| node()).collect(),
            replies: Vec::new(),
            woken: Vec::new(),
            agenda: BTreeMap::new(),
            count: 0,
            options,
            jitter: false,
            lost_events: false,
            heartbeat_delay: Duration::ZERO,
            append_delay: Duration::ZERO,
            throughput: None,
            observer: None,
        };
        for at in 0..count {
            cluster.start(at);
        }
        cluster
    }

    /// Starts the process of a node.
    pub(crate) fn start(&mut self, at: usize) {
        let mut secret = [0; 32];
        secret.iter_mut().for_each(|byte| *byte = self.random.below(256) as u8);
        let mut peer =
            ServerOptions::new(Implementation::new("s", "1")).capabilities(capabilities());
        if let Some(observer) = &self.observer {
            peer = peer.operation_observer(Arc::clone(observer));
        }
        let options =
            HttpServerOptions::new().shared(self.options.clone()).legacy_sse("/sse", "/messages");
        let server = Server::new(peer, options, secret, at as u64).expect("valid tools");
        self.nodes[at].server = Some(server);
        self.pump(at);
    }

    /// Ends the process of a node, and starts another one after `pause`.
    pub(crate) fn kill(&mut self, at: usize, pause: Duration) {
        if self.nodes[at].server.take().is_none() {
            return;
        }
        self.nodes[at].life += 1;
        self.nodes[at].pending = 0;
        for (_, reply) in core::mem::take(&mut self.nodes[at].exchanges) {
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
        if !self.jitter {
            return LATENCY;
        }
        // An action and its completion take less than the server's patience.
        let long = self.random.once_in(40);
        Duration::from_micros(200 + self.random.below(if long { 2_000_000 } else { 4000 }))
    }

    pub(crate) fn server(&mut self, at: usize) -> &mut Server {
        self.nodes[at].server.as_mut().expect("the node runs")
    }

    /// Returns a running node.
    pub(crate) fn any_node(&mut self) -> Option<usize> {
        let up: Vec<usize> =
            (0..self.nodes.len()).filter(|at| self.nodes[*at].server.is_some()).collect();
        self.random.pick(&up).copied()
    }

    /// Sends a request to a node. Returns the index of its reply.
    pub(crate) fn request(&mut self, at: usize, client: usize, request: Outgoing) -> usize {
        let reply = self.replies.len();
        self.replies.push(Reply { client, ..Reply::default() });
        let life = self.nodes[at].life;
        let at_time = self.now + LATENCY;
        self.plan(at_time, Due::Request(at, life, reply, Box::new(request)));
        reply
    }

    fn receive(&mut self, at: usize, reply: usize, request: &Outgoing) {
        let now = self.now;
        if self.replies[reply].broken {
            return;
        }
        let Some(server) = &mut self.nodes[at].server else { return };
        let target = if request.target.is_empty() { "/mcp" } else { &request.target };
        let mut head = RequestHead::new(request.method, target);
        head.field("host", b"localhost");
        head.field("content-type", b"application/json");
        head.field("accept", b"application/json, text/event-stream");
        if let Some(session) = &request.session {
            head.field("mcp-session-id", session.as_bytes());
        }
        if let Some(last) = &request.last_event {
            head.field("last-event-id", last.as_bytes());
        }
        if let Some(last) = request.address {
            head.remote_address(RemoteAddress::new([127, 0, 0, last].into()));
        }
        let caller = match request.principal {
            Some(name) => Caller::from_principal(Principal::new(name)),
            None => Caller::ANONYMOUS,
        };
        let (exchange, event) = server.handle_request(&head, request.body.as_bytes(), &caller, now);
        let event = event.map(Event::into_owned);
        self.nodes[at].exchanges.insert(exchange, reply);
        self.replies[reply].place = Some((at, exchange));
        if let Some(event) = event {
            self.on_event(at, event);
        }
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

    /// Handles the output of a node.
    pub(crate) fn pump(&mut self, at: usize) {
        let now = self.now;
        loop {
            let (most, each) = self.throughput.unwrap_or((usize::MAX, Duration::ZERO));
            let Node { server: Some(server), pending, .. } = &mut self.nodes[at] else { return };
            // It takes as long as there are actions, of which there are many if the store is slow.
            if self.throughput.is_none() {
                server.assert_consistent();
            }
            if let Some(event) = server.poll_event() {
                self.on_event(at, event);
                continue;
            }
            if *pending >= most {
                break;
            }
            let Some(action) = server.poll_store() else { break };
            *pending += 1;
            let life = self.nodes[at].life;
            let latency = self.latency();
            let arrival = (now + latency).max(self.nodes[at].sent_at + each);
            self.nodes[at].sent_at = arrival;
            self.plan(arrival, Due::Arrive(at, life, action));
        }
        let Node { server: Some(server), exchanges, .. } = &mut self.nodes[at] else { return };
        while let Some(exchange) = server.poll_ready() {
            let Some(index) = exchanges.get(&exchange).copied() else { continue };
            let reply = &mut self.replies[index];
            while let Some(transmit) = server.poll_transmit(exchange, now) {
                match transmit {
                    ServerTransmit::Respond(response) => {
                        assert_eq!(reply.status, None, "a second head");
                        reply.status = Some(response.head.status.0);
                        let session =
                            response.head.fields().find(|(name, _)| *name == "mcp-session-id");
                        reply.session = session.map(|(_, id)| String::from(id));
                        reply.body = response.body;
                        reply.complete = true;
                    }
                    ServerTransmit::Open(head) => {
                        assert_eq!(reply.status, None, "a second head");
                        reply.status = Some(head.status.0);
                    }
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

    fn on_event(&mut self, at: usize, event: Event<'static>) {
        match event {
            Event::Request(request) => self.on_request(at, request),
            // A client repeats an answer whose acknowledgement was lost.
            Event::Violation(Violation::UnknownResponse(_)) => {}
            Event::Violation(violation) => panic!("{violation:?}"),
            _ => {}
        }
    }

    fn on_request(&mut self, at: usize, request: Request<'static>) {
        let (now, life, handle) = (self.now, self.nodes[at].life, request.handle);
        let name: String =
            request.params.get("name").and_then(|name| name.decode().ok()).unwrap_or_default();
        let pause = Duration::from_millis(1 + self.random.below(400));
        match name.split_once('-') {
            Some(("ask", _)) if request.inputs.responses().is_none() => {
                let server = self.nodes[at].server.as_mut().expect("the node runs");
                server.require_input(&request, &ask_for_roots(), now).expect("it is pending");
                self.pump(at);
            }
            Some(("stream", count)) => {
                let of = count.parse().expect("a number");
                let step = Step::Progress { at: 1, of, pause: pause / 4 };
                self.plan(now + pause, Due::Work(at, life, handle, step));
            }
            _ => self.plan(now + pause, Due::Work(at, life, handle, Step::Respond)),
        }
    }

    fn work(&mut self, at: usize, handle: RequestHandle, step: Step) {
        let (now, life) = (self.now, self.nodes[at].life);
        let server = self.nodes[at].server.as_mut().expect("the node runs");
        if !server.is_pending(handle) {
            return;
        }
        match step {
            Step::Progress { at: number, of, pause } => {
                server.progress(handle, f64::from(number), Some(f64::from(of)), None, now);
                let next = if number == of {
                    Step::Respond
                } else {
                    Step::Progress { at: number + 1, of, pause }
                };
                self.plan(now + pause, Due::Work(at, life, handle, next));
            }
            Step::Respond => {
                let result = RawJson::parse(r#"{"content":[]}"#).expect("JSON");
                server.respond_with(handle, &result, now).expect("it is pending");
            }
        }
        self.pump(at);
    }

    fn arrive(&mut self, at: usize, life: u32, action: StoreAction) {
        let now = self.now;
        let lost = self.nodes[at].cut_until > now || self.store_down_until > now;
        if lost {
            // Sometimes the node only notices that there is no answer.
            let is_event = matches!(action, StoreAction::Append { .. });
            let failure = Store::failure(&action)
                .filter(|_| is_event || !(self.jitter && self.random.once_in(3)));
            self.lost_events |= is_event;
            if let Some(completion) = failure {
                let latency = self.latency();
                self.plan(now + latency, Due::Complete(at, life, completion));
            }
            return;
        }
        let delay = match action {
            StoreAction::Heartbeat { .. } => self.heartbeat_delay,
            StoreAction::Append { .. } => self.append_delay,
            _ => Duration::ZERO,
        };
        let effects = self.store.execute(action, now);
        if let Some(message) = effects.message {
            for other in 0..self.nodes.len() {
                let Some(server) = &self.nodes[other].server else { continue };
                let Some(id) = server.node_id().filter(|id| message.is_for(*id)) else { continue };
                if self.store.admit(id, &message) {
                    // The store keeps it for a node that does not reach it.
                    let reached = now.max(self.nodes[other].cut_until).max(self.store_down_until);
                    let when = (reached + self.latency()).max(self.nodes[other].heard_at);
                    self.nodes[other].heard_at = when;
                    let life = self.nodes[other].life;
                    let share = (id, message.share.caller.clone());
                    self.plan(when, Due::Message(other, life, message.text.clone(), share));
                }
            }
        }
        if let Some(completion) = effects.completion {
            let latency = self.latency() + delay;
            self.plan(now + latency, Due::Complete(at, life, completion));
        }
    }

    /// Removes everything from the store, as a restart without persistence does.
    pub(crate) fn empty_store(&mut self) {
        self.lost_events = true;
        self.store.empty();
        for (at, due) in core::mem::take(&mut self.agenda) {
            if matches!(due, Due::Message(..)) {
                self.forget_message(&due);
            } else {
                self.agenda.insert(at, due);
            }
        }
    }

    /// Frees the room of a message that is lost.
    fn forget_message(&mut self, due: &Due) {
        if let Due::Message(_, _, message, (node, caller)) = due {
            self.store.take(*node, caller, message.len());
        }
    }

    /// Fails over to a replica of the store that does not have the last event of each stream, nor
    /// the last message to each node.
    pub(crate) fn fail_over(&mut self) {
        self.lost_events = true;
        self.store.lose_events(1);
        self.store.lose_tasks(self.now);
        for node in 0..self.nodes.len() {
            let of_node = |due: &Due| matches!(due, Due::Message(to, ..) if *to == node);
            let last = self.agenda.iter().rev().find(|(_, due)| of_node(due));
            if let Some(at) = last.map(|(at, _)| *at)
                && let Some(due) = self.agenda.remove(&at)
            {
                self.forget_message(&due);
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
        timers.chain(planned).min()
    }

    /// Checks that an event which a client has received cannot be forgotten, if that was asked for.
    pub(crate) fn check_durable(&self, session: &str, event: &str) {
        if self.options.durable && !self.lost_events {
            assert!(self.store.has_event(session, event), "{event} is not stored");
        }
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
        for at in 0..self.nodes.len() {
            let node = &mut self.nodes[at];
            if node.paused_until > now {
                continue;
            }
            if let Some(server) = &mut node.server
                && server.poll_timeout().is_some_and(|due| due <= now)
            {
                server.handle_timeout(now);
                self.pump(at);
            }
        }
        let planned = self.agenda.first_key_value().is_some_and(|((at, _), _)| *at <= now);
        if !planned {
            return true;
        }
        let Some((_, due)) = self.agenda.pop_first() else { return true };
        self.happen(due);
        true
    }

    fn happen(&mut self, due: Due) {
        let now = self.now;
        let (node, lives) = match &due {
            Due::Arrive(at, life, _) => (Some(*at), self.nodes[*at].life == *life),
            Due::Complete(at, life, _)
            | Due::Message(at, life, ..)
            | Due::Work(at, life, ..)
            | Due::Request(at, life, ..) => {
                let node = &self.nodes[*at];
                (Some(*at), node.life == *life && node.server.is_some())
            }
            _ => (None, true),
        };
        // Actions that a node has sent before its end may still arrive.
        if !lives && !matches!(due, Due::Arrive(..)) {
            self.forget_message(&due);
            if let Due::Request(_, _, reply, _) = due {
                self.replies[reply].broken = true;
                self.woken.push(self.replies[reply].client);
            }
            return;
        }
        if let Some(at) = node
            && self.nodes[at].paused_until > now
            && !matches!(due, Due::Arrive(..))
        {
            let until = self.nodes[at].paused_until;
            return self.plan(until, due);
        }
        match due {
            Due::Arrive(at, life, action) => {
                self.arrive(at, life, action);
                if self.nodes[at].life == life {
                    self.nodes[at].pending -= 1;
                    if self.throughput.is_some() {
                        self.pump(at);
                    }
                }
            }
            Due::Complete(at, _, completion) => {
                let server = self.server(at);
                match completion {
                    Completion::Action(action, result) => server.handle_store(action, result, now),
                    Completion::Events(read, events) => server.handle_stored(read, events, now),
                    Completion::ReadFailed(read) => server.fail_read(read, now),
                    Completion::Refused(place) => server.handle_append_refused(&place, now),
                    Completion::Appended(place) => server.handle_appended(&place),
                }
                self.pump(at);
            }
            Due::Message(at, _, message, (node, caller)) => {
                self.store.take(node, &caller, message.len());
                self.server(at).handle_node_message(&message, now);
                self.pump(at);
            }
            Due::Work(at, _, handle, step) => self.work(at, handle, step),
            Due::Request(at, _, reply, request) => self.receive(at, reply, &request),
            Due::Start(at) => self.start(at),
            Due::Wake(client) => self.woken.push(client),
        }
    }

    /// Advances the clock.
    pub(crate) fn advance(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.step(end) {}
    }
}
