//! Shutdown of a connection.

use embedded_io::ErrorKind;
use mcp_sansio_embedded::{DriveError, StreamSettings};

use super::echo::Echo;
use super::scripted::{Scripted, Step};
use super::{LINE, both, with_settings};

fn holding() -> Echo {
    Echo { holds: true, ..Echo::default() }
}

#[test]
fn input_that_ends_within_a_frame_ends_the_connection_with_all_answers_sent() {
    // Rule: [STDIO-017].
    both(
        Echo::default,
        || Scripted::default().read("a\nb").step(Step::End),
        |mut bench| {
            bench.run(2).unwrap();
            assert_eq!(bench.echo().seen, ["a", "<the input ended 1 bytes into a frame>", "<eof>"]);
            assert_eq!(bench.stream.written(), "a\n");
            assert_eq!(bench.stream.trace(), "rwf");
        },
    );
}

#[test]
fn answers_are_waited_for_after_the_end_of_input() {
    both(
        holding,
        || Scripted::default().read("a\n").step(Step::End),
        |mut bench| {
            assert!(bench.poll().is_pending());
            bench.clock.set(1000);
            bench.echo_mut().release();
            bench.run(1).unwrap();
            assert_eq!(bench.stream.written(), "a\n");
        },
    );
}

#[test]
fn the_linger_timeout_ends_a_connection_whose_answers_never_arrive() {
    // Rule: [STDIO-017].
    both(
        holding,
        || Scripted::default().read("a\n").step(Step::End),
        |mut bench| {
            assert!(bench.poll().is_pending());
            bench.clock.set(1499);
            assert!(bench.poll().is_pending());
            bench.clock.set(1500);
            bench.run(1).unwrap();
            assert_eq!(bench.stream.written(), "");
        },
    );
}

#[test]
fn the_linger_timeout_ends_a_connection_whose_stream_takes_nothing() {
    let script = || Scripted::default().read("a\n").step(Step::End);
    both(
        Echo::default,
        || script().writes([Step::Pending]),
        |mut bench| {
            if bench.is_loop() {
                // The blocking driver waits inside its writer.
                return;
            }
            assert!(bench.poll().is_pending());
            bench.clock.set(1499);
            assert!(bench.poll().is_pending());
            bench.clock.set(1500);
            bench.run(1).unwrap();
        },
    );
}

#[test]
fn output_that_waits_is_sent_as_long_as_the_other_side_takes_some_of_it() {
    let script = || Scripted::default().step(Step::End).writes([Step::Pending]);
    both(holding, script, |mut bench| {
        if bench.is_loop() {
            return;
        }
        bench.echo_mut().say("before");
        assert!(bench.poll().is_pending());
        for (millis, written) in [(1499, "be"), (2900, "befo"), (4300, "before")] {
            bench.clock.set(millis);
            let stream = bench.stream.clone().writes([Step::Take(2), Step::Pending]);
            assert!(bench.poll().is_pending());
            assert_eq!(stream.written(), written);
        }
        bench.clock.set(5700);
        bench.stream.clone().writes([Step::Take(1)]);
        bench.run(1).unwrap();
        assert_eq!(bench.stream.written(), "before\n");
    });
    both(holding, script, |mut bench| {
        if bench.is_loop() {
            return;
        }
        bench.echo_mut().say("before");
        bench.stream.clone().writes([Step::Take(2), Step::Pending]);
        assert!(bench.poll().is_pending());
        bench.clock.set(1500);
        bench.run(1).unwrap();
        assert_eq!(bench.stream.written(), "be");
    });
}

#[test]
fn an_endpoint_that_closes_ends_the_connection_once_its_output_is_sent() {
    // Rule: [STDIO-018].
    both(
        Echo::default,
        || Scripted::default().read("a\n"),
        |mut bench| {
            assert!(bench.poll().is_pending());
            bench.echo_mut().say("bye");
            bench.echo_mut().is_closed = true;
            bench.run(2).unwrap();
            assert_eq!(bench.echo().seen, ["a"]);
            assert_eq!(bench.stream.written(), "a\nbye\n");
        },
    );
}

