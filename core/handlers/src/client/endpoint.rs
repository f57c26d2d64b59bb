use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::task::Context;
use core::time::Duration;

use mcp_sansio::framing::FrameError;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    Applied, CallHandle, CallOptions, ClientCommand, ClientMachine, CommandError, Ended, Event,
    Failure, HeaderFields, MethodName, StreamMachine, Subject, Timeouts, TransportFailure,
    Violation,
};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::stream::Endpoint;
use mcp_sansio::{Instant, Method, Recorded, Spawner, peer};
use mcp_sansio_collections::{Key, Slab};
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use super::host::{Asked, Cache, CacheFactory, CacheMode, Form, Host, HostHandlers};
use super::middleware::ConnectionLayers;
use super::pending::{CallPool, Pending, Subscription};
use super::{Client, ClientError, Command, ConnectionState, Opening, Session};
#[cfg(feature = "http")]
use crate::AuthorizationState;
use crate::executor::{Executor, PanicGuard};
use crate::mailbox::{Mailbox, MailboxLimits};
use crate::reply::Outcome;
use crate::threading::{ThreadSafe, Threading};

/// The machine of a client over a byte stream.
pub(crate) type StreamClient = Recorded<peer::Client>;

/// The client's side of one connection with its host. An adapter drives it, over a byte stream as
/// an [`Endpoint`]. `M` is the machine of the transport.
#[derive(Debug)]
pub struct ClientEndpoint<K: Threading = ThreadSafe, M: ClientMachine = StreamClient> {
    pub(crate) machine: M,
    pub(crate) handlers: HostHandlers<K>,
    pub(crate) shared: Arc<ConnectionState>,
    /// Calls by the slot of their handle.
    calls: Vec<Option<(CallHandle, Arc<Pending>)>>,
    /// Input requests that the host's handlers work on, each with its method.
    pub(crate) inputs: Slab<(Asked, Cow<'static, str>, Form)>,
    pub(crate) tasks: Executor<K::Future<Outcome>, Command, Key>,
    /// Where blocking handlers run.
    pub(crate) spawner: Option<Spawner>,
    pub(crate) timers: Timers,
    cache: Option<Box<dyn Cache>>,
    /// Commands that wait while the connection is suspended; `None` if it never is.
    pub(crate) suspension: Option<Box<Suspension>>,
    pub(crate) commands_max: usize,
    /// Why notifications of the session do not arrive, if they do not.
    event_stream_lost: Option<Box<TransportFailure>>,
    /// The timeouts of calls without their own.
    timeouts: Timeouts,
    /// The authorization layer between the machine and the network, on HTTP.
    #[cfg(feature = "http")]
    pub(crate) authorization: AuthorizationState<K>,
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    pub(crate) fn new(host: &Host<K>, machine: M, is_http: bool) -> (Client, Self) {
        let mailbox = Arc::new(Mailbox::new(MailboxLimits::new(host.options.limits_ref())));
        let shared = Arc::new(ConnectionState {
            mailbox: Arc::clone(&mailbox),
            opening: Opening::new(),
            call_pool: CallPool::default(),
            has_cache: host.cache.is_some(),
            is_suspended: AtomicBool::new(false),
            stray_line: Mutex::new(None),
            follows_tasks: host.follows_tasks,
            extensions: host.handlers.extensions.as_ref().map(|all| all.registered()),
            observers: host.connection_observers(),
            guard: Mutex::new(PanicGuard::NONE),
            layers: host.layers.as_ref().map(ConnectionLayers::connect),
            observer: host.options.operation_observer_ref().cloned(),
            is_http,
        });
        let endpoint = Self {
            machine,
            handlers: host.handlers.clone(),
            shared: Arc::clone(&shared),
            calls: Vec::new(),
            inputs: Slab::new(),
            tasks: Executor::new(mailbox),
            spawner: None,
            timers: Timers::default(),
            cache: host.cache.as_ref().map(CacheFactory::create),
            suspension: None,
            commands_max: host.options.limits_ref().commands_max,
            event_stream_lost: None,
            timeouts: host.options.timeouts_ref().clone(),
            #[cfg(feature = "http")]
            authorization: AuthorizationState::DISABLED,
        };
        (Client::new(shared), endpoint)
    }

    /// Read access to the machine.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// Checks the tables: see [`Endpoint::assert_consistent`].
    pub(crate) fn assert_tables_consistent(&self) {
        self.machine.assert_consistent();
        for (handle, pending) in self.calls.iter().flatten() {
            assert!(self.machine.has_call(*handle), "a call that has ended: {pending:?}");
            assert_eq!(pending.handle(), Some(*handle), "the handle of a call");
        }
        let mut running = 0;
        for (place, key) in self.tasks.running() {
            let is_known = key.slot == place && self.inputs.get(*key).is_some();
            assert!(is_known, "a handler whose request has ended");
            running += 1;
        }
        assert_eq!(self.inputs.len(), running, "requests without a handler");
    }

    fn show(&self, event: &Event<'_>) {
        // An observer cannot affect the client, not even by a panic.
        let _shown = self.shared.observers.show(event, self.tasks.guard);
    }

    pub(crate) fn dispatch(&mut self, event: Event<'_>, now: Instant) {
        self.show(&event);
        if let Some(cache) = self.cache() {
            cache.handle_event(&event, now);
        }
        match event {
            Event::Opened(_) => self.opened(now),
            Event::Ended(ended) => self.ended(ended, now),
            Event::Progress(progress) => {
                if let Some(pending) = self.pending(progress.call) {
                    pending.progress(&progress, self.tasks.guard);
                }
            }
            Event::Subscribed(subscribed) => {
                if let Some(pending) = self.pending(subscribed.subscription) {
                    pending.subscribed(subscribed.honoured, now);
                }
                self.end_subscriptions(now);
            }
            Event::EventStreamLost(failure) => {
                self.event_stream_lost = Some(Box::new(failure));
                self.end_subscriptions(now);
            }
            Event::Notification(notification) => {
                self.receive_notification(&notification);
                if notification.subscriptions.is_empty() {
                    return;
                }
                let Event::Notification(owned) = Event::Notification(notification).into_owned()
                else {
                    return;
                };
                // A clone shares the parameters.
                for handle in &owned.subscriptions {
                    if let Some(pending) = self.pending(*handle) {
                        pending.arrive(owned.clone());
                    }
                }
            }
            Event::InputRequested(input) => self.ask(input, now),
            Event::Cancelled(cancelled) => match cancelled.subject {
                Subject::Input(handle) => {
                    self.withdraw(|asked| matches!(asked, Asked::Input(it) if *it == handle));
                }
                Subject::Request(handle) => {
                    self.withdraw(|asked| matches!(asked, Asked::Request(it) if *it == handle));
                }
                _ => {}
            },
            Event::Request(request) => self.serve_extension(&request, now),
            Event::Closed(reason) => self.closed(&reason),
            Event::Violation(Violation::NotAMessage { line, .. }) => {
                self.shared.stray_line.lock(|first| {
                    first.get_or_insert(line);
                });
            }
            _ => {}
        }
    }

    pub(crate) fn dispatch_queued(&mut self, now: Instant) {
        while let Some(event) = self.machine.poll_event() {
            self.dispatch(event, now);
        }
    }

    // ------------------------------------------------------------------ calls

    /// Returns the cache, if the host has one, with the current token.
    fn cache(&mut self) -> Option<&mut (dyn Cache + 'static)> {
        let cache = self.cache.as_deref_mut()?;
        #[cfg(feature = "http")]
        cache.set_token(self.authorization.token_number());
        Some(cache)
    }

    /// Sends a call, or ends it with a cached result.
    fn call(&mut self, pending: Arc<Pending>, now: Instant) {
        let Some((method, options, params)) = pending.begin() else {
            return pending.end(Err(ClientError::Failed(Failure::Cancelled)));
        };
        let fields = pending.fields_to_send(self.shared.follows_tasks);
        let is_plain = options.meta.is_none() && fields.is_empty();
        // Metadata and header fields may affect the result and are not part of the key.
        let cached = match method {
            MethodName::Known(method) if self.cache.is_some() && is_plain => Some(method),
            _ => None,
        };
        if let Some(method) = cached
            && let Some(outcome) = self.cached(method, &params, pending.cache_mode(), now)
        {
            pending.give_back(params);
            return pending.end(outcome);
        }
        let text = RawJson::trusted(&params);
        let options = (&options).into();
        let call = ClientCommand::Call { method, params: text.borrow().into(), options };
        let call = with_fields(call, &fields);
        let started = self.machine.apply(call, now);
        if let Some(method) = cached
            && let Ok(Applied::Started(call)) = started
            && let Some(cache) = self.cache()
        {
            cache.handle_call(call, method, &text);
        }
        pending.give_back(params);
        self.started(started, pending);
    }

    /// Returns the cached outcome of a call, which then is not sent.
    fn cached(
        &mut self,
        method: Method,
        params: &str,
        mode: CacheMode,
        now: Instant,
    ) -> Option<Result<RawJson<'static>, ClientError>> {
        let params = RawJson::trusted(params);
        match (mode, self.cache()?.get(method, &params, now)) {
            (CacheMode::Default | CacheMode::OnlyIfCached, Some(result)) => {
                Some(Ok(result.clone()))
            }
            (CacheMode::OnlyIfCached, None) => Some(Err(ClientError::Failed(Failure::Cancelled))),
            (CacheMode::Default, None) | (CacheMode::Reload, _) => None,
        }
    }

