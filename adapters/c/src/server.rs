//! Servers: what they offer, and one connection.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use mcp_sansio::catalog::{Attachments, CatalogError, ItemId};
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CommandError, Event, Limits, Request, RequestHandle, Server, ServerMachine, ServerOptions,
    Subject,
};
use mcp_sansio::protocol::{
    CallToolResult, CapabilitySettings, ContentBlock, GetPromptResult, Implementation, Prompt,
    PromptMessage, ReadResourceResult, Resource, ServerCapabilities, TextResourceContents,
    TextResult, Tool,
};
use mcp_sansio::stream::StreamSettings;
use mcp_sansio::{ErrorCode, Instant, LoggingLevel, Method};
use mcp_sansio_sync::Arc;

use crate::connection::{Connection, Numbers, Side, millis};
use crate::{
    McpError, McpEvent, McpEventKind, McpText, bytes, free, json, json_object, object,
    optional_string, result, store, string,
};

/// What a server offers: its name, and its tools, resources and prompts with their functions. One
/// catalog serves any number of connections.
pub struct McpCatalog(RefCell<Offer>);

#[derive(Clone)]
struct Offer {
    options: ServerOptions,
    functions: Arc<Attachments<Function>>,
    on_event: McpServerEventFunction,
    context: *mut c_void,
    settings: StreamSettings,
}

/// The function that serves an item.
#[derive(Clone, Copy)]
struct Function {
    serve: extern "C" fn(*mut c_void, *mut McpServer, *const McpRequest),
    context: *mut c_void,
}

/// A function of the program that serves a tool, a resource or a prompt.
///
/// It answers `request` with one of `mcp_respond_text`, `mcp_respond_json`, `mcp_respond_tool_error`
/// and `mcp_respond_error`, before it returns or at any time later, but in the thread that drives
/// `server`. `context` is the pointer that was registered. The function may call only those functions
/// of `server` whose description allows it; the others return `MCP_ERROR_BUSY`.
pub type McpRequestFunction =
    Option<extern "C" fn(context: *mut c_void, server: *mut McpServer, request: *const McpRequest)>;

/// A function of the program that receives the events of a connection.
pub type McpServerEventFunction =
    Option<extern "C" fn(context: *mut c_void, server: *mut McpServer, event: *const McpEvent)>;

/// A request of the client. It and its texts live until the function that receives it returns; only
/// `id` may be kept.
#[repr(C)]
#[derive(Debug)]
pub struct McpRequest {
    /// Identifies the request until it is answered or cancelled. Not 0, and not used again soon.
    pub id: u64,
    /// The method: `tools/call`, `resources/read` or `prompts/get`.
    pub method: McpText,
    /// The name of the tool or the prompt, or the URI of the resource, without escapes.
    pub name: McpText,
    /// The arguments, a JSON object: read them with `mcp_json_string` and its like. They are not
    /// checked against the schema of the tool.
    pub arguments: McpText,
    /// Whether the client asked for progress.
    pub wants_progress: bool,
    /// The time of the call that delivered the request, in milliseconds.
    pub now: u64,
}

/// Creates a catalog without items, for a server with this name and version. Free it with
/// `mcp_catalog_free`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_new(
    name: *const c_char,
    version: *const c_char,
    catalog: Option<&mut MaybeUninit<*mut McpCatalog>>,
) -> McpError {
    result((|| {
        let place = catalog.ok_or(McpError::Null)?;
        let identity = Implementation::new(string(name)?, string(version)?);
        let mut options = ServerOptions::new(identity);
        options.edit_catalog(|catalog| {
            catalog.manage_all();
        });
        let mut offer = Offer {
            options,
            functions: Arc::default(),
            on_event: None,
            context: ptr::null_mut(),
            settings: StreamSettings::DEFAULT,
        };
        if cfg!(target_os = "none") {
            offer.make_small(SMALL_LINE);
        }
        place.write(Box::into_raw(Box::new(McpCatalog(RefCell::new(offer)))));
        Ok(())
    })())
}

/// The longest line that a server with small limits accepts, in bytes: enough for calls with short
/// arguments.
const SMALL_LINE: usize = 2048;

/// Frees a catalog, which may be null. Servers that were made from it keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_free(catalog: *mut McpCatalog) {
    free(catalog);
}

/// Tells clients how to use the server: a text for the model.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_instructions(
    catalog: *mut McpCatalog,
    text: *const c_char,
) -> McpError {
    edit(catalog, |offer| {
        offer.options = offer.options.clone().instructions(string(text)?);
        Ok(())
    })
}

