//! A model of a store that nodes share.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::http::{
    ActionId, EventPosition, Lease, MailboxShare, NodeId, NotStored, ReadId, SessionRecord,
    StoreAction, StoreError, StoreReply, StoredEvent, TaskKey, TaskPage, TaskRecord,
};

#[derive(Default)]
pub(crate) struct Store {
    contents: Option<u64>,
    nodes: BTreeMap<NodeId, Instant>,
    sessions: BTreeMap<String, Session>,
    logs: BTreeMap<(String, u32), Log>,
    /// Sessions and requestors that have ended, until the store forgets that.
    ended: BTreeMap<String, Instant>,
    tasks: BTreeMap<TaskKey, Task>,
    /// Proofs that were used, until they expire.
    proofs: BTreeMap<String, Instant>,
    task_count: u64,
    mailboxes: BTreeMap<NodeId, Mailbox>,
    /// The most bytes that have waited for all nodes together.
    pub(crate) mailbox_peak: usize,
    /// The bytes of replies and messages.
    pub(crate) moved: usize,
    /// How many actions were executed, by name.
    pub(crate) executed: BTreeMap<&'static str, usize>,
}

#[derive(Default)]
struct Log {
    events: Vec<StoredEvent>,
    expires: Instant,
}

#[derive(Default)]
struct Session {
    replicas: u32,
    owners: BTreeMap<u32, NodeId>,
    fields: BTreeMap<String, String>,
    expires: Instant,
}

struct Task {
    /// All that were written, with their times.
    records: Vec<(Instant, TaskRecord)>,
    expires: Instant,
    /// Its place in lists.
    number: Option<u64>,
}

impl Task {
    fn record(&self) -> &TaskRecord {
        &self.records.last().expect("a task has a record").1
    }
}

/// An input for the machine of a node.
#[derive(Debug)]
pub(crate) enum Completion {
    Action(ActionId, Result<StoreReply, StoreError>),
    Events(ReadId, Result<Vec<StoredEvent>, NotStored>),
    ReadFailed(ReadId),
    Refused(EventPosition),
    /// An event was stored or lost.
    Appended(EventPosition),
}

/// The effects of an action.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) completion: Option<Completion>,
    pub(crate) message: Option<Message>,
}

/// A message between nodes.
pub(crate) struct Message {
    from: NodeId,
    /// All others if it is `None`.
    to: Option<NodeId>,
    pub(crate) text: Vec<u8>,
    pub(crate) share: MailboxShare,
}

impl Message {
    /// Returns whether a node gets the message.
    pub(crate) fn is_for(&self, node: NodeId) -> bool {
        self.to.map_or(node != self.from, |to| to == node)
    }
}

/// The bytes that wait for a node, of each caller.
type Mailbox = BTreeMap<String, usize>;

