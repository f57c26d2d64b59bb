//! Shutdown of a connection.

use std::io::ErrorKind;
use std::task::Poll;

use mcp_sansio_async::DriveError;

use super::DriverTest;
use super::echo::Echo;
use super::scripted::{Scripted, Step};

fn holding() -> Echo {
    Echo { holds: true, ..Echo::default() }
}

#[test]
fn input_that_ends_within_a_frame_ends_the_connection_with_all_answers_sent() {
    // Rule: [STDIO-017].
    let mut bench =
        DriverTest::new(Echo::default(), Scripted::default().read("a\nb").step(Step::End));
    bench.run(1).unwrap();
    assert_eq!(bench.seen(), ["a", "<the input ended 1 bytes into a frame>", "<eof>"]);
    assert_eq!(bench.stream.written(), "a\n");
    assert_eq!(bench.stream.trace(), "rwfc");
}

#[test]
fn answers_are_waited_for_after_the_end_of_input() {
    let mut bench = DriverTest::new(holding(), Scripted::default().read("a\n").step(Step::End));
    assert!(bench.poll().is_pending());
    bench.clock.set(1000);
    bench.driver.endpoint_mut().release();
    bench.run(1).unwrap();
    assert_eq!(bench.stream.trace(), "rwfc");
}

#[test]
fn the_linger_timeout_ends_a_connection_whose_answers_never_arrive() {
    // Rule: [STDIO-017].
    let mut bench = DriverTest::new(holding(), Scripted::default().read("a\n").step(Step::End));
    assert!(bench.poll().is_pending());
    bench.clock.set(1499);
    assert!(bench.poll().is_pending());
    bench.clock.set(1500);
    bench.run(1).unwrap();
    assert_eq!(bench.stream.trace(), "rc");
}

#[test]
fn the_linger_timeout_ends_a_connection_whose_stream_takes_nothing() {
    let stream = Scripted::default().read("a\n").step(Step::End).writes(vec![Step::Pending; 9]);
    stream.0.borrow_mut().closes.push_back(Step::Pending);
    let mut bench = DriverTest::new(Echo::default(), stream);
    assert!(bench.poll().is_pending());
    bench.clock.set(1500);
    bench.run(1).unwrap();
}

#[test]
fn output_that_waits_is_sent_as_long_as_the_other_side_takes_some_of_it() {
    let stream = Scripted::default().step(Step::End).writes(vec![Step::Pending; 2]);
    let mut bench = DriverTest::new(holding(), stream.clone());
    bench.driver.endpoint_mut().say("before");
    assert!(bench.poll().is_pending());
    stream.clone().writes([Step::Pending]);
    for (millis, written) in [(1500, "be"), (2900, "befo"), (4300, "before")] {
        stream.clone().writes([Step::Take(2), Step::Pending]);
        bench.clock.set(millis);
        assert!(bench.poll().is_pending());
        assert_eq!(stream.written(), written);
    }
    bench.clock.set(5700);
    bench.run(1).unwrap();
    assert_eq!(stream.written(), "before\n");

    let stream = Scripted::default().step(Step::End);
    let stream = stream.writes([Step::Take(2)]).writes(vec![Step::Pending; 4]);
    let mut bench = DriverTest::new(Echo::default(), stream.clone());
    bench.driver.endpoint_mut().say("before");
    assert!(bench.poll().is_pending());
    bench.clock.set(1500);
    bench.run(1).unwrap();
    assert_eq!(stream.written(), "be");
}

#[test]
fn an_endpoint_that_closes_ends_the_connection_once_its_output_is_sent() {
    // Rule: [STDIO-018].
    let mut bench = DriverTest::new(Echo::default(), Scripted::default().read("a\n"));
    assert!(bench.poll().is_pending());
    let echo = bench.driver.endpoint_mut();
    echo.say("bye");
    echo.is_closed = true;
    bench.run(1).unwrap();
    assert_eq!(bench.seen(), ["a"]);
    assert_eq!(bench.stream.written(), "a\nbye\n");
    assert_eq!(bench.stream.trace(), "rwfwfc");
}

#[test]
fn input_received_before_the_peer_left_is_processed() {
    // Rule: [STDIO-018].
    for kind in [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset, ErrorKind::NotConnected] {
        let stream = Scripted::default().read("a\n").read("b\n").step(Step::End);
        let mut bench = DriverTest::new(holding(), stream.writes([Step::Error(kind)]));
        bench.driver.endpoint_mut().say("question");
        bench.run(1).unwrap();
        assert_eq!(bench.seen(), ["a", "b", "<eof>"]);
        assert_eq!(bench.stream.trace(), "rr", "no second write, no close");
    }
}

#[test]
fn a_broken_output_ends_the_connection_even_if_the_input_stays_open() {
    let stream = Scripted::default().read("a\n").writes([Step::Error(ErrorKind::BrokenPipe)]);
    let mut bench = DriverTest::new(Echo::default(), stream);
    assert!(bench.poll().is_pending());
    bench.clock.set(1500);
    bench.run(1).unwrap();
    assert_eq!(bench.seen(), ["a", "<eof>"]);
}

#[test]
fn stream_errors_are_reported() {
    let stream = Scripted::default().read("a\n").step(Step::Error(ErrorKind::InvalidData));
    let mut bench = DriverTest::new(Echo::default(), stream);
    let error = bench.run(1).unwrap_err();
    assert!(matches!(&error, DriveError::Read(error) if error.kind() == ErrorKind::InvalidData));
    assert!(error.to_string().starts_with("reading from the other side failed: "));
    assert_eq!(bench.seen(), ["a", "<eof>"]);
    assert_eq!(bench.stream.trace(), "rwfc", "the output is still flushed and closed");

    for (step, kind) in [
        (Step::Error(ErrorKind::StorageFull), ErrorKind::StorageFull),
        (Step::Take(0), ErrorKind::WriteZero),
    ] {
        let stream = Scripted::default().read("a\n").step(Step::End);
        let mut bench = DriverTest::new(Echo::default(), stream.writes([step]));
        let error = bench.run(1).unwrap_err();
        assert!(matches!(&error, DriveError::Write(error) if error.kind() == kind));
        assert_eq!(bench.seen(), ["a", "<eof>"]);
    }
}

#[test]
fn a_failed_close_is_reported_unless_the_peer_has_closed() {
    for (kind, is_told) in [(ErrorKind::Other, true), (ErrorKind::NotConnected, false)] {
        let stream = Scripted::default().step(Step::End);
        stream.0.borrow_mut().closes.push_back(Step::Error(kind));
        assert_eq!(DriverTest::new(Echo::default(), stream).run(1).is_err(), is_told);
    }
}

#[test]
fn a_finished_driver_stays_finished() {
    let mut bench = DriverTest::new(Echo::default(), Scripted::default().step(Step::End));
    bench.run(1).unwrap();
    assert!(matches!(bench.poll(), Poll::Ready(Ok(()))));
    let (echo, stream, _) = bench.driver.into_parts();
    assert_eq!((echo.seen.len(), stream.trace().as_str()), (1, "c"));
}
