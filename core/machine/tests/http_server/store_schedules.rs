//! Any schedule of cuts, delays and messages with a store that keeps its word: each message arrives
//! once and in order.

use std::time::Duration;

use mcp_sansio::http::server::ResponseMode;
use mcp_sansio::peer::RequestHandle;
use proptest::prelude::*;
use serde_json::Value;

use crate::reply::Reply;
use crate::shelf::*;
use crate::site::{Site, Ticket};
use crate::words::*;

/// A client of one call, with what it has seen of it.
struct Follower {
    session: Session,
    ticket: Ticket,
    messages: Vec<Value>,
    last: Option<String>,
}

impl Follower {
    /// Takes what came in the first `length` bytes, then loses the connection and comes back, if it
    /// can.
    fn cut(&mut self, site: &mut Site, length: usize) {
        let reply = site.reply(self.ticket);
        let length = length.min(reply.body.len());
        let last = reply.last_id_at(length).or_else(|| self.last.clone());
        let Some(last) = last else { return };
        if reply.is_stream() {
            let part = Reply { body: reply.body[..length].to_vec(), ..Reply::default() };
            self.messages.extend(part.messages());
        } else if let Some(status) = reply.status {
            assert!([410, 503].contains(&status), "{status}");
        }
        if !site.reply(self.ticket).is_over() {
            site.disconnect(self.ticket);
        }
        self.ticket = site.resume(&self.session, &last);
        self.last = Some(last);
    }

    fn has_answer(&self) -> bool {
        self.messages.iter().any(|message| message.get("id").is_some())
    }
}

/// The store answers the read that waits the longest, if one does.
fn serve_one(site: &mut Site, shelf: &mut Shelf) {
    shelf.take_actions(site);
    if !shelf.reads.is_empty() {
        let (read, from, events_max, bytes_max) = shelf.reads.remove(0);
        let found = shelf.find(&from, events_max, bytes_max);
        complete(site, read, Ok(found));
    }
}

fn operate(
    site: &mut Site,
    shelf: &mut Shelf,
    follower: &mut Follower,
    handle: RequestHandle,
    said: &mut u32,
    (kind, amount): (u8, u16),
) {
    match kind {
        0..=3 => {
            *said += 1;
            site.progress(handle, f64::from(*said));
        }
        4 | 5 => follower.cut(site, usize::from(amount)),
        6 | 7 => serve_one(site, shelf),
        8 => site.advance(Duration::from_secs(u64::from(amount % 12))),
        _ => {
            site.server.release_connection(handle, Duration::from_secs(1));
            site.pump();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

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
        let mut site = site_with(options(change).answers(ResponseMode::Stream));
        let mut shelf = Shelf::default();
        let session = site.open(revision, "{}");
        let ticket = site.post(&session, &call(1));
        let handle = site.asked().handle;
        let mut follower = Follower { session, ticket, messages: Vec::new(), last: None };
        let mut said = 0;
        for operation in operations {
            operate(&mut site, &mut shelf, &mut follower, handle, &mut said, operation);
        }
        site.answer_to(handle);
        for _ in 0..100 {
            shelf.serve(&mut site);
            follower.cut(&mut site, usize::MAX);
            if follower.has_answer() {
                break;
            }
        }
        let messages = &follower.messages;
        let progress: Vec<_> =
            messages.iter().filter_map(|it| it["params"]["progress"].as_f64()).collect();
        prop_assert_eq!(progress, (1..=said).map(f64::from).collect::<Vec<_>>());
        prop_assert_eq!(messages.len(), said as usize + 1, "and the answer, once");
    }
}
