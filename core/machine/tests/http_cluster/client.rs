//! A client that makes calls through any node, loses connections, and checks its responses.

use std::time::Duration;

use mcp_sansio::Instant;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Outgoing};

#[derive(Debug)]
pub(crate) struct Client {
    number: usize,
    session: Option<String>,
    state: State,
    next_id: u32,
    /// Calls to go.
    left: u32,
    /// Answers and confirmations that are not accepted yet, with their replies.
    posts: Vec<(String, usize)>,
    /// When to try again what no node has accepted.
    retry_at: Option<Instant>,
    /// How each call ended.
    pub(crate) ends: Ends,
    /// Sessions that were opened again because the old one was lost.
    pub(crate) lost_sessions: u32,
    /// How often a client cuts its own connection, once in so many events. 0: never.
    pub(crate) cuts: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) results: u32,
    /// The node has failed, as another node said.
    pub(crate) failed: u32,
    /// 503, or a connection that was lost without an event id.
    pub(crate) refused: u32,
    /// 410.
    pub(crate) lost: u32,
    /// How often a stream was resumed.
    pub(crate) resumed: u32,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening(usize),
    Confirming(usize),
    Calling(Call),
    Done,
}

#[derive(Debug)]
struct Call {
    id: u32,
    steps: u32,
    reply: Option<usize>,
    last_event: Option<String>,
    progress: u32,
}

impl Client {
    pub(crate) fn new(number: usize, calls: u32, cuts: u64) -> Self {
        Self {
            number,
            session: None,
            state: State::Idle,
            next_id: 1,
            left: calls,
            posts: Vec::new(),
            retry_at: None,
            ends: Ends::default(),
            lost_sessions: 0,
            cuts,
        }
    }

    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    fn post(&self, cluster: &mut Cluster, body: String) -> Option<usize> {
        let at = cluster.any_node()?;
        let session = self.session.clone();
        let request = Outgoing { method: "POST", session, body, ..Outgoing::default() };
        Some(cluster.request(at, self.number, request))
    }

    fn retry_later(&mut self, cluster: &mut Cluster) {
        // Once for all that is waiting: each retry would plan the next ones.
        if self.retry_at.is_some_and(|at| at > cluster.now) {
            return;
        }
        let pause = Duration::from_millis(50) + cluster.random.millis(2000);
        self.retry_at = Some(cluster.now + pause);
        cluster.wake_client(self.number, pause);
    }

