//! Transfer of bytes.

use std::iter;

use mcp_sansio::Instant;
use mcp_sansio_embedded::{NextPoll, StreamSettings};

use super::echo::Echo;
use super::scripted::{Scripted, Step};
use super::{DriverTest, LINE, OUTPUT, both, with_settings};

#[test]
fn splitting_the_input_does_not_change_the_frames() {
    let input = "{\"a\":1}\n\r\n [2] \r\nthree\n";
    for piece in 1..=input.len() {
        let script = || {
            let pieces = input.as_bytes().chunks(piece);
            pieces.fold(Scripted::default(), |script, piece| {
                script.step(Step::Bytes(piece.to_vec())).step(Step::Pending)
            })
        };
        both(
            Echo::default,
            || script().step(Step::End),
            |mut bench| {
                bench.run(30).unwrap();
                assert_eq!(bench.echo().seen, ["{\"a\":1}", " [2] ", "three", "<eof>"]);
                assert_eq!(bench.stream.written(), "{\"a\":1}\n [2] \nthree\n");
            },
        );
    }
}

#[test]
fn all_answers_to_one_read_leave_in_one_write() {
    both(
        Echo::default,
        || Scripted::default().read("a\nb\nc\n"),
        |mut bench| {
            assert!(bench.poll().is_pending());
            assert_eq!(bench.stream.written(), "a\nb\nc\n");
            assert_eq!(bench.stream.trace(), "rwf");
        },
    );
}

#[test]
fn a_line_that_is_too_long_is_reported_and_skipped() {
    let long = "x".repeat(3 * LINE);
    let script = || Scripted::default().read("a\n").read(&long).read("\nb\n");
    both(Echo::default, script, |mut bench| {
        for _ in 0..3 {
            assert!(bench.poll().is_pending());
        }
        assert_eq!(bench.echo().seen, ["a", "<a frame of more than 64 bytes was skipped>", "b"]);
        assert_eq!(bench.stream.written(), "a\nb\n");
    });
}

#[test]
fn output_longer_than_the_buffer_leaves_in_order_and_whole() {
    let line = "0123456789".repeat(5);
    let steps = || iter::repeat_n(Step::Take(3), 40);
    let script = || Scripted::default().read(&line).read("\n").writes(steps());
    both(Echo::default, script, |mut bench| {
        for _ in 0..60 {
            assert!(bench.poll().is_pending());
        }
        assert_eq!(bench.stream.written(), format!("{line}\n"));
    });
}

#[test]
fn reading_continues_while_a_write_is_pending() {
    let script = || Scripted::default().read("a\n").step(Step::Pending).read("b\n");
    both(
        Echo::default,
        || script().writes([Step::Pending]),
        |mut bench| {
            if bench.is_loop() {
                // The blocking driver waits inside its writer.
                return;
            }
            assert!(bench.poll().is_pending());
            assert!(bench.poll().is_pending());
            assert_eq!(bench.echo().seen, ["a", "b"]);
            assert_eq!(bench.stream.written(), "");
        },
    );
}

#[test]
fn nothing_is_read_while_the_endpoint_is_congested() {
    let endpoint = || {
        let mut echo = Echo { congested_from: Some(4), ..Echo::default() };
        echo.say("more than the buffer holds");
        echo
    };
    both(
        endpoint,
        || Scripted::default().read("a\n").writes([Step::Pending]),
        |mut bench| {
            if bench.is_loop() {
                bench.stream.clone().writes([Step::Take(32)]);
                assert!(bench.poll().is_pending());
                assert_eq!(bench.stream.trace(), "wfrwf");
                return;
            }
            assert!(bench.poll().is_pending());
            assert_eq!(bench.stream.trace(), "");
            bench.stream.clone().writes([Step::Take(OUTPUT)]);
            assert!(bench.poll().is_pending());
            assert_eq!(bench.stream.trace(), "wwfrwf");
            assert_eq!(bench.echo().seen, ["a"]);
        },
    );
}

#[test]
fn deadlines_expire_on_time_and_early_polls_have_no_effect() {
    let endpoint = || Echo { deadline: Some(Instant::from_millis(20)), ..Echo::default() };
    both(endpoint, Scripted::default, |mut bench| {
        for millis in [0, 19] {
            bench.clock.set(millis);
            assert!(bench.poll().is_pending());
            if bench.is_loop() {
                assert_eq!(bench.next, Some(NextPoll::Wait(Some(Instant::from_millis(20)))));
            }
        }
        assert!(bench.echo().seen.is_empty());
        bench.clock.set(20);
        assert!(bench.poll().is_pending());
        assert_eq!(bench.echo().seen, ["<timeout at 20 ms>"]);
        assert_eq!(bench.wakes.count(), 0);
        if bench.is_loop() {
            assert_eq!(bench.next, Some(NextPoll::Wait(None)));
        }
    });
}

#[test]
fn a_changed_deadline_is_respected() {
    both(Echo::default, Scripted::default, |mut bench| {
        assert!(bench.poll().is_pending());
        bench.echo_mut().deadline = Some(Instant::from_millis(50));
        assert!(bench.poll().is_pending());
        bench.echo_mut().deadline = Some(Instant::from_millis(10));
        assert!(bench.poll().is_pending());
        bench.clock.set(10);
        assert!(bench.poll().is_pending());
        assert_eq!(bench.echo().seen, ["<timeout at 10 ms>"]);
    });
}

#[test]
fn a_flood_does_not_starve_other_connections() {
    let mut settings = StreamSettings::DEVICE;
    settings.frames_per_poll_max = 4;
    let flood = || iter::repeat_n("a\n", 50).fold(Scripted::default(), Scripted::read);
    with_settings(settings, Echo::default, flood, |mut bench| {
        if let super::Either::Loop(driver) = &mut bench.driver {
            assert_eq!(driver.poll(Instant::ZERO), Ok(NextPoll::Now));
            assert_eq!(bench.echo().seen.len(), 1);
            return;
        }
        assert!(bench.poll().is_pending());
        assert_eq!(bench.wakes.count(), 1);
        let seen = bench.echo().seen.len();
        assert!((1..=4).contains(&seen), "{seen}");
        for _ in 0..60 {
            assert!(bench.poll().is_pending());
        }
        assert_eq!(bench.echo().seen.len(), 50);
    });
}

#[test]
fn memory_of_length_zero_ends_the_input_and_sends_nothing() {
    let stream = Scripted::default().read("a\n");
    let mut driver = mcp_sansio_embedded::PolledDriver::new(
        Echo::default(),
        stream.clone(),
        stream.clone(),
        &mut [],
    );
    while driver.poll(Instant::ZERO).unwrap() != NextPoll::Closed {}
    assert_eq!(driver.endpoint().seen, ["<eof>"]);
}

#[test]
fn a_stuck_deadline_does_not_stop_the_bytes() {
    let endpoint = || Echo { deadline: Some(Instant::ZERO), is_stuck: true, ..Echo::default() };
    both(
        endpoint,
        || Scripted::default().read("a\n"),
        |mut bench: DriverTest| {
            match &mut bench.driver {
                super::Either::Loop(driver) => {
                    assert_eq!(driver.poll(Instant::ZERO), Ok(NextPoll::Now));
                }
                super::Either::Executor(_) => {
                    assert!(bench.poll().is_pending());
                    assert_eq!(bench.wakes.count(), 1);
                }
            }
            assert_eq!(bench.stream.written(), "a\n");
        },
    );
}
