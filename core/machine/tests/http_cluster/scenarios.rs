//! Single situations, in which every step is known.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::catalog::Changes;
use mcp_sansio::http::{EventPosition, SessionId, SharedOptions};
use mcp_sansio::peer::{
    Observation, Operation, OperationEnd, OperationObserver, OperationOutcome, ServerMachine,
};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Outgoing, Reply};

pub(crate) const SOON: Duration = Duration::from_millis(900);

impl Cluster {
    /// Sends a request to a node and waits a second. Returns the index of its reply.
    pub(crate) fn ask(&mut self, at: usize, request: Outgoing) -> usize {
        let reply = self.request(at, 0, request);
        self.advance(SOON);
        reply
    }

    pub(crate) fn post(&mut self, at: usize, session: &str, body: &Value) -> usize {
        let session = Some(session.to_owned());
        self.ask(
            at,
            Outgoing { method: "POST", session, body: body.to_string(), ..Outgoing::default() },
        )
    }

    pub(crate) fn get(&mut self, at: usize, session: &str, last_event: Option<&str>) -> usize {
        let session = Some(session.to_owned());
        let last_event = last_event.map(str::to_owned);
        self.ask(at, Outgoing { method: "GET", session, last_event, ..Outgoing::default() })
    }

    /// Opens a session on a node, and confirms it on another one.
    pub(crate) fn open(&mut self, at: usize, confirmed_at: usize) -> String {
        let session = self.initialize(at, "2025-11-25");
        let confirmed = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let reply = self.post(confirmed_at, &session, &confirmed);
        assert_eq!(self.replies[reply].status, Some(202));
        session
    }

    /// Opens a session on a node, which its client has not confirmed.
    pub(crate) fn initialize(&mut self, at: usize, revision: &str) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {"roots": {}},
            "clientInfo": {"name": "c", "version": "1"}}});
        let method = "POST";
        let reply =
            self.ask(at, Outgoing { method, body: body.to_string(), ..Outgoing::default() });
        self.replies[reply].session.clone().expect("a session")
    }

    pub(crate) fn call(&mut self, at: usize, session: &str, id: u32, name: &str) -> usize {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": name, "_meta": {"progressToken": id}}});
        self.post(at, session, &body)
    }
}

impl Reply {
    pub(crate) fn messages(&self) -> Vec<Value> {
        let data = self.text().lines().filter_map(|line| line.strip_prefix("data: "));
        // An event without data only has an id.
        data.filter(|text| !text.is_empty())
            .map(|text| serde_json::from_str(text).expect("JSON"))
            .collect()
    }

    pub(crate) fn last_id(&self) -> &str {
        let mut ids = self.text().lines().filter_map(|line| line.strip_prefix("id: "));
        ids.next_back().expect("an event id")
    }
}

#[test]
fn a_session_is_served_by_any_node() {
    let mut cluster = Cluster::new(3, 1);
    let session = cluster.open(0, 1);
    for (at, id) in [(2, 1), (0, 2), (1, 3)] {
        let reply = cluster.call(at, &session, id, "plain");
        assert_eq!(cluster.replies[reply].json()["id"], id, "node {at}");
    }
    assert!(cluster.store.session_bytes(&session) <= 1024);
    // A call where the session is known costs no action.
    let executed = |cluster: &Cluster| {
        let mut executed = cluster.store.executed.clone();
        executed.remove("heartbeat");
        executed
    };
    let before = executed(&cluster);
    cluster.call(2, &session, 4, "plain");
    assert_eq!(executed(&cluster), before);
}

#[test]
fn a_session_belongs_to_its_principal_on_every_node() {
    // Rule: [SESS-014].
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let other = Outgoing {
        method: "POST",
        session: Some(session),
        body,
        principal: Some("mallory"),
        ..Outgoing::default()
    };
    let reply = cluster.ask(1, other);
    assert_eq!(cluster.replies[reply].status, Some(404));
}