    fn pending(&self, handle: CallHandle) -> Option<Arc<Pending>> {
        let (known, pending) = self.calls.get(handle.slot() as usize)?.as_ref()?;
        (*known == handle).then(|| Arc::clone(pending))
    }

    pub(crate) fn started(
        &mut self,
        applied: Result<Applied, CommandError>,
        pending: Arc<Pending>,
    ) {
        match applied {
            Ok(applied) => {
                let Some(handle) = applied.call() else { return };
                pending.set_handle(handle);
                let place = handle.slot() as usize;
                if self.calls.len() <= place {
                    self.calls.resize_with(place + 1, || None);
                }
                self.calls[place] = Some((handle, pending));
            }
            Err(CommandError::Closed(closed)) => {
                pending.end(Err(ClientError::Closed(closed.reason)))
            }
            Err(error) => pending.end(Err(ClientError::NotSent(Box::new(error)))),
        }
    }

    fn ended(&mut self, ended: Ended<'_>, now: Instant) {
        let Some(pending) = self.pending(ended.call) else { return };
        let is_task = ended.outcome.is_ok() && pending.wants_task();
        // The entry stays for the progress notifications of the task, if it was asked for them.
        if !self.machine.has_call(ended.call) {
            self.calls[ended.call.slot() as usize] = None;
        }
        let outcome = match ended.outcome {
            Ok(_) if self.subscribe_again(&pending, now) => return,
            Ok(result) => Ok(result),
            // The server had already ended the subscription.
            Err(_) if pending.is_being_renewed() => Ok(RawJson::EMPTY_OBJECT),
            Err(Failure::TimedOut { hard }) => Err(pending.timeout_error(hard, &self.timeouts)),
            Err(failure) => Err(ClientError::Failed(failure.into_owned())),
        };
        pending.end(outcome);
        if is_task && pending.is_abandoned() {
            self.drop_task(&pending, now);
        }
    }