/// Selects limits for a program with some ten kilobytes of memory and one client, and lines of at
/// most `line_length_max` bytes. They are the default on bare metal, with 2,048 bytes; a hosted
/// program accepts lines of 16 MiB by default.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_limit(catalog: *mut McpCatalog, line_length_max: usize) -> McpError {
    edit(catalog, |offer| {
        offer.make_small(line_length_max);
        Ok(())
    })
}

/// Declares that the server sends log messages, with `mcp_server_log`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_logging(catalog: *mut McpCatalog) -> McpError {
    edit(catalog, |offer| {
        let capabilities = ServerCapabilities::new().logging(CapabilitySettings::new());
        offer.options = offer.options.clone().capabilities(capabilities);
        Ok(())
    })
}

/// Lets clients subscribe to resources. Report changes with `mcp_server_resource_updated`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_subscriptions(catalog: *mut McpCatalog) -> McpError {
    edit(catalog, |offer| {
        offer.options.edit_catalog(|catalog| {
            catalog.subscribe(true);
        });
        Ok(())
    })
}

/// Sets the function for events of connections, such as cancellations. `function` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_on_event(
    catalog: *mut McpCatalog,
    function: McpServerEventFunction,
    context: *mut c_void,
) -> McpError {
    edit(catalog, |offer| {
        (offer.on_event, offer.context) = (function, context);
        Ok(())
    })
}

/// Adds a tool. `description` may be null. `input_schema` is the JSON schema of its arguments, an
/// object of the type `object`; null for a tool without arguments.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_add_tool(
    catalog: *mut McpCatalog,
    name: *const c_char,
    description: *const c_char,
    input_schema: *const c_char,
    function: McpRequestFunction,
    context: *mut c_void,
) -> McpError {
    add(catalog, function, context, |options| {
        let schema = if input_schema.is_null() {
            RawJson::trusted(r#"{"type":"object"}"#)
        } else {
            json(input_schema)?
        };
        let mut tool = Tool::new(string(name)?, schema);
        tool.description = optional_string(description)?.map(String::from);
        Ok(options.edit_catalog(|catalog| catalog.add_tool(tool)))
    })
}

/// Adds a resource. `description` and `mime_type` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_add_resource(
    catalog: *mut McpCatalog,
    uri: *const c_char,
    name: *const c_char,
    description: *const c_char,
    mime_type: *const c_char,
    function: McpRequestFunction,
    context: *mut c_void,
) -> McpError {
    add(catalog, function, context, |options| {
        let mut resource = Resource::new(string(uri)?, string(name)?);
        resource.description = optional_string(description)?.map(String::from);
        resource.mime_type = optional_string(mime_type)?.map(String::from);
        Ok(options.edit_catalog(|catalog| catalog.add_resource(resource)))
    })
}

/// Adds a prompt. `description` may be null. `arguments` is a JSON array of its arguments, such as
/// `[{"name":"room","required":true}]`; null for a prompt without arguments.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_catalog_add_prompt(
    catalog: *mut McpCatalog,
    name: *const c_char,
    description: *const c_char,
    arguments: *const c_char,
    function: McpRequestFunction,
    context: *mut c_void,
) -> McpError {
    add(catalog, function, context, |options| {
        let mut prompt = Prompt::new(string(name)?);
        prompt.description = optional_string(description)?.map(String::from);
        if !arguments.is_null() {
            prompt.arguments = Some(json(arguments)?.decode().map_err(|_| McpError::Json)?);
        }
        Ok(options.edit_catalog(|catalog| catalog.add_prompt(prompt)))
    })
}

fn edit(
    catalog: *mut McpCatalog,
    change: impl FnOnce(&mut Offer) -> Result<(), McpError>,
) -> McpError {
    result((|| {
        let catalog = object(catalog)?;
        let mut offer = catalog.0.try_borrow_mut().map_err(|_| McpError::Busy)?;
        change(&mut offer)
    })())
}

fn add(
    catalog: *mut McpCatalog,
    function: McpRequestFunction,
    context: *mut c_void,
    add: impl FnOnce(&mut ServerOptions) -> Result<Result<ItemId, CatalogError>, McpError>,
) -> McpError {
    edit(catalog, |offer| {
        let serve = function.ok_or(McpError::Null)?;
        let item = add(&mut offer.options)??;
        Arc::make_mut(&mut offer.functions).insert(item, Function { serve, context });
        Ok(())
    })
}

impl Offer {
    fn make_small(&mut self, line_length_max: usize) {
        self.options = self.options.clone().limits(Limits::SMALL);
        self.settings = StreamSettings::DEVICE;
        self.settings.frame_length_max = line_length_max;
        self.settings.read_length_max = line_length_max;
    }
}

