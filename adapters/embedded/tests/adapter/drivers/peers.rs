//! A client connected to a server, each under either driver.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use embedded_io_async::{ErrorType, Read, ReadReady, Write};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::Tool;
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_embedded::{Driver, NextPoll, PacketFraming, PolledDriver, packets};
use mcp_sansio_handlers::{Call, Host, NoArguments, Server};

use super::scripted::ManualClock;

/// One direction of a serial line. Like the hardware, it buffers only a few bytes.
#[derive(Clone, Debug, Default)]
struct OneWayPipe(Rc<RefCell<VecDeque<u8>>>);

const FIFO: usize = 16;

impl ErrorType for OneWayPipe {
    type Error = Infallible;
}

impl Read for OneWayPipe {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        poll_fn(|_| match embedded_io::Read::read(self, buffer) {
            Ok(0) => Poll::Pending,
            read => Poll::Ready(read),
        })
        .await
    }
}

impl Write for OneWayPipe {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        poll_fn(|_| {
            let room = FIFO - self.0.borrow().len();
            if room == 0 {
                return Poll::Pending;
            }
            embedded_io::Write::write(self, &bytes[..room.min(bytes.len())]).into()
        })
        .await
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        poll_fn(|_| if self.0.borrow().is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending })
            .await
    }
}

impl ReadReady for OneWayPipe {
    fn read_ready(&mut self) -> Result<bool, Infallible> {
        Ok(!self.0.borrow().is_empty())
    }
}

impl embedded_io::Read for OneWayPipe {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let mut bytes = self.0.borrow_mut();
        let length = bytes.len().min(buffer.len());
        for (slot, byte) in buffer.iter_mut().zip(bytes.drain(..length)) {
            *slot = byte;
        }
        Ok(length)
    }
}

impl embedded_io::Write for OneWayPipe {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Advances one driver by one step.
type PollStep<'t> = Box<dyn FnMut() + 't>;

fn by_executor<'t>(driver: impl Future + 't) -> PollStep<'t> {
    let mut driver: Pin<Box<dyn Future<Output = _>>> = Box::pin(driver);
    Box::new(move || {
        let _running = driver.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    })
}

