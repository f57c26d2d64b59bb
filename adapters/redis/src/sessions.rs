use std::time::Duration;

use mcp_sansio::http::{NodeId, SessionId, SessionRecord, StoreError};
use redis::{Cmd, Value};

use crate::link::Failure;
use crate::milliseconds;
use crate::reply::{items, number, pairs, text};
use crate::scripts::Step;
use crate::store::Inner;

/// The number of a replica, the greatest number taken, and how many are skipped after it if the replica
/// is new.
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
