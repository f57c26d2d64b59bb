use std::time::Duration;

use mcp_sansio::peer::Failure;
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::{ClientError, Host, NoArguments};
use mcp_sansio_test::{Faults, Pair, Stream, connect};

use crate::{server, text};

const SECOND: Duration = Duration::from_secs(1);

fn host(revision: Revision) -> Host {
    Host::new("test", "1.0.0").revisions(Revisions::only(revision))
}

#[test]
fn a_delayed_message_arrives_when_its_time_has_passed() {
    let (client, mut pair) = connect(&server(), &host(Revision::V2025_11_25));
    pair.set_faults(Faults::new(1).delay(SECOND..=SECOND));
    let mut call = pair.start(client.call_tool("now", &NoArguments {}));
    pair.advance(SECOND);
    assert_eq!(pair.transcript.count("tools/call"), 1);
    assert!(pair.poll(call.as_mut()).is_none());
    assert_eq!(text(&pair.run(call).unwrap()), "noon");
    assert_eq!(pair.clock().elapsed(), 2 * SECOND);
    assert_eq!(
        pair.transcript.outline()[3..],
        ["-- 1000 ms", "> tools/call", "-- 2000 ms", "< result"]
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let (client, mut pair) = connect(&server(), &host(Revision::LATEST));
        pair.set_faults(Faults::new(seed).delay(Duration::ZERO..=SECOND).reorder().duplicate(3));
        let calls: Vec<_> =
            (0..10).map(|_| pair.start(client.call_tool("now", &NoArguments {}))).collect();
        for call in calls {
            assert_eq!(text(&pair.run(call).unwrap()), "noon", "seed {seed}");
        }
        pair.transcript.to_string()
    };
    for seed in 0..10 {
        assert_eq!(run(seed), run(seed));
        assert_ne!(run(seed), run(seed + 1));
    }
}

#[test]
fn messages_overtake_each_other_only_if_they_are_reordered() {
    let received = |faults: Faults| {
        let (client, mut pair) = connect(&server(), &host(Revision::LATEST));
        pair.set_faults(faults.delay(Duration::ZERO..=SECOND));
        let calls: Vec<_> =
            (0..10).map(|_| pair.start(client.call_tool("now", &NoArguments {}))).collect();
        calls.into_iter().for_each(|call| drop(pair.run(call).unwrap()));
        let id = |line: &String| {
            Some(line.split_once(r#""id":"#)?.1.split(',').next()?.parse().unwrap())
        };
        let lines = pair.transcript.lines().iter().filter(|line| line.contains("tools/call"));
        lines.filter_map(id).collect::<Vec<u64>>()
    };
    assert!(received(Faults::new(1)).is_sorted());
    assert!(!received(Faults::new(1).reorder()).is_sorted());
}

#[test]
fn a_duplicate_arrives_twice() {
    let (client, mut pair) = connect(&server(), &host(Revision::V2025_11_25));
    pair.set_faults(Faults::new(1).duplicate(1));
    assert_eq!(text(&pair.run(client.call_tool("now", &NoArguments {})).unwrap()), "noon");
    assert_eq!(pair.transcript.count("tools/call"), 2);
}

#[test]
fn every_call_ends_wherever_the_connection_is_cut() {
    for revision in Revision::ALL {
        for messages in 0..6 {
            let (client, endpoint) = host(revision).connect(7, Instant::ZERO);
            let mut pair = Pair::new(Stream::new(server().endpoint(7).unwrap(), endpoint));
            pair.set_faults(Faults::new(0).cut_after(messages));
            let result = pair.run(async {
                client.opened().await.map_err(ClientError::Closed)?;
                client.call_tool("now", &NoArguments {}).await
            });
            assert_eq!(result.is_ok(), pair.transcript.count("noon") == 1, "{messages}");
            assert!(pair.transcript.lines().len() as u64 <= messages);
        }
    }
}

#[test]
fn both_sides_see_the_end_of_a_stream_that_is_cut() {
    let (client, mut pair) = connect(&server(), &host(Revision::LATEST));
    let call = pair.start(client.call_tool("wait", &NoArguments {}));
    pair.cut();
    let error = pair.run(call).unwrap_err();
    assert!(matches!(error, ClientError::Failed(Failure::ConnectionLost)), "{error}");
    pair.run_until_idle();
    let server = pair.transport.server.as_ref().unwrap();
    assert!(mcp_sansio_handlers::endpoint::Endpoint::is_closed(server));
}

#[test]
fn a_client_that_closes_ends_the_input_of_its_server() {
    let (client, mut pair) = connect(&server(), &host(Revision::LATEST));
    client.close();
    pair.run_until_idle();
    let server = pair.transport.server.as_ref().unwrap();
    assert!(mcp_sansio_handlers::endpoint::Endpoint::is_drained(server));
}

#[test]
#[should_panic(expected = "the future is never ready")]
fn a_future_that_nothing_can_complete_is_an_error() {
    let (_client, mut pair) = connect(&server(), &host(Revision::LATEST));
    pair.run(core::future::pending::<()>());
}
