//! Transfer of bytes and expiry of deadlines while the connection is open.

use std::io::ErrorKind;
use std::task::Poll;

use mcp_sansio::Instant;
use mcp_sansio_async::StreamSettings;
use seeded_random::Random;

use super::DriverTest;
use super::echo::Echo;
use super::scripted::{Scripted, Step};

#[test]
fn all_frames_of_a_read_are_handed_over_before_one_write_takes_the_answers() {
    let mut bench = DriverTest::new(Echo::default(), Scripted::default().read("a\nb\nc\nd"));
    assert!(bench.poll().is_pending());
    assert_eq!(bench.seen(), ["a", "b", "c"]);
    assert_eq!(bench.stream.trace(), "rwf");
    assert_eq!(bench.stream.written(), "a\nb\nc\n");
}

#[test]
fn first_responses_leave_before_the_last_requests_are_delivered() {
    for (frames, writes) in [(1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (16, 4), (140, 7)] {
        let input: String = (0..frames).map(|number| format!("{number}\n")).collect();
        let stream = Scripted::default().read(&input);
        let mut bench = DriverTest::with(Echo::default(), stream, StreamSettings::pipe());
        assert!(bench.poll().is_pending());
        assert_eq!(bench.stream.trace(), format!("r{}", "wf".repeat(writes)), "{frames} frames");
        assert_eq!(bench.stream.written(), input);
        // The next read again delivers two frames first.
        bench.stream = bench.stream.read("a\nb\nc\n");
        assert!(bench.poll().is_pending());
        assert!(bench.stream.trace().ends_with("rwfwf"));
    }
}

#[test]
fn splitting_input_and_output_does_not_change_the_result() {
    let input = "one\ntwo\r\n\nthree\n";
    for piece in 1..=input.len() {
        let mut stream = Scripted::default();
        for (index, bytes) in input.as_bytes().chunks(piece).enumerate() {
            stream = stream.read(str::from_utf8(bytes).unwrap());
            if index % 2 == 0 {
                stream = stream.step(Step::Pending);
            }
            let error = Step::Error(ErrorKind::Interrupted);
            stream = stream.step(error.clone());
            stream = stream.writes([Step::Take(piece), Step::Pending, error, Step::Take(1)]);
        }
        let mut bench = DriverTest::new(Echo::default(), stream.step(Step::End));
        bench.run(200).unwrap();
        assert_eq!(bench.seen(), ["one", "two", "three", "<eof>"]);
        assert_eq!(bench.stream.written(), "one\ntwo\nthree\n");
    }
}

#[test]
fn reading_continues_while_a_write_is_pending() {
    let stream = Scripted::default().read("a\n").read("b\n").read("c\n");
    let mut bench = DriverTest::new(Echo::default(), stream.writes(vec![Step::Pending; 3]));
    assert!(bench.poll().is_pending());
    assert_eq!(bench.seen(), ["a", "b", "c"]);
    assert_eq!(bench.stream.written(), "");
    assert!(bench.poll().is_pending());
    assert_eq!(bench.stream.trace(), "rrrwf");
    assert_eq!(bench.stream.written(), "a\nb\nc\n");
}

#[test]
fn a_congested_endpoint_gets_no_input_until_the_stream_takes_some_output() {
    let echo = Echo { congested_from: Some(4), ..Echo::default() };
    let stream = Scripted::default().read("a\nb\nc\n").read("d\n");
    let mut bench = DriverTest::new(echo, stream.writes(vec![Step::Pending; 2]));
    for _ in 0..2 {
        assert!(bench.poll().is_pending());
        assert_eq!(bench.seen(), ["a", "b"]);
    }
    assert!(bench.poll().is_pending());
    assert_eq!(bench.seen(), ["a", "b", "c", "d"]);
    assert_eq!(bench.stream.written(), "a\nb\nc\nd\n");
}

#[test]
fn a_poll_takes_a_bounded_number_of_frames_and_wakes_itself_for_the_rest() {
    let mut settings = StreamSettings::default();
    settings.frames_per_poll_max = 3;
    let mut bench =
        DriverTest::with(Echo::default(), Scripted::default().read(&"x\n".repeat(7)), settings);
    for (polls, seen) in [(1, 2), (2, 5)] {
        assert!(bench.poll().is_pending());
        assert_eq!((bench.wakes.count(), bench.seen().len()), (polls, seen));
        assert_eq!(bench.stream.trace(), "r");
    }
    assert!(bench.poll().is_pending());
    assert_eq!((bench.wakes.count(), bench.seen().len()), (2, 7));
    assert_eq!(bench.stream.trace(), "rwf");
}

#[test]
fn an_overlong_line_is_reported_and_skipped() {
    let mut settings = StreamSettings::default();
    settings.frame_length_max = 8;
    let stream = Scripted::default().read("a\n0123456789abcdef\nb\n");
    let mut bench = DriverTest::with(Echo::default(), stream, settings);
    assert!(bench.poll().is_pending());
    assert_eq!(bench.seen(), ["a", "<a frame of more than 8 bytes was skipped>", "b"]);
}

#[test]
fn the_driver_waits_for_a_deadline_and_reports_it() {
    let echo = Echo { deadline: Some(Instant::from_millis(50)), ..Echo::default() };
    let mut bench = DriverTest::new(echo, Scripted::default());
    assert!(bench.poll().is_pending());
    assert_eq!(bench.clock.awaited.get(), Some(Instant::from_millis(50)));
    bench.clock.set(60);
    assert!(bench.poll().is_pending());
    assert_eq!(bench.seen(), ["<timeout at 60 ms>"]);
}

#[test]
fn a_deadline_that_never_moves_costs_a_bounded_number_of_rounds_per_poll() {
    let echo = Echo { deadline: Some(Instant::ZERO), is_stuck: true, ..Echo::default() };
    let mut bench = DriverTest::new(echo, Scripted::default());
    assert!(bench.poll().is_pending());
    assert_eq!(bench.wakes.count(), 1);
    assert!(bench.seen().len() <= StreamSettings::default().frames_per_poll_max + 1);
}

#[test]
fn reads_are_limited_by_the_settings() {
    let mut settings = StreamSettings::default();
    settings.read_length_max = 2;
    let mut bench =
        DriverTest::with(Echo::default(), Scripted::default().read("abcde\n"), settings);
    assert!(bench.poll().is_pending());
    assert_eq!(bench.stream.trace(), "rrrwf");
}

#[test]
fn every_schedule_answers_all_frames_in_order_and_misses_no_wake() {
    for seed in 0..500 {
        let random = &mut Random::new(seed);
        let input: String = (0..random.index(60)).map(|number| format!("{number}\n")).collect();
        let mut stream = Scripted::default();
        let mut rest = input.as_str();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(1 + random.index(rest.len()));
            stream =
                stream.read(piece).writes((0..random.index(4)).map(|_| match random.index(3) {
                    0 => Step::Take(1 + random.index(20)),
                    _ => Step::Pending,
                }));
            if random.index(2) == 0 {
                stream = stream.step(Step::Pending);
            }
            rest = tail;
        }
        let mut settings = StreamSettings::default();
        settings.frames_per_poll_max = 1 + random.index(10);
        settings.read_length_max = 1 + random.index(30);
        settings.frames_before_write = [usize::MAX, 2, 1][random.index(3)];
        let congested_from = [None, Some(1), Some(20)][random.index(3)];
        let echo = Echo { congested_from, ..Echo::default() };
        let mut bench = DriverTest::with(echo, stream.step(Step::End), settings);
        for poll in 0.. {
            assert!(poll < 1000, "seed {seed} makes no progress");
            let wakes = bench.wakes.count();
            if let Poll::Ready(outcome) = bench.poll() {
                outcome.unwrap();
                break;
            }
            if bench.wakes.count() == wakes {
                let (reads, writes) = bench.stream.0.borrow().waits;
                let waiting = bench.driver.endpoint().output.len();
                assert!(reads || congested_from.is_some_and(|from| waiting >= from), "seed {seed}");
                assert!(writes || waiting == 0, "seed {seed}");
            }
        }
        assert_eq!(bench.stream.written(), input, "seed {seed}");
    }
}
