//! The conformance harness, with transports that keep their promises and others that break them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::stream::{Action, StreamConnection, StreamSettings};
use mcp_sansio_test::Faults;
use mcp_sansio_test::transport::{Ends, InMemory, Promises, Side, check};

#[test]
fn messages_in_order_pass() {
    let report = check(&mut InMemory::new(Promises::messages(usize::MAX)));
    assert!(report.connections > 25 && report.cuts > 25, "{report}");
    assert!(report.to_string().starts_with("promises: whole messages, in order, once"), "{report}");
}

#[test]
fn a_transport_that_declares_repetitions_is_run_with_them() {
    let plain = check(&mut InMemory::new(Promises::messages(usize::MAX)));
    let both = check(&mut InMemory::new(Promises::messages(usize::MAX).any_order().repeats()));
    assert_eq!(both.connections, plain.connections + 10);
}

#[test]
#[should_panic(expected = "out of order")]
fn a_transport_that_reorders_in_secret_is_found() {
    let faults = Faults::new(3).delay(Duration::ZERO..=Duration::from_millis(50)).reorder();
    check(&mut InMemory::new(Promises::messages(usize::MAX)).faults(faults));
}

#[test]
#[should_panic(expected = "out of order")]
fn a_transport_that_repeats_in_secret_is_found() {
    check(&mut InMemory::new(Promises::messages(usize::MAX)).faults(Faults::new(3).duplicate(3)));
}

#[test]
#[should_panic(expected = "arrived")]
fn a_limit_that_is_not_enforced_is_found() {
    check(&mut InMemory::new(Promises::messages(2000)));
}

// ------------------------------------------------------------------ a stream of bytes

/// Two connections over byte queues, in pieces of `piece` bytes.
struct Bytes {
    piece: usize,
    fault: Fault,
    sides: Vec<StreamConnection<'static, Side, Infallible>>,
    /// What the client and the server sent.
    sent: [Vec<u8>; 2],
    is_cut: bool,
    now: Instant,
    counter: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// One byte in 5,000 is lost.
    Loss,
    /// The end is not reported.
    Silence,
}

const LENGTH_MAX: usize = 64 * 1024;

impl Bytes {
    fn new(piece: usize, fault: Fault) -> Self {
        let (now, sent) = (Instant::ZERO, Default::default());
        Self { piece, fault, sides: Vec::new(), sent, is_cut: false, now, counter: 0 }
    }

    /// Moves what can be moved. Returns whether anything was.
    fn step(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            let side = &mut self.sides[index];
            side.reset_budget();
            loop {
                match side.advance(cx, self.now) {
                    Action::Write => {
                        side.transmit(&mut |bytes| {
                            moved = true;
                            if !self.is_cut {
                                self.sent[index].extend_from_slice(bytes);
                            }
                            bytes.len()
                        });
                        side.handle_flushed();
                    }
                    Action::Wait if side.wants_read() => {
                        let arrived = &mut self.sent[1 - index];
                        let length = arrived.len().min(self.piece).min(side.space().len());
                        if length == 0 && !(self.is_cut && self.fault != Fault::Silence) {
                            break;
                        }
                        side.space()[..length].copy_from_slice(&arrived[..length]);
                        arrived.drain(..length);
                        self.counter += length;
                        let lost = self.fault == Fault::Loss && self.counter > 5000;
                        self.counter %= 5001;
                        side.handle_read(Ok(length - usize::from(lost)), self.now);
                        moved = true;
                    }
                    Action::Yield => side.reset_budget(),
                    Action::Wait => break,
                    Action::Close | Action::Restart | Action::Done => {
                        // What arrived is still read by the other side.
                        let Ok(()) = side.finish();
                        moved |= !self.is_cut;
                        self.is_cut = true;
                        break;
                    }
                }
            }
        }
        moved
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Ends for Bytes {
    fn promises(&self) -> Promises {
        Promises::BYTES.message_length_max(LENGTH_MAX)
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn connect(&mut self, client: Side, server: Side) {
        let mut settings = StreamSettings::DEFAULT;
        settings.frame_length_max = LENGTH_MAX;
        self.sides = [client, server]
            .map(|side| StreamConnection::new(side, settings.clone()))
            .into_iter()
            .collect();
        self.sent = Default::default();
        self.is_cut = false;
    }

    fn run(&mut self, mut future: Pin<&mut dyn Future<Output = ()>>) -> bool {
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(()) = future.as_mut().poll(&mut cx) {
                return true;
            }
            if self.step(&mut cx) || woken.0.swap(false, Ordering::SeqCst) {
                continue;
            }
            let next = self.sides.iter().filter_map(StreamConnection::poll_timeout).min();
            match next.filter(|next| *next > self.now) {
                Some(next) => self.now = next,
                None => return false,
            }
        }
    }

    fn cut(&mut self) {
        self.is_cut = true;
    }
}

#[test]
fn bytes_pass_in_pieces_of_any_length() {
    for piece in [5, 64, 1 << 20] {
        let report = check(&mut Bytes::new(piece, Fault::None));
        assert!(report.cuts > 50, "{report}");
    }
}

#[test]
#[should_panic(expected = "2024-11-05: ")]
fn a_transport_that_loses_bytes_is_found() {
    check(&mut Bytes::new(1 << 20, Fault::Loss));
}

#[test]
#[should_panic(expected = "the end, at the server did not happen")]
fn a_transport_that_does_not_report_its_end_is_found() {
    check(&mut Bytes::new(1 << 20, Fault::Silence));
}