#[test]
fn the_end_of_a_session_ends_it_on_all_nodes() {
    // Rule: [SESS-010].
    let mut cluster = Cluster::new(3, 1);
    let session = cluster.open(0, 1);
    let stream = cluster.get(0, &session, None);
    let method = "DELETE";
    let reply =
        cluster.ask(2, Outgoing { method, session: Some(session.clone()), ..Outgoing::default() });
    assert_eq!(cluster.replies[reply].status, Some(204));
    assert!(cluster.replies[stream].complete);
    for at in 0..3 {
        let reply = cluster.call(at, &session, 1, "plain");
        assert_eq!(cluster.replies[reply].status, Some(404), "node {at}");
        assert_eq!(cluster.server(at).session_count(), 0);
    }
    assert_eq!(cluster.store.session_count(), 0);
}

#[test]
fn a_broken_stream_resumes_on_another_node_and_follows_live() {
    // Rule: [RESUME-006] [RESUME-007].
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "stream-200", "_meta": {"progressToken": 1}}});
    let first = cluster.post(0, &session, &body);
    let before = cluster.replies[first].messages().len();
    assert!((1..200).contains(&before), "{before}");
    cluster.disconnect(first);
    let last = cluster.replies[first].last_id().to_owned();
    let second = cluster.get(1, &session, Some(&last));
    let meanwhile = cluster.replies[second].messages().len();
    assert!(meanwhile > 0 && before + meanwhile < 201, "{before} and {meanwhile}");
    cluster.advance(Duration::from_secs(20));
    let (first, second) = (&cluster.replies[first], &cluster.replies[second]);
    assert!(second.complete);
    let all: Vec<Value> = first.messages().into_iter().chain(second.messages()).collect();
    let progress: Vec<u64> =
        all.iter().filter_map(|it| it["params"]["progress"].as_f64()).map(|it| it as u64).collect();
    assert_eq!(progress, (1..=200).collect::<Vec<u64>>());
    assert_eq!(all.last().unwrap()["id"], 1);
}

#[test]
fn a_client_gets_events_when_they_are_stored_if_that_is_asked_for() {
    let mut options = SharedOptions::new();
    for durable in [false, true] {
        options.durable = durable;
        let mut cluster = Cluster::with(2, 1, options.clone());
        let session = cluster.open(0, 0);
        cluster.append_delay = Duration::from_secs(2);
        let reply = cluster.call(0, &session, 1, "stream-3");
        assert_eq!(cluster.replies[reply].messages().is_empty(), durable);
        assert_eq!(cluster.replies[reply].status, Some(200));
        cluster.advance(Duration::from_secs(3));
        assert!(cluster.replies[reply].complete);
        assert_eq!(cluster.replies[reply].messages().len(), 4);
        // They are sent without the store if it fails.
        cluster.store_down_until = cluster.now + Duration::from_secs(60);
        let reply = cluster.call(0, &session, 2, "stream-3");
        cluster.advance(Duration::from_secs(3));
        assert_eq!(cluster.replies[reply].messages().len(), 4);
    }
}

#[test]
fn messages_without_a_request_wait_for_no_store_that_has_refused_their_stream() {
    let mut options = SharedOptions::new();
    options.durable = true;
    let mut cluster = Cluster::with(2, 1, options);
    let session = cluster.open(0, 0);
    cluster.append_delay = Duration::from_secs(60);
    let first = cluster.get(0, &session, None);
    let announce = |cluster: &mut Cluster| {
        let now = cluster.now;
        cluster.server(0).announce(Changes::new().tools(true), now);
        cluster.pump(0);
        cluster.advance(SOON);
    };
    announce(&mut cluster);
    assert!(cluster.replies[first].messages().is_empty(), "it is not stored yet");
    let place = EventPosition {
        session: SessionId::parse(session.as_bytes()).unwrap(),
        stream: 1 << 18,
        sequence: 1,
        principal: None,
    };
    let now = cluster.now;
    cluster.server(0).handle_append_refused(&place, now);
    cluster.pump(0);
    let second = cluster.get(0, &session, None);
    announce(&mut cluster);
    assert!(!cluster.replies[second].messages().is_empty());
}

#[test]
fn an_answer_reaches_the_node_that_asked() {
    let mut cluster = Cluster::new(3, 1);
    let session = cluster.open(0, 0);
    let reply = cluster.call(0, &session, 1, "ask-0");
    let question = cluster.replies[reply].messages()[0].clone();
    assert_eq!(question["method"], "roots/list");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    let accepted = cluster.post(2, &session, &answer);
    assert_eq!(cluster.replies[accepted].status, Some(202));
    cluster.advance(SOON);
    assert_eq!(cluster.replies[reply].messages()[1]["id"], 1);
    assert!(cluster.replies[reply].complete);
}

