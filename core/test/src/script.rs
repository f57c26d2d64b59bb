use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::task::Context;
use core::time::Duration;

use mcp_sansio::framing::FrameError;
use mcp_sansio::protocol::Meta;
use mcp_sansio::stream::Endpoint;
use mcp_sansio::{Era, Instant, Revision};
use serde_json::{Value, json};

/// A side of a connection that follows a script: the messages that it expects, and those that it
/// sends. It tests how the other side handles a peer that is slow, unusual or wrong.
///
/// Messages are JSON texts. An expected object matches a message that has its members and perhaps
/// others; an expected array matches an array of the same length.
///
/// ```
/// use mcp_sansio::{Instant, Revision, Revisions};
/// use mcp_sansio_handlers::{Host, NoArguments};
/// use mcp_sansio_test::{Pair, Script, Stream};
///
/// let revision = Revision::V2025_11_25;
/// let server = Script::server(revision)
///     .expect(r#"{"method":"tools/call","params":{"name":"now"}}"#)
///     .reply(r#"{"content":[{"type":"text","text":"noon"}]}"#);
/// let host = Host::new("test", "1.0.0").revisions(Revisions::only(revision));
/// let (client, endpoint) = host.connect(42, Instant::ZERO);
///
/// let mut pair = Pair::new(Stream::new(server, endpoint));
/// pair.run(client.opened()).map_err(|reason| format!("{reason:?}"))?;
/// let result = pair.run(client.call_tool("now", &NoArguments {}))?;
/// assert_eq!(result.content[0].as_text(), Some("noon"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// As a client:
///
/// ```
/// use mcp_sansio::Revision;
/// use mcp_sansio_handlers::{Call, NoArguments, Server};
/// use mcp_sansio_test::{Pair, Script, Stream};
///
/// let server = Server::new("clock", "1.0.0").tool("now", "The time", |_: Call<NoArguments>| "noon");
/// for revision in Revision::ALL {
///     let client = Script::client(revision)
///         .request("tools/call", r#"{"name":"now","arguments":{}}"#)
///         .expect_result(r#"{"content":[{"text":"noon"}]}"#)
///         .request("tools/call", r#"{"name":"then"}"#)
///         .expect(r#"{"error":{"code":-32602}}"#);
///     let mut pair = Pair::new(Stream::new(server.endpoint(42)?, client));
///     pair.run_until_idle();
///     pair.transport.client.expect("the script").assert_done();
/// }
/// # Ok::<(), mcp_sansio::catalog::CatalogError>(())
/// ```
#[derive(Debug)]
pub struct Script {
    steps: VecDeque<Step>,
    /// The metadata of requests.
    meta: Option<Value>,
    /// The id of the last request in the script.
    requests: u64,
    /// The id of the last expected message.
    received: Value,
    output: Vec<u8>,
    /// The end of the current wait.
    until: Option<Instant>,
    closed: bool,
}

#[derive(Debug)]
enum Step {
    Expect(Value),
    /// Sends a response to the last expected message: this member with this value.
    Reply(&'static str, Value),
    Send(String),
    Wait(Duration),
    Close,
}

impl Script {
    /// Creates a script without steps, whose connection is not open.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a script without steps is of no use")]
    pub const fn new() -> Self {
        Self {
            steps: VecDeque::new(),
            meta: None,
            requests: 0,
            received: Value::Null,
            output: Vec::new(),
            until: None,
            closed: false,
        }
    }

    /// Creates the script of a server that opens a connection at `revision` and declares tools,
    /// resources, prompts, completions and logging. The host must support only this revision;
    /// others probe the server first.
    #[must_use]
    pub fn server(revision: Revision) -> Self {
        let capabilities = json!({
            "completions": {}, "logging": {}, "prompts": {}, "resources": {}, "tools": {},
        });
        let version = revision.as_str();
        match revision.era() {
            Era::Legacy => Self::new()
                .expect(r#"{"method":"initialize"}"#)
                .step(Step::Reply(
                    "result",
                    json!({ "protocolVersion": version, "capabilities": capabilities,
                        "serverInfo": { "name": "script", "version": "1.0.0" } }),
                ))
                .expect(r#"{"method":"notifications/initialized"}"#),
            _ => Self::new().expect(r#"{"method":"server/discover"}"#).step(Step::Reply(
                "result",
                json!({ "resultType": "complete", "supportedVersions": [version],
                    "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private" }),
            )),
        }
    }

    /// Creates the script of a client without capabilities that opens a connection at `revision`.
    #[must_use]
    pub fn client(revision: Revision) -> Self {
        let (version, info) = (revision.as_str(), json!({ "name": "script", "version": "1.0.0" }));
        match revision.era() {
            Era::Legacy => Self::new()
                .request(
                    "initialize",
                    &json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info })
                        .to_string(),
                )
                .expect_result(&json!({ "protocolVersion": version }).to_string())
                .send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
            _ => {
                let meta = json!({ Meta::PROTOCOL_VERSION: version, Meta::CLIENT_INFO: info,
                    Meta::CLIENT_CAPABILITIES: {} });
                Self { meta: Some(meta), ..Self::new() }
            }
        }
    }

