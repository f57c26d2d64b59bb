use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

#[cfg(feature = "http")]
use mcp_sansio::http;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CacheOptions, CallHandle, ClientMachine, ClientOptions, CommandError, Event, InputHandle,
    InputRequested, ResponseCache,
};
use mcp_sansio::protocol::{
    CapabilitySettings, ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitParams,
    ElicitResult, ElicitSchema, ElicitationCapability, Implementation, ListRootsResult,
    RootsCapability, SamplingCapability,
};
use mcp_sansio::{Era, Instant, Method, Revision, Tape};
use mcp_sansio_collections::Key;
use serde::de::DeserializeOwned;

use super::Client;
use super::endpoint::ClientEndpoint;
#[cfg(feature = "http")]
use super::http::HttpClientEndpoint;
use super::middleware::Calls;
use super::pending::Pending;
#[cfg(feature = "http")]
use crate::AuthorizationState;
use crate::client::endpoint::StreamClient;
#[cfg(feature = "http")]
use crate::client::http::HttpClient;
use crate::connection_options::connection_options;
use crate::context::{FromRequest, RequestParts, invalid_params};
use crate::executor::report_panic;
use crate::function::Handler;
use crate::middleware::Layers;
use crate::recorder::Recorder;
use crate::reply::{HandlerError, Outcome, ResultBody};
use crate::server::Observers;
use crate::threading::{Local, Step, ThreadSafe, Threading};

/// A client's host: its name, its capabilities towards servers, and their handlers.
/// The same handlers serve servers of every revision: requests of the server in the legacy era,
/// input rounds of calls in the modern era.
///
/// ```
/// use mcp_sansio_handlers::{Host, HostRequest};
/// use mcp_sansio::Instant;
/// use mcp_sansio::protocol::{ElicitParams, ElicitResult, Root};
///
/// let host = Host::new("editor", "1.0.0")
///     .on_elicit(async |question: HostRequest<ElicitParams>| {
///         // Here the user is shown `question.params` and decides.
///         Ok(ElicitResult::decline())
///     })
///     .on_roots(|_: HostRequest<()>| vec![Root::new("file:///home/ada/engine")]);
/// let (client, endpoint) = host.connect(42, Instant::ZERO);
/// # let _ = (client, endpoint);
/// ```
pub struct Host<K: Threading = ThreadSafe> {
    pub(crate) options: ClientOptions,
    pub(crate) handlers: HostHandlers<K>,
    observers: Observers,
    server_observers: Vec<Arc<ServerObserver>>,
    pub(crate) cache: Option<CacheFactory>,
    /// Whether calls that become tasks are followed.
    pub(crate) follows_tasks: bool,
    pub(crate) layers: Option<Layers<Calls>>,
    #[cfg(feature = "http")]
    pub(crate) authorization: Option<crate::Authorization<K>>,
    pub(crate) recorder: Option<Recorder>,
}

type ServerObserver = dyn Fn(Option<&str>, &Event<'_>) + Send + Sync;

/// The handlers of a host.
pub(crate) struct HostHandlers<K: Threading> {
    pub(crate) elicit: Option<K::Function>,
    pub(crate) sample: Option<K::Function>,
    pub(crate) roots: Option<K::Function>,
    pub(crate) extensions: Option<Arc<super::extension::HostExtensions<K>>>,
    /// The name of the server that asks.
    server: Option<Arc<str>>,
}

// Implemented by hand: `derive` would require `K: Clone`.
impl<K: Threading> Clone for Host<K> {
    fn clone(&self) -> Self {
        Self {
            options: self.options.clone(),
            handlers: self.handlers.clone(),
            observers: self.observers.clone(),
            server_observers: self.server_observers.clone(),
            cache: self.cache.clone(),
            follows_tasks: self.follows_tasks,
            layers: self.layers.clone(),
            #[cfg(feature = "http")]
            authorization: self.authorization.clone(),
            recorder: self.recorder.clone(),
        }
    }
}

impl<K: Threading> Clone for HostHandlers<K> {
    fn clone(&self) -> Self {
        Self {
            elicit: self.elicit.clone(),
            sample: self.sample.clone(),
            roots: self.roots.clone(),
            extensions: self.extensions.clone(),
            server: self.server.clone(),
        }
    }
}

impl<K: Threading> HostHandlers<K> {
    /// Returns the handler of an input request.
    pub(crate) fn of_input(&self, method: Method) -> Option<&K::Function> {
        match method {
            Method::ElicitationCreate => self.elicit.as_ref(),
            Method::SamplingCreateMessage => self.sample.as_ref(),
            _ => self.roots.as_ref(),
        }
    }
}

impl<K: Threading> fmt::Debug for HostHandlers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostHandlers")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .field("roots", &self.roots.is_some())
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Creates a host whose handlers may run on any thread.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::with_identity(Implementation::new(name, version))
    }
}

