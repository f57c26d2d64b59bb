//! The conformance harness for transports: give it two ends, and it runs every feature over them,
//! cuts the connection, and says what the transport must promise.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use mcp_sansio::framing::FrameError;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{Event, Failure};
use mcp_sansio::protocol::{
    CompleteParams, CompletionArgument, CompletionReference, CreateMessageParams,
    CreateMessageResult, ElicitParams, ElicitResult, ElicitSchema, ListRootsParams,
    LoggingMessageParams, Map, Prompt, PromptArgument, PromptMessage, PromptReference, Resource,
    ResourceTemplate, Role, Root, SamplingContent, SamplingMessage, StringSchema,
    SubscriptionFilter, TextResourceContents, Tool,
};
use mcp_sansio::stream::Endpoint;
use mcp_sansio::{Era, Instant, LoggingLevel, Method, PanicGuard, Revision, Revisions, Spawner};
use mcp_sansio_handlers::{
    Call, Client, ClientError, Elicit, HandlerError, Host, HostRequest, NoArguments, ReadResource,
    Server, ServerItem,
};
use mcp_sansio_sync::Mutex;
use serde_json::{Value, json};

use super::faults::Faults;
use super::pair::Pair;
use super::stream::Stream;

/// What a transport promises. Each promise is checked; a transport that does not keep order, or that
/// may deliver a message twice, is run with both as well.
///
/// What every transport must promise, and [`check`] always checks:
///
/// * A message arrives whole and unchanged, or not at all.
/// * A lost message ends the connection. A transport that skips a message leaves a call that waits
///   until its deadline.
/// * The end of the connection is reported once to each end, whatever its cause: a close, or a cut
///   at any byte.
/// * Both directions work at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promises {
    /// Whether it carries a stream of bytes, which a cut can end within a message. Otherwise it
    /// carries messages.
    pub bytes: bool,
    /// Whether the messages of one direction arrive in the order in which they were sent. A
    /// transport that reorders must say so: progress and logs may then arrive late or confused, and
    /// a cancellation may overtake its request.
    pub in_order: bool,
    /// Whether no message arrives twice. A server refuses a request whose id is in use.
    pub once: bool,
    /// The longest message, in bytes, that arrives; a longer one must be refused or end the
    /// connection. `usize::MAX` if the harness is not to try.
    pub message_length_max: usize,
}

impl Promises {
    /// A stream of bytes: in order, once, with lines of up to 16 MiB.
    pub const BYTES: Self =
        Self { bytes: true, in_order: true, once: true, message_length_max: 16 << 20 };

    /// A connection that carries messages in order and once, up to `message_length_max` bytes.
    #[must_use]
    pub const fn messages(message_length_max: usize) -> Self {
        Self { bytes: false, in_order: true, once: true, message_length_max }
    }

    /// Sets the longest message that arrives.
    #[must_use]
    pub const fn message_length_max(mut self, length: usize) -> Self {
        self.message_length_max = length;
        self
    }

    /// Messages may overtake each other.
    #[must_use]
    pub const fn any_order(mut self) -> Self {
        self.in_order = false;
        self
    }

    /// A message may arrive twice.
    #[must_use]
    pub const fn repeats(mut self) -> Self {
        self.once = false;
        self
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.bytes { "bytes, framed by the connection" } else { "whole messages" };
        let order = if self.in_order { "in order" } else { "in any order" };
        let once = if self.once { "once" } else { "at least once" };
        write!(f, "{unit}, {order}, {once}, up to {} bytes a message", self.message_length_max)
    }
}

/// Two ends of a transport, for [`check`].
///
/// It has one connection at a time. It drives both sides however the transport is driven: in a loop
/// over virtual time, on threads, or as tasks of a runtime.
pub trait Ends {
    /// Returns what the transport promises.
    fn promises(&self) -> Promises;

    /// Returns the time of the clock that drives the sides.
    fn now(&self) -> Instant;

    /// Opens a new connection with these two sides, and drops the last one.
    fn connect(&mut self, client: Side, server: Side);

