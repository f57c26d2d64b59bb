use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::fmt;

use mcp_sansio::framing::LineDecoder;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::protocol::Tool;
use mcp_sansio::{Instant, Revision, Revisions};
use mcp_sansio_handlers::endpoint::{ClientEndpoint, Endpoint, ServerEndpoint};
use mcp_sansio_handlers::{Call, Client, Host, Server};
use serde::{Deserialize, Serialize};

const NOW: Instant = Instant::ZERO;
const LINE_MAX: usize = 1 << 20;

/// The arguments of `echo`.
#[derive(Debug, Deserialize, Serialize)]
pub struct Echo {
    /// The text to send back.
    pub text: String,
}

impl Echo {
    /// Creates a text of `length` bytes.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self { text: "x".repeat(length) }
    }
}

/// A server with typed handlers and the client of a host, connected by framing and polled directly:
/// the work of this project in an adapter, without a runtime or system calls.
pub struct Endpoints {
    client: Client,
    near: ClientEndpoint,
    far: ServerEndpoint,
    inward: LineDecoder<'static>,
    outward: LineDecoder<'static>,
}

impl Endpoints {
    /// Opens a pair at `revision`, whose server has the tool `echo`.
    ///
    /// # Panics
    ///
    /// If the two do not agree.
    #[must_use]
    pub fn open_at(revision: Revision) -> Self {
        Self::open_with(revision, 1)
    }

    /// Opens a pair with this number of tools: `echo`, and others with the same handler.
    ///
    /// # Panics
    ///
    /// If the two do not agree.
    #[must_use]
    pub fn open_with(revision: Revision, tools: usize) -> Self {
        let mut server = Server::new("bench", "1.0.0");
        for number in 0..tools {
            let name = if number == tools / 2 { "echo".into() } else { format!("tool_{number}") };
            let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
            let tool = Tool::new(name, RawJson::parse(schema).expect("JSON"));
            server = server.tool_with(tool, |call: Call<Echo>| call.arguments.text);
        }
        let host = Host::new("bench", "1.0.0").revisions(Revisions::only(revision));
        Self::connect(&server, &host)
    }

    /// Opens a pair at `revision` whose sides both report to `observer`.
    ///
    /// # Panics
    ///
    /// If the two do not agree.
    #[cfg(feature = "telemetry")]
    #[must_use]
    pub fn open_observed(
        revision: Revision,
        observer: impl mcp_sansio::peer::OperationObserver + Clone + 'static,
    ) -> Self {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let tool = Tool::new("echo", RawJson::parse(schema).expect("JSON"));
        let server = Server::new("bench", "1.0.0")
            .tool_with(tool, |call: Call<Echo>| call.arguments.text)
            .observe_operations(observer.clone());
        let host = Host::new("bench", "1.0.0").revisions(Revisions::only(revision));
        Self::connect(&server, &host.observe_operations(observer))
    }

    fn connect(server: &Server, host: &Host) -> Self {
        let far = server.endpoint(2).expect("the tools are valid");
        let (client, near) = host.connect(1, NOW);
        let (inward, outward) = (LineDecoder::growing(LINE_MAX), LineDecoder::growing(LINE_MAX));
        let mut endpoints = Self { client, near, far, inward, outward };
        for _ in 0..4 {
            endpoints.poll_both();
        }
        assert!(endpoints.client.session().is_some(), "not open");
        endpoints
    }

    /// Calls the tool once; its handler answers, and the caller reads the result.
    ///
    /// # Panics
    ///
    /// If the result is not the text.
    pub fn echo(&mut self, echo: &Echo) {
        let call = self.client.call_tool("echo", echo).into_future();
        let mut call = pin!(call);
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..4 {
            if let Poll::Ready(result) = call.as_mut().poll(&mut cx) {
                let result = result.expect("an answer");
                assert_eq!(result.content[0].as_text(), Some(&*echo.text), "the text comes back");
                return;
            }
            self.poll_both();
        }
        panic!("the call has no answer");
    }

    /// Makes `count` concurrent calls.
    ///
    /// # Panics
    ///
    /// If a call is not answered.
    pub fn echo_at_once(&mut self, echo: &Echo, count: usize) {
        let call = || Box::pin(self.client.call_tool("echo", echo).into_future());
        let mut calls: Vec<_> = (0..count).map(|_| call()).collect();
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..4 {
            self.poll_both();
            calls.retain_mut(|call| call.as_mut().poll(&mut cx).is_pending());
            if calls.is_empty() {
                return;
            }
        }
        panic!("{} calls have no answer", calls.len());
    }

    /// Polls both drivers once.
    fn poll_both(&mut self) {
        drive(&mut self.near, &mut self.outward, &mut self.far);
        drive(&mut self.far, &mut self.inward, &mut self.near);
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoints").finish_non_exhaustive()
    }
}

/// Polls the handlers of one side, and delivers its output to the other.
fn drive(from: &mut impl Endpoint, decoder: &mut LineDecoder<'_>, to: &mut impl Endpoint) {
    from.poll_handlers(&mut Context::from_waker(Waker::noop()), NOW);
    from.transmit(&mut |bytes| {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = &rest[decoder.feed(rest)..];
            while let Some(frame) = decoder.next_frame() {
                to.handle_frame(frame, NOW);
            }
        }
        bytes.len()
    });
}