    /// Expects a message that matches this JSON text. Any other message is an error.
    ///
    /// # Panics
    ///
    /// If the text is not JSON.
    #[must_use]
    #[track_caller]
    pub fn expect(self, message: &str) -> Self {
        self.step(Step::Expect(parse(message)))
    }

    /// Expects the result of the last [`request`](Self::request).
    ///
    /// # Panics
    ///
    /// If the text is not JSON.
    #[must_use]
    #[track_caller]
    pub fn expect_result(self, result: &str) -> Self {
        let message = json!({ "id": self.requests, "result": parse(result) });
        self.step(Step::Expect(message))
    }

    /// Sends a response to the last expected message, with this JSON text as its result.
    ///
    /// # Panics
    ///
    /// If the text is not JSON.
    #[must_use]
    #[track_caller]
    pub fn reply(self, result: &str) -> Self {
        self.step(Step::Reply("result", parse(result)))
    }

    /// Refuses the last expected message.
    #[must_use]
    pub fn reply_error(self, code: i32, message: &str) -> Self {
        self.step(Step::Reply("error", json!({ "code": code, "message": message })))
    }

    /// Sends a request with these parameters and the next id, from 1. A
    /// [client](Self::client) of 2026-07-28 adds its metadata, except for members that `params`
    /// has.
    ///
    /// # Panics
    ///
    /// If the parameters are not a JSON object, or, for a client of 2026-07-28, their `_meta` is not
    /// one.
    #[must_use]
    #[track_caller]
    pub fn request(mut self, method: &str, params: &str) -> Self {
        let mut params = parse(params);
        let members = params.as_object_mut().unwrap_or_else(|| panic!("not an object: {method}"));
        if let Some(Value::Object(meta)) = &self.meta {
            let own = members.entry("_meta").or_insert_with(|| json!({}));
            let own = own.as_object_mut().unwrap_or_else(|| panic!("`_meta` of {method}"));
            for (key, value) in meta {
                own.entry(key).or_insert_with(|| value.clone());
            }
        }
        self.requests += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        self.send(&request.to_string())
    }

    /// Sends this text as one line. It is not checked, so it may break any rule of the protocol.
    #[must_use]
    pub fn send(self, message: &str) -> Self {
        self.step(Step::Send(message.into()))
    }

    /// Waits before the next step.
    #[must_use]
    pub fn wait(self, time: Duration) -> Self {
        self.step(Step::Wait(time))
    }

    /// Ends the output of this side.
    #[must_use]
    pub fn close(self) -> Self {
        self.step(Step::Close)
    }

    /// Checks that the script has run to its end.
    ///
    /// # Panics
    ///
    /// If steps are left.
    #[track_caller]
    pub fn assert_done(&self) {
        assert!(self.steps.is_empty(), "steps left: {:?}", self.steps);
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    /// Takes steps until one has to wait.
    fn advance(&mut self, now: Instant) {
        while let Some(step) = self.steps.front() {
            match step {
                Step::Expect(_) => return,
                Step::Reply(member, value) => {
                    let response = json!({ "jsonrpc": "2.0", "id": self.received, *member: value });
                    self.output.extend(format!("{response}\n").bytes());
                }
                Step::Send(message) => self.output.extend(format!("{message}\n").bytes()),
                Step::Wait(time) => {
                    if now < *self.until.get_or_insert(now + *time) {
                        return;
                    }
                    self.until = None;
                }
                Step::Close => self.closed = true,
            }
            self.steps.pop_front();
        }
    }
}

/// A message that the script does not expect causes a panic, which fails the test.
impl Endpoint for Script {
    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        let frame = frame.unwrap_or_else(|error| panic!("the script received no message: {error}"));
        let text = String::from_utf8_lossy(frame);
        let message = parse(&text);
        self.advance(now);
        match self.steps.pop_front() {
            Some(Step::Expect(expected)) => assert!(
                matches(&expected, &message),
                "the script expects {expected}\nand received      {text}"
            ),
            step => panic!("the script does not expect {text}\nbut is at {step:?}"),
        }
        self.received = message["id"].clone();
        self.advance(now);
    }

    fn handle_eof(&mut self, _: Instant) {
        self.closed = true;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_handlers(&mut self, _: &mut Context<'_>, now: Instant) {
        self.advance(now);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        let written = write(&self.output);
        self.output.drain(..written);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.until
    }

    fn is_congested(&self) -> bool {
        false
    }

    fn is_drained(&self) -> bool {
        self.closed && self.output.is_empty()
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}

#[track_caller]
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON: {error}: {text}"))
}

/// Returns whether `found` has everything that is expected.
fn matches(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(name, value)| found.get(name).is_some_and(|found| matches(value, found))),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| matches(expected, found))
        }
        _ => expected == found,
    }
}