#[test]
fn a_peer_that_disconnects_is_not_an_error() {
    // Rule: [STDIO-018].
    for kind in [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset] {
        both(
            Echo::default,
            || Scripted::default().step(Step::Error(kind)),
            |mut bench| {
                bench.run(2).unwrap();
                assert_eq!(bench.echo().seen, ["<eof>"]);
            },
        );
        let script = || Scripted::default().read("a\n").step(Step::Pending).read("b\n");
        let script = || script().step(Step::End).writes([Step::Error(kind)]);
        both(Echo::default, script, |mut bench| {
            bench.run(3).unwrap();
            assert_eq!(bench.echo().seen, ["a", "b", "<eof>"]);
        });
    }
}

#[test]
fn a_write_error_is_reported_after_the_rest_of_the_input() {
    let script = || Scripted::default().read("a\n").step(Step::Pending).read("b\n");
    let script = || script().step(Step::End).writes([Step::Error(ErrorKind::Other)]);
    both(Echo::default, script, |mut bench| {
        assert_eq!(bench.run(3), Err(DriveError::Write(ErrorKind::Other)));
        assert_eq!(bench.echo().seen, ["a", "b", "<eof>"]);
        assert_eq!(bench.stream.written(), "");
    });
}

#[test]
fn an_output_that_takes_no_bytes_is_an_error() {
    let script = || Scripted::default().read("a\n").writes([Step::Take(0)]);
    both(Echo::default, script, |mut bench| {
        assert!(bench.poll().is_pending());
        bench.clock.set(1500);
        assert_eq!(bench.run(2), Err(DriveError::WriteZero));
    });
}

#[test]
fn a_lossy_line_keeps_working() {
    let noisy = || {
        (0..8).fold(Scripted::default().read("a\nb"), |script, _| {
            script.step(Step::Error(ErrorKind::Other))
        })
    };
    both(
        Echo::default,
        || noisy().read("\nc\n"),
        |mut bench| {
            for _ in 0..4 {
                assert!(bench.poll().is_pending());
            }
            assert_eq!(bench.echo().seen, ["a", "b\0\0\0\0\0\0\0\0", "c"]);
        },
    );
    let almost_full = || Scripted::default().read(&"b".repeat(LINE - 1));
    both(
        Echo::default,
        || almost_full().step(Step::Error(ErrorKind::Other)).read("\nc\n"),
        |mut bench| {
            for _ in 0..4 {
                assert!(bench.poll().is_pending());
            }
            assert_eq!(bench.echo().seen, ["<a frame of more than 64 bytes was skipped>", "c"]);
        },
    );
}

#[test]
fn an_operation_that_is_interrupted_or_out_of_time_is_tried_again() {
    for kind in [ErrorKind::Interrupted, ErrorKind::TimedOut] {
        let error = || Step::Error(kind);
        let script = || {
            let begun = Scripted::default().read("a\nb");
            let script = (0..20).fold(begun, |script, _| script.step(error()));
            script.read("c\n").writes([
                error(),
                Step::Take(1),
                error(),
                Step::Take(1),
                error(),
                error(),
            ])
        };
        both(Echo::default, script, |mut bench| {
            let mut woken = 0;
            for _ in 0..60 {
                assert!(bench.poll().is_pending());
                if !bench.is_loop() && bench.wakes.count() == woken {
                    break;
                }
                woken = bench.wakes.count();
            }
            assert_eq!(bench.echo().seen, ["a", "bc"]);
            assert_eq!(bench.stream.written(), "a\nbc\n");
            assert!(bench.stream.trace().ends_with('f'));
        });
    }
}

#[test]
fn an_input_that_keeps_failing_counts_as_ended() {
    let mut settings = StreamSettings::DEVICE;
    settings.read_errors_max = 1;
    let failing = |count| {
        (0..count)
            .fold(Scripted::default(), |script, _| script.step(Step::Error(ErrorKind::InvalidData)))
    };
    with_settings(
        settings.clone(),
        Echo::default,
        || failing(2),
        |mut bench| {
            assert_eq!(bench.run(2), Err(DriveError::Read(ErrorKind::InvalidData)));
            assert_eq!(bench.echo().seen, ["<eof>"]);
            if bench.is_loop() {
                assert_eq!(bench.run(1), Ok(()));
            }
        },
    );
    with_settings(
        settings,
        Echo::default,
        || failing(1),
        |mut bench| {
            assert!(bench.poll().is_pending());
            assert!(bench.echo().seen.is_empty());
        },
    );
}
