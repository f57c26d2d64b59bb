use std::time::Duration;

use mcp_sansio::Principal;
use mcp_sansio::http::{
    EventPosition, NodeId, NotStored, SessionId, SessionRecord, StoreError, StoredEvent,
};
use redis::{Cmd, Value};

use crate::keys::Keys;
use crate::link::Failure;
use crate::reply::{items, number, pairs, text};
use crate::scripts::{END, Step};
use crate::store::Inner;
use crate::{RedisOptions, milliseconds, reply};

/// The number of a replica, the greatest number taken, and how many are skipped after it if the
/// replica is new.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) replica: u32,
    pub(crate) taken: u32,
    pub(crate) skipped: u32,
}

/// Sessions.
impl Inner {
    pub(crate) async fn put_session(
        &self,
        session: &SessionId,
        Numbers { replica, taken, skipped }: Numbers,
        node: NodeId,
        fields: &[(String, String)],
        idle: Duration,
    ) -> Result<Result<(), StoreError>, Failure> {
        let put = self.link.run(Step::Put, |command| {
            command.arg(2).arg(self.keys.session(session)).arg(self.keys.ended(session));
            command.arg(milliseconds(idle));
            command.arg(replica).arg(node.to_string()).arg(taken).arg(skipped);
            for (name, value) in fields {
                command.arg(name).arg(value);
            }
        });
        let put = number(&put.await?) == Some(1);
        Ok(put.then_some(()).ok_or(StoreError::Missing))
    }

    pub(crate) async fn open_session(
        &self,
        session: &SessionId,
        node: NodeId,
        idle: Duration,
    ) -> Result<Result<SessionRecord, StoreError>, Failure> {
        let opened = self.link.run(Step::Open, |command| {
            self.name_session(command, session, idle);
            command.arg(node.to_string());
        });
        Ok(match opened.await? {
            Value::Nil => Err(StoreError::Missing),
            reply => record(reply).ok_or(StoreError::Unavailable),
        })
    }

    pub(crate) async fn read_session(
        &self,
        session: &SessionId,
    ) -> Result<Result<SessionRecord, StoreError>, Failure> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.keys.session(session));
        let fields = self.link.query(&command).await?;
        let is_known = matches!(&fields, Value::Map(it) if !it.is_empty())
            || matches!(&fields, Value::Array(it) if !it.is_empty());
        if !is_known {
            return Ok(Err(StoreError::Missing));
        }
        let read = Value::Array(vec![Value::Int(0), fields]);
        Ok(record(read).ok_or(StoreError::Unavailable))
    }

    pub(crate) async fn set_fields(
        &self,
        session: &SessionId,
        fields: &[(String, Option<String>)],
        idle: Duration,
    ) -> Result<Result<(), StoreError>, Failure> {
        let set = self.link.run(Step::Set, |command| {
            self.name_session(command, session, idle);
            for (name, value) in fields {
                command.arg(if value.is_some() { "+" } else { "-" });
                command.arg(name).arg(value.as_deref().unwrap_or_default());
            }
        });
        let found = number(&set.await?) == Some(1);
        Ok(found.then_some(()).ok_or(StoreError::Missing))
    }

    /// Removes a session, its streams, and the tasks of a requestor.
    pub(crate) async fn remove_session(
        &self,
        session: &SessionId,
        requestor: Option<&str>,
        refused_for: Duration,
    ) -> Result<(), Failure> {
        let refused_for = milliseconds(refused_for);
        let removed = self.link.run(Step::Remove, |command| {
            command.arg(3).arg(self.keys.session(session)).arg(self.keys.streams(session));
            command.arg(self.keys.ended(session));
            command.arg(self.keys.events_prefix(session)).arg(refused_for);
        });
        removed.await?;
        let Some(requestor) = requestor else { return Ok(()) };
        let removed = self.link.run(Step::RemoveTasks, |command| {
            command.arg(2).arg(self.keys.tasks(requestor)).arg(self.keys.ended_of(requestor));
            command.arg(self.keys.tasks_of(requestor)).arg(refused_for);
        });
        removed.await.map(drop)
    }

    /// Records that a proof was used, unless it was.
    pub(crate) async fn record_proof(
        &self,
        proof: &str,
        ttl: Duration,
    ) -> Result<Result<(), StoreError>, Failure> {
        let mut command = redis::cmd("SET");
        command.arg(self.keys.proof(proof)).arg("1").arg("NX").arg("PX").arg(milliseconds(ttl));
        let recorded = !matches!(self.link.query(&command).await?, Value::Nil);
        Ok(recorded.then_some(()).ok_or(StoreError::Refused))
    }

    /// Adds the key of a session and its expiry to a script.
    fn name_session(&self, command: &mut Cmd, session: &SessionId, idle: Duration) {
        command.arg(1).arg(self.keys.session(session)).arg(milliseconds(idle));
    }
}

