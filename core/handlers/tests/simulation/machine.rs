//! What the machines of both bindings have in common, for applications that are on top of either.

use mcp_sansio::http;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    self, CallHandle, CallOptions, CommandError, Event, InputHandle, Request, RequestHandle,
};
use mcp_sansio::protocol::{
    Capabilities, InputRequiredResult, LoggingLevel, Method, SubscriptionFilter,
};
use mcp_sansio::{Instant, Revision};
use std::time::Duration;

/// A client's machine, as its application sees it.
pub(crate) trait ClientMachine {
    fn call(
        &mut self,
        method: Method,
        params: &RawJson<'_>,
        options: &CallOptions<'_>,
        now: Instant,
    ) -> Result<CallHandle, CommandError>;
    fn cancel(&mut self, call: CallHandle, now: Instant);
    fn subscribe(
        &mut self,
        filter: &SubscriptionFilter,
        now: Instant,
    ) -> Result<CallHandle, CommandError>;
    fn set_log_level(&mut self, level: LoggingLevel, now: Instant) -> Result<(), CommandError>;
    fn notify(&mut self, method: Method, now: Instant) -> Result<(), CommandError>;
    fn answer(
        &mut self,
        input: InputHandle,
        result: &RawJson<'_>,
        now: Instant,
    ) -> Result<(), CommandError>;
    fn refuse(&mut self, input: InputHandle, now: Instant) -> Result<(), CommandError>;
    fn close(&mut self, now: Instant);
    fn event(&mut self) -> Option<Event<'static>>;
    /// The revision and what the server declared.
    fn agreed(&self) -> Option<(Revision, Capabilities)>;
    fn is_closed(&self) -> bool;
}

/// A server's machine, as its application sees it.
pub(crate) trait ServerMachine {
    fn respond(
        &mut self,
        request: RequestHandle,
        result: &RawJson<'_>,
        now: Instant,
    ) -> Result<(), CommandError>;
    fn reject(&mut self, request: RequestHandle, now: Instant) -> Result<(), CommandError>;
    fn require_input(
        &mut self,
        request: Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), CommandError>;
    /// Whether so much waits for the client that what can be left out is.
    fn is_behind(&self) -> bool;
    fn progress(&mut self, request: RequestHandle, progress: f64, now: Instant);
    fn log(&mut self, request: Option<RequestHandle>, data: &RawJson<'_>, now: Instant);
    fn resource_updated(&mut self, uri: &str, now: Instant);
    fn release(&mut self, request: RequestHandle, retry: Duration);
    /// Asks the client by itself, where the binding has that.
    fn call(&mut self, method: Method, now: Instant) -> Option<CallHandle>;
    fn event(&mut self) -> Option<Event<'static>>;
}

/// A request that a server of a byte stream makes: for it there is a call of the machine.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(20);

fn refusal() -> ErrorObject<'static> {
    ErrorObject::internal("not today")
}

macro_rules! client {
    ($machine:ty, $notify:expr, $refuse:expr, $close:expr) => {
        impl ClientMachine for $machine {
            fn call(
                &mut self,
                method: Method,
                params: &RawJson<'_>,
                options: &CallOptions<'_>,
                now: Instant,
            ) -> Result<CallHandle, CommandError> {
                Self::call(self, method, params, options, now)
            }

            fn cancel(&mut self, call: CallHandle, now: Instant) {
                Self::cancel(self, call, "enough", now);
            }

            fn subscribe(
                &mut self,
                filter: &SubscriptionFilter,
                now: Instant,
            ) -> Result<CallHandle, CommandError> {
                Self::subscribe(self, filter, now)
            }

            fn set_log_level(
                &mut self,
                level: LoggingLevel,
                now: Instant,
            ) -> Result<(), CommandError> {
                Self::set_log_level(self, level, now)
            }

            fn notify(&mut self, method: Method, now: Instant) -> Result<(), CommandError> {
                $notify(self, method, now)
            }

            fn answer(
                &mut self,
                input: InputHandle,
                result: &RawJson<'_>,
                now: Instant,
            ) -> Result<(), CommandError> {
                self.answer_input_with(input, result, now)
            }

            fn refuse(&mut self, input: InputHandle, now: Instant) -> Result<(), CommandError> {
                $refuse(self, input, now)
            }

            fn close(&mut self, now: Instant) {
                $close(self, now);
            }

            fn event(&mut self) -> Option<Event<'static>> {
                self.poll_event()
            }

            fn agreed(&self) -> Option<(Revision, Capabilities)> {
                self.session().map(|session| (session.revision(), session.server_capabilities()))
            }

            fn is_closed(&self) -> bool {
                Self::is_closed(self)
            }
        }
    };
}