    /// Drives the connection until `future` is ready. Returns `false` if it is not ready when
    /// nothing can happen any more, or after a time that is long for this transport: some seconds.
    fn run(&mut self, future: Pin<&mut dyn Future<Output = ()>>) -> bool;

    /// Breaks the connection without a farewell: as a cable that is pulled, or as a process that is
    /// killed, whose side is dropped. Let either side be the one that is killed, in turn.
    fn cut(&mut self);
}

/// What [`check`] did. Its text lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What the transport promises.
    pub promises: Promises,
    /// The connections that were opened.
    pub connections: u64,
    /// The messages that were sent.
    pub messages: u64,
    /// The connections that were cut.
    pub cuts: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "promises: {}", self.promises)?;
        write!(
            f,
            "checked at {} revisions: {} connections, {} messages, {} cuts",
            Revision::ALL.len(),
            self.connections,
            self.messages,
            self.cuts
        )
    }
}

/// Runs every feature over a transport at every revision, in both roles: the handshake, tools,
/// progress, logs, prompts, resources, completion, questions to the host, subscriptions, changed
/// lists, cancellation, concurrent calls, the longest messages. Then ends it in every way: closed by
/// the client, cut at each boundary between two messages, and within each message if it carries
/// bytes. Repeats or reorders messages if the transport does not promise otherwise.
///
/// ```
/// use mcp_sansio_test::transport::{InMemory, Promises, check};
///
/// let report = check(&mut InMemory::new(Promises::messages(usize::MAX)));
/// println!("{report}");
/// ```
///
/// # Panics
///
/// If the transport breaks a promise. The text names the revision and what did not happen.
#[track_caller]
pub fn check(ends: &mut dyn Ends) -> Report {
    let promises = ends.promises();
    let mut harness = Harness {
        ends,
        revision: Revision::LATEST,
        report: Report { promises, connections: 0, messages: 0, cuts: 0 },
    };
    for revision in Revision::ALL {
        harness.revision = revision;
        harness.order();
        harness.features();
        harness.lengths();
        harness.close();
        harness.cuts(false);
        if promises.bytes {
            harness.cuts(true);
        }
        if !promises.in_order {
            harness.disturbed(Disturbance::Reversed);
        }
        if !promises.once {
            harness.disturbed(Disturbance::Doubled);
        }
    }
    harness.report
}

// ------------------------------------------------------------------ what both sides share

/// What happened on a connection, and what is to happen to its messages.
#[derive(Debug, Default)]
struct State {
    /// Messages that were sent, in both directions.
    sent: u64,
    /// The number of messages after which both sides fall silent.
    silent_after: Option<u64>,
    /// Whether half of the next message is sent before.
    and_half: bool,
    is_silent: bool,
    disturbance: Option<Disturbance>,
    /// Whether the end was reported to the client and to the server.
    ended: [u32; 2],
    /// Running handlers of the tool that never ends.
    waiting: usize,
    /// The numbers of the log messages that arrived at the client.
    logs: Vec<u64>,
    /// The numbers of the calls that arrived at the server.
    calls: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disturbance {
    Reversed,
    Doubled,
}

/// A state whose changes can be awaited.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<(State, Vec<Waker>)>>);

impl Shared {
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (output, wakers) = self.0.lock(|(state, wakers)| {
            let output = change(state);
            (output, core::mem::take(wakers))
        });
        wakers.into_iter().for_each(Waker::wake);
        output
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.0.lock(|(state, _)| look(state))
    }

    async fn until(&self, mut is_so: impl FnMut(&State) -> bool) {
        poll_fn(|cx| {
            self.0.lock(|(state, wakers)| {
                if is_so(state) {
                    return Poll::Ready(());
                }
                wakers.push(cx.waker().clone());
                Poll::Pending
            })
        })
        .await;
    }
}

