//! The stores of rmcp, in memory: the least that a store costs, without a network.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::stream;
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::store::{
    EventStore, EventStoreError, EventStream, SessionState, SessionStore, SessionStoreError,
};

/// Sessions by id.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, SessionState>>);

#[async_trait]
impl SessionStore for Sessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.0.lock().expect("no panic").get(id).cloned())
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.0.lock().expect("no panic").insert(id.into(), state.clone());
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.0.lock().expect("no panic").remove(id);
        Ok(())
    }
}

/// How many events are kept.
const EVENTS_MAX: usize = 100_000;

/// The last events, each with its number and its stream.
#[derive(Default)]
pub(crate) struct Events(Mutex<(u64, VecDeque<(u64, String, ServerSseMessage)>)>);

#[async_trait]
impl EventStore for Events {
    async fn store_event(
        &self,
        stream: &str,
        event: &ServerSseMessage,
    ) -> Result<String, EventStoreError> {
        let (next, events) = &mut *self.0.lock().expect("no panic");
        *next += 1;
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back((*next, stream.into(), event.clone()));
        Ok(next.to_string())
    }

    async fn replay_events_after(&self, last: &str) -> Result<EventStream, EventStoreError> {
        let last: u64 = last.parse()?;
        let (_, events) = &*self.0.lock().expect("no panic");
        let stream =
            events.iter().find(|(number, ..)| *number == last).map(|(_, stream, _)| stream);
        let later = events.iter().filter(|(number, of, _)| *number > last && Some(of) == stream);
        let later: Vec<_> = later
            .map(|(number, _, event)| {
                let mut event = event.clone();
                event.event_id = Some(number.to_string());
                event
            })
            .collect();
        Ok(Box::pin(stream::iter(later)))
    }
}
