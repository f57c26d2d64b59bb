//! Clients: one connection.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CallHandle, CallOptions, Client, ClientMachine, ClientOptions, CommandError, Ended, Event,
    Failure, InputHandle, Limits, Subject,
};
use mcp_sansio::protocol::{CallToolParams, ClientCapabilities, Implementation};
use mcp_sansio::stream::StreamSettings;
use mcp_sansio::{ErrorCode, Instant, Method};

use crate::connection::{Connection, Side, millis};
use crate::{
    McpError, McpEvent, McpEventKind, McpText, bytes, free, json_object, object, optional_string,
    result, store, string,
};

/// A client for one connection. Driven by one thread at a time.
pub struct McpClient(Connection<ClientSide>);

/// A function of the program that receives the events of a connection. It may call only those
/// functions of `client` whose description allows it; the others return `MCP_ERROR_BUSY`.
pub type McpClientEventFunction =
    Option<extern "C" fn(context: *mut c_void, client: *mut McpClient, event: *const McpEvent)>;

struct ClientSide {
    machine: RefCell<Client>,
    /// Calls without their last event, by number: the slot of the handle, then a count that is not
    /// zero. A slot may have several, since a callback can start a call in the slot of one that has
    /// ended before the event of that one.
    calls: RefCell<BTreeMap<u64, CallHandle>>,
    call_count: Cell<u32>,
    /// Input requests that wait for their answers, by number.
    inputs: RefCell<Vec<(u64, InputHandle)>>,
    last_input: Cell<u64>,
    on_event: McpClientEventFunction,
    context: *mut c_void,
    /// The object that C knows.
    owner: Cell<*mut McpClient>,
}

impl Side for ClientSide {
    type Machine = Client;

    fn machine(&self) -> &RefCell<Client> {
        &self.machine
    }

    fn on_event(&self, event: Event<'_>, now: Instant) {
        let (text, time) = (alloc::string::String::new(), millis(now));
        match event {
            Event::Opened(opened) => {
                self.tell(McpEvent::new(McpEventKind::Opened, opened.revision.as_str(), time));
            }
            Event::Notification(notification) => self.tell(McpEvent {
                name: McpText::new(notification.method.as_str()),
                ..McpEvent::new(McpEventKind::Notification, notification.params.as_str(), time)
            }),
            Event::Progress(progress) => self.tell(McpEvent {
                id: self.number(progress.call),
                progress: progress.progress,
                total: progress.total.unwrap_or(-1.0),
                ..McpEvent::new(
                    McpEventKind::Progress,
                    progress.message.as_deref().unwrap_or_default(),
                    time,
                )
            }),
            Event::Ended(ended) => self.end(ended, time),
            Event::InputRequested(input) => {
                let id = self.last_input.get() + 1;
                self.last_input.set(id);
                self.inputs.borrow_mut().push((id, input.handle));
                self.tell(McpEvent {
                    id,
                    name: McpText::new(input.method.as_str()),
                    ..McpEvent::new(McpEventKind::Input, input.params.as_str(), time)
                });
            }
            Event::Cancelled(cancelled) => {
                let Subject::Input(handle) = cancelled.subject else { return };
                let position = |inputs: &[(u64, InputHandle)]| {
                    inputs.iter().position(|(_, other)| *other == handle)
                };
                let mut inputs = self.inputs.borrow_mut();
                let Some(index) = position(&inputs) else { return };
                let (id, _) = inputs.remove(index);
                drop(inputs);
                self.tell(McpEvent { id, ..McpEvent::new(McpEventKind::Cancelled, &text, time) });
            }
            Event::Request(request) => {
                let error = ErrorObject::method_not_found(request.method.as_str());
                // It is not cancelled: it was just received.
                let _done = self.machine.borrow_mut().reject(request.handle, error, now);
            }
            Event::Violation(violation) => {
                self.tell(McpEvent::new(McpEventKind::Violation, &violation.to_string(), time));
            }
            Event::Closed(reason) => {
                self.tell(McpEvent::new(McpEventKind::Closed, &reason.to_string(), time));
            }
            _ => {}
        }
    }
}

