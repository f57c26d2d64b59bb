use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use mcp_sansio::Instant;
use mcp_sansio::stream::Endpoint;
use mcp_sansio_test::transport::{Ends, Promises, Side, check};
use proptest::collection::vec;
use proptest::prelude::*;
use transports::gatt::{ATT_MTU_MIN, FragmentError, Fragmenter, Reassembler, value_length};

const LENGTH_MAX: usize = 16 * 1024;

/// Two devices and the air between them, on a virtual clock.
struct Air {
    att_mtu: usize,
    sides: Vec<Device>,
    is_cut: bool,
    now: Instant,
}

struct Device {
    endpoint: Side,
    fragmenter: Fragmenter,
    reassembler: Reassembler<'static>,
    /// Values on their way to this device.
    inbox: VecDeque<Vec<u8>>,
    is_over: bool,
}

impl Air {
    fn step(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        for index in 0..self.sides.len() {
            let device = &mut self.sides[index];
            device.endpoint.poll_handlers(cx, self.now);
            let mut values = Vec::new();
            let (fragmenter, mut value) =
                (&mut device.fragmenter, vec![0; value_length(self.att_mtu)]);
            device.endpoint.transmit(&mut |lines| {
                for line in lines.split_inclusive(|byte| *byte == b'\n') {
                    let (message, mut offset) = (line.trim_ascii_end(), 0);
                    while offset < message.len() {
                        let length = fragmenter.next(message, &mut offset, &mut value);
                        values.push(value[..length].to_vec());
                    }
                }
                lines.len()
            });
            let drained = device.endpoint.is_drained();
            let peer = &mut self.sides[1 - index];
            moved |= !values.is_empty();
            if !self.is_cut {
                peer.inbox.extend(values);
            }
            let device = &mut self.sides[index];
            while let Some(value) = device.inbox.pop_front() {
                moved = true;
                match device.reassembler.take(&value) {
                    Ok(None) => {}
                    Ok(Some(message)) => device.endpoint.handle_frame(Ok(message), self.now),
                    // The device disconnects.
                    Err(_) => self.is_cut = true,
                }
                if self.is_cut {
                    break;
                }
            }
            self.is_cut |= drained && self.sides.iter().all(|device| device.inbox.is_empty());
            let device = &mut self.sides[index];
            if self.is_cut && !device.is_over {
                (device.is_over, moved) = (true, true);
                device.endpoint.handle_eof(self.now);
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

impl Ends for Air {
    fn promises(&self) -> Promises {
        Promises::messages(LENGTH_MAX)
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn connect(&mut self, client: Side, server: Side) {
        self.sides = [client, server]
            .into_iter()
            .map(|endpoint| Device {
                endpoint,
                fragmenter: Fragmenter::new(),
                reassembler: Reassembler::new(vec![0; LENGTH_MAX].leak()),
                inbox: VecDeque::new(),
                is_over: false,
            })
            .collect();
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
            let deadlines = self.sides.iter().filter_map(|device| device.endpoint.poll_timeout());
            let Some(next) = deadlines.min().filter(|next| *next > self.now) else { return false };
            self.now = next;
            self.sides.iter_mut().for_each(|device| device.endpoint.handle_timeout(next));
        }
    }

    fn cut(&mut self) {
        self.is_cut = true;
    }
}

#[test]
fn gatt_conforms_with_the_smallest_and_a_usual_mtu() {
    for att_mtu in [ATT_MTU_MIN, 247] {
        let mut air = Air { att_mtu, sides: Vec::new(), is_cut: false, now: Instant::ZERO };
        println!("GATT with an MTU of {att_mtu}: {}", check(&mut air));
    }
}

/// Returns the fragments of messages.
fn fragments(messages: &[Vec<u8>], value_length: usize) -> Vec<Vec<u8>> {
    let (mut fragmenter, mut value) = (Fragmenter::new(), vec![0; value_length]);
    let mut fragments = Vec::new();
    for message in messages {
        let mut offset = 0;
        while offset < message.len() {
            let length = fragmenter.next(message, &mut offset, &mut value);
            fragments.push(value[..length].to_vec());
        }
    }
    fragments
}

/// Returns the messages up to the first error.
fn reassemble(fragments: &[Vec<u8>], length_max: usize) -> (Vec<Vec<u8>>, Option<FragmentError>) {
    let mut memory = vec![0; length_max];
    let (mut reassembler, mut messages) = (Reassembler::new(&mut memory), Vec::new());
    for fragment in fragments {
        match reassembler.take(fragment) {
            Ok(message) => messages.extend(message.map(<[u8]>::to_vec)),
            Err(error) => return (messages, Some(error)),
        }
    }
    (messages, None)
}

fn messages() -> impl Strategy<Value = Vec<Vec<u8>>> {
    vec(vec(any::<u8>(), 1..200), 1..6)
}

proptest! {
    #[test]
    fn what_is_split_is_joined(messages in messages(), length in 2..60_usize) {
        let fragments = fragments(&messages, length);
        prop_assert!(fragments.iter().all(|fragment| fragment.len() <= length));
        prop_assert_eq!(reassemble(&fragments, 200), (messages, None));
    }

    /// Whatever is lost, repeated or swapped: the messages before it arrive, and nothing else.
    #[test]
    fn faults_are_found(
        messages in messages(), length in 2..60_usize, at: prop::sample::Index, fault in 0..3,
    ) {
        let mut fragments = fragments(&messages, length);
        let at = at.index(fragments.len());
        match fault {
            0 => drop(fragments.remove(at)),
            1 => fragments.insert(at, fragments[at].clone()),
            _ if at + 1 < fragments.len() => fragments.swap(at, at + 1),
            _ => {}
        }
        let (arrived, error) = reassemble(&fragments, 200);
        prop_assert!(messages.starts_with(&arrived));
        prop_assert!(error.is_some() || at + 1 >= fragments.len());
    }

    #[test]
    fn noise_does_not_panic(noise in vec(vec(any::<u8>(), 0..30), 0..50)) {
        let (messages, _) = reassemble(&noise, 64);
        prop_assert!(messages.iter().all(|message| message.len() <= 64));
    }
}

#[test]
fn a_message_beyond_the_memory_is_an_error() {
    let fragments = fragments(&[vec![1; 65]], 20);
    assert_eq!(reassemble(&fragments, 64), (vec![], Some(FragmentError::TooLong)));
    assert_eq!(reassemble(&[vec![]], 64).1, Some(FragmentError::Unexpected));
    assert_eq!(reassemble(&[vec![0x40, 1]], 64).1, Some(FragmentError::Unexpected));
}