// ------------------------------------------------------------------ a connection

/// A server for one connection. Driven by one thread at a time.
pub struct McpServer(Connection<ServerSide>);

struct ServerSide {
    offer: Offer,
    machine: RefCell<Server>,
    pending: RefCell<Numbers<Pending>>,
    /// The object that C knows.
    owner: Cell<*mut McpServer>,
}

/// A request that waits for its answer.
struct Pending {
    handle: RequestHandle,
    kind: Kind,
}

/// What the text of an answer becomes.
enum Kind {
    Tool,
    Prompt,
    /// The contents of the resource with this URI.
    Resource(String),
}

impl Side for ServerSide {
    type Machine = Server;

    fn machine(&self) -> &RefCell<Server> {
        &self.machine
    }

    fn on_event(&self, event: Event<'_>, now: Instant) {
        let text;
        let event = match event {
            Event::Request(request) => return self.serve(&request, now),
            Event::Opened(opened) => {
                McpEvent::new(McpEventKind::Opened, opened.revision.as_str(), millis(now))
            }
            Event::Cancelled(cancelled) => {
                let Subject::Request(handle) = cancelled.subject else { return };
                let mut pending = self.pending.borrow_mut();
                let Some(id) = pending.number(handle.slot()) else { return };
                pending.remove(id);
                McpEvent { id, ..McpEvent::new(McpEventKind::Cancelled, "", millis(now)) }
            }
            Event::Notification(ref notification) => McpEvent {
                name: McpText::new(notification.method.as_str()),
                ..McpEvent::new(
                    McpEventKind::Notification,
                    notification.params.as_str(),
                    millis(now),
                )
            },
            Event::Violation(violation) => {
                text = violation.to_string();
                McpEvent::new(McpEventKind::Violation, &text, millis(now))
            }
            Event::Closed(reason) => {
                text = reason.to_string();
                McpEvent::new(McpEventKind::Closed, &text, millis(now))
            }
            _ => return,
        };
        if let Some(on_event) = self.offer.on_event {
            on_event(self.offer.context, self.owner.get(), &raw const event);
        }
    }
}

impl ServerSide {
    fn serve(&self, request: &Request<'_>, now: Instant) {
        let function = request.target.item().and_then(|item| self.offer.functions.get(item));
        let subject = request.subject();
        let name = subject.as_ref().and_then(RawJson::to_text).unwrap_or_default();
        let kind = match request.method.known() {
            Some(Method::ToolsCall) => Some(Kind::Tool),
            Some(Method::PromptsGet) => Some(Kind::Prompt),
            Some(Method::ResourcesRead) => Some(Kind::Resource(String::from(&*name))),
            _ => None,
        };
        let (Some(Function { serve, context }), Some(kind)) = (function, kind) else {
            let error = ErrorObject::method_not_found(request.method.as_str());
            // It is not cancelled: it was just received.
            let _done = self.machine.borrow_mut().reject(request.handle, error, now);
            return;
        };
        let pending = Pending { handle: request.handle, kind };
        let id = self.pending.borrow_mut().insert(request.handle.slot(), pending);
        let arguments = request.arguments();
        let request = McpRequest {
            id,
            method: McpText::new(request.method.as_str()),
            name: McpText::new(&name),
            arguments: McpText::new(arguments.as_ref().map_or("{}", |it| it.as_str())),
            wants_progress: request.wants_progress,
            now: millis(now),
        };
        serve(*context, self.owner.get(), &raw const request);
    }
}

/// Creates a server for one connection, with what the catalog contains now. Free it with
/// `mcp_server_free`.
///
/// `seed` protects hash tables against chosen names: draw it at random for each connection, if peers
/// are not trusted.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_new(
    catalog: *const McpCatalog,
    seed: u64,
    server: Option<&mut MaybeUninit<*mut McpServer>>,
) -> McpError {
    result((|| {
        let place = server.ok_or(McpError::Null)?;
        let offer = object(catalog)?.0.try_borrow().map_err(|_| McpError::Busy)?.clone();
        let (machine, settings) =
            (Server::new(offer.options.clone(), seed), offer.settings.clone());
        let side = ServerSide {
            offer,
            machine: RefCell::new(machine),
            pending: RefCell::new(Numbers::new()),
            owner: Cell::new(ptr::null_mut()),
        };
        let server = Box::into_raw(Box::new(McpServer(Connection::new(side, settings))));
        object(server)?.0.side.owner.set(server);
        place.write(server);
        Ok(())
    })())
}