#[test]
fn a_client_is_told_at_any_node_that_a_question_of_a_cancelled_call_is_withdrawn() {
    // Rule: [RESUME-006].
    let mut options = SharedOptions::new();
    for durable in [false, true] {
        options.durable = durable;
        let mut cluster = Cluster::with(2, 1, options.clone());
        let session = cluster.open(0, 0);
        let call = cluster.call(0, &session, 1, "ask-0");
        let last = cluster.replies[call].last_id().to_owned();
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 1}});
        cluster.post(0, &session, &cancel);
        let resumed = cluster.get(1, &session, Some(&last));
        assert!(cluster.replies[call].complete, "{durable}");
        let messages = [call, resumed].map(|reply| cluster.replies[reply].messages());
        assert_eq!(messages[0][1]["method"], "notifications/cancelled");
        assert_eq!(messages[1], messages[0][1..], "{durable}");
    }
}

#[test]
fn a_cancellation_reaches_the_node_that_runs_the_request() {
    // Rule: [CANC-003].
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let reply = cluster.call(0, &session, 1, "stream-200");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1}});
    cluster.post(1, &session, &cancel);
    let reply = &cluster.replies[reply];
    assert!(reply.complete);
    assert!(reply.messages().iter().all(|message| message.get("id").is_none()));
}

#[test]
fn changes_of_a_session_and_of_resources_reach_all_nodes() {
    // Rule: [HSRV-017].
    let mut cluster = Cluster::new(3, 1);
    let session = cluster.open(0, 0);
    // Every node has a replica.
    for at in 0..3 {
        cluster.call(at, &session, 1, "plain");
    }
    let stream = cluster.get(1, &session, None);
    let subscribe = json!({"jsonrpc": "2.0", "id": 9, "method": "resources/subscribe",
        "params": {"uri": "mem://a"}});
    let reply = cluster.post(2, &session, &subscribe);
    assert_eq!(cluster.replies[reply].json()["id"], 9);
    let now = cluster.now;
    for at in 0..3 {
        cluster.server(at).resource_updated("mem://a", now);
        cluster.server(at).announce(Changes::new().tools(true), now);
        cluster.pump(at);
        cluster.advance(SOON);
    }
    let methods: Vec<String> = cluster.replies[stream]
        .messages()
        .iter()
        .map(|message| message["method"].as_str().unwrap().to_owned())
        .collect();
    let pair = ["notifications/resources/updated", "notifications/tools/list_changed"];
    assert_eq!(methods, [pair, pair, pair].concat(), "each once");
    // The stream moves to another node.
    let moved = cluster.get(2, &session, None);
    assert!(cluster.replies[stream].complete);
    let now = cluster.now;
    cluster.server(0).resource_updated("mem://a", now);
    cluster.pump(0);
    cluster.advance(SOON);
    assert_eq!(cluster.replies[stream].messages().len(), 6);
    assert_eq!(cluster.replies[moved].messages().len(), 1);
}

#[test]
fn a_call_of_a_dead_node_ends_with_one_error() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let first = cluster.call(0, &session, 1, "stream-400");
    cluster.kill(0, Duration::from_secs(3600));
    let last = cluster.replies[first].last_id().to_owned();
    let second = cluster.get(1, &session, Some(&last));
    cluster.advance(Duration::from_secs(40));
    let reply = &cluster.replies[second];
    assert!(reply.complete);
    let end = reply.messages().last().cloned().unwrap();
    assert_eq!((&end["id"], &end["error"]["code"]), (&json!(1), &json!(-32603)));
    // Another reader gets the same end.
    let third = cluster.get(1, &session, Some(&last));
    cluster.advance(Duration::from_secs(10));
    assert_eq!(cluster.replies[third].messages(), cluster.replies[second].messages());
}

