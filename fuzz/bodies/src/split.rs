//! Streams that arrive in different chunks.

use std::fmt::Write;

use mcp_sansio::Instant;
use mcp_sansio::framing::{FrameError, LineDecoder};
use mcp_sansio::http::{
    Client as HttpClient, ClientTransmit, ExchangeId, HttpClientOptions as HttpOptions,
    IncomingResponse, Location,
};
use mcp_sansio::peer::Status;
use mcp_sansio::peer::{Client, ClientMachine, ConnectionClosed, Event, Server};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Method, peer::CallOptions};

use super::chunk_lengths::random_lengths;
use super::inputs;

/// However a stream is split, the outcome is the same: the same events in the same order, and the
/// same output. The first line of the input selects the reader of the stream, the pattern of the
/// chunks, and the settings; the rest is the stream.
pub fn split(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (settings, stream) = bytes.split_at(end);
    let stream = stream.get(1..).unwrap_or_default();
    let [reader, pattern, settings @ ..] = settings else { return };
    let mut random = random_lengths(*pattern, 64);
    let pieces: [&mut dyn FnMut() -> usize; 3] = [&mut || usize::MAX, &mut || 1, &mut random];
    let [whole, single, other] = pieces.map(|piece| match reader {
        b's' => {
            let mut server = Server::new(inputs::server_options(settings), 0);
            byte_stream(&mut server, stream, piece)
        }
        b'j' | b'e' => body(*reader, settings, stream, piece),
        _ => {
            let mut client = Client::new(inputs::client_options(settings), 0, Instant::ZERO);
            byte_stream(&mut client, stream, piece)
        }
    });
    assert_eq!(single, whole, "byte by byte");
    assert_eq!(other, whole, "in pieces");
}

/// The outcome of a stream.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    events: String,
    sent: String,
}

/// A reader of a byte stream.
trait Machine {
    fn take<'f>(
        &mut self,
        frame: Result<&'f [u8], FrameError>,
    ) -> Result<Option<Event<'f>>, ConnectionClosed>;
    fn event(&mut self) -> Option<Event<'static>>;
    fn transmit(&mut self) -> Option<&[u8]>;
    fn end(&mut self);
}

macro_rules! machine {
    ($machine:ty) => {
        impl Machine for $machine {
            fn take<'f>(
                &mut self,
                frame: Result<&'f [u8], FrameError>,
            ) -> Result<Option<Event<'f>>, ConnectionClosed> {
                match frame {
                    Ok(frame) => self.handle_message(frame, Instant::ZERO),
                    Err(error) => self.handle_frame_error(error),
                }
            }

            fn event(&mut self) -> Option<Event<'static>> {
                self.poll_event()
            }

            fn transmit(&mut self) -> Option<&[u8]> {
                self.poll_transmit()
            }

            fn end(&mut self) {
                self.handle_eof();
            }
        }
    };
}

machine!(Server);
machine!(Client);

fn byte_stream(
    machine: &mut impl Machine,
    mut stream: &[u8],
    piece: &mut dyn FnMut() -> usize,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut decoder = LineDecoder::growing(4096);
    outcome.pull(machine);
    while !stream.is_empty() {
        let piece = piece().min(stream.len());
        stream = &stream[decoder.feed(&stream[..piece])..];
        while let Some(frame) = decoder.next_frame() {
            match machine.take(frame) {
                Ok(Some(event)) => outcome.tell(&event),
                Ok(None) => {}
                Err(closed) => outcome.tell(&closed),
            }
            outcome.pull(machine);
        }
    }
    if let Some(rest) = decoder.handle_eof()
        && let Ok(Some(event)) = machine.take(rest)
    {
        outcome.tell(&event);
    }
    machine.end();
    outcome.pull(machine);
    outcome
}

impl Outcome {
    fn tell(&mut self, what: &dyn std::fmt::Debug) {
        writeln!(self.events, "{what:?}").expect("writing to a string succeeds");
    }

    fn pull(&mut self, machine: &mut impl Machine) {
        while let Some(event) = machine.event() {
            self.tell(&event);
        }
        while let Some(bytes) = machine.transmit() {
            self.sent.push_str(&String::from_utf8_lossy(bytes));
        }
    }
}

/// Returns the outcome of a response body for an HTTP client.
fn body(
    media: u8,
    settings: &[u8],
    mut stream: &[u8],
    piece: &mut dyn FnMut() -> usize,
) -> Outcome {
    let now = Instant::ZERO;
    let mut outcome = Outcome::default();
    let url = Location::parse("https://example.com/mcp").expect("a valid URL");
    let options = inputs::client_options(settings);
    let mut client = HttpClient::new(options, HttpOptions::new(url), 0, now);
    let mut exchange = outcome.exchange(&mut client);
    if settings.contains(&b'o')
        && let Some(opening) = exchange
    {
        client.handle_response(opening, &head("application/json"), now);
        client.handle_body(opening, DISCOVERED.as_bytes(), now);
        client.handle_body_end(opening, now);
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let _not_open = client.subscribe(&filter, now);
        let _not_open =
            client.call(Method::ToolsCall, &inputs::EMPTY, &CallOptions::default(), now);
        exchange = outcome.exchange(&mut client);
    }
    let Some(exchange) = exchange else { return outcome };
    let media = if media == b'e' { "text/event-stream" } else { "application/json" };
    client.handle_response(exchange, &head(media), now);
    while !stream.is_empty() {
        let (piece, rest) = stream.split_at(piece().min(stream.len()));
        client.handle_body(exchange, piece, now);
        outcome.exchange(&mut client);
        stream = rest;
    }
    client.handle_body_end(exchange, now);
    outcome.exchange(&mut client);
    if client.is_closed() {
        // Queued requests are never sent after this, and sent ones are aborted: which of them were
        // sent depends on the number of polls.
        outcome.sent.clear();
    }
    client.close(now);
    outcome.exchange(&mut client);
    outcome
}

/// The answer of a modern server to the first request.
const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}}"#;

fn head(media: &'static str) -> IncomingResponse<'static> {
    let mut head = IncomingResponse::new(Status::OK);
    head.field("content-type", media.as_bytes());
    head
}

impl Outcome {
    /// Drains the events and output of a client, and returns the last exchange that it opened.
    fn exchange(&mut self, client: &mut HttpClient) -> Option<ExchangeId> {
        while let Some(event) = client.poll_event() {
            self.tell(&event);
        }
        let mut last = None;
        while let Some(transmit) = client.poll_transmit() {
            writeln!(self.sent, "{transmit:?}").expect("writing to a string succeeds");
            if let ClientTransmit::Send(request) = transmit {
                last = Some(request.exchange);
            }
        }
        last
    }
}