impl Store {
    /// Executes an action.
    pub(crate) fn execute(&mut self, action: StoreAction, now: Instant) -> Effects {
        self.expire(now);
        let mut effects = Effects::default();
        let (name, completion) = match action {
            StoreAction::Append { event } => ("append", self.append(event, now)),
            StoreAction::Read { read, from, events_max, .. } => {
                ("read", Some(Completion::Events(read, self.read(&from, events_max))))
            }
            StoreAction::Forget { session, stream, .. } => {
                let stream = stream.expect("a session is removed as a whole");
                self.logs.remove(&(session.as_str().to_owned(), stream));
                ("forget", None)
            }
            StoreAction::Heartbeat { action, node, lease, joins, contents } => {
                let contents = *self.contents.get_or_insert(contents);
                let held = joins || self.nodes.contains_key(&node);
                if held {
                    self.nodes.insert(node, now + lease);
                }
                let alive = self.nodes.iter().filter(|(_, until)| **until > now);
                let alive = alive.map(|(node, _)| *node).collect();
                let lease = StoreReply::Lease(Lease::new(held, contents, alive));
                ("heartbeat", Some(Completion::Action(action, Ok(lease))))
            }
            StoreAction::Leave { node } => {
                self.nodes.remove(&node);
                ("leave", None)
            }
            StoreAction::Depose { action, node, contents } => {
                let deposed = self.contents == Some(contents)
                    && self.nodes.get(&node).is_none_or(|until| *until <= now);
                if deposed {
                    self.nodes.remove(&node);
                }
                ("depose", Some(Completion::Action(action, Ok(StoreReply::Deposed(deposed)))))
            }
            StoreAction::PutSession {
                action,
                session,
                replica,
                taken,
                skipped,
                node,
                fields,
                idle,
            } => {
                if self.ended.contains_key(session.as_str()) {
                    let ended = Completion::Action(action, Err(StoreError::Missing));
                    return Effects { completion: Some(ended), ..effects };
                }
                let session = self.sessions.entry(session.as_str().to_owned()).or_default();
                let skipped = if session.owners.contains_key(&replica) { 0 } else { skipped };
                session.fields.extend(fields);
                session.replicas = session.replicas.max(replica).max(taken + skipped);
                session.owners.insert(replica, node);
                session.expires = now + idle;
                ("put", Some(Completion::Action(action, Ok(StoreReply::Done))))
            }
            StoreAction::OpenSession { action, session, node, idle } => {
                let found = self.sessions.get_mut(session.as_str()).map(|session| {
                    session.replicas += 1;
                    session.owners.insert(session.replicas, node);
                    session.expires = now + idle;
                    let owners = session.owners.iter().map(|(at, node)| (*at, *node)).collect();
                    let fields = session.fields.clone().into_iter().collect();
                    StoreReply::Opened(SessionRecord::new(session.replicas, owners, fields))
                });
                ("open", Some(Completion::Action(action, found.ok_or(StoreError::Missing))))
            }
            StoreAction::ReadSession { action, session } => {
                let found = self.sessions.get(session.as_str()).map(|session| {
                    let owners: Vec<_> =
                        session.owners.iter().map(|(at, node)| (*at, *node)).collect();
                    let fields: Vec<_> = session.fields.clone().into_iter().collect();
                    self.moved += owners.len() * 24
                        + fields
                            .iter()
                            .map(|(name, value)| name.len() + value.len())
                            .sum::<usize>();
                    StoreReply::Opened(SessionRecord::new(0, owners, fields))
                });
                ("read session", Some(Completion::Action(action, found.ok_or(StoreError::Missing))))
            }
            StoreAction::SetFields { action, session, fields, idle } => {
                let found = self.sessions.get_mut(session.as_str()).map(|session| {
                    for (field, value) in fields {
                        match value {
                            Some(value) => drop(session.fields.insert(field, value)),
                            None => drop(session.fields.remove(&field)),
                        }
                    }
                    session.expires = now + idle;
                    StoreReply::Done
                });
                ("set", Some(Completion::Action(action, found.ok_or(StoreError::Missing))))
            }
            StoreAction::RemoveSession { action, session, requestor, refused_for } => {
                self.sessions.remove(session.as_str());
                self.logs.retain(|(of, _), _| of != session.as_str());
                self.tasks.retain(|key, _| Some(&key.requestor) != requestor.as_ref());
                let ended = [Some(session.as_str().to_owned()), requestor];
                self.ended.extend(ended.into_iter().flatten().map(|it| (it, now + refused_for)));
                ("remove", Some(Completion::Action(action, Ok(StoreReply::Done))))
            }
            StoreAction::RecordProof { action, proof, ttl } => {
                let is_new = !self.proofs.contains_key(&proof);
                self.proofs.entry(proof).or_insert(now + ttl);
                let result = is_new.then_some(StoreReply::Done).ok_or(StoreError::Refused);
                ("record proof", Some(Completion::Action(action, result)))
            }
            StoreAction::PutTask { action, key, record, ttl, listed } => {
                let put = self.put_task(key, (now, record), ttl.map(|ttl| now + ttl), listed);
                ("put task", Some(Completion::Action(action, put)))
            }
            StoreAction::ReadTask { action, key } => {
                let found =
                    self.tasks.get(&key).map(|task| StoreReply::Task(task.record().clone()));
                ("read task", Some(Completion::Action(action, found.ok_or(StoreError::Missing))))
            }
            StoreAction::ListTasks { action, requestor, cursor, tasks_max } => {
                let page = self.list_tasks(&requestor, cursor.as_deref(), tasks_max);
                ("list tasks", Some(Completion::Action(action, page.map(StoreReply::Tasks))))
            }
            StoreAction::Send { action, from, to, message, share } => {
                self.moved += message.len();
                if to.is_some_and(|to| !self.has_room(to, &share, message.len())) {
                    let refused = |action| Completion::Action(action, Err(StoreError::Unavailable));
                    return Effects { completion: action.map(refused), ..effects };
                }
                effects.message = Some(Message { from, to, text: message, share });
                let done = action.map(|action| Completion::Action(action, Ok(StoreReply::Done)));
                ("send", done)
            }
            other => panic!("{other:?}"),
        };
        *self.executed.entry(name).or_default() += 1;
        effects.completion = completion;
        effects
    }

    fn append(&mut self, event: StoredEvent, now: Instant) -> Option<Completion> {
        let key = (event.position.session.as_str().to_owned(), event.position.stream);
        if self.ended.contains_key(&key.0) {
            return Some(Completion::Refused(event.position));
        }
        let log = self.logs.entry(key).or_default();
        let is_old =
            |last: &StoredEvent| last.last || last.position.sequence >= event.position.sequence;
        if log.events.last().is_some_and(is_old) {
            return Some(Completion::Refused(event.position));
        }
        let place = event.position.clone();
        log.expires = now + RETENTION;
        log.events.push(event);
        Some(Completion::Appended(place))
    }