    /// Cleans up after a call that has ended and that its caller dropped: removes the entry that
    /// receives the progress of its task, and ends the task if the application has no handle to it.
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
    // MCP 2026-07-28 ext-tasks:tasks#task-cancellation [TASK-034]
    fn drop_task(&mut self, pending: &Pending, now: Instant) {
        if let Some(handle) = pending.handle()
            && self.pending(handle).is_some()
        {
            self.calls[handle.slot() as usize] = None;
            pending.forget_progress();
            self.machine.cancel(handle, "", now);
        }
        if let Some(id) = pending.take_unclaimed_task(self.shared.follows_tasks) {
            let params = RawJson::trusted_string(alloc::format!(r#"{{"taskId":{id}}}"#));
            let (method, options) =
                (MethodName::Known(Method::TasksCancel), CallOptions::default());
            let (params, options) = (params.into(), (&options).into());
            let call = ClientCommand::Call { method, params, options };
            let fields = pending.fields();
            let call = with_fields(call, &fields);
            // A server without `tasks/cancel` lets the task expire.
            let _sent = self.machine.apply(call, now);
        }
    }

    /// Ends the subscriptions that the server has acknowledged, if their notifications have no
    /// stream to arrive on.
    fn end_subscriptions(&mut self, now: Instant) {
        let Some(failure) = &self.event_stream_lost else { return };
        let subscribed = |(_, pending): &&(CallHandle, Arc<Pending>)| pending.is_subscribed();
        let subscribed: Vec<_> = self.calls.iter().flatten().filter(subscribed).cloned().collect();
        for (handle, pending) in subscribed {
            let failure = Failure::Transport(TransportFailure::clone(failure));
            pending.end(Err(ClientError::Failed(failure)));
            self.calls[handle.slot() as usize] = None;
            self.machine.cancel(handle, "", now);
        }
    }

    fn opened(&mut self, now: Instant) {
        let Some(session) = self.machine.session() else { return };
        // Each session has a stream of its own.
        self.event_stream_lost = None;
        let session = Arc::new(Session {
            revision: session.revision(),
            capabilities: session.server_capabilities(),
            capabilities_json: session.server_capabilities_json().clone(),
            server_info: session.server_info().cloned(),
            instructions: session.instructions().map(Into::into),
        });
        let waiting = self.end_suspension();
        // Wakes the tasks that wait for the end of the suspension.
        self.shared.opening.opened(session);
        for command in waiting {
            self.execute(command, now);
        }
    }

    fn closed(&mut self, reason: &peer::CloseReason) {
        // The answers of the host's handlers are no longer needed.
        self.tasks.cancel_all();
        for (asked, ..) in self.inputs.take_all() {
            if let Asked::Task(pending) = asked {
                pending.end(Err(ClientError::Closed(reason.clone())));
            }
        }
        // Store the reason first: callers that find the mailbox closed read it.
        self.shared.opening.closed(reason.clone());
        self.timers.end(|| ClientError::Closed(reason.clone()));
        let waiting = self.end_suspension();
        let unread = self.shared.mailbox.close();
        for command in waiting.into_iter().chain(unread) {
            if let Command::Call { pending, .. }
            | Command::Subscribe { pending, .. }
            | Command::Sleep { pending, .. }
            | Command::AskHost { pending, .. } = command
            {
                pending.end(Err(ClientError::Closed(reason.clone())));
            }
        }
    }

    // ------------------------------------------------------------------ driven by the adapter

    /// Runs the host's functions in `guard` from now on.
    pub(crate) fn set_guard(&mut self, guard: PanicGuard) {
        self.tasks.guard = guard;
        self.shared.guard.lock(|shared| *shared = guard);
        self.machine.catch_panics(guard);
    }

    /// Fires the timers that are due at `now`.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.advance_layers(now);
        self.machine.handle_timeout(now);
        self.timers.wake(now);
        self.dispatch_queued(now);
    }

    /// Takes the application's commands and polls the host's handlers.
    pub(crate) fn poll_running(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.advance_layers(now);
        self.take_commands(now);
        for _ in 0..self.tasks.ready() {
            if let Some((place, outcome)) = self.tasks.poll_next() {
                self.answer(place, outcome.unwrap_or_else(Outcome::from), now);
            }
        }
        self.dispatch_queued(now);
        self.shared.mailbox.register(cx.waker());
    }

    // ------------------------------------------------------------------ commands

    pub(crate) fn execute(&mut self, command: Command, now: Instant) {
        match command {
            Command::Call { pending, .. } => self.call(pending, now),
            Command::Subscribe { pending, .. } if !pending.accept() => {
                pending.end(Err(ClientError::Failed(Failure::Cancelled)));
            }
            Command::Subscribe { pending, filter } => {
                #[cfg(feature = "http")]
                if self.authorization.is_on() {
                    pending.renew_with(filter.clone());
                }
                let started = self.subscribe(&pending, &filter, now);
                self.started(started, pending);
            }
            Command::Sleep { pending, pause } if pause.is_zero() => {
                pending.end(Ok(RawJson::EMPTY_OBJECT));
            }
            Command::Sleep { pending, pause } => {
                if pending.accept() {
                    self.timers.add(pending, pause, now);
                }
            }
            // A task without an id cannot be cancelled yet: the cancellation waits for the
            // server's answer.
            Command::Cancel { pending, .. } if pending.wants_task() && !pending.has_ended() => {}
            Command::Cancel { pending, reason } => {
                self.timers.forget(&pending);
                self.withdraw(
                    |asked| matches!(asked, Asked::Task(known) if Arc::ptr_eq(known, &pending)),
                );
                if pending.has_ended() {
                    self.drop_task(&pending, now);
                }
                if let Some(handle) = pending.handle() {
                    self.machine.cancel(handle, reason, now);
                    // The freed slot may serve a queued call.
                    self.dispatch_queued(now);
                }
            }
            Command::AskHost { pending, method } => self.ask_for_task(pending, method, now),
            Command::Notify { method, params } => {
                // The gate drops a notification that the server does not accept.
                let _sent = match &method {
                    MethodName::Known(method) => self.machine.notify(*method, &params, now),
                    MethodName::Other(method) => self.machine.notify_other(method, &params, now),
                };
            }
            Command::SetLogLevel(level) => {
                let _sent = self.machine.set_log_level(level, now);
            }
            #[cfg(feature = "http")]
            Command::Authorize => self.authorization.authorize(now),
            #[cfg(feature = "http")]
            Command::ForgetAuthorization => self.authorization.forget(now),
            Command::Close => {
                // Later calls fail, cached or not.
                self.cache = None;
                self.machine.close(now);
            }
        }
    }
}

/// Adds header fields to a call.
fn with_fields<'a>(call: ClientCommand<'a>, fields: &'a HeaderFields) -> ClientCommand<'a> {
    match call {
        ClientCommand::Call { method, params, options } if !fields.is_empty() => {
            ClientCommand::CallWithFields { method, params, options, fields }
        }
        call => call,
    }
}

impl<K: Threading, M: ClientMachine> Drop for ClientEndpoint<K, M> {
    fn drop(&mut self) {
        // A dropped driver closes the connection. No timers are left, so the time does not matter.
        self.machine.close(Instant::ZERO);
        while let Some(event) = self.machine.poll_event() {
            self.show(&event);
            match event {
                Event::Ended(ended) => self.ended(ended, Instant::ZERO),
                Event::Closed(reason) => self.closed(&reason),
                _ => {}
            }
        }
        self.shared.mailbox.close();
    }
}

impl<K: Threading> Endpoint for ClientEndpoint<K> {
    fn catch_panics(&mut self, guard: PanicGuard) {
        self.set_guard(guard);
    }