#[test]
fn a_reader_is_told_if_the_store_loses_the_last_event() {
    // Rule: [RESUME-007].
    for fault in [Cluster::fail_over, Cluster::empty_store] {
        let mut cluster = Cluster::new(2, 1);
        let session = cluster.open(0, 0);
        let first = cluster.call(0, &session, 1, "stream-20");
        cluster.disconnect(first);
        let last = cluster.replies[first].last_id().to_owned();
        cluster.advance(Duration::from_secs(10));
        fault(&mut cluster);
        let second = cluster.get(1, &session, Some(&last));
        cluster.advance(Duration::from_secs(15));
        assert!(cluster.replies[second].is_over(), "the reader waits");
        // Its response began with the events that are left.
        let rest = &cluster.replies[second];
        let last = if rest.text().contains("id: ") { rest.last_id().to_owned() } else { last };
        let third = cluster.get(1, &session, Some(&last));
        cluster.advance(Duration::from_secs(15));
        let told = [second, third].map(|reply| cluster.replies[reply].status);
        assert!(told.contains(&Some(410)), "{told:?}");
    }
}

#[test]
fn the_end_of_a_call_whose_id_the_store_has_lost_is_no_event() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let first = cluster.call(0, &session, 1, "stream-400");
    let last = cluster.replies[first].last_id().to_owned();
    cluster.nodes[0].paused_until = cluster.now + Duration::from_secs(60);
    cluster.empty_store();
    cluster.advance(Duration::from_secs(20));
    let second = cluster.get(1, &session, Some(&last));
    cluster.advance(Duration::from_secs(30));
    // The paused node has events of the same numbers.
    let reply = &cluster.replies[second];
    assert!(reply.is_over() && !reply.text().contains("id: "), "{reply:?}");
}

#[test]
fn a_node_that_gets_a_new_id_while_it_opens_a_session_is_found() {
    let mut cluster = Cluster::new(2, 1);
    let (followed, session) = (cluster.open(1, 1), cluster.open(0, 0));
    let first = cluster.call(1, &followed, 1, "stream-400");
    let last = cluster.replies[first].last_id().to_owned();
    let node = cluster.server(1).node_id();
    cluster.nodes[1].paused_until = cluster.now + Duration::from_secs(40);
    cluster.get(0, &followed, Some(&last));
    // It arrives together with the heartbeat that finds the node deposed.
    let reply = cluster.call(1, &session, 2, "ask-0");
    cluster.advance(Duration::from_secs(45));
    assert_ne!(cluster.server(1).node_id(), node);
    let question = cluster.replies[reply].messages()[0].clone();
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    cluster.post(0, &session, &answer);
    cluster.advance(SOON);
    assert_eq!(cluster.replies[reply].messages()[1]["id"], 2);
}

#[test]
fn a_session_is_not_gone_because_of_a_heartbeat_before_the_store_was_emptied() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    cluster.heartbeat_delay = Duration::from_millis(1500);
    let heartbeats = cluster.store.executed["heartbeat"];
    while cluster.store.executed["heartbeat"] < heartbeats + 2 {
        cluster.advance(Duration::from_millis(1));
    }
    // Both heartbeats have found the contents, and their results are in flight.
    cluster.empty_store();
    let reply = cluster.call(1, &session, 1, "plain");
    cluster.advance(Duration::from_secs(5));
    assert_eq!(cluster.replies[reply].status, Some(503));
}

#[test]
fn a_slow_node_that_was_replaced_stops_speaking() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let first = cluster.call(0, &session, 1, "stream-400");
    let last = cluster.replies[first].last_id().to_owned();
    let seen = cluster.replies[first].body.len();
    let node = cluster.server(0).node_id();
    cluster.nodes[0].paused_until = cluster.now + Duration::from_secs(60);
    let second = cluster.get(1, &session, Some(&last));
    cluster.advance(Duration::from_secs(50));
    assert_eq!(cluster.replies[second].messages().last().unwrap()["error"]["code"], -32603);
    cluster.advance(Duration::from_secs(60));
    // It woke up, and found that it has lost its lease.
    assert!(cluster.replies[first].broken);
    assert_ne!(cluster.server(0).node_id(), node);
    let more = &cluster.replies[first].text()[seen..];
    assert!(!more.contains("\"result\""), "{more}");
    // It serves again.
    let reply = cluster.call(0, &session, 2, "plain");
    assert_eq!(cluster.replies[reply].json()["id"], 2);
}

