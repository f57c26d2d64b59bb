//! Connections within one process, over every kind of stream.
#![cfg(unix)]

use std::future::poll_fn;
use std::io::{self, BufRead, BufReader, Read, Write, pipe};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::task::Context;
use std::thread;
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::framing::FrameError;
use mcp_sansio_handlers::endpoint::Endpoint;
use mcp_sansio_handlers::{Host, Server};
use mcp_sansio_std::adapter::{ByteStream, StreamSettings, Timer as _};
use mcp_sansio_std::{
    BackgroundDriver, FdStream, PipeStream, ThreadedStream, Wait as _, drive, now, seed, serve,
    serve_stream,
};

fn server() -> impl Endpoint + Send + 'static {
    Server::new("test", "1").endpoint(seed()).unwrap()
}

/// Fails the test if it takes too long.
fn in_time<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || sender.send(test()));
    match receiver.recv_timeout(Duration::from_secs(30)) {
        Ok(result) => result,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("stuck"),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
    }
}

fn pings(count: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for id in 0..count {
        writeln!(text, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
    }
    text
}

#[test]
fn a_hundred_thousand_pings_are_written_before_the_first_answer_is_read() {
    in_time(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        let served = thread::spawn(|| serve_stream(server(), there));
        here.write_all(&pings(100_000)).unwrap();
        here.shutdown(Shutdown::Write).unwrap();
        let answers = BufReader::new(here).lines().map(Result::unwrap);
        assert_eq!(answers.filter(|answer| answer.contains(r#""result":{}"#)).count(), 100_000);
        served.join().unwrap().unwrap();
    });
}

#[test]
fn a_socket_is_served_over_tcp_without_delay() {
    in_time(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (there, _) = listener.accept().unwrap();
        let probe = there.try_clone().unwrap();
        let served = thread::spawn(|| serve_stream(server(), there));
        let mut answers = BufReader::new(here.try_clone().unwrap());
        let mut answer = String::new();
        for _ in 0..100 {
            here.write_all(&pings(1)).unwrap();
            answer.clear();
            answers.read_line(&mut answer).unwrap();
        }
        assert!(probe.nodelay().unwrap());
        drop(probe);
        here.shutdown(Shutdown::Write).unwrap();
        assert_eq!(answers.read_line(&mut answer).unwrap(), 0);
        served.join().unwrap().unwrap();
    });
}

/// Sends many unsolicited lines and counts the lines it receives.
#[derive(Debug)]
struct Flood {
    left: usize,
    received: usize,
}

/// 10 MiB in lines of 1 KiB.
const FLOOD_LINES: usize = 10 * 1024;

impl Flood {
    const fn new() -> Self {
        Self { left: FLOOD_LINES * 1024, received: 0 }
    }
}

impl Endpoint for Flood {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, _: Instant) {
        assert_eq!(frame.unwrap().len(), 1023);
        self.received += 1;
    }

    fn handle_eof(&mut self, _: Instant) {
        assert_eq!(self.received, FLOOD_LINES, "the input ended early");
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_handlers(&mut self, _: &mut Context<'_>, _: Instant) {}

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        let mut line = [b'x'; 1024];
        line[1023] = b'\n';
        while self.left > 0 {
            let rest = &line[(1024 - self.left % 1024) % 1024..];
            let written = write(rest);
            self.left -= written;
            if written < rest.len() {
                return;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn is_congested(&self) -> bool {
        false
    }

    fn is_drained(&self) -> bool {
        self.is_closed() && self.left == 0
    }

    fn is_closed(&self) -> bool {
        self.received == FLOOD_LINES
    }
}

fn flood(one: impl ByteStream + Send + 'static, other: impl ByteStream + Send + 'static) {
    in_time(|| {
        let one = BackgroundDriver::spawn(Flood::new(), one).unwrap();
        drive(Flood::new(), other, StreamSettings::default()).unwrap();
        one.join().unwrap();
    });
}

#[test]
fn both_sides_write_ten_mebibytes_before_they_read() {
    let (to, from) = (pipe().unwrap(), pipe().unwrap());
    flood(FdStream::new(to.0, from.1).unwrap(), FdStream::new(from.0, to.1).unwrap());

    let (here, there) = UnixStream::pair().unwrap();
    flood(FdStream::try_from(here).unwrap(), FdStream::try_from(there).unwrap());

    let (to, from) = (pipe().unwrap(), pipe().unwrap());
    let other = FdStream::new(from.0, to.1).unwrap();
    flood(ThreadedStream::new(to.0, from.1), other);
}

#[test]
fn the_end_of_the_input_within_a_frame_ends_the_connection_at_once() {
    // Rule: [STDIO-017].
    in_time(|| {
        let (mut here, there) = UnixStream::pair().unwrap();
        let mut input = pings(3);
        input.extend_from_slice(br#"{"jsonrpc":"#);
        here.write_all(&input).unwrap();
        here.shutdown(Shutdown::Write).unwrap();
        serve_stream(server(), there).unwrap();
        let mut answers = String::new();
        here.read_to_string(&mut answers).unwrap();
        assert_eq!(answers.matches(r#""result":{}"#).count(), 3, "{answers}");
    });
}

#[test]
fn any_reader_and_writer_can_be_served() {
    // Rule: [STDIO-021].
    in_time(|| {
        let (mut reader, writer) = pipe().unwrap();
        let served = thread::spawn(|| serve(server(), io::Cursor::new(pings(1000)), writer));
        let mut answers = String::new();
        reader.read_to_string(&mut answers).unwrap();
        assert_eq!(answers.matches(r#""result":{}"#).count(), 1000);
        served.join().unwrap().unwrap();
    });
}

#[test]
fn a_blocked_writer_does_not_delay_shutdown() {
    in_time(|| {
        // This pipe is never read.
        let (_reader, writer) = pipe().unwrap();
        let mut settings = StreamSettings::default();
        settings.linger = Duration::from_millis(20);
        let input = io::Cursor::new(pings(50_000));
        let stream = ThreadedStream::new(input, writer);
        // Whether unwritten output is an error is up to the driver.
        let _ = drive(server(), stream, settings);
    });
}

#[test]
fn callers_wait_for_a_background_connection() {
    in_time(|| {
        let (here, there) = UnixStream::pair().unwrap();
        let serving =
            BackgroundDriver::spawn(server(), PipeStream::try_from(there).unwrap()).unwrap();
        let (client, endpoint) = Host::new("test", "1").connect(seed(), now());
        let stream = FdStream::try_from(here).unwrap();
        let connection = BackgroundDriver::spawn(endpoint, stream).unwrap();
        client.opened().wait().unwrap();
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                thread::spawn(move || {
                    for _ in 0..50 {
                        client.list_tools(None).wait().unwrap_err();
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        assert!(!connection.is_finished());
        client.close();
        connection.join().unwrap();
        serving.join().unwrap();
        client.list_tools(None).wait().unwrap_err();
    });
}

#[test]
fn a_background_connection_can_be_stopped() {
    in_time(|| {
        let (here, mut there) = UnixStream::pair().unwrap();
        let connection =
            BackgroundDriver::spawn(server(), FdStream::try_from(here).unwrap()).unwrap();
        there.write_all(&pings(1)).unwrap();
        let mut first = [0; 1];
        there.read_exact(&mut first).unwrap();
        assert!(!connection.is_finished());
        connection.stop().unwrap();
        let mut rest = Vec::new();
        there.read_to_end(&mut rest).unwrap();
    });
}

#[test]
fn many_streams_and_clocks_share_one_thread() {
    in_time(|| {
        const STREAMS: usize = 100;
        let mut peers = Vec::new();
        let mut drivers = Vec::new();
        for _ in 0..STREAMS {
            let (here, there) = UnixStream::pair().unwrap();
            let stream = FdStream::try_from(there).unwrap();
            let clock = mcp_sansio_std::Clock::new();
            drivers.push(mcp_sansio_std::adapter::Driver::new(server(), stream, clock));
            peers.push(here);
        }
        let peers = thread::spawn(move || {
            // Serve the peers in reverse order, one at a time.
            for mut peer in peers.into_iter().rev() {
                peer.write_all(&pings(1)).unwrap();
                let mut answer = String::new();
                BufReader::new(&peer).read_line(&mut answer).unwrap();
                assert!(answer.contains("result"));
            }
        });
        let mut clock = mcp_sansio_std::Clock::new();
        let long = now() + Duration::from_secs(600);
        mcp_sansio_std::block_on(poll_fn(|cx| {
            assert!(clock.poll_until(cx, long).is_pending());
            drivers.retain_mut(|driver| std::pin::Pin::new(driver).poll(cx).is_pending());
            if drivers.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        }));
        peers.join().unwrap();
    });
}
