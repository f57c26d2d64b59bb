//! The end of a connection.

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, Fault, StreamSettings};

use crate::Bench;
use crate::echo::Echo;

fn bench(endpoint: Echo) -> Bench {
    Bench::new(endpoint, StreamSettings::DEFAULT)
}

/// Returns a connection whose input has ended after one frame.
fn ended(endpoint: Echo) -> Bench {
    let mut bench = bench(endpoint);
    bench.read("a\n");
    let _action = bench.poll();
    bench.end_input();
    bench
}

#[test]
fn end_of_input_inside_a_frame_ends_the_connection_after_all_responses() {
    // Rule: [STDIO-017].
    let mut bench = bench(Echo::default());
    bench.read("a\nb");
    assert_eq!(bench.poll(), Action::Wait);
    bench.end_input();
    assert_eq!(bench.poll(), Action::Close);
    assert_eq!(bench.seen(), ["a", "<the input ended 1 bytes into a frame>", "<eof>"]);
    assert_eq!(bench.written, "a\n");
    assert_eq!(bench.connection.finish(), Ok(()));
    assert_eq!(bench.poll(), Action::Done);
}

#[test]
fn frames_before_the_end_of_input_are_delivered_first_even_if_the_endpoint_is_congested() {
    // Rule: [STDIO-017].
    let mut bench = bench(Echo { congested_from: Some(1), ..Echo::default() });
    bench.room = 0;
    bench.read("a\nb\n");
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.seen(), ["a"]);
    bench.end_input();
    assert_eq!(bench.poll(), Action::Wait);
    bench.room = usize::MAX;
    assert_eq!(bench.poll(), Action::Close);
    assert_eq!(bench.seen(), ["a", "b", "<eof>"]);
    assert_eq!(bench.written, "a\nb\n");
}

#[test]
fn the_end_of_the_input_is_reported_once() {
    let mut bench = ended(Echo::holding());
    assert_eq!(bench.poll(), Action::Wait);
    assert!(!bench.connection.wants_read());
    bench.end_input();
    bench.connection.handle_read(Err(Fault::Broken("late")), bench.now);
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.seen(), ["a", "<eof>"]);
}

#[test]
fn responses_are_awaited_after_the_end_of_input() {
    // Rule: [STDIO-017].
    let mut bench = ended(Echo::holding());
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.poll_at(1000), Action::Wait);
    bench.connection.endpoint_mut().release();
    assert_eq!(bench.poll(), Action::Close);
    assert_eq!(bench.written, "a\n");
}

#[test]
fn the_wait_ends_even_without_responses() {
    // Rule: [STDIO-017].
    let mut bench = ended(Echo::holding());
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.connection.poll_timeout(), Some(Instant::from_millis(1500)));
    assert_eq!(bench.poll_at(1499), Action::Wait);
    assert_eq!(bench.poll_at(1500), Action::Close);
    assert_eq!(bench.connection.finish(), Ok(()));
}

#[test]
fn the_wait_ends_even_if_the_stream_accepts_nothing() {
    // Rule: [STDIO-017].
    let mut bench = bench(Echo::default());
    bench.room = 0;
    bench.read("a\n");
    bench.end_input();
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.poll_at(1499), Action::Wait);
    assert_eq!(bench.poll_at(1500), Action::Done);
    assert_eq!(bench.connection.finish(), Ok(()));
}

#[test]
fn pending_output_is_sent_as_long_as_the_peer_reads() {
    let mut bench = bench(Echo::default());
    bench.connection.endpoint_mut().output = "before\n".into();
    bench.room = 0;
    bench.end_input();
    assert_eq!(bench.poll(), Action::Wait);
    for (millis, written) in [(1499, "be"), (2900, "befo"), (4300, "before")] {
        bench.room = 2;
        assert_eq!(bench.poll_at(millis), Action::Wait);
        assert_eq!(bench.written, written);
    }
    assert_eq!(bench.connection.poll_timeout(), Some(Instant::from_millis(5800)));
    bench.room = 1;
    assert_eq!(bench.poll_at(5700), Action::Close);
    assert_eq!(bench.written, "before\n");
}

#[test]
fn a_closed_endpoint_ends_the_connection_after_its_output() {
    // Rule: [STDIO-018].
    let mut bench = bench(Echo::default());
    bench.read("a\n");
    assert_eq!(bench.poll(), Action::Wait);
    let echo = bench.connection.endpoint_mut();
    echo.output = "bye\n".into();
    echo.is_closed = true;
    assert_eq!(bench.poll(), Action::Close);
    assert_eq!((bench.seen(), bench.written.as_str()), (vec!["a"], "a\nbye\n"));
}