/// Frees a server, which may be null, with all that belongs to it: texts, input and output.
/// Requests get no answer. Fails in a callback of the server.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_free(server: *mut McpServer) -> McpError {
    if object(server).is_ok_and(|server| server.0.is_busy()) {
        return McpError::Busy;
    }
    free(server);
    McpError::None
}

/// Returns memory to receive into, of `*size` bytes. Follow with `mcp_server_received`. `*size` is 0
/// if no input is accepted now: after its end, and while output has to be sent first. The pointer is
/// valid until the next call for `server`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_space(
    server: *mut McpServer,
    size: Option<&mut MaybeUninit<usize>>,
) -> *mut u8 {
    let space = object(server).and_then(|server| server.0.space());
    let (pointer, length) = space.unwrap_or((ptr::null_mut(), 0));
    if store(size, length).is_ok() { pointer } else { ptr::null_mut() }
}

/// Handles `length` bytes that were received into the memory of `mcp_server_space`. They need not be
/// complete messages. Functions of the catalog run during this call.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_received(server: *mut McpServer, length: usize, now: u64) -> McpError {
    result(object(server).and_then(|server| server.0.received(length, now)))
}

/// Like `mcp_server_space` and `mcp_server_received` with bytes of the program. `*taken` is less than
/// `length` if output has to be sent first; pass the others again after that.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_receive(
    server: *mut McpServer,
    data: *const u8,
    length: usize,
    taken: Option<&mut MaybeUninit<usize>>,
    now: u64,
) -> McpError {
    result((|| {
        let place = taken.ok_or(McpError::Null)?;
        place.write(0);
        place.write(object(server)?.0.receive(bytes(data, length)?, now)?);
        Ok(())
    })())
}

/// Reports the end of the input. Requests can still be answered for 1.5 s: go on until
/// `mcp_server_is_over`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_end_of_input(server: *mut McpServer, now: u64) -> McpError {
    result(object(server).and_then(|server| server.0.end_of_input(now)))
}

/// Returns output to send, `*length` bytes, or null if there is none. It is valid until the next call
/// for `server`. Report what was sent with `mcp_server_sent`; after that there may be more.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_transmit(
    server: *mut McpServer,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    let output = object(server).and_then(|server| server.0.output());
    let (pointer, count) = output.unwrap_or((ptr::null(), 0));
    if store(length, count).is_ok() { pointer } else { ptr::null() }
}

/// Removes the first `length` bytes of the output, and continues with input that had to wait.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_sent(server: *mut McpServer, length: usize, now: u64) -> McpError {
    result(object(server).and_then(|server| server.0.sent(length, now)))
}

/// Returns when to call `mcp_server_handle_timeout` at the latest, or `UINT64_MAX` for never. Every
/// other call may change it. Allowed in callbacks: there it is 0, which means now, if the connection
/// is ending; the rest of the call that runs the callback may change it, too.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_deadline(server: *const McpServer) -> u64 {
    object(server).map_or(u64::MAX, |server| server.0.deadline())
}

/// Processes expired deadlines. Extra calls do nothing.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_handle_timeout(server: *mut McpServer, now: u64) -> McpError {
    result(object(server).and_then(|server| server.0.advance(now)))
}

/// Closes the connection: requests get no answer. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_close(server: *mut McpServer, now: u64) -> McpError {
    command(server, now, |machine| {
        machine.close(Instant::from_millis(now));
        Ok(())
    })
}

/// Returns whether the connection is over: close the stream, and free the server. Also `true` if
/// `server` is null.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_is_over(server: *const McpServer) -> bool {
    object(server).map_or(true, |server| server.0.is_over())
}

// ------------------------------------------------------------------ answers

/// Answers a request with a text: the result of a tool, the contents of a resource, or a message of
/// the user for a prompt. Allowed in callbacks.
///
/// `MCP_ERROR_NOT_DUE` is no mistake if the client can cancel requests.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_respond_text(
    server: *mut McpServer,
    request: u64,
    text: *const c_char,
    now: u64,
) -> McpError {
    answer(
        server,
        request,
        || string(text),
        |machine, Pending { handle, kind }, text| {
            let now = Instant::from_millis(now);
            match kind {
                Kind::Tool => machine.respond(handle, &TextResult(text), now),
                Kind::Prompt => {
                    let message = PromptMessage::user(ContentBlock::text(text));
                    machine.respond(handle, &GetPromptResult::new([message]), now)
                }
                Kind::Resource(uri) => {
                    let contents = TextResourceContents::new(uri, text);
                    machine.respond(handle, &ReadResourceResult::new([contents.into()]), now)
                }
            }
        },
    )
}