impl Host<Local> {
    /// Creates a host whose handlers stay on the thread that drives the connection.
    pub fn local(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::with_identity(Implementation::new(name, version))
    }
}

impl<K: Threading> Host<K> {
    /// Creates a host with a complete `Implementation` in place of name and version.
    #[must_use]
    pub fn with_identity(identity: Implementation) -> Self {
        Self {
            options: ClientOptions::new(identity),
            handlers: HostHandlers {
                elicit: None,
                sample: None,
                roots: None,
                extensions: None,
                server: None,
            },
            observers: Observers::default(),
            server_observers: Vec::new(),
            cache: None,
            follows_tasks: false,
            layers: None,
            #[cfg(feature = "http")]
            authorization: None,
            recorder: None,
        }
    }

    /// Sets the handler of elicitations, which asks the user with a form or sends the user to a
    /// URL. It takes `HostRequest<ElicitParams>` and returns an `ElicitResult`. An answer that does
    /// not fit the form is not sent: the server gets an error that says why.
    // MCP 2025-11-25 client/elicitation#capabilities [CAP-011]
    // MCP 2026-07-28 client/elicitation#capabilities [CAP-012]
    #[must_use]
    pub fn on_elicit<M>(mut self, handler: impl Handler<K, ElicitResult, M>) -> Self {
        let both = ElicitationCapability::new()
            .form(CapabilitySettings::default())
            .url(CapabilitySettings::default());
        self.options.capabilities_mut().elicitation.get_or_insert(both);
        self.handlers.elicit = Some(handler.into_function());
        self
    }

    /// Sets the handler of sampling requests, which asks the model. It takes
    /// `HostRequest<CreateMessageParams>` and returns a `CreateMessageResult`.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// call the API of a model.
    // MCP 2025-11-25 client/sampling#capabilities [CAP-009]
    // MCP 2026-07-28 client/sampling#capabilities [CAP-010]
    #[must_use]
    pub fn on_sample<M>(mut self, handler: impl Handler<K, CreateMessageResult, M>) -> Self {
        self.options.capabilities_mut().sampling.get_or_insert_default();
        self.handlers.sample = Some(handler.into_function());
        self
    }

    /// Like [`on_sample`](Self::on_sample), for a model that supports tools.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// call the API of a model.
    // MCP 2025-11-25 client/sampling#tools-in-sampling [CAP-014]
    #[must_use]
    pub fn on_sample_with_tools<M>(
        mut self,
        handler: impl Handler<K, CreateMessageResult, M>,
    ) -> Self {
        let tools = SamplingCapability::new().tools(CapabilitySettings::default());
        self.options.capabilities_mut().sampling = Some(tools);
        self.on_sample(handler)
    }

