//! A client that calls tools as tasks through any node, and checks the answers about them.

use std::time::Duration;

use mcp_sansio::Instant;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Outgoing};
use crate::ends::{End, Owner};

/// How a client's calls ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) completed: u32,
    pub(crate) cancelled: u32,
    /// The node has failed.
    pub(crate) failed: u32,
    /// The task is lost with the store and its node.
    pub(crate) lost: u32,
    /// No task: the call was answered as one, refused, or its connection was lost.
    pub(crate) calls: u32,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.cancelled += other.cancelled;
        self.failed += other.failed;
        self.lost += other.lost;
        self.calls += other.calls;
    }

    pub(crate) const fn sum(&self) -> u32 {
        self.completed + self.cancelled + self.failed + self.lost + self.calls
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    number: usize,
    pub(crate) principal: Option<&'static str>,
    /// Of 2025-11-25.
    legacy: bool,
    session: Option<String>,
    state: State,
    /// The task that the client follows.
    task: Option<Followed>,
    next_id: u64,
    /// Calls to go.
    left: u32,
    /// The tasks that have ended, at each node that has to be asked once more.
    last_looks: Vec<(usize, Followed)>,
    ended: Vec<Followed>,
    retry_at: Option<Instant>,
    pub(crate) tally: Tally,
}

#[derive(Debug)]
enum State {
    Idle,
    Opening(Pending),
    Confirming(usize),
    Calling(Pending, Job, Instant),
    /// Until a time, if the request may wait for the end of the task.
    Asking(Pending, Asked, Option<Instant>),
    Done,
}

/// A request in progress.
#[derive(Clone, Copy, Debug)]
struct Pending {
    id: u64,
    reply: usize,
}

#[derive(Clone, Debug)]
struct Job {
    tool: &'static str,
    label: String,
}

/// A request about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Get,
    Cancel,
    Update,
    Result,
    List,
}

#[derive(Clone, Debug)]
struct Followed {
    job: Job,
    id: String,
    owner: Owner,
    cancels: bool,
    /// The names of open input requests.
    inputs: Vec<String>,
    /// How often to look at it after its end.
    looks: u32,
    /// Since when no node knows it.
    unknown: Option<Instant>,
}

/// How long a task may be unknown before it is lost: longer than its node takes to find that out.
const PATIENCE: Duration = Duration::from_secs(200);

impl Client {
    pub(crate) fn new(
        number: usize,
        principal: Option<&'static str>,
        legacy: bool,
        calls: u32,
    ) -> Self {
        Self {
            number,
            principal,
            legacy,
            session: None,
            state: State::Idle,
            task: None,
            next_id: 1,
            left: calls,
            last_looks: Vec::new(),
            ended: Vec::new(),
            retry_at: None,
            tally: Tally::default(),
        }
    }

    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Returns the task that the client follows.
    pub(crate) fn task(&self) -> Option<&str> {
        self.task.as_ref().map(|task| task.id.as_str())
    }

    /// Looks at all tasks again, on all nodes.
    pub(crate) fn look_again(&mut self, cluster: &mut Cluster) {
        for task in core::mem::take(&mut self.ended) {
            for at in 0..cluster.nodes.len() {
                self.last_looks.push((at, Followed { looks: 1, ..task.clone() }));
            }
        }
        self.state = State::Idle;
        self.retry_later(cluster);
    }