/// Answers a request with a result as JSON: the whole object that the protocol defines for its
/// method, such as `{"content":[{"type":"text","text":"21"}],"structuredContent":{"celsius":21}}`.
/// Members that a revision requires in every result are added. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_respond_json(
    server: *mut McpServer,
    request: u64,
    result: *const c_char,
    now: u64,
) -> McpError {
    answer(
        server,
        request,
        || json_object(result),
        |machine, pending, result| {
            machine.respond_with(pending.handle, &result, Instant::from_millis(now))
        },
    )
}

/// Answers the call of a tool with a failure that the model sees, and can correct. Other requests are
/// answered with an internal error. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_respond_tool_error(
    server: *mut McpServer,
    request: u64,
    text: *const c_char,
    now: u64,
) -> McpError {
    answer(
        server,
        request,
        || string(text),
        |machine, Pending { handle, kind }, text| {
            let now = Instant::from_millis(now);
            match kind {
                Kind::Tool => machine.respond(handle, &CallToolResult::error(text), now),
                _ => machine.reject(handle, ErrorObject::internal(text), now),
            }
        },
    )
}

/// Answers a request with an error of JSON-RPC, such as -32602 for invalid parameters. Allowed in
/// callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_respond_error(
    server: *mut McpServer,
    request: u64,
    code: i32,
    message: *const c_char,
    now: u64,
) -> McpError {
    answer(
        server,
        request,
        || string(message),
        |machine, pending, message| {
            let error = ErrorObject::new(ErrorCode(code.into()), message);
            machine.reject(pending.handle, error, Instant::from_millis(now))
        },
    )
}

/// Reports the progress of a request, which has to increase. `total` is the last value, or less than 0
/// if it is not known; `message` may be null. Nothing is sent if the client did not ask for progress,
/// or receives too slowly. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_progress(
    server: *mut McpServer,
    request: u64,
    progress: f64,
    total: f64,
    message: *const c_char,
    now: u64,
) -> McpError {
    result((|| {
        let (server, message) = (object(server)?, optional_string(message)?);
        let handle = server.pending(request)?;
        let total = (total >= 0.0).then_some(total);
        let now = Instant::from_millis(now);
        server.0.machine()?.progress(handle, progress, total, message, now);
        Ok(())
    })())
}

/// Sends a log message, if the client wants messages of this level. `request` is the request that it
/// belongs to, or 0. `level` is 0 (debug), 1 (info), 2 (notice), 3 (warning), 4 (error), 5
/// (critical), 6 (alert) or 7 (emergency). `logger` may be null. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_log(
    server: *mut McpServer,
    request: u64,
    level: i32,
    logger: *const c_char,
    text: *const c_char,
    now: u64,
) -> McpError {
    result((|| {
        let (server, logger, text) = (object(server)?, optional_string(logger)?, string(text)?);
        let level = usize::try_from(level).ok().and_then(|level| LoggingLevel::ALL.get(level));
        let level = *level.ok_or(McpError::Type)?;
        let request = if request == 0 { None } else { Some(server.pending(request)?) };
        server.0.machine()?.log(request, level, logger, text, Instant::from_millis(now))?;
        Ok(())
    })())
}

/// Tells clients that subscribed to it that a resource changed. Allowed in callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_server_resource_updated(
    server: *mut McpServer,
    uri: *const c_char,
    now: u64,
) -> McpError {
    command(server, now, |machine| {
        machine.resource_updated(string(uri)?, Instant::from_millis(now));
        Ok(())
    })
}

impl McpServer {
    /// Returns the handle of a request that waits for its answer.
    fn pending(&self, request: u64) -> Result<RequestHandle, McpError> {
        let mut pending = self.0.side.pending.borrow_mut();
        pending.get(request).map(|it| it.handle).ok_or(McpError::NotDue)
    }
}

fn command(
    server: *mut McpServer,
    now: u64,
    apply: impl FnOnce(&mut Server) -> Result<(), McpError>,
) -> McpError {
    result((|| {
        let server = object(server)?;
        apply(&mut *server.0.machine()?)?;
        server.0.deliver(now);
        Ok(())
    })())
}

/// Reads the content of an answer and sends it. A request whose answer cannot be read still waits.
fn answer<T>(
    server: *mut McpServer,
    request: u64,
    read: impl FnOnce() -> Result<T, McpError>,
    send: impl FnOnce(&mut Server, Pending, T) -> Result<(), CommandError>,
) -> McpError {
    result((|| {
        let (server, content) = (object(server)?, read()?);
        let mut machine = server.0.machine()?;
        let pending = server.0.side.pending.borrow_mut().remove(request);
        send(&mut machine, pending.ok_or(McpError::NotDue)?, content)?;
        Ok(())
    })())
}