/// One side of the connection under test: drive it as any other [`Endpoint`].
pub struct Side {
    endpoint: Box<dyn Endpoint + Send>,
    shared: Shared,
    /// 0 for the client and 1 for the server.
    index: usize,
    /// Output of a disturbed connection that was not sent yet.
    staged: Vec<u8>,
}

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").field("is_server", &(self.index == 1)).finish_non_exhaustive()
    }
}

impl Drop for Side {
    /// A side that is dropped has ended.
    fn drop(&mut self) {
        self.shared.update(|state| state.ended[self.index] = state.ended[self.index].max(1));
    }
}

/// Returns the length of the first `count` lines of `bytes`, and how many there are up to `count`.
fn lines(bytes: &[u8], count: u64) -> (usize, u64) {
    let (mut length, mut found) = (0, 0);
    while found < count
        && let Some(end) = bytes[length..].iter().position(|byte| *byte == b'\n')
    {
        length += end + 1;
        found += 1;
    }
    (length, found)
}

impl Side {
    /// Sends as much as the plan of the harness lets through. The rest disappears.
    fn send(shared: &Shared, bytes: &[u8], write: &mut dyn FnMut(&[u8]) -> usize) -> usize {
        let plan = shared.read(|state| {
            let rest = state.silent_after.map(|after| after.saturating_sub(state.sent));
            (state.is_silent, rest, state.and_half)
        });
        let (allowed, falls_silent) = match plan {
            (true, ..) => return bytes.len(),
            (false, None, _) => (bytes.len(), false),
            (false, Some(rest), and_half) => {
                let (whole, found) = lines(bytes, rest);
                let next = lines(&bytes[whole..], 1).0;
                let half = if and_half { next / 2 } else { 0 };
                (whole + half, found == rest && (next > 0 || !and_half))
            }
        };
        let taken = if allowed > 0 { write(&bytes[..allowed]) } else { 0 };
        shared.update(|state| state.sent += lines(&bytes[..taken], u64::MAX).1);
        if taken < allowed || !falls_silent {
            return taken;
        }
        shared.update(|state| state.is_silent = true);
        bytes.len()
    }

    /// Moves the output of the endpoint to `staged`, disturbed.
    fn stage(&mut self, disturbance: Disturbance) {
        let mut batch = Vec::new();
        self.endpoint.transmit(&mut |bytes| {
            batch.extend_from_slice(bytes);
            bytes.len()
        });
        let lines = batch.split_inclusive(|byte| *byte == b'\n');
        match disturbance {
            Disturbance::Doubled => {
                lines.for_each(|line| self.staged.extend(line.iter().chain(line)));
            }
            Disturbance::Reversed => lines.rev().for_each(|line| self.staged.extend(line)),
        }
    }
}

impl Endpoint for Side {
    fn catch_panics(&mut self, guard: PanicGuard) {
        self.endpoint.catch_panics(guard);
    }

    fn set_spawner(&mut self, spawn: Spawner) {
        self.endpoint.set_spawner(spawn);
    }