impl ClientSide {
    fn tell(&self, event: McpEvent) {
        if let Some(on_event) = self.on_event {
            on_event(self.context, self.owner.get(), &raw const event);
        }
    }

    fn number(&self, call: CallHandle) -> u64 {
        let first = u64::from(call.slot()) << 32;
        let calls = self.calls.borrow();
        let mut in_slot = calls.range(first..=first | u64::from(u32::MAX));
        in_slot.find(|(_, other)| **other == call).map_or(0, |(number, _)| *number)
    }

    /// Notes a call that was started, and returns its number.
    fn insert(&self, call: CallHandle) -> u64 {
        let count = self.call_count.get().wrapping_add(1).max(1);
        self.call_count.set(count);
        let number = u64::from(call.slot()) << 32 | u64::from(count);
        self.calls.borrow_mut().insert(number, call);
        number
    }

    fn end(&self, ended: Ended<'_>, time: u64) {
        let id = self.number(ended.call);
        self.calls.borrow_mut().remove(&id);
        match ended.outcome {
            Ok(result) => self.tell(McpEvent {
                id,
                ..McpEvent::new(McpEventKind::Result, result.as_str(), time)
            }),
            Err(failure) => {
                let (error, code) = match &failure {
                    Failure::Refused(error) => (McpError::Refused, error.code.0),
                    Failure::TimedOut { .. } => (McpError::TimedOut, 0),
                    Failure::Cancelled | Failure::InputRefused { .. } => (McpError::Cancelled, 0),
                    Failure::TooManyRounds { .. } | Failure::TooMuchInput { .. } => {
                        (McpError::Limit, 0)
                    }
                    Failure::ConnectionLost => (McpError::Closed, 0),
                    _ => (McpError::Invalid, 0),
                };
                let text = match &failure {
                    Failure::Refused(error) => error.message.to_string(),
                    other => other.to_string(),
                };
                let event = McpEvent::new(McpEventKind::Failed, &text, time);
                self.tell(McpEvent { id, error, code, ..event });
            }
        }
    }
}

/// Creates a client for one connection, with this name and version. Its first message is ready to
/// send. Free it with `mcp_client_free`.
///
/// `capabilities` is the JSON object of what the program can do for servers, such as
/// `{"roots":{},"elicitation":{}}`; null for nothing. `on_event` receives `MCP_EVENT_KIND_OPENED`
/// before calls can be made. `seed` protects hash tables against chosen names: draw it at random, if
/// servers are not trusted.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_new(
    name: *const c_char,
    version: *const c_char,
    capabilities: *const c_char,
    on_event: McpClientEventFunction,
    context: *mut c_void,
    seed: u64,
    client: Option<&mut MaybeUninit<*mut McpClient>>,
    now: u64,
) -> McpError {
    result((|| {
        let place = client.ok_or(McpError::Null)?;
        let mut options = ClientOptions::new(Implementation::new(string(name)?, string(version)?));
        if !capabilities.is_null() {
            let declared: ClientCapabilities =
                json_object(capabilities)?.decode().map_err(|_| McpError::Json)?;
            options = options.capabilities(declared);
        }
        let mut settings = StreamSettings::DEFAULT;
        if cfg!(target_os = "none") {
            options = options.limits(Limits::SMALL);
            settings = StreamSettings::DEVICE;
            (settings.frame_length_max, settings.read_length_max) = (SMALL_LINE, SMALL_LINE);
        }
        let side = ClientSide {
            machine: RefCell::new(Client::new(options, seed, Instant::from_millis(now))),
            calls: RefCell::default(),
            call_count: Cell::new(0),
            inputs: RefCell::default(),
            last_input: Cell::new(0),
            on_event,
            context,
            owner: Cell::new(ptr::null_mut()),
        };
        let client = Box::into_raw(Box::new(McpClient(Connection::new(side, settings))));
        object(client)?.0.side.owner.set(client);
        place.write(client);
        Ok(())
    })())
}

/// The longest line that a client on bare metal accepts, in bytes.
const SMALL_LINE: usize = 4096;

