//! Bytes and timeouts of an open connection.

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, StreamConnection, StreamSettings};
use seeded_random::Random;

use crate::Bench;
use crate::echo::Echo;

#[test]
fn all_frames_of_a_read_are_delivered_before_one_write_of_the_responses() {
    let mut bench = Bench::new(Echo::default(), StreamSettings::DEFAULT);
    bench.read("a\nb\nc\nd");
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.seen(), ["a", "b", "c"]);
    assert_eq!((bench.trace.as_str(), bench.written.as_str()), ("rwf", "a\nb\nc\n"));
}

#[test]
fn first_responses_are_sent_before_the_last_requests_are_delivered() {
    for (frames, writes) in [(1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (16, 4), (140, 7)] {
        let input: String = (0..frames).map(|number| format!("{number}\n")).collect();
        let mut bench = Bench::new(Echo::default(), StreamSettings::pipe());
        assert_eq!(bench.read(&input), input.len());
        assert_eq!(bench.poll(), Action::Wait);
        assert_eq!(bench.trace, format!("r{}", "wf".repeat(writes)), "{frames} frames");
        assert_eq!(bench.written, input);
        // The next read again starts with two frames.
        bench.read("a\nb\nc\n");
        assert_eq!(bench.poll(), Action::Wait);
        assert!(bench.trace.ends_with("rwfwf"));
    }
}

#[test]
fn reading_continues_while_a_write_is_pending() {
    let mut bench = Bench::new(Echo::default(), StreamSettings::DEFAULT);
    bench.room = 0;
    for frame in ["a\n", "b\n", "c\n"] {
        bench.read(frame);
        assert_eq!(bench.poll(), Action::Wait);
    }
    assert_eq!((bench.seen(), bench.written.as_str()), (vec!["a", "b", "c"], ""));
    bench.room = usize::MAX;
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!((bench.trace.as_str(), bench.written.as_str()), ("rrrwf", "a\nb\nc\n"));
}

#[test]
fn a_congested_endpoint_gets_no_frames_until_output_is_sent() {
    let echo = Echo { congested_from: Some(4), ..Echo::default() };
    let mut bench = Bench::new(echo, StreamSettings::DEFAULT);
    bench.room = 0;
    bench.read("a\nb\nc\n");
    for _ in 0..2 {
        assert_eq!(bench.poll(), Action::Wait);
        assert_eq!(bench.seen(), ["a", "b"]);
        assert!(!bench.connection.wants_read());
    }
    bench.room = usize::MAX;
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!((bench.seen(), bench.written.as_str()), (vec!["a", "b", "c"], "a\nb\nc\n"));
    assert!(bench.connection.wants_read());
}

#[test]
fn a_poll_handles_a_bounded_number_of_frames_and_yields() {
    let mut settings = StreamSettings::DEFAULT;
    settings.frames_per_poll_max = 3;
    let mut bench = Bench::new(Echo::default(), settings);
    bench.read(&"x\n".repeat(7));
    for seen in [3, 6] {
        assert_eq!(bench.poll(), Action::Yield);
        assert_eq!((bench.seen().len(), bench.trace.as_str()), (seen, "r"));
    }
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!((bench.seen().len(), bench.trace.as_str()), (7, "rwf"));
}

#[test]
fn steps_without_frames_use_the_budget() {
    let echo = Echo { deadline: Some(Instant::ZERO), is_stuck: true, ..Echo::default() };
    let mut bench = Bench::new(echo, StreamSettings::DEVICE);
    bench.connection.reset_budget();
    let steps = (0..1000).take_while(|_| bench.step() != Action::Yield).count();
    assert!(steps <= 2 * StreamSettings::DEVICE.frames_per_poll_max, "{steps}");
}

#[test]
fn an_overlong_line_is_reported_and_skipped() {
    let mut settings = StreamSettings::DEFAULT;
    settings.frame_length_max = 8;
    let mut bench = Bench::new(Echo::default(), settings);
    let mut rest = "a\n0123456789abcdef\nb\n";
    while !rest.is_empty() {
        rest = &rest[bench.read(rest)..];
        assert_eq!(bench.poll(), Action::Wait);
    }
    assert_eq!(bench.seen(), ["a", "<a frame of more than 8 bytes was skipped>", "b"]);
}

#[test]
fn frames_are_decoded_in_borrowed_memory() {
    let mut line = [0; 4];
    let mut connection: StreamConnection<'_, _, ()> =
        StreamConnection::lent(Echo::default(), &mut line, StreamSettings::DEVICE);
    assert_eq!(connection.space().len(), 4);
    connection.space()[..2].copy_from_slice(b"a\n");
    connection.handle_read(Ok(2), Instant::ZERO);
    connection.reset_budget();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert_eq!(connection.advance(&mut cx, Instant::ZERO), Action::Write);
    let mut buffer = [0; 1];
    assert_eq!((connection.fill(&mut buffer), buffer), (1, *b"a"));
    assert!(connection.needs_flush());
    assert_eq!((connection.fill(&mut buffer), buffer), (1, *b"\n"));
    assert_eq!(connection.fill(&mut buffer), 0);
}

#[test]
fn the_length_of_a_read_is_limited_by_the_settings() {
    let mut settings = StreamSettings::DEFAULT;
    settings.read_length_max = 2;
    let mut bench = Bench::new(Echo::default(), settings);
    assert_eq!(bench.connection.space().len(), 2);
    bench.read("abc");
    assert_eq!(bench.poll(), Action::Wait);
    assert_eq!(bench.connection.space().len(), 2);
}

#[test]
fn a_deadline_is_reported_and_handled() {
    let echo = Echo { deadline: Some(Instant::from_millis(50)), ..Echo::default() };
    let mut bench = Bench::new(echo, StreamSettings::DEFAULT);
    assert_eq!(bench.poll_at(49), Action::Wait);
    assert_eq!(bench.connection.poll_timeout(), Some(Instant::from_millis(50)));
    assert!(bench.seen().is_empty());
    assert_eq!(bench.poll_at(60), Action::Wait);
    assert_eq!(bench.seen(), ["<timeout at 60 ms>"]);
    assert_eq!(bench.connection.poll_timeout(), None);
}

#[test]
fn all_frames_are_answered_in_order_under_any_schedule() {
    for seed in 0..500 {
        let random = &mut Random::new(seed);
        let input: String = (0..random.index(60)).map(|number| format!("{number}\n")).collect();
        let mut settings = StreamSettings::DEFAULT;
        settings.frames_per_poll_max = 1 + random.index(10);
        settings.read_length_max = 1 + random.index(30);
        settings.frames_before_write = [usize::MAX, 2, 1][random.index(3)];
        let congested_from = [None, Some(1), Some(20)][random.index(3)];
        let mut bench = Bench::new(Echo { congested_from, ..Echo::default() }, settings);
        let mut rest = input.as_str();
        for poll in 0.. {
            assert!(poll < 1000, "seed {seed} makes no progress");
            bench.room = random.index(20);
            match bench.poll() {
                Action::Wait if bench.connection.wants_read() && rest.is_empty() => {
                    bench.end_input();
                }
                Action::Wait if bench.connection.wants_read() => {
                    let piece = 1 + random.index(rest.len());
                    rest = &rest[bench.read(&rest[..piece])..];
                }
                Action::Wait | Action::Yield => {}
                action => {
                    assert_eq!(action, Action::Close);
                    break;
                }
            }
        }
        assert_eq!(bench.written, input, "seed {seed}");
        bench.connection.finish().unwrap();
    }
}