    /// Sets the handler that lists the roots servers may work in. It takes `HostRequest<()>` and
    /// returns the roots.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// take directories and files as arguments, as URIs of resources or from the configuration.
    // MCP 2025-11-25 client/roots#capabilities [CAP-007]
    // MCP 2026-07-28 client/roots#capabilities [CAP-008]
    #[must_use]
    pub fn on_roots<M>(mut self, handler: impl Handler<K, ListRootsResult, M>) -> Self {
        self.options
            .capabilities_mut()
            .roots
            .get_or_insert_with(|| RootsCapability::new().list_changed(true));
        self.handlers.roots = Some(handler.into_function());
        self
    }

    /// Declares more capabilities than the handlers imply, or removes some.
    #[must_use]
    pub fn capabilities(mut self, declare: impl FnOnce(&mut ClientCapabilities)) -> Self {
        declare(self.options.capabilities_mut());
        self
    }

    /// Adds an observer of all events of the connection: log messages, notifications, violations.
    /// It must return quickly.
    ///
    /// It runs in the task that drives the connection, except for
    /// [`Violation::ElementsOmitted`](mcp_sansio::peer::Violation::ElementsOmitted): results are
    /// decoded in the task that awaits the call.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.observers.0.push(Arc::new(observer));
        self
    }

    /// Like [`observe`](Self::observe), with the name of the [server](Self::for_server), if this host
    /// has been given one.
    #[must_use]
    pub fn observe_servers(
        mut self,
        observer: impl Fn(Option<&str>, &Event<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.server_observers.push(Arc::new(observer));
        self
    }

    /// Returns the observers of a connection.
    pub(crate) fn connection_observers(&self) -> Observers {
        let mut all = self.observers.clone();
        for observer in &self.server_observers {
            let (observer, server) = (Arc::clone(observer), self.handlers.server.clone());
            all.0.push(Arc::new(move |event: &Event<'_>| observer(server.as_deref(), event)));
        }
        all
    }

    /// Sets the name of the server to which this host is connected next, so that a clone for each
    /// of several servers can tell which of them asks: see [`HostRequest::server`] and
    /// [`observe_servers`](Self::observe_servers). The name is yours; the server does not see it.
    ///
    /// `connect_servers` of the adapters sets the names of the configuration.
    #[must_use]
    pub fn for_server(mut self, name: impl Into<Arc<str>>) -> Self {
        self.handlers.server = Some(name.into());
        self
    }

    /// Caches results for as long as their server allows: lists, resources, and results of
    /// `server/discover`. Calls of the [`Client`] then return a fresh result without sending
    /// a request, unless they [`reload`](crate::ClientCall::reload) it or have
    /// [metadata](crate::ClientCall::meta) of their own.
    ///
    /// Each connection has a cache of its own, which ends with it. Servers until 2025-11-25 give no
    /// hints, so their results are cached only with [`CacheOptions::default_ttl`]. A notification
    /// of a change removes the results that it concerns; modern servers send it to clients that
    /// [subscribe](Client::subscribe). Another token, or none, removes the private results.
    #[must_use]
    pub fn cache(mut self, options: CacheOptions) -> Self {
        self.cache = Some(CacheFactory::new(options));
        self
    }

    /// Sets the era of the server, known from an earlier connection.
    #[must_use]
    pub fn known_era(mut self, era: Era) -> Self {
        self.options = self.options.known_era(era);
        self
    }

    /// Records the clients under any adapter. `open` returns the tape of each new connection, given
    /// its number, counted from 1; a connection without a tape is not recorded.
    ///
    /// The module `recording` of `mcp-sansio`, with the feature of that name, creates tapes and
    /// replays recordings. They do not contain how the client got a token.
    #[must_use]
    pub fn record(mut self, open: impl Fn(usize) -> Option<Tape> + Send + Sync + 'static) -> Self {
        self.recorder = Some(Recorder::new(open));
        self
    }

    /// Opens a connection: returns a handle for the application and an endpoint for an adapter to
    /// drive. `seed` is a random number: see [`peer::Client::new`](mcp_sansio::peer::Client::new).
    #[must_use]
    pub fn connect(&self, seed: u64, now: Instant) -> (Client, ClientEndpoint<K>) {
        ClientEndpoint::new(self, self.machine(seed, now), false)
    }

    /// Like [`connect`](Self::connect), over HTTP; `http` contains the URL of the server.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn connect_http(
        &self,
        http: http::HttpClientOptions,
        seed: u64,
        now: Instant,
    ) -> (Client, HttpClientEndpoint<K>) {
        let authorization = AuthorizationState::new(self.authorization.clone(), http.url(), now);
        let machine = self.http_machine(http, seed, now);
        let (client, mut endpoint) = ClientEndpoint::new(self, machine, true);
        endpoint.authorization = authorization;
        (client, endpoint)
    }

    /// Returns the options of the machines.
    fn options(&self) -> ClientOptions {
        let options = self.options.clone();
        if let Some(problem) = self.problem() {
            return options.unusable(problem);
        }
        options
    }

    fn machine(&self, seed: u64, now: Instant) -> StreamClient {
        let options = self.options();
        StreamClient::new(options, seed, now, self.next_tape())
    }

    #[cfg(feature = "http")]
    fn http_machine(
        &self,
        options: http::HttpClientOptions,
        seed: u64,
        now: Instant,
    ) -> HttpClient {
        let peer = self.options();
        HttpClient::new(peer, options, seed, now, self.next_tape())
    }

    fn next_tape(&self) -> Option<Tape> {
        self.recorder.as_ref().and_then(|recorder| recorder.next())
    }
}

connection_options!(
    Host,
    "server",
    "Calls of the application pass [`call_middleware`](Self::call_middleware) first. Requests that the protocol layer sends itself pass only this one: `initialize`, `server/discover`, `ping`, those of subscriptions, and over HTTP the `tools/list` before the first call of a tool that was not listed."
);

mcp_sansio::partial_debug! { impl<K: Threading> Debug for Host<K> { handlers, .. } }

// ------------------------------------------------------------------ requests to a host

/// A request to a host, with its revision and the name of the server that asks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostRequest<P> {
    /// The parameters of the request.
    pub params: P,
    /// The revision that governs the request.
    pub revision: Revision,
    /// The server that asks, by the name that the application gave it with [`Host::for_server`] or
    /// in a configuration of several servers; `None` without one. Show it to the user, who must
    /// know who receives the answer.
    // MCP 2026-07-28 client/elicitation#user-interaction-model [ELIC-028]
    pub server: Option<Arc<str>>,
}