/// Frees a client, which may be null, with all that belongs to it. Calls end without an event. Fails
/// in a callback of the client.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_free(client: *mut McpClient) -> McpError {
    if object(client).is_ok_and(|client| client.0.is_busy()) {
        return McpError::Busy;
    }
    free(client);
    McpError::None
}

/// Returns memory to receive into: see `mcp_server_space`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_space(
    client: *mut McpClient,
    size: Option<&mut MaybeUninit<usize>>,
) -> *mut u8 {
    let space = object(client).and_then(|client| client.0.space());
    let (pointer, length) = space.unwrap_or((ptr::null_mut(), 0));
    if store(size, length).is_ok() { pointer } else { ptr::null_mut() }
}

/// Handles bytes that were received: see `mcp_server_received`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_received(client: *mut McpClient, length: usize, now: u64) -> McpError {
    result(object(client).and_then(|client| client.0.received(length, now)))
}

/// Handles bytes of the program: see `mcp_server_receive`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_receive(
    client: *mut McpClient,
    data: *const u8,
    length: usize,
    taken: Option<&mut MaybeUninit<usize>>,
    now: u64,
) -> McpError {
    result((|| {
        let place = taken.ok_or(McpError::Null)?;
        place.write(0);
        place.write(object(client)?.0.receive(bytes(data, length)?, now)?);
        Ok(())
    })())
}

/// Reports the end of the input: every call ends with `MCP_ERROR_CLOSED`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_end_of_input(client: *mut McpClient, now: u64) -> McpError {
    result(object(client).and_then(|client| client.0.end_of_input(now)))
}

/// Returns output to send: see `mcp_server_transmit`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_transmit(
    client: *mut McpClient,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    let output = object(client).and_then(|client| client.0.output());
    let (pointer, count) = output.unwrap_or((ptr::null(), 0));
    if store(length, count).is_ok() { pointer } else { ptr::null() }
}

/// Removes output that was sent: see `mcp_server_sent`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_sent(client: *mut McpClient, length: usize, now: u64) -> McpError {
    result(object(client).and_then(|client| client.0.sent(length, now)))
}

/// Returns when to call `mcp_client_handle_timeout` at the latest: see `mcp_server_deadline`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_deadline(client: *const McpClient) -> u64 {
    object(client).map_or(u64::MAX, |client| client.0.deadline())
}

/// Processes expired deadlines: calls without an answer end. Extra calls do nothing.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_handle_timeout(client: *mut McpClient, now: u64) -> McpError {
    result(object(client).and_then(|client| client.0.advance(now)))
}

/// Closes the connection: every call ends with `MCP_ERROR_CLOSED`. Allowed in callbacks; their events
/// come after it.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_close(client: *mut McpClient, now: u64) -> McpError {
    result((|| {
        let client = object(client)?;
        client.0.machine()?.close(Instant::from_millis(now));
        client.0.deliver(now);
        Ok(())
    })())
}

/// Returns whether the connection is over: close the stream, and free the client. Also `true` if
/// `client` is null.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_is_over(client: *const McpClient) -> bool {
    object(client).map_or(true, |client| client.0.is_over())
}

// ------------------------------------------------------------------ calls

/// Calls a tool. `arguments` is a JSON object, or null for none. The call ends with one event,
/// `MCP_EVENT_KIND_RESULT` or `MCP_EVENT_KIND_FAILED`; `*call` identifies it until then, and is never
/// 0. `timeout_ms` is the longest time without an answer or progress, or 0 for 60 s; `progress` asks
/// for events of progress. Allowed in callbacks.
///
/// `MCP_ERROR_STATE`: the connection is not open yet.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_call_tool(
    client: *mut McpClient,
    name: *const c_char,
    arguments: *const c_char,
    timeout_ms: u32,
    progress: bool,
    call: Option<&mut MaybeUninit<u64>>,
    now: u64,
) -> McpError {
    start(client, call, |machine| {
        let mut params = CallToolParams::new(string(name)?);
        params.arguments =
            Some(if arguments.is_null() { RawJson::EMPTY_OBJECT } else { json_object(arguments)? });
        let options = call_options(timeout_ms, progress);
        let now = Instant::from_millis(now);
        Ok(machine.call_typed(Method::ToolsCall, &params, &options, now)?)
    })
}