    fn set_unix_time(&mut self, unix_time: Box<dyn Fn() -> u64 + Send + Sync>) {
        self.endpoint.set_unix_time(unix_time);
    }

    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        self.endpoint.handle_frame(frame, now);
    }

    fn handle_eof(&mut self, now: Instant) {
        self.shared.update(|state| state.ended[self.index] += 1);
        self.endpoint.handle_eof(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.endpoint.poll_handlers(cx, now);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        if let Some(disturbance) = self.shared.read(|state| state.disturbance) {
            self.stage(disturbance);
        }
        if !self.staged.is_empty() {
            let taken = Self::send(&self.shared, &self.staged, write);
            self.staged.drain(..taken);
        } else {
            let shared = &self.shared;
            self.endpoint.transmit(&mut |bytes| Self::send(shared, bytes, write));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn is_congested(&self) -> bool {
        self.endpoint.is_congested()
    }

    fn is_drained(&self) -> bool {
        self.staged.is_empty() && self.endpoint.is_drained()
    }

    fn is_closed(&self) -> bool {
        self.endpoint.is_closed()
    }
}

// ------------------------------------------------------------------ the application

const NOTE: &str = "note://latest";

fn tool(name: &str) -> Tool {
    Tool::new(name, RawJson::parse(r#"{"type":"object"}"#).expect("an object"))
}

/// Counts a running handler until it is dropped.
struct Running(Shared);

impl Running {
    fn new(shared: &Shared) -> Self {
        shared.update(|state| state.waiting += 1);
        Self(shared.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.update(|state| state.waiting -= 1);
    }
}

/// A handler that asks the model, the user (from 2025-06-18 on) and the host for its roots.
fn interview(call: Call<NoArguments>) -> Result<String, HandlerError> {
    let elicits = call.revision() >= Revision::V2025_06_18;
    if let Some(roots) = call.roots("roots")? {
        return Ok(format!("{}, {} roots", call.state().unwrap_or_default(), roots.roots.len()));
    }
    let then_roots = |so_far: String| {
        call.require_input("roots", ListRootsParams::default()).state(so_far).into_result()
    };
    if let Some(answer) = call.input::<Value>("name")? {
        let name = answer.content.unwrap_or_default();
        let name = name.get("name").and_then(Value::as_str).unwrap_or("nobody");
        return then_roots(format!("{}, {name}", call.state().unwrap_or_default()));
    }
    if let Some(reply) = call.sampled("model")? {
        if !elicits {
            return then_roots(reply.model);
        }
        let form = ElicitSchema::new().field("name", StringSchema::new());
        let form = Elicit::form_with("What is your name?", form);
        return call.require_input("name", form).state(reply.model).into_result();
    }
    let question = CreateMessageParams::new([SamplingMessage::user("Which model are you?")], 10);
    call.require_input("model", question).into_result()
}

fn server(shared: &Shared) -> Server {
    let (waiting, arrived) = (shared.clone(), shared.clone());
    let prompt = Prompt::new("introduce").arguments([PromptArgument::new("name").required(true)]);
    Server::new("transport-check", "1.0.0")
        .logging()
        .subscriptions()
        .unsealed_states()
        .tool_with(tool("echo"), |call: Call<Value>| {
            call.arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_string()
        })
        .tool_with(tool("count"), |call: Call<NoArguments>| {
            call.progress(1.0, Some(2.0), "one");
            call.log(LoggingLevel::Warning, &0);
            "counted"
        })
        .tool_with(tool("logs"), |call: Call<Value>| {
            for number in 0..call.arguments.get("count").and_then(Value::as_u64).unwrap_or(0) {
                call.log(LoggingLevel::Warning, &number);
            }
            "logged"
        })
        .tool_with(tool("arrive"), move |call: Call<Value>| {
            let number = call.arguments.get("number").and_then(Value::as_u64).unwrap_or(u64::MAX);
            arrived.update(|state| state.calls.push(number));
            "arrived"
        })
        .tool_with(tool("wait"), move |_: Call<NoArguments>| {
            let running = Running::new(&waiting);
            async move {
                let _running = running;
                core::future::pending::<String>().await
            }
        })
        .tool_with(tool("interview"), interview)
        .tool_with(tool("change"), |call: Call<NoArguments>| {
            call.resource_updated(NOTE)?;
            call.edit_catalog(|catalog| drop(catalog.remove_tool("change")))?;
            Ok::<_, HandlerError>("changed")
        })
        .resource(Resource::new(NOTE, "note"), |_: Call<ReadResource>| {
            TextResourceContents::new(NOTE, "milk")
        })
        .resource_template(
            ResourceTemplate::new("book://{title}", "book"),
            |call: Call<ReadResource>| {
                let title = call.arguments.variable("title").unwrap_or_default().to_string();
                TextResourceContents::new(call.arguments.uri.as_str(), title)
            },
        )
        .add_item(
            ServerItem::new(prompt, |call: Call<Value>| {
                let name = call.arguments.get("name").and_then(Value::as_str);
                alloc::vec![PromptMessage::user(name.unwrap_or_default())]
            })
            .complete("name", |call: Call<CompleteParams>| {
                alloc::vec![format!("{}a", call.arguments.argument.value)]
            }),
        )
}

fn host(shared: &Shared, revision: Revision) -> Host {
    let shared = shared.clone();
    Host::new("transport-check", "1.0.0")
        .revisions(Revisions::only(revision))
        .observe(move |event| {
            if let Event::Notification(it) = event
                && it.method == Method::Message
                && let Ok(log) = it.params.decode::<LoggingMessageParams>()
            {
                let number = log.data.as_str().parse().unwrap_or(u64::MAX);
                shared.update(|state| state.logs.push(number));
            }
        })
        .on_sample(|_: HostRequest<CreateMessageParams>| {
            CreateMessageResult::new(Role::Assistant, SamplingContent::text("This one."), "tiny")
        })
        .on_elicit(|_: HostRequest<ElicitParams>| {
            ElicitResult::accept(Map::new().with("name", "Ada"))
        })
        .on_roots(|_: HostRequest<()>| alloc::vec![Root::new("file:///home/ada")])
}

/// Waits for all of `futures`.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|it| (Box::pin(it), None)).collect();
    poll_fn(|cx| {
        let mut ready = true;
        for (future, output) in &mut pending {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => ready = false,
                }
            }
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

async fn echo(client: &Client, text: &str) -> Result<String, ClientError> {
    let result = client.call_tool("echo", &json!({ "text": text })).await?;
    Ok(result.first_text().unwrap_or_default().to_string())
}

/// A text whose every part can be told from the others.
fn text(length: usize, seed: usize) -> String {
    let mut text = String::with_capacity(length + 64);
    while text.len() < length {
        text.push_str(&format!("{seed}:{};", text.len()));
    }
    text.truncate(length);
    text
}

// ------------------------------------------------------------------ the checks

struct Harness<'e> {
    ends: &'e mut dyn Ends,
    revision: Revision,
    report: Report,
}

impl Harness<'_> {
    /// Opens a connection; its client is not open yet.
    fn connect(&mut self, state: State) -> (Client, Shared) {
        let shared = Shared::default();
        shared.update(|it| *it = state);
        let server = server(&shared).endpoint(super::SEED).expect("the catalog is valid");
        let now = self.ends.now();
        let (client, endpoint) = host(&shared, self.revision).connect(super::SEED, now);
        let side = |endpoint: Box<dyn Endpoint + Send>, index| Side {
            endpoint,
            shared: shared.clone(),
            index,
            staged: Vec::new(),
        };
        self.ends.connect(side(Box::new(endpoint), 0), side(Box::new(server), 1));
        self.report.connections += 1;
        (client, shared)
    }

    #[track_caller]
    fn run<T>(&mut self, what: &str, future: impl Future<Output = T>) -> T {
        let mut output = None;
        let is_ready = self.ends.run(pin!(async { output = Some(future.await) }));
        match output {
            Some(output) if is_ready => output,
            _ => panic!("{}: {what} did not happen", self.revision),
        }
    }

    #[track_caller]
    fn try_run<T, E: fmt::Debug>(
        &mut self,
        what: &str,
        future: impl Future<Output = Result<T, E>>,
    ) -> T {
        let output = self.run(what, future);
        output.unwrap_or_else(|error| panic!("{}: {what} failed: {error:?}", self.revision))
    }

    #[track_caller]
    fn open(&mut self) -> (Client, Shared) {
        let (client, shared) = self.connect(State::default());
        let session = self.try_run("the handshake", client.opened());
        assert_eq!(session.revision, self.revision);
        (client, shared)
    }

    fn done(&mut self, shared: &Shared) {
        self.report.messages += shared.read(|state| state.sent);
    }

    #[track_caller]
    fn features(&mut self) {
        let (client, shared) = self.open();
        let legacy = self.revision.era() == Era::Legacy;
        if legacy {
            self.try_run("a ping", client.ping().into_future());
        }
        let tools = self.try_run("a list", client.list_tools(None).into_future());
        assert_eq!(tools.tools.len(), 7, "{}", self.revision);
        for odd in ["", "fjörd \u{1f30a} \u{0} \" \\ \r\n", "\n\n", "\u{c0}\u{db}\u{dc}\u{dd}"] {
            assert_eq!(self.try_run("an echo", echo(&client, odd)), odd);
        }
        client.set_log_level(LoggingLevel::Info).expect("the connection is open");
        let seen = Arc::new(Mutex::new(0));
        let counter = Arc::clone(&seen);
        let call = client
            .call_tool("count", &NoArguments {})
            .on_progress(move |_| counter.lock(|count| *count += 1));
        self.try_run("a call with progress", call.into_future());
        if self.report.promises.in_order {
            assert_eq!(seen.lock(|count| *count), 1, "{}: the progress was lost", self.revision);
        }
        self.run("a log message", shared.until(|state| state.logs == [0]));

        let answer = client.call_tool("interview", &NoArguments {});
        let answer = self.try_run("an input round", answer.into_future());
        let expected = if self.revision >= Revision::V2025_06_18 {
            "tiny, Ada, 1 roots"
        } else {
            "tiny, 1 roots"
        };
        assert_eq!(answer.first_text(), Some(expected), "{}", self.revision);

        let read = self.try_run("a template", client.read_resource("book://emma").into_future());
        assert_eq!(read.contents.len(), 1);
        let name = [("name".to_string(), "Ada".to_string())];
        let prompt = client.get_prompt("introduce", name).into_future();
        assert_eq!(self.try_run("a prompt", prompt).messages[0].content.as_text(), Some("Ada"));
        let reference = CompletionReference::Prompt(PromptReference::new("introduce"));
        let params = CompleteParams::new(reference, CompletionArgument::new("name", "Ad"));
        let completed = self.try_run("a completion", client.complete(&params).into_future());
        assert_eq!(completed.completion.values, ["Ada"]);

        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .resource_subscriptions([NOTE.to_string()]);
        let mut subscription = client.subscribe(filter);
        self.try_run("a subscription", subscription.honoured());
        let call = client.call_tool("change", &NoArguments {});
        self.try_run("a change", call.into_future());
        let mut methods = Vec::new();
        while methods.len() < 2 {
            let next = self.try_run("a notification", subscription.next());
            methods.extend(next.map(|it| it.method.as_str().to_string()));
        }
        methods.sort();
        let expected = ["notifications/resources/updated", "notifications/tools/list_changed"];
        assert_eq!(methods, expected, "{}", self.revision);
        drop(subscription);
        self.cancellation(&client, &shared);
        self.done(&shared);
    }

    #[track_caller]
    fn cancellation(&mut self, client: &Client, shared: &Shared) {
        let mut call = Box::pin(client.call_tool("wait", &NoArguments {}).into_future());
        let started = async {
            let mut until = pin!(shared.until(|state| state.waiting == 1));
            poll_fn(|cx| match call.as_mut().poll(cx) {
                Poll::Ready(result) => panic!("the call is over: {result:?}"),
                Poll::Pending => until.as_mut().poll(cx),
            })
            .await;
        };
        self.run("the start of a handler", started);
        drop(call);
        self.run("a cancellation", shared.until(|state| state.waiting == 0));
        assert_eq!(self.try_run("a call after it", echo(client, "still here")), "still here");
    }

    /// Bursts in both directions at once.
    #[track_caller]
    fn order(&mut self) {
        const COUNT: u64 = 40;
        let (client, shared) = self.open();
        client.set_log_level(LoggingLevel::Info).expect("the connection is open");
        let logs = client.call_tool("logs", &json!({ "count": COUNT })).into_future();
        let calls: Vec<_> = (0..COUNT)
            .map(|number| client.call_tool("arrive", &json!({ "number": number })).into_future())
            .chain([logs])
            .collect();
        let results = self.run("a burst of calls", all(calls));
        for result in results {
            result.unwrap_or_else(|error| panic!("{}: a call failed: {error:?}", self.revision));
        }
        self.run("a burst of logs", shared.until(|state| state.logs.len() >= COUNT as usize));
        let (mut logs, mut calls) = shared.read(|state| (state.logs.clone(), state.calls.clone()));
        if !self.report.promises.in_order {
            logs.sort_unstable();
            calls.sort_unstable();
        }
        let expected: Vec<u64> = (0..COUNT).collect();
        assert_eq!(
            logs, expected,
            "{}: messages to the client are lost, repeated or out of order",
            self.revision
        );
        assert_eq!(
            calls, expected,
            "{}: messages to the server are lost, repeated or out of order",
            self.revision
        );

        let texts: Vec<String> = (0..16).map(|seed| text(seed * 97, seed)).collect();
        let echoes = self.run("echoes", all(texts.iter().map(|text| echo(&client, text))));
        for (echo, text) in echoes.into_iter().zip(&texts) {
            assert_eq!(echo.as_ref().ok(), Some(text), "{}: {echo:?}", self.revision);
        }
        self.done(&shared);
    }

    /// The longest messages, and one that is longer.
    #[track_caller]
    fn lengths(&mut self) {
        /// Room for the rest of a request or a response.
        const REST: usize = 1024;
        /// Longer messages take long to no purpose.
        const TRIED: usize = 1 << 20;
        let limit = self.report.promises.message_length_max;
        let (client, shared) = self.open();
        for length in [limit.min(TRIED).saturating_sub(REST), 1, limit.min(TRIED) / 2] {
            let long = text(length.min(limit.saturating_sub(REST)), length);
            let echoed = self.try_run("a long message", echo(&client, &long));
            assert!(echoed == long, "{}: a long message was changed", self.revision);
        }
        if limit <= TRIED {
            let call = client.call_tool("echo", &json!({ "text": text(limit + 1, 0) }));
            let call = call.timeout(Duration::from_millis(250)).into_future();
            let result = self.run("the end of a call that is too long", call);
            assert!(result.is_err(), "{}: more than {limit} bytes arrived", self.revision);
            if client.close_reason().is_none() {
                let again = self.run("a call after it", echo(&client, "again"));
                assert!(
                    client.close_reason().is_some() || again.as_deref().ok() == Some("again"),
                    "{}: {again:?}",
                    self.revision
                );
            }
        }
        self.done(&shared);
    }

    /// The client closes the connection.
    #[track_caller]
    fn close(&mut self) {
        let (client, shared) = self.open();
        client.close();
        self.run("the end, at the client", client.closed());
        self.run("the end, at the server", shared.until(|state| state.ended[1] > 0));
        self.ended_once(&shared);
        self.done(&shared);
    }

    #[track_caller]
    fn ended_once(&self, shared: &Shared) {
        let ended = shared.read(|state| state.ended);
        assert!(ended.iter().all(|it| *it <= 1), "{}: two ends: {ended:?}", self.revision);
    }

    /// Cuts the connection after each message, or within each.
    #[track_caller]
    fn cuts(&mut self, and_half: bool) {
        for messages in 0..64 {
            let plan = State { silent_after: Some(messages), and_half, ..State::default() };
            let (client, shared) = self.connect(plan);
            let scenario = async {
                client.opened().await.map_err(ClientError::Closed)?;
                let wait = client.call_tool("wait", &NoArguments {}).into_future();
                let count = client.call_tool("count", &NoArguments {});
                let (mut wait, mut count) =
                    (pin!(wait), pin!(count.on_progress(|_| {}).into_future()));
                let mut counted = None;
                // Both calls end; the second one cannot end well.
                let waited = poll_fn(|cx| {
                    if counted.is_none()
                        && let Poll::Ready(result) = count.as_mut().poll(cx)
                    {
                        counted = Some(result);
                    }
                    match wait.as_mut().poll(cx) {
                        Poll::Ready(result) if counted.is_some() => Poll::Ready(result),
                        _ if counted.is_some() && shared.read(|it| !it.is_silent) => {
                            Poll::Ready(Err(ClientError::TooManyCommands))
                        }
                        _ => Poll::Pending,
                    }
                })
                .await;
                match (counted, waited) {
                    (Some(Err(error)), _) => Err(error),
                    (_, waited) => waited.map(drop),
                }
            };
            let mut scenario = pin!(scenario);
            let mut silent = pin!(shared.until(|state| state.is_silent));
            let mut early = None;
            let first = poll_fn(|cx| {
                if let Poll::Ready(result) = scenario.as_mut().poll(cx) {
                    early = Some(result);
                    return Poll::Ready(());
                }
                silent.as_mut().poll(cx)
            });
            self.run("a message before the cut", first);
            let is_complete = shared.read(|state| !state.is_silent);
            self.ends.cut();
            self.report.cuts += 1;
            let result = match early {
                Some(result) => result,
                None => self.run("the end of each call after a cut", scenario),
            };
            if !is_complete {
                let is_lost = matches!(
                    &result,
                    Err(ClientError::Closed(_) | ClientError::Failed(Failure::ConnectionLost))
                );
                assert!(
                    is_lost,
                    "{}: after {messages} messages a call ended with {result:?}",
                    self.revision
                );
            }
            self.run("the end, at the client", client.closed());
            self.run("the end, at the server", shared.until(|state| state.ended[1] > 0));
            self.ended_once(&shared);
            self.done(&shared);
            if is_complete {
                return;
            }
        }
        panic!("{}: the scenario has no end", self.revision);
    }

    /// Repeats or reorders messages: each call has one end, and results stay with their calls.
    #[track_caller]
    fn disturbed(&mut self, disturbance: Disturbance) {
        let (client, shared) = self.open();
        shared.update(|state| state.disturbance = Some(disturbance));
        let texts: Vec<String> = (0..16).map(|seed| text(seed * 31, seed)).collect();
        let echoes = self.run("disturbed calls", all(texts.iter().map(|text| echo(&client, text))));
        for (echo, text) in echoes.into_iter().zip(&texts) {
            match (disturbance, echo) {
                (_, Ok(echo)) => assert_eq!(&echo, text, "{}", self.revision),
                // The server refused the id that is in use, before it answered the first.
                (Disturbance::Doubled, Err(ClientError::Failed(Failure::Refused(_)))) => {}
                (_, Err(error)) => panic!("{}: {disturbance:?}: {error:?}", self.revision),
            }
        }
        assert_eq!(client.close_reason(), None, "{}: {disturbance:?}", self.revision);
        self.done(&shared);
    }
}

// ------------------------------------------------------------------ an example

/// Two ends in memory, on a virtual clock: the smallest transport, with faults to show what the
/// harness finds.
#[derive(Debug)]
pub struct InMemory {
    promises: Promises,
    faults: Faults,
    pair: Option<Pair<Stream<Side, Side>>>,
}

impl InMemory {
    /// Creates ends that promise this, and keep it: messages of any length, in order, once.
    #[must_use]
    pub fn new(promises: Promises) -> Self {
        Self { promises, faults: Faults::default(), pair: None }
    }

    /// Sets faults of all connections, which may break a promise.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }
}

impl Ends for InMemory {
    fn promises(&self) -> Promises {
        self.promises
    }

    fn now(&self) -> Instant {
        // Each connection has a clock of its own.
        Instant::ZERO
    }

    fn connect(&mut self, client: Side, server: Side) {
        let mut pair = Pair::new(Stream::new(server, client));
        pair.set_faults(self.faults.clone());
        self.pair = Some(pair);
    }

    fn run(&mut self, future: Pin<&mut dyn Future<Output = ()>>) -> bool {
        let Some(pair) = &mut self.pair else { return false };
        pair.try_run(future)
    }

    fn cut(&mut self) {
        if let Some(pair) = &mut self.pair {
            pair.cut();
        }
    }
}