client!(
    peer::Client,
    |client: &mut Self, method, _now| Self::notify(client, method, &RawJson::EMPTY_OBJECT),
    |client: &mut Self, input, _now| client.refuse_input(input, refusal()),
    |client: &mut Self, _now| Self::close(client)
);
client!(
    http::Client,
    |client: &mut Self, method, now| Self::notify(client, method, &RawJson::EMPTY_OBJECT, now),
    |client: &mut Self, input, now| client.refuse_input(input, refusal(), now),
    |client: &mut Self, now| Self::close(client, now)
);

impl ServerMachine for peer::Server {
    fn respond(
        &mut self,
        request: RequestHandle,
        result: &RawJson<'_>,
        _now: Instant,
    ) -> Result<(), CommandError> {
        self.respond_with(request, result)
    }

    fn reject(&mut self, request: RequestHandle, _now: Instant) -> Result<(), CommandError> {
        Self::reject(self, request, refusal())
    }

    fn require_input(
        &mut self,
        request: Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), CommandError> {
        Self::require_input(self, request, required, now)
    }

    fn is_behind(&self) -> bool {
        self.is_congested()
    }

    fn progress(&mut self, request: RequestHandle, progress: f64, now: Instant) {
        Self::progress(self, request, progress, None, Some("on its way"), now);
    }

    fn log(&mut self, request: Option<RequestHandle>, data: &RawJson<'_>, _now: Instant) {
        let logged = Self::log(self, request, LoggingLevel::Emergency, None, data);
        logged.expect("the data is JSON");
    }

    fn resource_updated(&mut self, uri: &str, _now: Instant) {
        Self::resource_updated(self, uri);
    }

    fn release(&mut self, _request: RequestHandle, _retry: Duration) {}

    fn call(&mut self, method: Method, now: Instant) -> Option<CallHandle> {
        let options = CallOptions::default().timeout(QUESTION_TIMEOUT);
        Self::call(self, method, &RawJson::EMPTY_OBJECT, &options, now).ok()
    }

    fn event(&mut self) -> Option<Event<'static>> {
        self.poll_event()
    }
}

impl ServerMachine for http::Server {
    fn respond(
        &mut self,
        request: RequestHandle,
        result: &RawJson<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.respond_with(request, result, now)
    }

    fn reject(&mut self, request: RequestHandle, now: Instant) -> Result<(), CommandError> {
        Self::reject(self, request, refusal(), now)
    }

    fn require_input(
        &mut self,
        request: Request<'_>,
        required: &InputRequiredResult,
        now: Instant,
    ) -> Result<(), CommandError> {
        Self::require_input(self, request, required, now)
    }

    fn is_behind(&self) -> bool {
        // Each stream has bounds of its own, and what they drop is reported.
        false
    }

    fn progress(&mut self, request: RequestHandle, progress: f64, now: Instant) {
        Self::progress(self, request, progress, None, Some("on its way"), now);
    }

    fn log(&mut self, request: Option<RequestHandle>, data: &RawJson<'_>, now: Instant) {
        let logged = Self::log(self, request, LoggingLevel::Emergency, None, data, now);
        logged.expect("the data is JSON");
    }

    fn resource_updated(&mut self, uri: &str, now: Instant) {
        Self::resource_updated(self, uri, now);
    }

    fn release(&mut self, request: RequestHandle, retry: Duration) {
        self.release_connection(request, retry);
    }

    fn call(&mut self, _method: Method, _now: Instant) -> Option<CallHandle> {
        None
    }

    fn event(&mut self) -> Option<Event<'static>> {
        self.poll_event()
    }
}