    /// Sends a request to any node.
    fn send(
        &mut self,
        cluster: &mut Cluster,
        method: &'static str,
        mut params: Value,
        name: Option<&str>,
    ) -> Option<Pending> {
        let at = match self.last_looks.last() {
            Some((at, _)) => *at,
            None => cluster.any_node()?,
        };
        self.next_id += 1;
        let id = self.next_id;
        let mut request = Outgoing { principal: self.principal, ..Outgoing::default() };
        if self.legacy {
            request.session.clone_from(&self.session);
        } else {
            (request.method, request.name) = (Some(method), name.map(String::from));
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {
                    "elicitation": { "form": {} },
                    "extensions": { "io.modelcontextprotocol/tasks": {} } },
            });
        }
        request.body =
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
        Some(Pending { id, reply: cluster.request(at, self.number, request) })
    }

    fn retry_later(&mut self, cluster: &mut Cluster) {
        // Once for all that is waiting: each retry would plan the next ones.
        if self.retry_at.is_some_and(|at| at > cluster.now) {
            return;
        }
        let pause = Duration::from_millis(20) + cluster.random.millis(3000);
        self.retry_at = Some(cluster.now + pause);
        cluster.wake_client(self.number, pause);
    }

    /// Continues after something has happened.
    pub(crate) fn wake(&mut self, cluster: &mut Cluster) {
        match core::mem::replace(&mut self.state, State::Idle) {
            State::Idle if self.retry_at.is_none_or(|at| at <= cluster.now) => self.begin(cluster),
            State::Idle => {}
            State::Opening(pending) => self.opening(cluster, pending),
            State::Confirming(reply) => self.confirming(cluster, reply),
            State::Calling(pending, job, since) => self.calling(cluster, pending, job, since),
            State::Asking(pending, asked, until) => self.asking(cluster, pending, asked, until),
            State::Done => self.state = State::Done,
        }
    }

    fn begin(&mut self, cluster: &mut Cluster) {
        if self.legacy && self.session.is_none() {
            return self.open(cluster);
        }
        if self.task.is_some() {
            return self.ask(cluster);
        }
        if let Some((_, task)) = self.last_looks.last() {
            self.task = Some(task.clone());
            return self.ask(cluster);
        }
        if self.left == 0 {
            self.state = State::Done;
            return;
        }
        let tools = ["work", "fail", "hang", if self.legacy { "work" } else { "ask" }];
        let tool = cluster.random.one_of(tools);
        let job = Job { tool, label: format!("{}-{}", self.number, self.left) };
        let long = cluster.random.once_in(4);
        let millis = 2 + cluster.random.below(if long { 20_000 } else { 500 });
        let mut params =
            json!({ "name": tool, "arguments": { "label": job.label, "millis": millis } });
        if self.legacy {
            params["task"] = json!({});
        }
        match self.send(cluster, "tools/call", params, Some(tool)) {
            Some(pending) => {
                self.left -= 1;
                self.state = State::Calling(pending, job, cluster.now);
                // A call that stays one may never end.
                cluster.wake_client(self.number, LONGEST_CALL);
            }
            None => self.retry_later(cluster),
        }
    }

    // ------------------------------------------------------------------ sessions

    fn open(&mut self, cluster: &mut Cluster) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } });
        match self.send(cluster, "initialize", params, None) {
            Some(pending) => self.state = State::Opening(pending),
            None => self.retry_later(cluster),
        }
    }

    fn opening(&mut self, cluster: &mut Cluster, pending: Pending) {
        let reply = &cluster.replies[pending.reply];
        if !reply.is_over() {
            self.state = State::Opening(pending);
            return;
        }
        self.session.clone_from(&reply.session);
        self.confirm(cluster);
    }

    fn confirm(&mut self, cluster: &mut Cluster) {
        let (Some(at), true) = (cluster.any_node(), self.session.is_some()) else {
            self.session = None;
            return self.retry_later(cluster);
        };
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        let (session, principal) = (self.session.clone(), self.principal);
        let request = Outgoing { session, body, principal, ..Outgoing::default() };
        self.state = State::Confirming(cluster.request(at, self.number, request));
    }

    fn confirming(&mut self, cluster: &mut Cluster, reply: usize) {
        let received = &cluster.replies[reply];
        match received.status {
            _ if !received.is_over() => self.state = State::Confirming(reply),
            202 => self.begin(cluster),
            _ => {
                self.session = None;
                self.retry_later(cluster);
            }
        }
    }

    // ------------------------------------------------------------------ calls

    fn calling(&mut self, cluster: &mut Cluster, pending: Pending, job: Job, since: Instant) {
        let reply = &cluster.replies[pending.reply];
        if !reply.is_over() && cluster.now < since + LONGEST_CALL {
            self.state = State::Calling(pending, job, since);
            return;
        }
        let (answer, owner) = (reply.answer(pending.id), reply.owner);
        if !reply.is_over() {
            cluster.disconnect(pending.reply);
        }
        if reply_is_lost_session(cluster, pending) {
            self.session = None;
        }
        let Some(answer) = answer else {
            self.tally.calls += 1;
            return self.retry_later(cluster);
        };
        let result = &answer["result"];
        let id = if self.legacy { &result["task"]["taskId"] } else { &result["taskId"] };
        let Some(id) = id.as_str() else {
            if let Some(text) = text_of(result) {
                assert_eq!(text, job.label, "{answer}");
            }
            self.tally.calls += 1;
            return self.retry_later(cluster);
        };
        self.task = Some(Followed {
            cancels: job.tool == "hang" || cluster.random.once_in(10),
            job,
            id: id.into(),
            owner: owner.expect("it has answered"),
            inputs: Vec::new(),
            looks: 3,
            unknown: None,
        });
        self.retry_later(cluster);
    }

    // ------------------------------------------------------------------ tasks

    fn ask(&mut self, cluster: &mut Cluster) {
        let Some(task) = &self.task else { return };
        let (id, inputs) = (task.id.clone(), task.inputs.clone());
        let ended = cluster.ends.of(&id).is_some();
        let asked = if !self.last_looks.is_empty() {
            Asked::Get
        } else if !inputs.is_empty() && !cluster.random.once_in(3) {
            Asked::Update
        } else if task.cancels && !ended && cluster.random.once_in(3) {
            Asked::Cancel
        } else if self.legacy && cluster.random.once_in(3) {
            if cluster.random.once_in(2) { Asked::List } else { Asked::Result }
        } else {
            Asked::Get
        };
        let mut params = json!({ "taskId": id });
        let method = match asked {
            Asked::Get => "tasks/get",
            Asked::Cancel => "tasks/cancel",
            Asked::Result => "tasks/result",
            Asked::List => {
                params = json!({});
                "tasks/list"
            }
            Asked::Update => {
                let answer = |name: &String| (name.clone(), json!({ "action": "accept" }));
                params["inputResponses"] = inputs.iter().map(answer).collect();
                "tasks/update"
            }
        };
        let name = (asked != Asked::List).then_some(id.as_str());
        match self.send(cluster, method, params, name) {
            Some(pending) => {
                let until = (asked == Asked::Result).then(|| {
                    let pause = cluster.random.millis(10_000);
                    cluster.wake_client(self.number, pause);
                    cluster.now + pause
                });
                self.state = State::Asking(pending, asked, until);
            }
            None => self.retry_later(cluster),
        }
    }

    fn asking(
        &mut self,
        cluster: &mut Cluster,
        pending: Pending,
        asked: Asked,
        until: Option<Instant>,
    ) {
        let is_over = cluster.replies[pending.reply].is_over();
        if !is_over && until.is_none_or(|until| until > cluster.now) {
            self.state = State::Asking(pending, asked, until);
            return;
        }
        if !is_over {
            cluster.disconnect(pending.reply);
        }
        if reply_is_lost_session(cluster, pending) {
            self.session = None;
            if self.principal.is_none() && self.last_looks.is_empty() {
                // The task belongs to the session.
                self.task = None;
                self.tally.lost += 1;
            }
        } else if let Some(answer) = cluster.replies[pending.reply].answer(pending.id) {
            let by = cluster.replies[pending.reply].owner.expect("it has answered");
            // It answers from memory, because it does not reach the store.
            let alone = self.task.as_ref().is_some_and(|task| by == task.owner)
                && cluster.is_isolated(by.node);
            self.hear(cluster, asked, &answer, alone);
        } else {
            let status = cluster.replies[pending.reply].status;
            assert!(matches!(status, 0 | 200 | 503), "{status}");
        }
        self.retry_later(cluster);
    }

    fn hear(&mut self, cluster: &mut Cluster, asked: Asked, answer: &Value, alone: bool) {
        let Some(task) = &mut self.task else { return };
        if alone {
            cluster.ends.lost.insert(task.id.clone());
        }
        let (error, result) = (&answer["error"], &answer["result"]);
        let unavailable = error["message"] == "the store of tasks is not available"
            || error["message"] == "the store of sessions is not available";
        if unavailable {
            return;
        }
        if error["message"] == "unknown task" {
            return self.miss(cluster);
        }
        match asked {
            Asked::Update => task.inputs.clear(),
            Asked::Cancel if self.legacy && result.is_object() => self.see(cluster, result),
            // It has ended, or the store has taken the message.
            Asked::Cancel => {}
            Asked::Get => {
                assert!(result.is_object(), "{answer}");
                self.see(cluster, result);
            }
            Asked::List => {
                let tasks = result["tasks"].as_array().cloned().unwrap_or_default();
                for listed in tasks {
                    if listed["taskId"] == *task.id {
                        return self.see(cluster, &listed);
                    }
                }
            }
            Asked::Result => {
                let (status, text) = match error["message"].as_str() {
                    Some("the task was cancelled") => ("cancelled", None),
                    Some(message) => ("failed", Some(message.to_owned())),
                    None if result["isError"] == true => ("failed", text_of(result)),
                    None => ("completed", text_of(result)),
                };
                self.end(cluster, End { status: status.into(), text });
            }
        }
    }

    /// Handles an answer that no node knows the task.
    fn miss(&mut self, cluster: &Cluster) {
        let Some(task) = &mut self.task else { return };
        assert!(cluster.has_lost, "{task:?} is unknown");
        if self.last_looks.pop().is_some() {
            let lives = cluster.has_task(task.owner, &task.id);
            assert!(!lives, "{task:?} is unknown, although its node lives");
            self.task = None;
            return;
        }
        let since = *task.unknown.get_or_insert(cluster.now);
        if cluster.now >= since + PATIENCE {
            let lives = cluster.has_task(task.owner, &task.id);
            assert!(!lives, "{task:?} is unknown, although its node lives");
            self.task = None;
            self.tally.lost += 1;
        }
    }

    /// Handles the state of the task.
    fn see(&mut self, cluster: &mut Cluster, seen: &Value) {
        let Some(task) = &mut self.task else { return };
        task.unknown = None;
        assert_eq!(seen["taskId"], *task.id);
        let status = seen["status"].as_str().expect("a status");
        if matches!(status, "working" | "input_required") {
            cluster.ends.see_unfinished(&task.id);
            let waits = matches!(task.job.tool, "hang" | "ask");
            if waits && !self.last_looks.is_empty() && cluster.ends.unended.contains(&task.id) {
                // No client cancels it, or answers its questions, any more.
                self.task = None;
                self.last_looks.pop();
                return;
            }
            let inputs = seen["inputRequests"].as_object();
            task.inputs = inputs.into_iter().flat_map(|it| it.keys().cloned()).collect();
            return;
        }
        let text = match seen.get("error") {
            Some(error) => error["message"].as_str().map(String::from),
            None => text_of(&seen["result"]),
        };
        self.end(cluster, End { status: status.into(), text });
    }

    fn end(&mut self, cluster: &mut Cluster, end: End) {
        let Some(task) = &mut self.task else { return };
        if end.is_node_failure() && (task.job.tool != "fail" || end.text.is_some()) {
            // Later its node may have recovered.
            if self.last_looks.is_empty() {
                cluster.check_failed(task.owner);
            }
        } else {
            match end.status.as_str() {
                "cancelled" => assert!(task.cancels, "{task:?}"),
                "completed" => {
                    assert!(!self.legacy || task.job.tool != "fail", "{task:?}");
                    assert_ne!(task.job.tool, "hang", "{task:?}");
                }
                _ => {
                    assert_eq!((self.legacy, task.job.tool), (true, "fail"), "{end:?} of {task:?}")
                }
            }
            if let Some(text) = &end.text {
                assert_eq!(*text, task.job.label, "{end:?} of {task:?}");
            }
        }
        cluster.ends.see(&task.id, end);
        task.looks -= 1;
        if task.looks > 0 {
            return;
        }
        if self.last_looks.pop().is_some() {
            self.task = None;
            return;
        }
        let end = cluster.ends.of(&task.id).expect("just seen");
        match end.status.as_str() {
            "cancelled" => self.tally.cancelled += 1,
            "failed"
                if end.is_node_failure() && (task.job.tool != "fail" || end.text.is_some()) =>
            {
                self.tally.failed += 1;
            }
            _ => self.tally.completed += 1,
        }
        self.ended.extend(self.task.take());
    }
}

/// How long a client waits for a call that does not become a task.
const LONGEST_CALL: Duration = Duration::from_secs(40);

fn reply_is_lost_session(cluster: &Cluster, pending: Pending) -> bool {
    cluster.replies[pending.reply].status == 404
}

/// Returns the text of a tool's result.
fn text_of(result: &Value) -> Option<String> {
    result["content"][0]["text"].as_str().map(String::from)
}