#[test]
fn a_pause_of_the_store_costs_no_call_and_no_session() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 1);
    let nodes = [0, 1].map(|at| cluster.server(at).node_id());
    let stream = cluster.call(0, &session, 1, "stream-100");
    cluster.store_down_until = cluster.now + Duration::from_secs(40);
    cluster.advance(Duration::from_secs(20));
    assert!(!cluster.server(0).is_store_available());
    // Known sessions continue, and unknown ones and new ones are told to come back.
    let reply = cluster.call(1, &session, 2, "plain");
    assert_eq!(cluster.replies[reply].json()["id"], 2);
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let method = "POST";
    let reply = cluster.ask(0, Outgoing { method, body: body.to_string(), ..Outgoing::default() });
    assert_eq!(cluster.replies[reply].status, Some(503));
    let reply = cluster.call(0, &"0".repeat(32), 3, "plain");
    assert_eq!(cluster.replies[reply].status, Some(503));
    cluster.advance(Duration::from_secs(40));
    assert!(cluster.server(0).is_store_available());
    assert_eq!([0, 1].map(|at| cluster.server(at).node_id()), nodes);
    assert!(cluster.replies[stream].complete);
    assert_eq!(cluster.replies[stream].messages().len(), 101);
}

#[test]
fn sessions_survive_a_store_that_restarts_empty() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    cluster.empty_store();
    // Before any heartbeat: the other node does not say that the session is gone.
    let reply = cluster.call(1, &session, 1, "plain");
    assert_eq!(cluster.replies[reply].status, Some(503));
    cluster.advance(Duration::from_secs(20));
    for (at, id) in [(1, 2), (0, 3)] {
        let reply = cluster.call(at, &session, id, "plain");
        assert_eq!(cluster.replies[reply].json()["id"], id, "node {at}");
    }
}

#[test]
fn a_message_of_http_sse_at_another_node_is_told_where_it_belongs() {
    let mut cluster = Cluster::new(2, 1);
    let target = "/sse".to_owned();
    let opened = cluster.ask(0, Outgoing { method: "GET", target, ..Outgoing::default() });
    let endpoint = cluster.replies[opened].text().lines().find_map(|it| it.strip_prefix("data: "));
    let endpoint = endpoint.expect("an endpoint").to_owned();
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let mut post = |at| {
        let (target, body) = (endpoint.clone(), body.to_string());
        let reply =
            cluster.ask(at, Outgoing { method: "POST", target, body, ..Outgoing::default() });
        (cluster.replies[reply].status, cluster.replies[reply].text().to_owned())
    };
    let (status, refused) = post(1);
    assert_eq!(status, Some(404));
    assert!(refused.contains("must reach the node of their event stream"), "{refused}");
    assert_eq!(post(0).0, Some(202));
    assert!(cluster.replies[opened].text().contains("\"protocolVersion\":\"2024-11-05\""));
}

#[test]
fn a_node_keeps_its_replica_when_it_reads_a_session_that_the_store_has_lost() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 1);
    let reply = cluster.call(0, &session, 1, "ask-0");
    let question = cluster.replies[reply].messages()[0].clone();
    cluster.empty_store();
    // A heartbeat for an unknown session: this node stores its replica again, the other one not
    // yet.
    let unknown = cluster.call(1, &"0".repeat(32), 2, "plain");
    assert_eq!(cluster.replies[unknown].status, Some(503));
    assert_eq!(cluster.store.session_count(), 1);
    let opened = cluster.store.executed.get("open").copied();
    let read = cluster.store.executed["read session"];
    // An event of a replica that is not known either: the node reads the session.
    cluster.get(0, &session, Some(&format!("{}-1", 9 << 18)));
    assert_eq!(cluster.store.executed["read session"], read + 1);
    assert_eq!(cluster.store.executed.get("open").copied(), opened, "to read takes no number");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}});
    cluster.post(0, &session, &answer);
    assert_eq!(cluster.replies[reply].messages()[1]["id"], 1);
}