impl<P> HostRequest<P> {
    fn new(params: P, received: &RequestParts<'_, '_>) -> Self {
        Self { params, revision: received.revision, server: received.server.cloned() }
    }
}

impl<P: DeserializeOwned> HostRequest<P> {
    pub(super) fn decode(received: &RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let params = received.params.decode().map_err(|error| invalid_params(&error))?;
        Ok(Self::new(params, received))
    }
}

impl FromRequest<ElicitResult> for HostRequest<ElicitParams> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let question = Self::decode(&received)?;
        // The user must never be asked to open a `javascript:` or `file:` URL.
        if let ElicitParams::Url(params) = &question.params {
            params.check_url().map_err(|error| HandlerError::invalid_params(error.to_string()))?;
        }
        Ok(question)
    }
}

impl FromRequest<CreateMessageResult> for HostRequest<CreateMessageParams> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        let question = Self::decode(&received)?;
        let matching = question.params.check_tool_results();
        // MCP 2025-11-25 client/sampling#error-handling [SAMP-011]
        matching.map_err(|error| HandlerError::invalid_params(error.to_string()))?;
        Ok(question)
    }
}

impl FromRequest<ListRootsResult> for HostRequest<()> {
    fn from_request(received: RequestParts<'_, '_>) -> Result<Self, HandlerError> {
        Ok(Self::new((), &received))
    }
}