/// Sends another request of the protocol, such as `tools/list` or `resources/read`, with `params`, a
/// JSON object without `_meta`, or null for none. Otherwise like `mcp_client_call_tool`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_call(
    client: *mut McpClient,
    method: *const c_char,
    params: *const c_char,
    timeout_ms: u32,
    progress: bool,
    call: Option<&mut MaybeUninit<u64>>,
    now: u64,
) -> McpError {
    start(client, call, |machine| {
        let method = Method::parse(string(method)?).ok_or(McpError::Name)?;
        let params = if params.is_null() { RawJson::EMPTY_OBJECT } else { json_object(params)? };
        let options = call_options(timeout_ms, progress);
        Ok(machine.call(method, &params, &options, Instant::from_millis(now))?)
    })
}

/// Cancels a call, which ends with `MCP_ERROR_CANCELLED`; `reason` is for the server, and may be
/// null. Does nothing if the call has ended. Allowed in callbacks; the event comes after it.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_cancel(
    client: *mut McpClient,
    call: u64,
    reason: *const c_char,
    now: u64,
) -> McpError {
    result((|| {
        let (client, reason) = (object(client)?, optional_string(reason)?);
        let handle = client.0.side.calls.borrow().get(&call).copied();
        if let Some(handle) = handle {
            let reason = reason.unwrap_or_default();
            client.0.machine()?.cancel(handle, reason, Instant::from_millis(now));
            client.0.deliver(now);
        }
        Ok(())
    })())
}

/// Answers an input request with `answer`, the result of its method as a JSON object, such as
/// `{"action":"accept","content":{"name":"Ada"}}`. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_answer(
    client: *mut McpClient,
    input: u64,
    answer: *const c_char,
    now: u64,
) -> McpError {
    respond(
        client,
        input,
        now,
        || json_object(answer),
        |machine, handle, answer| {
            machine.answer_input_with(handle, &answer, Instant::from_millis(now))
        },
    )
}

/// Refuses an input request with an error of JSON-RPC, such as -32603. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_client_refuse(
    client: *mut McpClient,
    input: u64,
    code: i32,
    message: *const c_char,
    now: u64,
) -> McpError {
    respond(
        client,
        input,
        now,
        || string(message),
        |machine, handle, message| {
            let error = ErrorObject::new(ErrorCode(code.into()), message);
            machine.refuse_input(handle, error, Instant::from_millis(now))
        },
    )
}

fn call_options(timeout_ms: u32, progress: bool) -> CallOptions<'static> {
    let mut options = CallOptions::default();
    if timeout_ms > 0 {
        options = options.timeout(Duration::from_millis(timeout_ms.into()));
    }
    if progress { options.progress() } else { options }
}

fn start(
    client: *mut McpClient,
    call: Option<&mut MaybeUninit<u64>>,
    start: impl FnOnce(&mut Client) -> Result<CallHandle, McpError>,
) -> McpError {
    result((|| {
        let (client, place) = (object(client)?, call.ok_or(McpError::Null)?);
        let handle = start(&mut *client.0.machine()?)?;
        place.write(client.0.side.insert(handle));
        Ok(())
    })())
}

/// Reads an answer and sends it. An input request whose answer cannot be read still waits. The
/// machine may end the call: after a refusal, or if it has asked too often.
fn respond<T>(
    client: *mut McpClient,
    input: u64,
    now: u64,
    read: impl FnOnce() -> Result<T, McpError>,
    send: impl FnOnce(&mut Client, InputHandle, T) -> Result<(), CommandError>,
) -> McpError {
    result((|| {
        let (client, answer) = (object(client)?, read()?);
        let mut machine = client.0.machine()?;
        let mut inputs = client.0.side.inputs.borrow_mut();
        let position = inputs.iter().position(|(id, _)| *id == input);
        let handle = inputs[position.ok_or(McpError::NotDue)?].1;
        send(&mut machine, handle, answer)?;
        inputs.retain(|(id, _)| *id != input);
        drop((machine, inputs));
        client.0.deliver(now);
        Ok(())
    })())
}