#[test]
fn sessions_are_stored_again_soon_after_an_empty_store_answers() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    cluster.store_down_until = cluster.now + Duration::from_secs(11);
    cluster.advance(Duration::from_secs(11));
    cluster.empty_store();
    // Less than the usual pause between two heartbeats.
    cluster.advance(Duration::from_secs(3));
    let reply = cluster.call(1, &session, 1, "plain");
    assert_eq!(cluster.replies[reply].json()["id"], 1);
}

#[test]
fn a_node_that_closes_ends_the_streams_without_requests_of_other_nodes() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let first = cluster.get(0, &session, None);
    let last = cluster.replies[first].last_id().to_owned();
    let moved = cluster.get(1, &session, Some(&last));
    let now = cluster.now;
    cluster.server(1).close(now);
    cluster.pump(1);
    assert!(cluster.replies[moved].complete);
    assert!(cluster.server(1).is_drained());
    let late = cluster.get(1, &session, Some(&last));
    assert_eq!(cluster.replies[late].status, Some(503));
    let back = cluster.get(0, &session, Some(&last));
    assert_eq!(cluster.replies[back].status, Some(200));
    assert!(!cluster.replies[back].is_over());
}

/// Notes the method of each operation, the address of its sender, and the status of a refusal.
#[derive(Clone, Debug, Default)]
struct Observed(Arc<Mutex<Vec<Seen>>>);

type Seen = (String, String, Option<u16>);

#[derive(Debug)]
struct Begun(Observed, String, String);

impl OperationObserver for Observed {
    fn begin(&self, operation: &Operation<'_>) -> Option<Arc<dyn Observation>> {
        let address = operation.transport.peer_address.clone().unwrap_or_default();
        Some(Arc::new(Begun(self.clone(), operation.method.to_owned(), address)))
    }
}

impl Observation for Begun {
    fn end(&self, end: &OperationEnd<'_>) {
        let status = match end.outcome {
            OperationOutcome::Refused { status, .. } => Some(status),
            _ => None,
        };
        self.0.0.lock().unwrap().push((self.1.clone(), self.2.clone(), status));
    }
}

#[test]
fn a_request_that_has_waited_for_its_session_is_observed_as_its_own() {
    // Rule: [TRACE-008].
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let observed = Observed::default();
    cluster.observer = Some(Arc::new(observed.clone()));
    cluster.kill(1, Duration::ZERO);
    cluster.advance(SOON);
    let post = |method: &str, session: &str, address| Outgoing {
        method: "POST",
        session: Some(session.to_owned()),
        body: json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string(),
        address: Some(address),
        ..Outgoing::default()
    };
    cluster.request(1, 0, post("ping", &session, 1));
    cluster.request(1, 0, post("tools/list", &"0".repeat(32), 2));
    cluster.request(1, 0, post("ping", &session, 3));
    cluster.advance(SOON);
    let seen = observed.0.lock().unwrap().clone();
    let operation =
        |method: &str, last: u8, status| (method.to_owned(), format!("127.0.0.{last}"), status);
    for expected in [
        operation("ping", 1, None),
        operation("tools/list", 2, Some(404)),
        operation("ping", 3, None),
    ] {
        assert!(seen.contains(&expected), "{expected:?} in {seen:?}");
    }
}

#[test]
fn a_node_that_leaves_is_replaced_at_once() {
    let mut cluster = Cluster::new(2, 1);
    let session = cluster.open(0, 0);
    let node = cluster.server(0).node_id().unwrap();
    let first = cluster.get(0, &session, None);
    let last = cluster.replies[first].last_id().to_owned();
    cluster.server(0).leave();
    cluster.pump(0);
    cluster.advance(SOON);
    assert_eq!(cluster.store.lease_end(node), None);
    cluster.kill(0, Duration::from_secs(3600));
    cluster.advance(Duration::from_secs(6));
    // The stream without requests continues on the node that gets its reader.
    let second = cluster.get(1, &session, Some(&last));
    cluster.advance(Duration::from_secs(10));
    let now = cluster.now;
    cluster.server(1).announce(Changes::new().tools(true), now);
    cluster.pump(1);
    cluster.advance(SOON);
    assert_eq!(cluster.replies[second].messages().len(), 1);
    assert!(!cluster.replies[second].is_over());
}
