use mcp_sansio::Principal;
use mcp_sansio::http::{EventPosition, NotStored, SessionId, StoredEvent};
use redis::Value;

use crate::keys::Keys;
use crate::link::Failure;
use crate::reply::{self, number};
use crate::scripts::{END, Step};
use crate::store::Inner;
use crate::{RedisOptions, milliseconds};

/// Events read at once: messages may be long, and a read stops when it has enough bytes.
const PAGE: usize = 32;

/// The events of streams.
impl Inner {
    /// Appends an event, and returns whether its number is a new one and its stream has not ended.
    pub(crate) async fn append(&self, event: &StoredEvent) -> Result<bool, Failure> {
        let RedisOptions { retention, stream_events_max, .. } = &*self.options;
        let appended = self.link.run(Step::Append, |command| {
            let EventPosition { session, stream, sequence, principal } = &event.place;
            command.arg(3).arg(self.keys.events(&event.place)).arg(self.keys.streams(session));
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