    fn set_spawner(&mut self, spawn: Spawner) {
        self.spawner = Some(spawn);
    }

    fn handle_frame(&mut self, frame: Result<&[u8], FrameError>, now: Instant) {
        let event = match frame {
            Ok(frame) => self.machine.handle_message(frame, now),
            Err(error) => self.machine.handle_frame_error(error),
        };
        if let Ok(Some(event)) = event {
            self.dispatch(event, now);
        }
        self.dispatch_queued(now);
    }

    fn handle_eof(&mut self, now: Instant) {
        self.machine.handle_eof();
        self.dispatch_queued(now);
    }

    fn restart(&mut self, now: Instant) -> bool {
        self.suspend(now) || self.machine.restart(now)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
    }

    fn poll_handlers(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.poll_running(cx, now);
    }

    fn transmit(&mut self, write: &mut dyn FnMut(&[u8]) -> usize) {
        self.machine.transmit(write);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.machine.poll_timeout(), self.timers.next()].into_iter().flatten().min()
    }

    fn is_congested(&self) -> bool {
        self.machine.is_congested()
    }

    fn is_drained(&self) -> bool {
        self.machine.is_drained()
    }

    fn is_closed(&self) -> bool {
        self.machine.is_closed()
    }

    fn assert_consistent(&self) {
        self.assert_tables_consistent();
    }
}