// ------------------------------------------------------------------ answers of its handlers

/// The form that a request to the host asks for, if it does.
pub(crate) type Form = Option<Box<ElicitSchema>>;

fn form_of(params: &RawJson<'_>) -> Form {
    params.get_present("requestedSchema")?;
    match params.decode() {
        Ok(ElicitParams::Form(form)) => Some(Box::new(form.requested_schema)),
        _ => None,
    }
}

/// Replaces an answer that does not fit its form by an error.
fn checked(form: &ElicitSchema, outcome: Outcome) -> Outcome {
    let Outcome::Result(body) = &outcome else { return outcome };
    let result = body.to_json(Revision::LATEST).and_then(|json| json.decode::<ElicitResult>());
    let accepted = result.ok().filter(ElicitResult::is_accepted);
    let checked = accepted.map_or(Ok(()), |it| form.validate(&it.content.unwrap_or_default()));
    match checked {
        Ok(()) => outcome,
        Err(error) => {
            let message = alloc::format!("the answer does not fit the form: {error}");
            Outcome::Error(ErrorObject::internal(message))
        }
    }
}

/// The request that a host's handler answers.
#[derive(Debug)]
pub(crate) enum Asked {
    Input(InputHandle),
    /// An input request of a task that is followed.
    Task(Arc<Pending>),
    Request(mcp_sansio::peer::RequestHandle),
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    pub(crate) fn ask(&mut self, input: InputRequested<'_>, now: Instant) {
        let Some(function) = self.handlers.of_input(input.method).cloned() else {
            let error = ErrorObject::method_not_found(input.method.as_str());
            let input = input.handle;
            let _answered = self.machine.refuse_input(input, error, now);
            return;
        };
        let spawner = self.spawner.clone();
        let parts = RequestParts::from_host_request(&input, spawner.as_ref());
        let method = input.method.as_str().into();
        self.run(Asked::Input(input.handle), method, &function, parts, now);
    }

    /// Calls a handler.
    pub(crate) fn run(
        &mut self,
        asked: Asked,
        method: Cow<'static, str>,
        function: &K::Function,
        parts: RequestParts<'_, '_>,
        now: Instant,
    ) {
        let observation = match &asked {
            Asked::Input(input) => self.machine.observation_of_input(*input),
            Asked::Task(_) => None,
            Asked::Request(request) => self.machine.observation_of(*request),
        };
        let guard = self.tasks.guard;
        let server = self.handlers.server.clone();
        let parts = RequestParts {
            observation: observation.as_ref(),
            guard,
            server: server.as_ref(),
            ..parts
        };
        let form = match &asked {
            Asked::Request(_) => None,
            Asked::Input(_) | Asked::Task(_) => form_of(parts.params),
        };
        let place = self.inputs.insert((asked, method, form));
        let observation = observation.clone();
        let call = || {
            let called = guard.run(|| function(parts));
            called.unwrap_or_else(|panicked| Step::Ready(panicked.into()))
        };
        let step = crate::executor::call_observed(observation, call);
        match step {
            Step::Ready(outcome) => self.answer(place, outcome, now),
            Step::Pending(task) => {
                if let Some((place, outcome)) = self.tasks.start(place.slot, task, place) {
                    self.answer(place, outcome.unwrap_or_else(Outcome::from), now);
                }
            }
        }
    }

    pub(crate) fn answer(&mut self, place: Key, outcome: Outcome, now: Instant) {
        let Some((asked, method, form)) = self.inputs.remove(place) else { return };
        let outcome = match (outcome, &form) {
            (Outcome::Panicked(panicked), _) => {
                let (observers, guard) = (&self.shared.observers, self.tasks.guard);
                let handler = alloc::format!("`{method}`");
                Outcome::Error(report_panic(observers, handler, panicked, guard))
            }
            (outcome, Some(form)) => checked(form, outcome),
            (outcome, None) => outcome,
        };
        let input = match asked {
            Asked::Input(input) => input,
            Asked::Task(pending) => return self.answer_task(&pending, outcome),
            Asked::Request(request) => return self.answer_extension(request, outcome, now),
        };
        let refused = send_result(outcome, |body| self.machine.answer_input(input, body, now));
        if let Some(error) = refused {
            let _answered = self.machine.refuse_input(input, error, now);
        }
    }

