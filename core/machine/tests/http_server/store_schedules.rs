//! Random schedules of cuts, delays and messages with a reliable store: each message is received
//! once and in order.

use std::time::Duration;

use mcp_sansio::http::ResponseMode;
use mcp_sansio::peer::RequestHandle;
use proptest::prelude::*;
use serde_json::Value;

use crate::fixtures::*;
use crate::reply::Reply;
use crate::test_server::{TestServer, Ticket};
use crate::test_store::*;

/// A client that follows one call.
struct Follower {
    session: Session,
    ticket: Ticket,
    messages: Vec<Value>,
    last: Option<String>,
}

impl Follower {
    /// Reads the messages in the first `length` bytes, loses the connection, and resumes if it has
    /// an event id.
    fn cut(&mut self, server: &mut TestServer, length: usize) {
        let reply = server.reply(self.ticket);
        let length = length.min(reply.body.len());
        let last = reply.last_id_at(length).or_else(|| self.last.clone());
        let Some(last) = last else { return };
        if reply.is_stream() {
            let part = Reply { body: reply.body[..length].to_vec(), ..Reply::default() };
            self.messages.extend(part.messages());
        } else if let Some(status) = reply.status {
            assert!([410, 503].contains(&status), "{status}");
        }
        if !server.reply(self.ticket).is_over() {
            server.disconnect(self.ticket);
        }
        self.ticket = server.resume(&self.session, &last);
        self.last = Some(last);
    }

    fn has_answer(&self) -> bool {
        self.messages.iter().any(|message| message.get("id").is_some())
    }
}

/// Completes the oldest read of the store.
fn serve_one(server: &mut TestServer, store: &mut TestStore) {
    store.take_actions(server);
    if !store.reads.is_empty() {
        let (read, from, events_max, bytes_max) = store.reads.remove(0);
        let found = store.find(&from, events_max, bytes_max);
        complete(server, read, Ok(found));
    }
}

fn operate(
    server: &mut TestServer,
    store: &mut TestStore,
    follower: &mut Follower,
    handle: RequestHandle,
    said: &mut u32,
    (kind, amount): (u8, u16),
) {
    match kind {
        0..=3 => {
            *said += 1;
            server.progress(handle, f64::from(*said));
        }
        4 | 5 => follower.cut(server, usize::from(amount)),
        6 | 7 => serve_one(server, store),
        8 => server.advance(Duration::from_secs(u64::from(amount % 12))),
        _ => {
            server.server.release_connection(handle, Duration::from_secs(1));
            server.pump();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: seeded_random::scaled(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_delivers_each_message_once_and_in_order(
        operations in prop::collection::vec((0..10_u8, 0..900_u16), 1..80),
        revision in prop::sample::select(RESUMING.to_vec()),
        (kept, page, unread) in (1..4_usize, 1..4_usize, 200..3000_usize),
    ) {
        // Rule: [RESUME-006] [RESUME-007].
        let change = |limits: &mut mcp_sansio::http::ServerLimits| {
            limits.replay_events_max = kept;
            limits.store_page_events_max = page;
            limits.unread_bytes_max = unread;
        };
        let mut server = server_with(options(change).answers(ResponseMode::Stream));
        let mut store = TestStore::default();
        let session = server.open(revision, "{}");
        let ticket = server.post(&session, &call(1));
        let handle = server.asked().handle;
        let mut follower = Follower { session, ticket, messages: Vec::new(), last: None };
        let mut said = 0;
        for operation in operations {
            operate(&mut server, &mut store, &mut follower, handle, &mut said, operation);
        }
        server.answer_to(handle);
        for _ in 0..100 {
            store.serve(&mut server);
            follower.cut(&mut server, usize::MAX);
            if follower.has_answer() {
                break;
            }
        }
        let messages = &follower.messages;
        let progress: Vec<_> =
            messages.iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
        prop_assert_eq!(progress, (1..=said).map(f64::from).collect::<Vec<_>>());
        prop_assert_eq!(messages.len(), said as usize + 1, "and the response, once");
    }
}