// ------------------------------------------------------------------ subscriptions

impl Client {
    /// Subscribes to changes. Dropping the subscription ends it.
    #[must_use]
    pub fn subscribe(&self, filter: SubscriptionFilter) -> Subscription {
        Subscription::new(self.clone(), filter)
    }

    /// Like [`subscribe`](Self::subscribe), with header fields in the HTTP requests that open the
    /// subscription: the name of a tenant, a token of the user for whom it is made. The stream that
    /// all subscriptions of a legacy session share does not have them. Otherwise they are as for
    /// [calls](crate::ClientCall::header): on a byte stream the subscription fails.
    ///
    /// ```
    /// use mcp_sansio::peer::{HeaderFields, InvalidHeader};
    /// use mcp_sansio::protocol::SubscriptionFilter;
    /// use mcp_sansio_handlers::{Client, Subscription};
    ///
    /// fn listen(client: &Client, tenant: &str) -> Result<Subscription, InvalidHeader> {
    ///     let fields = HeaderFields::new().field("X-Tenant", tenant)?;
    ///     let filter = SubscriptionFilter::new().tools_list_changed(true);
    ///     Ok(client.subscribe_with_headers(filter, fields))
    /// }
    /// ```
    #[must_use]
    pub fn subscribe_with_headers(
        &self,
        filter: SubscriptionFilter,
        fields: HeaderFields,
    ) -> Subscription {
        Subscription::with_fields(self.clone(), filter, fields)
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    pub(crate) fn subscribe(
        &mut self,
        pending: &Pending,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<Applied, CommandError> {
        let fields = &pending.fields();
        let filter = filter.into();
        let command = if fields.is_empty() {
            ClientCommand::Subscribe(filter)
        } else {
            ClientCommand::SubscribeWithFields { filter, fields }
        };
        self.machine.apply(command, now)
    }

    /// Renews a subscription that its server has ended gracefully. Servers do so when the token of
    /// the subscription expires; the new request carries a new token.
    // MCP 2026-07-28 basic/patterns/subscriptions#graceful-closure [SUBS-008]
    pub(crate) fn subscribe_again(&mut self, pending: &Arc<Pending>, now: Instant) -> bool {
        let Some(filter) = pending.renewal(now) else { return false };
        let subscribed = self.subscribe(pending, &filter, now);
        let is_made = subscribed.is_ok();
        if is_made {
            self.started(subscribed, Arc::clone(pending));
        }
        is_made
    }
}

// ------------------------------------------------------------------ servers that are restarted

/// The commands of the application while a connection waits for a new process of its server.
#[derive(Debug)]
pub(crate) struct Suspension {
    pub(crate) is_on: bool,
    waiting: Vec<Command>,
    waiting_max: usize,
}

impl Suspension {
    /// Keeps a command that needs an open connection; returns any other one.
    pub(crate) fn keep(&mut self, command: Command) -> Option<Command> {
        match &command {
            Command::Call { pending, .. } | Command::Subscribe { pending, .. }
                if self.waiting.len() >= self.waiting_max =>
            {
                pending.end(Err(ClientError::TooManyCommands));
                None
            }
            Command::Call { .. } | Command::Subscribe { .. } => {
                self.waiting.push(command);
                None
            }
            // Roots and a level are those of the application, and may be set again: the last
            // counts.
            Command::Notify { .. } | Command::SetLogLevel(_)
                if self.waiting.len() < self.waiting_max =>
            {
                self.waiting.push(command);
                None
            }
            _ => Some(command),
        }
    }

    /// Ends the suspension; returns the waiting commands.
    pub(crate) fn end(&mut self) -> Vec<Command> {
        self.is_on = false;
        mem::take(&mut self.waiting)
    }
}

impl<K: Threading> ClientEndpoint<K> {
    /// Lets the connection outlive the process of its server: when the stream of an open connection
    /// ends, [`Endpoint::restart`] returns `true`. Start a
    /// new process and call [`resume`](Self::resume), or give up with
    /// [`handle_eof`](mcp_sansio::stream::Endpoint::handle_eof). Meanwhile keep calling
    /// [`poll_handlers`](mcp_sansio::stream::Endpoint::poll_handlers), so that the application can
    /// close the connection.
    ///
    /// Calls in flight end with [`Failure::ConnectionLost`](mcp_sansio::peer::Failure), and
    /// subscriptions stay open. Later calls wait until the connection is open again, and their
    /// timeouts begin then.
    #[must_use]
    pub fn respawning(mut self) -> Self {
        let waiting_max = self.commands_max;
        self.suspension =
            Some(Box::new(Suspension { is_on: false, waiting: Vec::new(), waiting_max }));
        self
    }

    /// Opens the connection on the stream of a new process: see [`respawning`](Self::respawning).
    /// Has no effect on a connection that does not wait for one.
    pub fn resume(&mut self, now: Instant) {
        self.machine.resume(now);
        self.dispatch_queued(now);
    }

    pub(crate) fn suspend(&mut self, now: Instant) -> bool {
        if self.suspension.is_none() || !self.machine.suspend() {
            return false;
        }
        if let Some(suspension) = &mut self.suspension {
            suspension.is_on = true;
            self.shared.is_suspended.store(true, Ordering::Relaxed);
            self.shared.opening.wake();
        }
        self.dispatch_queued(now);
        true
    }
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    /// Ends the suspension, if there is one; returns the waiting commands.
    pub(crate) fn end_suspension(&mut self) -> Vec<Command> {
        let Some(suspension) = &mut self.suspension else { return Vec::new() };
        self.shared.is_suspended.store(false, Ordering::Relaxed);
        suspension.end()
    }

    pub(crate) fn take_commands(&mut self, now: Instant) {
        // Takes only the commands queued at the start: a caller that keeps sending must not block
        // the driver.
        for _ in 0..self.shared.mailbox.len() {
            let Some(command) = self.shared.mailbox.take_command() else { return };
            match &mut self.suspension {
                Some(suspension) if suspension.is_on => {
                    if let Some(command) = suspension.keep(command) {
                        self.execute(command, now);
                    }
                }
                _ => self.execute(command, now),
            }
        }
    }
}

// ------------------------------------------------------------------ timers of callers

/// All sleeping callers. Bounded only by the application.
#[derive(Debug, Default)]
pub(crate) struct Timers(Vec<(Instant, Arc<Pending>)>);

impl Timers {
    pub(crate) fn add(&mut self, pending: Arc<Pending>, pause: Duration, now: Instant) {
        self.0.push((now + pause, pending));
    }

    /// Returns when the next caller wakes.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    pub(crate) fn wake(&mut self, now: Instant) {
        self.0.retain(|(at, pending)| {
            if *at <= now {
                pending.end(Ok(RawJson::EMPTY_OBJECT));
            }
            *at > now
        });
    }

    pub(crate) fn forget(&mut self, pending: &Arc<Pending>) {
        self.0.retain(|(_, other)| !Arc::ptr_eq(other, pending));
    }

    /// Ends all sleeps when the connection closes.
    pub(crate) fn end(&mut self, error: impl Fn() -> ClientError) {
        for (_, pending) in self.0.drain(..) {
            pending.end(Err(error()));
        }
    }
}