    fn put_task(
        &mut self,
        key: TaskKey,
        record: (Instant, TaskRecord),
        expires: Option<Instant>,
        listed: bool,
    ) -> Result<StoreReply, StoreError> {
        if self.ended.contains_key(&key.requestor) {
            return Err(StoreError::Refused);
        }
        match (self.tasks.get_mut(&key), expires) {
            (Some(task), _) if task.record().ended || task.record().node != record.1.node => {
                return Err(StoreError::Refused);
            }
            (Some(task), expires) => {
                task.expires = expires.unwrap_or(task.expires);
                task.records.push(record);
            }
            (None, None) => return Err(StoreError::Missing),
            (None, Some(expires)) => {
                self.task_count += 1;
                let number = listed.then_some(self.task_count);
                self.tasks.insert(key, Task { records: vec![record], expires, number });
            }
        }
        Ok(StoreReply::Done)
    }

    fn list_tasks(
        &self,
        requestor: &str,
        cursor: Option<&str>,
        tasks_max: usize,
    ) -> Result<TaskPage, StoreError> {
        let after: u64 = cursor.unwrap_or("0").parse().map_err(|_| StoreError::Missing)?;
        let own = self.tasks.iter().filter(|(key, _)| key.requestor == requestor);
        let listed = own.filter_map(|(_, task)| Some((task.number?, &task.record().task)));
        let mut listed: Vec<(u64, &String)> = listed.filter(|(at, _)| *at > after).collect();
        listed.sort_unstable();
        let more = listed.len() > tasks_max;
        listed.truncate(tasks_max);
        let next = listed.last().filter(|_| more).map(|(at, _)| at.to_string());
        Ok(TaskPage::new(listed.into_iter().map(|(_, task)| task.clone()).collect(), next))
    }

    fn read(&self, from: &EventPosition, events_max: usize) -> Result<Vec<StoredEvent>, NotStored> {
        let key = (from.session.as_str().to_owned(), from.stream);
        let log = &self.logs.get(&key).ok_or(NotStored)?.events;
        let ended = log.last().is_some_and(|it| it.last && it.position.sequence < from.sequence);
        if ended {
            return Err(NotStored);
        }
        let found = log.iter().filter(|event| {
            event.position.sequence >= from.sequence && event.position.principal == from.principal
        });
        Ok(found.take(events_max).cloned().collect())
    }

    /// Returns whether an event of a client is stored.
    pub(crate) fn has_event(&self, session: &str, event: &str) -> bool {
        let (stream, sequence) = event.split_once('-').expect("an event id");
        let (stream, sequence) = (stream.parse().expect("a number"), sequence.parse::<u64>());
        let log = self.logs.get(&(session.to_owned(), stream));
        log.is_some_and(|log| log.events.iter().any(|it| Ok(it.position.sequence) == sequence))
    }

    /// Returns the completion of an action that the store does not execute.
    pub(crate) fn failure(action: &StoreAction) -> Option<Completion> {
        let failed =
            |action: &ActionId| Some(Completion::Action(*action, Err(StoreError::Unavailable)));
        match action {
            StoreAction::Append { event } => Some(Completion::Appended(event.position.clone())),
            StoreAction::Read { read, .. } => Some(Completion::ReadFailed(*read)),
            StoreAction::Heartbeat { action, .. }
            | StoreAction::Depose { action, .. }
            | StoreAction::PutSession { action, .. }
            | StoreAction::OpenSession { action, .. }
            | StoreAction::ReadSession { action, .. }
            | StoreAction::SetFields { action, .. }
            | StoreAction::RemoveSession { action, .. }
            | StoreAction::RecordProof { action, .. }
            | StoreAction::PutTask { action, .. }
            | StoreAction::ReadTask { action, .. }
            | StoreAction::ListTasks { action, .. } => failed(action),
            StoreAction::Send { action, .. } => action.as_ref().and_then(failed),
            _ => None,
        }
    }

    /// Removes everything, as a restart without persistence does.
    pub(crate) fn empty(&mut self) {
        let executed = core::mem::take(&mut self.executed);
        // They arrive all the same.
        let mailboxes = core::mem::take(&mut self.mailboxes);
        *self = Self { executed, mailboxes, ..Self::default() };
    }

    /// Loses the last `count` events of each stream, as a failover to a late replica does.
    pub(crate) fn lose_events(&mut self, count: usize) {
        for log in self.logs.values_mut() {
            log.events.truncate(log.events.len().saturating_sub(count));
        }
    }