/// Waits for `future` while stepping both sides.
fn block_on<F: Future>(future: F, steps: &mut [PollStep<'_>]) -> F::Output {
    let mut future = pin!(future);
    for _ in 0..10_000 {
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(output) = polled {
            return output;
        }
        for turn in &mut *steps {
            turn();
        }
    }
    panic!("the future has not completed after 10,000 rounds");
}

fn server() -> Server {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    Server::new("device", "1.0.0").limits(Limits::SMALL).tool_with(
        Tool::new("measure", schema).description("Takes two measurements"),
        async |call: Call<NoArguments>| {
            call.progress(1.0, Some(2.0), "half of it");
            pause().await;
            String::from("21.5")
        },
    )
}

/// Yields once.
async fn pause() {
    let mut first = true;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
}

#[test]
fn a_server_in_a_bare_loop_serves_a_client_on_an_executor_at_every_revision() {
    for revision in Revisions::ALL.iter() {
        let (up, down) = (OneWayPipe::default(), OneWayPipe::default());
        let endpoint = server().endpoint(1).unwrap();
        let (mut line, mut client_line, mut output) = ([0; 1024], [0; 1024], [0; 64]);
        let mut device = PolledDriver::new(endpoint, up.clone(), down.clone(), &mut line);
        let host = Host::new("host", "1.0.0").revisions(Revisions::only(revision));
        let (client, endpoint) = host.connect(2, Instant::ZERO);
        let clock = ManualClock::default();
        let side = Driver::new(endpoint, down, up, clock, &mut client_line, &mut output).run();
        let mut steps = [
            by_executor(side),
            Box::new(move || {
                assert_ne!(device.poll(Instant::ZERO), Ok(NextPoll::Closed));
            }),
        ];
        assert_eq!(talk(&client, &mut steps), (revision, "21.5".into(), 1));
    }
}

#[test]
fn a_client_in_a_bare_loop_calls_a_server_on_an_executor() {
    let (up, down) = (OneWayPipe::default(), OneWayPipe::default());
    let (client, endpoint) = Host::new("host", "1.0.0").connect(2, Instant::ZERO);
    let (mut line, mut server_line, mut output) = ([0; 1024], [0; 1024], [0; 64]);
    let mut side = PolledDriver::new(endpoint, down.clone(), up.clone(), &mut line);
    let endpoint = server().endpoint(1).unwrap();
    let clock = ManualClock::default();
    let device = Driver::new(endpoint, up, down, clock, &mut server_line, &mut output).run();
    let mut steps = [
        by_executor(device),
        Box::new(move || {
            assert_ne!(side.poll(Instant::ZERO), Ok(NextPoll::Closed));
        }),
    ];
    assert_eq!(talk(&client, &mut steps), (Revision::V2026_07_28, "21.5".into(), 1));
}

#[test]
fn packets_connect_a_server_in_a_bare_loop_to_a_client_on_an_executor() {
    for framing in [PacketFraming::Cobs, PacketFraming::Slip] {
        let (up, down) = (OneWayPipe::default(), OneWayPipe::default());
        let endpoint = server().endpoint(1).unwrap();
        let (mut line, mut client_line, mut output) = ([0; 1024], [0; 1024], [0; 64]);
        let (reader, writer) = packets(framing, up.clone(), down.clone());
        let mut device = PolledDriver::new(endpoint, reader, writer, &mut line);
        let (client, endpoint) = Host::new("host", "1.0.0").connect(2, Instant::ZERO);
        let (reader, writer) = packets(framing, down.clone(), up);
        let clock = ManualClock::default();
        let side = Driver::new(endpoint, reader, writer, clock, &mut client_line, &mut output);
        let mut steps = [
            by_executor(side.run()),
            Box::new(move || {
                assert_ne!(device.poll(Instant::ZERO), Ok(NextPoll::Closed));
            }),
        ];
        assert_eq!(talk(&client, &mut steps), (Revision::V2026_07_28, "21.5".into(), 1));
        assert!(down.0.borrow().is_empty());
    }
}

#[test]
fn a_damaged_packet_is_refused_and_counted() {
    for framing in [PacketFraming::Cobs, PacketFraming::Slip] {
        let (up, down) = (OneWayPipe::default(), OneWayPipe::default());
        let mut line = [0; 1024];
        let (mut reader, writer) = packets(framing, up.clone(), down.clone());
        let (_, mut packet) = packets(framing, OneWayPipe::default(), up.clone());
        let (mut answers, _) = packets(framing, down.clone(), up.clone());
        let endpoint = server().endpoint(1).unwrap();
        let mut device = PolledDriver::new(endpoint, &mut reader, writer, &mut line);
        let mut ask = |damage: u8| {
            let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
            let mut rest = &ping[..];
            while !rest.is_empty() {
                let length = embedded_io::Write::write(&mut packet, rest).unwrap();
                rest = &rest[length..];
            }
            embedded_io::Write::flush(&mut packet).unwrap();
            up.0.borrow_mut()[9] ^= damage;
            while device.poll(Instant::ZERO) == Ok(NextPoll::Now) {}
            let mut answer = String::new();
            while answers.read_ready().unwrap() {
                let mut bytes = [0; 10];
                let length = embedded_io::Read::read(&mut answers, &mut bytes).unwrap();
                answer.push_str(str::from_utf8(&bytes[..length]).unwrap());
            }
            answer.trim().to_owned()
        };
        assert_eq!(ask(0), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert!(ask(1).contains("-32700"));
        assert_eq!(ask(0), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        drop(device);
        assert_eq!(reader.damaged(), 1);
    }
}

/// Returns the revision, the result of the tool, and the number of progress notifications.
fn talk(
    client: &mcp_sansio_handlers::Client,
    steps: &mut [PollStep<'_>],
) -> (Revision, String, usize) {
    let revision = block_on(client.opened(), steps).unwrap().revision;
    let reports = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reports);
    let call = client.call_tool("measure", &NoArguments {}).on_progress(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let result = block_on(call.into_future(), steps).unwrap();
    let text = result.content[0].as_text().unwrap().to_owned();
    (revision, text, reports.load(Ordering::Relaxed))
}