    pub(crate) fn withdraw(&mut self, is_meant: impl Fn(&Asked) -> bool) {
        if let Some(place) = self.inputs.find_from(0, |(asked, ..)| is_meant(asked)) {
            self.inputs.remove(place);
            self.tasks.cancel(place.slot);
        }
    }
}

/// Sends the result of a host's handler with `send`. Returns the error to answer with instead, if
/// there is no result.
pub(crate) fn send_result<T>(
    outcome: Outcome,
    send: impl FnOnce(&ResultBody) -> Result<T, CommandError>,
) -> Option<ErrorObject<'static>> {
    match outcome {
        Outcome::Result(body) => match send(&body) {
            Err(CommandError::NotWritable(error)) => Some(ErrorObject::internal(error.to_string())),
            // A request that was cancelled or withdrawn meanwhile needs no answer.
            _ => None,
        },
        Outcome::Error(error) => Some(error),
        Outcome::Panicked(panicked) => Some(panicked.into()),
        Outcome::Refused(refusal) => Some(refusal.error),
        Outcome::InputRequired(_) => {
            Some(ErrorObject::internal("a host's handler cannot ask for input"))
        }
    }
}

// ------------------------------------------------------------------ response cache

/// A cache as an endpoint uses it. Endpoints name this trait only, so that programs without
/// [`Host::cache`](crate::Host::cache) do not contain the code of the cache.
pub(crate) trait Cache: fmt::Debug + Send {
    fn get(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Option<&RawJson<'static>>;

    fn handle_call(&mut self, call: CallHandle, method: Method, params: &RawJson<'_>);

    fn handle_event(&mut self, event: &Event<'_>, now: Instant);

    /// Sets the number of the current token; zero without one. Call it before the other
    /// methods.
    fn set_token(&mut self, number: u64);
}

/// A cache, and the number of the token that its private results belong to.
#[derive(Debug)]
struct ConnectionCache {
    cache: ResponseCache,
    token: u64,
}

impl Cache for ConnectionCache {
    fn get(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        now: Instant,
    ) -> Option<&RawJson<'static>> {
        self.cache.get(method, params, now)
    }

    fn handle_call(&mut self, call: CallHandle, method: Method, params: &RawJson<'_>) {
        self.cache.handle_call(call, method, params);
    }

    fn handle_event(&mut self, event: &Event<'_>, now: Instant) {
        self.cache.handle_event(event, now);
    }

    // MCP 2026-07-28 server/utilities/caching#cache-scope-field [CACHE-005]
    fn set_token(&mut self, number: u64) {
        if self.token != number {
            self.token = number;
            self.cache.credentials_changed();
        }
    }
}

/// Creates a cache for each connection of a host.
#[derive(Clone, Debug)]
pub(crate) struct CacheFactory {
    options: CacheOptions,
    create: fn(CacheOptions) -> Box<dyn Cache>,
}

impl CacheFactory {
    pub(crate) fn new(options: CacheOptions) -> Self {
        let create = |options| -> Box<dyn Cache> {
            Box::new(ConnectionCache { cache: ResponseCache::new(options), token: 0 })
        };
        Self { options, create }
    }

    pub(crate) fn create(&self) -> Box<dyn Cache> {
        (self.create)(self.options.clone())
    }
}

/// How a call uses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheMode {
    /// Sends the call unless the cache has its result.
    #[default]
    Default,
    /// Sends the call.
    Reload,
    /// Fails the call unless the cache has its result.
    OnlyIfCached,
}