    /// Continues after something has happened.
    pub(crate) fn wake(&mut self, cluster: &mut Cluster) {
        self.repeat_posts(cluster);
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Idle => self.begin(cluster),
            State::Opening(reply) => self.opening(cluster, reply),
            State::Confirming(reply) => self.confirming(cluster, reply),
            State::Calling(call) => self.calling(cluster, call),
            State::Done => self.state = State::Done,
        }
    }

    fn begin(&mut self, cluster: &mut Cluster) {
        if self.session.is_none() {
            let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
            match self.post(cluster, body.into()) {
                Some(reply) => self.state = State::Opening(reply),
                None => self.retry_later(cluster),
            }
            return;
        }
        if self.left == 0 {
            self.state = State::Done;
            return;
        }
        let steps = 1 + cluster.random.below(8) as u32;
        let kind = ["plain", "stream", "ask"][cluster.random.index(3)];
        let steps = if kind == "stream" { steps } else { 0 };
        let id = self.next_id;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": format!("{kind}-{steps}"), "_meta": {"progressToken": id}}});
        match self.post(cluster, body.to_string()) {
            Some(reply) => {
                self.next_id += 1;
                self.left -= 1;
                let reply = Some(reply);
                let call = Call { id, steps, reply, last_event: None, progress: 0 };
                self.state = State::Calling(call);
            }
            None => self.retry_later(cluster),
        }
    }

    fn opening(&mut self, cluster: &mut Cluster, reply: usize) {
        let received = &cluster.replies[reply];
        if received.complete && received.status == Some(200) {
            self.session.clone_from(&received.session);
            assert!(self.session.is_some(), "{received:?}");
            return self.confirm(cluster);
        }
        if received.is_over() {
            assert!(received.broken || received.status == Some(503), "{received:?}");
            return self.retry_later(cluster);
        }
        self.state = State::Opening(reply);
    }

    fn confirm(&mut self, cluster: &mut Cluster) {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        match self.post(cluster, body.into()) {
            Some(reply) => self.state = State::Confirming(reply),
            // Opened again later, which abandons this one.
            None => {
                self.session = None;
                self.retry_later(cluster);
            }
        }
    }

    fn confirming(&mut self, cluster: &mut Cluster, reply: usize) {
        let received = &cluster.replies[reply];
        if received.status == Some(404) {
            return self.lose_session(cluster);
        }
        if received.complete && received.status == Some(202) {
            return self.begin(cluster);
        }
        if received.is_over() {
            assert!(received.broken || received.status == Some(503), "{received:?}");
            // The client may repeat it.
            return self.confirm(cluster);
        }
        self.state = State::Confirming(reply);
    }

    fn lose_session(&mut self, cluster: &mut Cluster) {
        self.session = None;
        self.lost_sessions += 1;
        self.posts.clear();
        self.retry_later(cluster);
    }

    fn calling(&mut self, cluster: &mut Cluster, mut call: Call) {
        let Some(reply) = call.reply else { return self.resume(cluster, call) };
        let received = &cluster.replies[reply];
        let status = received.status;
        if received.complete && status == Some(200) && received.text().starts_with('{') {
            let answer = received.json();
            return self.end(cluster, &call, &answer);
        }
        match status {
            None | Some(200) => {}
            Some(404) => {
                self.ends.refused += 1;
                return self.lose_session(cluster);
            }
            Some(410) => {
                self.ends.lost += 1;
                return self.begin(cluster);
            }
            Some(503) if call.last_event.is_some() => {
                call.reply = None;
                self.state = State::Calling(call);
                return self.retry_later(cluster);
            }
            Some(503) => {
                self.ends.refused += 1;
                return self.begin(cluster);
            }
            Some(_) => panic!("{received:?} in {call:?}"),
        }
        // Whole events only.
        let text = received.text()[received.read..].to_owned();
        let whole = text.rfind("\n\n").map_or(0, |at| at + 2);
        let mut read = received.read;
        for block in text[..whole].split_inclusive("\n\n") {
            read += block.len();
            cluster.replies[reply].read = read;
            if let Some(id) = block.lines().find_map(|line| line.strip_prefix("id: ")) {
                call.last_event = Some(id.into());
                if let Some(session) = &self.session {
                    cluster.check_durable(session, id);
                }
            }
            let data = block.lines().find_map(|line| line.strip_prefix("data: "));
            let Some(data) = data.filter(|data| !data.is_empty()) else { continue };
            let message: Value = serde_json::from_str(data).expect("JSON");
            if message.get("method").is_none() {
                self.end(cluster, &call, &message);
                return cluster.disconnect(reply);
            }
            self.hear(cluster, &mut call, &message);
            if self.cuts > 0 && cluster.random.once_in(self.cuts) {
                cluster.disconnect(reply);
                break;
            }
        }
        if cluster.replies[reply].is_over() {
            if call.last_event.is_none() {
                self.ends.refused += 1;
                return self.begin(cluster);
            }
            call.reply = None;
            self.state = State::Calling(call);
            return self.retry_later(cluster);
        }
        self.state = State::Calling(call);
    }

    fn hear(&mut self, cluster: &mut Cluster, call: &mut Call, message: &Value) {
        match message["method"].as_str() {
            Some("notifications/progress") => {
                assert_eq!(message["params"]["progressToken"], call.id, "of another call");
                let progress = message["params"]["progress"].as_f64().expect("a number") as u32;
                assert_eq!(progress, call.progress + 1, "in order, without loss or repetition");
                call.progress = progress;
            }
            Some("roots/list") => {
                let answer =
                    json!({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}});
                self.answer(cluster, answer.to_string());
            }
            // The question was not answered in time.
            Some("notifications/cancelled") => {}
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, cluster: &mut Cluster, body: String) {
        match self.post(cluster, body.clone()) {
            Some(reply) => self.posts.push((body, reply)),
            None => self.posts.push((body, usize::MAX)),
        }
        if self.posts.last().is_some_and(|(_, reply)| *reply == usize::MAX) {
            self.retry_later(cluster);
        }
    }

    /// Repeats the answers that no node has accepted.
    fn repeat_posts(&mut self, cluster: &mut Cluster) {
        for (body, reply) in core::mem::take(&mut self.posts) {
            match cluster.replies.get(reply) {
                Some(received) if !received.is_over() => self.posts.push((body, reply)),
                Some(received) if received.status == Some(202) => {}
                Some(received) if received.status == Some(404) => {}
                _ => self.answer(cluster, body),
            }
        }
    }

    fn resume(&mut self, cluster: &mut Cluster, mut call: Call) {
        let Some(at) = cluster.any_node() else {
            self.state = State::Calling(call);
            return self.retry_later(cluster);
        };
        self.ends.resumed += 1;
        let request = Outgoing {
            method: "GET",
            session: self.session.clone(),
            last_event: call.last_event.clone(),
            ..Outgoing::default()
        };
        call.reply = Some(cluster.request(at, self.number, request));
        self.state = State::Calling(call);
    }

    /// Handles the response to a call.
    fn end(&mut self, cluster: &mut Cluster, call: &Call, answer: &Value) {
        assert_eq!(answer["id"], call.id, "{answer}");
        if answer.get("result").is_some() {
            assert_eq!(call.progress, call.steps, "a result after all progress");
            self.ends.results += 1;
        } else {
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            self.ends.failed += 1;
        }
        self.begin(cluster);
    }
}