/// Returns the session in the reply of [`Step::Open`]. Fields of later versions are left out.
fn record(reply: Value) -> Option<SessionRecord> {
    let mut parts = items(reply).into_iter();
    let replica = u32::try_from(number(&parts.next()?)?).ok()?;
    let (mut owners, mut fields) = (Vec::new(), Vec::new());
    for (name, value) in pairs(parts.next()?) {
        let (Some(name), Some(value)) = (text(&name), text(&value)) else { continue };
        if let Some(name) = name.strip_prefix("f:") {
            fields.push((name.into(), value.into()));
        } else if let Some(replica) = name.strip_prefix("o:")
            && let (Ok(replica), Some(node)) = (replica.parse(), NodeId::parse(value))
        {
            owners.push((replica, node));
        }
    }
    Some(SessionRecord::new(replica, owners, fields))
}

// ------------------------------------------------------------------ events

/// Events read at once: messages may be long, and a read stops when it has enough bytes.
const PAGE: usize = 32;

/// The events of streams.
impl Inner {
    /// Appends an event, and returns whether its number is a new one and its stream has not ended.
    pub(crate) async fn append(&self, event: &StoredEvent) -> Result<bool, Failure> {
        let RedisOptions { retention, stream_events_max, .. } = &*self.options;
        let appended = self.link.run(Step::Append, |command| {
            let EventPosition { session, stream, sequence, principal } = &event.position;
            command.arg(3).arg(self.keys.events(&event.position)).arg(self.keys.streams(session));
            command.arg(self.keys.ended(session)).arg(id_of(*sequence)).arg(&event.message);
            command.arg(milliseconds(*retention)).arg(*stream_events_max);
            command.arg(if event.last { "1" } else { "0" });
            command.arg(Keys::stream_name(*stream, principal.as_ref()));
        });
        Ok(number(&appended.await?) == Some(1))
    }

    /// Returns events of a stream.
    pub(crate) async fn read(
        &self,
        from: EventPosition,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Result<Vec<StoredEvent>, NotStored>, Failure> {
        let key = self.keys.events(&from);
        let (mut events, mut bytes) = (Vec::<StoredEvent>::new(), 0);
        let mut next = id_of(from.sequence);
        loop {
            // One more, which may be the end.
            let count = PAGE.min(events_max.saturating_sub(events.len())) + 1;
            let mut command = redis::cmd("XRANGE");
            command.arg(&key).arg(&next).arg("+").arg("COUNT").arg(count);
            let entries = reply::entries(self.link.query(&command).await?);
            let is_complete = entries.len() < count;
            let before = events.len();
            for entry in entries {
                if entry.id == END {
                    let Some(last) = events.pop() else { return Ok(Err(NotStored)) };
                    events.push(last.last());
                    return Ok(Ok(events));
                }
                let Some(sequence) = sequence_of(&entry.id) else { continue };
                let message = match entry.message {
                    Some(Value::BulkString(message)) => message,
                    _ => Vec::new(),
                };
                let is_enough = events.len() >= events_max
                    || !events.is_empty() && bytes + message.len() > bytes_max;
                if is_enough {
                    return Ok(Ok(events));
                }
                bytes += message.len();
                next = id_of(sequence.saturating_add(1));
                events.push(StoredEvent::new(EventPosition { sequence, ..from.clone() }, message));
            }
            // Foreign entries could repeat a page.
            if is_complete || events.len() == before {
                break;
            }
        }
        if events.is_empty() {
            let exists = self.link.query(redis::cmd("EXISTS").arg(&key)).await?;
            if number(&exists) != Some(1) {
                return Ok(Err(NotStored));
            }
        }
        Ok(Ok(events))
    }

    pub(crate) async fn forget(
        &self,
        session: &SessionId,
        stream: u32,
        principal: Option<&Principal>,
    ) -> Result<(), Failure> {
        let forgotten = self.link.run(Step::Forget, |command| {
            command.arg(2).arg(self.keys.events_of(session, stream, principal));
            command.arg(self.keys.streams(session)).arg(Keys::stream_name(stream, principal));
        });
        forgotten.await.map(drop)
    }
}

/// Returns the id of an event. An entry cannot have the id 0-0.
fn id_of(sequence: u64) -> String {
    format!("{}-0", sequence.saturating_add(1))
}

fn sequence_of(id: &str) -> Option<u64> {
    id.split_once('-')?.0.parse::<u64>().ok()?.checked_sub(1)
}