    /// Loses all writes of tasks since a time, as a failover to a late replica does. Returns the
    /// ids of the tasks whose end is lost.
    pub(crate) fn lose_tasks(&mut self, since: Instant) -> Vec<String> {
        let mut lost = Vec::new();
        self.tasks.retain(|key, task| {
            let (count, ended) = (task.records.len(), task.record().ended);
            task.records.retain(|(written, _)| *written < since);
            if ended && task.records.len() < count {
                lost.push(key.task.clone());
            }
            !task.records.is_empty()
        });
        lost
    }

    fn has_room(&self, node: NodeId, share: &MailboxShare, bytes: usize) -> bool {
        let Some(mailbox) = self.mailboxes.get(&node) else {
            return bytes <= share.bytes_max.min(share.caller_bytes_max);
        };
        let own = mailbox.get(&share.caller).copied().unwrap_or_default();
        mailbox.values().sum::<usize>() + bytes <= share.bytes_max
            && own + bytes <= share.caller_bytes_max
    }

    /// Puts a message into the mailbox of a node, if it has room. The node takes it with
    /// [`take`](Self::take).
    pub(crate) fn admit(&mut self, node: NodeId, message: &Message) -> bool {
        let Message { text, share, .. } = message;
        if !self.has_room(node, share, text.len()) {
            return false;
        }
        let mailbox = self.mailboxes.entry(node).or_default();
        *mailbox.entry(share.caller.clone()).or_default() += text.len();
        let waiting = self.mailboxes.values().flat_map(BTreeMap::values).sum();
        self.mailbox_peak = self.mailbox_peak.max(waiting);
        true
    }

    pub(crate) fn take(&mut self, node: NodeId, caller: &str, bytes: usize) {
        let Some(mailbox) = self.mailboxes.get_mut(&node) else { return };
        if let Some(own) = mailbox.get_mut(caller) {
            *own -= bytes;
        }
        mailbox.retain(|_, bytes| *bytes > 0);
        if mailbox.is_empty() {
            self.mailboxes.remove(&node);
        }
    }

    /// Returns the bytes of everything except leases.
    pub(crate) fn byte_length(&self) -> usize {
        let sessions = self.sessions.keys().map(|id| self.session_bytes(id));
        let logs = self.logs.values().flat_map(|log| &log.events).map(|it| it.message.len() + 20);
        let tasks = self.tasks.values().map(|task| task.record().task.len());
        let mailboxes = self.mailboxes.values().flat_map(BTreeMap::values).copied();
        sessions.chain(logs).chain(tasks).chain(mailboxes).sum::<usize>() + self.ended.len() * 32
    }

    /// Returns the bytes of a session: its names and values, without its events.
    pub(crate) fn session_bytes(&self, id: &str) -> usize {
        let Some(session) = self.sessions.get(id) else { return 0 };
        let fields = session.fields.iter().map(|(name, value)| name.len() + value.len());
        id.len() + fields.sum::<usize>() + session.owners.len() * 24
    }

    /// Returns the entries that belong to a session, or to all sessions: everything except the
    /// leases and entries that expire within a minute after a session ends.
    pub(crate) fn left_of(&self, session: Option<&str>) -> Vec<String> {
        let is_meant = |id: &str| session.is_none_or(|session| session == id);
        let sessions = self.sessions.keys().filter(|id| is_meant(id));
        let sessions = sessions.map(|id| format!("session {id}"));
        let logs = self.logs.iter().filter(|((id, _), log)| is_meant(id) && !log.events.is_empty());
        let logs = logs.map(|((id, stream), _)| format!("stream {stream} of {id}"));
        sessions.chain(logs).collect()
    }

    /// Removes expired entries.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.sessions.retain(|_, session| session.expires > now);
        self.tasks.retain(|_, task| task.expires > now);
        self.logs.retain(|_, log| log.expires > now);
        self.ended.retain(|_, until| *until > now);
        self.proofs.retain(|_, until| *until > now);
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self { sessions, logs, tasks, ended, proofs, .. } = self;
        proofs.is_empty()
            && sessions.is_empty()
            && logs.is_empty()
            && tasks.is_empty()
            && ended.is_empty()
    }

    pub(crate) fn task_count(&self, now: Instant) -> usize {
        self.tasks.values().filter(|task| task.expires > now).count()
    }

    /// Returns the fields of a session.
    pub(crate) fn fields(&self, id: &str) -> BTreeMap<String, String> {
        self.sessions.get(id).map(|session| session.fields.clone()).unwrap_or_default()
    }

    pub(crate) fn session_count(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn lease_end(&self, node: NodeId) -> Option<Instant> {
        self.nodes.get(&node).copied()
    }
}

/// How long a stream is kept after its last event.
pub(crate) const RETENTION: Duration = Duration::from_secs(65 * 60);

/// Latencies of the store and between nodes.
pub(crate) const LATENCY: Duration = Duration::from_millis(1);