#[test]
fn input_received_before_the_peer_left_is_processed() {
    // Rule: [STDIO-018].
    let mut bench = bench(Echo::default());
    bench.read("a\n");
    bench.fail_write(Fault::Gone);
    assert_eq!(bench.poll(), Action::Wait);
    bench.read("b\n");
    assert_eq!(bench.poll(), Action::Wait);
    bench.end_input();
    assert_eq!(bench.poll(), Action::Done, "no close");
    assert_eq!((bench.seen(), bench.written.as_str()), (vec!["a", "b", "<eof>"], ""));
    assert_eq!(bench.connection.finish(), Ok(()));
}

#[test]
fn an_input_whose_peer_is_gone_has_ended() {
    // Rule: [STDIO-018].
    let mut bench = bench(Echo::default());
    bench.connection.handle_read(Err(Fault::Gone), bench.now);
    assert_eq!(bench.poll(), Action::Close);
    assert_eq!(bench.seen(), ["<eof>"]);
    assert_eq!(bench.connection.finish(), Ok(()));
}

#[test]
fn a_broken_output_ends_the_connection_even_if_the_input_stays_open() {
    let mut bench = bench(Echo::default());
    bench.read("a\n");
    bench.fail_write(Fault::Gone);
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.poll_at(1500), Action::Done);
    assert_eq!(bench.seen(), ["a", "<eof>"]);
}

#[test]
fn the_first_stream_error_is_reported_once() {
    let mut bench = bench(Echo::default());
    bench.read("a\n");
    bench.connection.handle_read(Err(Fault::Broken("read")), bench.now);
    bench.fail_write(Fault::Broken("write"));
    assert_eq!(bench.poll(), Action::Done);
    assert_eq!(bench.seen(), ["a", "<eof>"]);
    assert_eq!(bench.connection.finish(), Err("read"));
    assert_eq!(bench.connection.finish(), Ok(()));
    assert_eq!(bench.poll(), Action::Done);
}

#[test]
fn a_lossy_line_survives_until_every_frame_fails() {
    let mut bench = Bench::new(Echo::default(), StreamSettings::DEVICE);
    for _ in 0..2 {
        for _ in 0..StreamSettings::DEVICE.read_errors_max {
            bench.connection.handle_read(Err(Fault::Broken("noise")), bench.now);
            assert_eq!(bench.poll(), Action::Wait);
        }
        bench.read("a\n");
        assert_eq!(bench.poll(), Action::Wait);
    }
    for _ in 0..=StreamSettings::DEVICE.read_errors_max {
        bench.connection.handle_read(Err(Fault::Broken("noise")), bench.now);
    }
    assert_eq!(bench.poll(), Action::Close);
    assert_eq!(bench.seen(), ["a", "a", "<eof>"]);
    assert_eq!(bench.connection.finish(), Err("noise"));
}

#[test]
fn a_line_during_which_a_read_failed_is_not_valid_json() {
    let mut bench = Bench::new(Echo::default(), StreamSettings::DEVICE);
    for part in ["[1]\n[1", "0]\n", "[2]\n"] {
        bench.read(part);
        assert_eq!(bench.poll(), Action::Wait);
        bench.connection.handle_read(Err(Fault::Broken("noise")), bench.now);
        assert_eq!(bench.poll(), Action::Wait);
    }
    assert_eq!(bench.seen(), ["[1]", "[1\x000]", "[2]"]);
}

#[test]
fn an_endpoint_that_restarts_continues_with_another_stream() {
    let restarting = |restarts| {
        let mut bench = bench(Echo { restarts, ..Echo::default() });
        bench.connection = bench.connection.restarting();
        bench.read("a\nhalf");
        assert_eq!(bench.poll(), Action::Wait);
        bench.connection.handle_read(Err(Fault::Broken("torn")), bench.now);
        let action = bench.poll();
        (bench, action)
    };
    let (mut bench, action) = restarting(true);
    assert_eq!(action, Action::Restart);
    assert_eq!(bench.poll(), Action::Restart);
    assert_eq!(bench.connection.finish(), Ok(()), "the error ends with its stream");
    assert_eq!(bench.connection.into_endpoint().seen, ["a"], "and so does the incomplete frame");

    let (mut bench, action) = restarting(false);
    assert_eq!(action, Action::Close);
    assert_eq!(bench.connection.finish(), Err("torn"));

    let mut bench = ended(Echo { restarts: true, ..Echo::default() });
    assert_eq!(bench.poll(), Action::Close, "the peer cannot be restarted");
}

#[test]
fn a_complete_last_message_without_a_line_end_is_handled_before_the_restart() {
    let mut bench = bench(Echo { restarts: true, ..Echo::default() });
    bench.connection = bench.connection.restarting();
    bench.read("{}");
    bench.end_input();
    assert_eq!(bench.poll(), Action::Restart);
    assert_eq!(bench.connection.into_endpoint().seen, ["{}"]);
}
