//! Everything that callers share has a share for each of them: one that takes all that it can does
//! not keep another from being served.

use std::time::Duration;

use mcp_sansio::http::{ServerLimits, SharedResource};
use mcp_sansio::peer::{Event, RequestHandle, ServerMachine};
use mcp_sansio::{LoggingLevel, Revision};

use crate::fixtures::*;
use crate::reply::State;
use crate::test_server::{TestServer, Ticket};
use crate::test_store::{TestStore, id_at, options};

const GREEDY: [u8; 4] = [192, 0, 2, 1];
const MODEST: [u8; 4] = [192, 0, 2, 2];

/// Sends later requests from this address.
fn from(server: &mut TestServer, address: [u8; 4]) {
    server.address = Some(address.into());
}

fn status(server: &TestServer, reply: Ticket) -> u16 {
    server.reply(reply).status()
}

/// Makes a call from which a client disconnects after one message of `length` bytes. Returns the id
/// of its first event.
fn left_behind(server: &mut TestServer, session: &Session, id: u32, length: usize) -> String {
    let reply = server.post(session, &call(id));
    let asked = server.asked();
    server.progress(asked.handle, 1.0);
    server.disconnect(reply);
    let text = "x".repeat(length);
    server.answer_with(asked.handle, &format!(r#"{{"content":[],"x":"{text}"}}"#));
    server.reply(reply).last_id().unwrap()
}

fn expect_resumable(server: &mut TestServer, session: &Session, last: &str) {
    let back = server.resume(session, last);
    assert_eq!(status(server, back), 200);
    assert_eq!(server.reply(back).messages().len(), 1);
}

#[test]
fn a_caller_that_takes_all_it_can_leaves_a_part_of_every_limit_to_others() {
    for limit in ServerLimits::DEFAULT.shared() {
        match limit.resource {
            SharedResource::Exchanges => exchanges(),
            SharedResource::Sessions => sessions(),
            SharedResource::Handlers => handlers(),
            SharedResource::KeptEventBytes => kept_events(),
            SharedResource::UnreadEventBytes => unread_events(),
            SharedResource::StoreReaders => store_readers(),
            // Adapters read bodies, and the store is tested with nodes: see their tests.
            SharedResource::BodyBytes
            | SharedResource::StoreActions
            | SharedResource::StoreBytes => {}
            other => panic!("{other:?} has no test"),
        }
    }
}

fn exchanges() {
    let mut server = server_with(limits(|limits| limits.exchanges_max = 8));
    from(&mut server, GREEDY);
    let calls: Vec<_> = (0..8).map(|id| server.modern(&modern_call(id))).collect();
    for refused in &calls[6..] {
        let reply = server.reply(*refused);
        assert_eq!((reply.status(), reply.field("retry-after")), (429, Some("10")));
    }
    from(&mut server, MODEST);
    let served = server.modern(&modern_call(1));
    while !server.reply(served).is_over() {
        server.answer();
    }
    assert_eq!(status(&server, served), 200);
}

fn sessions() {
    let mut server = server_with(limits(|limits| limits.sessions_max = 8));
    from(&mut server, GREEDY);
    for _ in 0..6 {
        let session = server.open(Revision::V2025_11_25, "{}");
        server.get(&session);
    }
    let opening = initialize(Revision::V2025_11_25, "{}");
    for _ in 0..2 {
        let refused = server.request("POST", "/mcp", &POST, &opening);
        assert_eq!(status(&server, refused), 429);
    }
    from(&mut server, MODEST);
    server.open(Revision::V2025_11_25, "{}");
}

fn handlers() {
    let mut server = server_with(limits(|limits| limits.handlers_max = 8));
    from(&mut server, GREEDY);
    for id in 0..8 {
        server.modern(&modern_call(id));
        let request = server.asked().handle;
        let capacity = server.server.admit_handler(request);
        assert_eq!(
            capacity.map_err(|refusal| refusal.status.0),
            if id < 6 { Ok(()) } else { Err(429) }
        );
        // Whether it waits is known later, and until then it counts as well.
        if id < 3 {
            server.server.begin_handler(request).unwrap();
        }
    }
    let mut begun = Vec::new();
    for id in 0..3 {
        from(&mut server, [198, 51, 100, u8::try_from(id).unwrap()]);
        server.modern(&modern_call(id));
        let request = server.asked().handle;
        let capacity = server.server.admit_handler(request);
        assert_eq!(
            capacity.map_err(|refusal| refusal.status.0),
            if id < 2 { Ok(()) } else { Err(503) }
        );
        if id < 2 {
            begun.extend(server.server.begin_handler(request));
        }
    }
    // Callers without an address count as well.
    server.address = None;
    server.modern(&modern_call(9));
    let request = server.asked().handle;
    assert!(server.server.admit_handler(request).is_err());
    server.server.end_handler(begun[0]);
    assert!(server.server.admit_handler(request).is_ok());
}

fn kept_events() {
    let mut server = server_with(limits(|limits| limits.replay_bytes_total_max = 8000));
    from(&mut server, GREEDY);
    let greedy: Vec<_> = (0..20).map(|_| server.open(Revision::V2025_11_25, "{}")).collect();
    // Undelivered messages count as well.
    for _ in 0..20 {
        let text = "m".repeat(500);
        server.server.log(None, LoggingLevel::Error, None, &text, server.now).unwrap();
        server.pump();
        assert!(server.server.retained().0 <= 6000, "{:?}", server.server.retained());
    }
    from(&mut server, MODEST);
    let modest = server.open(Revision::V2025_11_25, "{}");
    let early = left_behind(&mut server, &modest, 1, 100);
    from(&mut server, GREEDY);
    for round in 0..5 {
        for session in &greedy {
            left_behind(&mut server, session, round, 1000);
            assert!(server.server.retained().0 <= 7000, "{:?}", server.server.retained());
        }
    }
    from(&mut server, MODEST);
    expect_resumable(&mut server, &modest, &early);
    let late = left_behind(&mut server, &modest, 2, 100);
    expect_resumable(&mut server, &modest, &late);
    server.advance(Duration::from_secs(3600));
    server.expect_empty();
}

/// Returns the next request; those before it may have been cancelled.
fn next_request(server: &mut TestServer) -> RequestHandle {
    loop {
        if let Event::Request(request) = server.event() {
            return request.handle;
        }
    }
}

fn unread_events() {
    let mut server = server_with(limits(|limits| limits.unread_bytes_total_max = 20_000));
    from(&mut server, GREEDY);
    let mut slow = Vec::new();
    for id in 0..20 {
        let body = modern_call(id);
        slow.push(server.request_unread("POST", "/mcp", &header_of(&body).fields(), &body));
        let request = next_request(&mut server);
        for progress in 0..100 {
            server.progress(request, f64::from(progress));
        }
        assert!(server.server.retained().0 <= 30_000, "{:?}", server.server.retained());
    }
    from(&mut server, MODEST);
    let body = modern_call(1);
    let served = server.request_unread("POST", "/mcp", &header_of(&body).fields(), &body);
    let request = next_request(&mut server);
    server.progress(request, 1.0);
    server.answer_to(request);
    server.read(served, usize::MAX);
    assert_eq!(server.reply(served).state, State::Complete);
    assert_eq!(server.reply(served).messages().len(), 2);
    for slow in &slow {
        server.read(*slow, usize::MAX);
    }
    assert!(slow.iter().any(|slow| server.reply(*slow).state == State::Aborted));
}

fn store_readers() {
    let change = |limits: &mut ServerLimits| {
        (limits.store_replays_max, limits.replay_events_max) = (4, 1);
        limits.finished_streams_max = 1;
    };
    let mut server = server_with(options(change));
    let mut store = TestStore::default();
    let [greedy, modest] = [GREEDY, MODEST].map(|address| {
        from(&mut server, address);
        let sessions: Vec<_> = (0..5).map(|_| server.open(Revision::V2025_11_25, "{}")).collect();
        let begin = |server: &mut TestServer, session: Session| {
            let reply = server.post(&session, &call(1));
            let asked = server.asked();
            for progress in 0..5 {
                server.progress(asked.handle, f64::from(progress));
            }
            server.disconnect(reply);
            server.answer_to(asked.handle);
            let first = id_at(server, reply, 0);
            (session, first)
        };
        sessions.into_iter().map(|session| begin(&mut server, session)).collect::<Vec<_>>()
    });
    store.serve(&mut server);
    // The store does not answer these.
    from(&mut server, GREEDY);
    let reading: Vec<_> =
        greedy.iter().map(|(session, first)| server.resume(session, first)).collect();
    for refused in &reading[3..] {
        assert_eq!(status(&server, *refused), 429);
    }
    from(&mut server, MODEST);
    let served = server.resume(&modest[0].0, &modest[0].1);
    store.serve(&mut server);
    assert_eq!(status(&server, served), 200);
    assert_eq!(reading[..3].iter().map(|it| status(&server, *it)).collect::<Vec<_>>(), [200; 3]);
}
