//! The client on a binding with one channel per request.

use alloc::string::String;
use core::time::Duration;

use crate::binding::TransportFailure;
use crate::jsonrpc::{ErrorObject, Frame, Malformed, ParseLimits, write_string};
use crate::peer::calls::Purpose;
use crate::peer::connection::Flow;
use crate::peer::error::OpeningFailure;
use crate::peer::event::{CloseReason, Event, Failure};
use crate::peer::handle::CallHandle;
use crate::peer::method_name::MethodName;
use crate::peer::outbox::ChannelMessage;
use crate::peer::outgoing::CallOptions;
use crate::protocol::{Capabilities, Capability, Method};
use crate::{Instant, Revision};

use super::Client;
use super::opening::{Initializing, State};
use super::subscriptions::UriState;

impl Client {
    pub(crate) fn parse_limits(&self) -> ParseLimits {
        self.connection.parse_limits()
    }

    /// See [`Limits::transmit_bytes_max`](crate::peer::Limits::transmit_bytes_max).
    pub(crate) fn transmit_bytes_max(&self) -> usize {
        self.connection.config.limits.transmit_bytes_max
    }

    /// Handles a frame that was parsed with the limits of [`parse_limits`](Self::parse_limits).
    pub(crate) fn handle_parsed<'f>(
        &mut self,
        frame: Result<Frame<'f>, Malformed>,
        now: Instant,
    ) -> Flow<'f> {
        self.connection.check_open()?;
        let flow = self.receive_frame(frame, &[], None, now);
        if flow.is_err() {
            self.finish_close();
        }
        flow
    }

    /// Returns the next outgoing message and its channel, without removing it.
    pub(crate) fn next_message(&self) -> Option<(ChannelMessage, &str)> {
        self.connection.outbox.next_message()
    }

    pub(crate) fn skip_message(&mut self) {
        self.connection.outbox.skip_message();
    }

    pub(crate) fn take_message(&mut self) -> String {
        self.connection.outbox.take_message()
    }

    /// Queues an event that the binding detected.
    pub(crate) fn report(&mut self, event: Event<'static>) {
        self.connection.events.push_back(event);
    }

    /// Reports a server message that is not allowed at this point.
    pub(crate) fn report_out_of_place(&mut self, what: &'static str) {
        match self.connection.out_of_place(what) {
            Ok(event) => self.connection.events.extend(event),
            Err(_) => self.finish_close(),
        }
    }

    pub(crate) fn session_revision(&self) -> Option<Revision> {
        self.session.as_ref().map(super::ClientSession::revision)
    }

    /// Returns the call or subscription of the application that the request with this id belongs
    /// to.
    pub(crate) fn call_of_application(&self, id: i64) -> Option<CallHandle> {
        let key = self.connection.calls.by_id(id)?;
        Some(CallHandle::new(match self.connection.calls.get(key)?.purpose {
            Purpose::SubscribeResource { subscription, .. } => subscription,
            _ => key,
        }))
    }

    /// Returns the ids of the requests that wait for a response.
    pub(crate) fn requests_in_flight(&self) -> impl Iterator<Item = i64> {
        let calls = &self.connection.calls;
        let in_flight = calls.iter().filter(|(key, call)| {
            let ended = matches!(call.purpose, Purpose::Task | Purpose::Waiting);
            !ended && calls.is_on_wire(*key, call)
        });
        in_flight.map(|(_, call)| call.id)
    }

    /// Returns whether the request with this id still waits for its response.
    pub(crate) fn is_pending(&self, id: i64) -> bool {
        let call = self.connection.calls.by_id(id).and_then(|key| self.connection.calls.get(key));
        call.is_some_and(|call| call.purpose != Purpose::Task)
    }

    /// Returns whether the pending request with this id was made by the application. Only the
    /// application knows whether it may run twice.
    pub(crate) fn is_from_application(&self, id: i64) -> bool {
        let call = self.connection.calls.by_id(id).and_then(|key| self.connection.calls.get(key));
        call.is_some_and(|call| call.purpose == Purpose::Application)
    }

    /// See [`Timeouts::call`](crate::peer::Timeouts::call).
    pub(crate) fn call_timeout(&self) -> Duration {
        self.connection.config.timeouts.call
    }

    /// Returns when the request with this id times out, if it does.
    pub(crate) fn deadline_of(&self, id: i64) -> Option<Instant> {
        let key = self.connection.calls.by_id(id)?;
        self.connection.calls.deadlines.get(key.slot)
    }

    /// Ends the pending request with this id because the binding failed. The server is not
    /// notified.
    pub(crate) fn fail_call(&mut self, id: i64, failure: Failure<'static>, now: Instant) {
        let Some(key) = self.connection.calls.by_id(id) else { return };
        if !self.is_pending(id) {
            return;
        }
        let Some(call) = self.connection.calls.remove(key) else { return };
        self.connection.observed.call_ended(key, &failure);
        // If the response still arrives, on the channel of another request, it counts as late.
        self.connection.calls.bury(call.id, &self.connection.config.limits, now);
        match call.purpose {
            Purpose::Opening => self.fail_opening(match failure {
                Failure::Transport(failure) => OpeningFailure::Transport(failure),
                Failure::InvalidAnswer(why) => OpeningFailure::InvalidAnswer(why),
                Failure::Refused(error) => OpeningFailure::Refused(error),
                _ => OpeningFailure::TimedOut,
            }),
            // The server is alive but denies access. Pinging again at once would prompt the user
            // for authorization after every ping.
            Purpose::KeepAlive if refuses_authorization(&failure) => {
                self.connection.keep_alive_answered(now);
            }
            // The server may be down for a moment.
            Purpose::KeepAlive => {
                let pause = self.connection.config.timeouts.keep_alive_answer;
                self.connection.keep_alive_failed(pause, now);
                if self.connection.closed.is_some() {
                    self.finish_close();
                }
            }
            Purpose::SubscribeResource { subscription, index } => {
                self.resource_subscribed(subscription, index, UriState::Unknown, now);
            }
            Purpose::Application | Purpose::Listen => self.connection.end_call(key, failure),
            Purpose::Chore
            | Purpose::Input { .. }
            | Purpose::InputTask { .. }
            | Purpose::Waiting
            | Purpose::Task => {}
            #[cfg(feature = "server")]
            Purpose::UnneededTask(_) => {}
        }
    }

    /// Changes the description of the connection for its observer.
    pub(crate) fn change_transport(
        &mut self,
        change: impl FnOnce(&mut crate::peer::OperationTransport),
    ) {
        if let Some(transport) = self.connection.observed.transport() {
            change(transport);
        }
    }

    /// The session has ended and may be renewed.
    pub(crate) fn observe_session_end(&mut self) {
        self.connection.observed.session_ended();
        self.change_transport(|transport| transport.session_id = None);
    }

    /// Pauses the deadlines of the pending request with this id, until
    /// [`resume_call`](Self::resume_call).
    pub(crate) fn pause_call(&mut self, id: i64, now: Instant) {
        if let Some(key) = self.connection.calls.by_id(id) {
            self.connection.calls.pause(key, now);
        }
    }

    /// Resumes the deadlines of the pending request with this id. Returns whether there is one.
    pub(crate) fn resume_call(&mut self, id: i64, now: Instant) -> bool {
        let Some(key) = self.connection.calls.by_id(id) else { return false };
        self.connection.calls.resume(key, now);
        true
    }

    /// Closes the connection.
    pub(crate) fn close_because(&mut self, reason: CloseReason) {
        self.end(reason);
    }

    /// The probe was answered by a legacy server.
    pub(crate) fn probe_unsupported(&mut self, id: i64, now: Instant) {
        if self.take_opening(id, now) {
            self.fall_back(now);
        }
    }

    /// The probe failed in a way that does not reveal the era: the handshake is tried, and if the
    /// server refuses it, the server is probed again. Returns `false`, without an effect, if there
    /// is no legacy revision to try.
    pub(crate) fn probe_inconclusive(&mut self, id: i64, now: Instant) -> bool {
        let Some(revision) = self.newest_legacy() else { return false };
        if self.take_opening(id, now) {
            self.send_initialize(Initializing { revision, guessed: true, told: false }, now);
        }
        true
    }

    /// The server is modern, but does not report its revisions and capabilities.
    ///
    /// Assumes this client's latest modern revision and all capabilities. The server itself refuses
    /// methods that it does not support.
    // MCP 2026-07-28 basic/versioning#protocol-version-negotiation [VER-014],
    // MCP 2026-07-28 basic/transports/streamable-http#protocol-version-header [VER-028]: a client may call any
    // method without `server/discover`.
    pub(crate) fn assume_modern(&mut self, id: i64, now: Instant) {
        if !self.take_opening(id, now) {
            return;
        }
        let all = Capability::ALL.into_iter();
        let server = all.fold(Capabilities::NONE, |set, capability| set.with(capability, true));
        if let Some(event) = self.open_without_discovery(server, now) {
            self.connection.events.push_back(event);
        }
    }

    /// Handles a refused handshake, with the server's error or with `failure`, when no alternative
    /// is left.
    pub(crate) fn handshake_refused(
        &mut self,
        id: i64,
        error: Option<ErrorObject<'static>>,
        failure: OpeningFailure,
        now: Instant,
    ) {
        if !self.take_opening(id, now) {
            return;
        }
        match error {
            Some(error) => {
                let outcome = Err(error);
                if let Ok(Some(event)) = self.opening_answered(outcome, now) {
                    self.connection.events.push_back(event);
                }
            }
            None => self.handshake_failed(failure, now),
        }
    }

    /// Repeats the handshake after the server lost the session. Calls can be made meanwhile; the
    /// binding holds them back. A handshake in progress continues: the binding sends it again.
    // MCP 2025-11-25 basic/transports#session-management [SESS-009]
    pub(crate) fn reopen(&mut self, now: Instant) {
        // Those of the lost session.
        self.withdraw_requests();
        if self.state == State::Over {
            self.initialize_again(now);
        }
    }

    /// Sets the request on whose own stream the next messages arrive.
    pub(crate) const fn set_stream(&mut self, request: Option<i64>) {
        self.stream_of = request;
    }

    /// Sends the request of a listen stream again with a new id, if the stream still exists.
    /// Returns whether it was sent; a stream whose request cannot be sent ends.
    // MCP 2026-07-28 changelog#major-changes [HCLI-012]
    pub(crate) fn listen_again(&mut self, id: i64, now: Instant) -> bool {
        let Some(key) = self.connection.calls.by_id(id) else { return false };
        let listens = self.connection.calls.get(key).is_some_and(|c| c.purpose == Purpose::Listen);
        if !listens {
            return false;
        }
        let sent = self.send_listen_again(key, now);
        if !sent {
            self.fail_call(id, Failure::Transport(TransportFailure::NotSent), now);
        }
        sent
    }

    /// Requests a page of the tools for the binding's own use. Returns whether the request was
    /// sent.
    // MCP 2026-07-28 basic/transports/streamable-http#client-behavior [HDR-032]
    pub(crate) fn refresh_tools(&mut self, cursor: Option<&str>, now: Instant) -> bool {
        let params = |out: &mut String| {
            out.push('{');
            if let Some(cursor) = cursor {
                out.push_str(r#""cursor":"#);
                write_string(out, cursor);
            }
            out.push('}');
            Ok(())
        };
        let method = MethodName::Known(Method::ToolsList);
        self.start(&method, Purpose::Chore, &params, &CallOptions::default(), now).is_ok()
    }

    /// Removes the opening request from the table, and returns whether it was there.
    fn take_opening(&mut self, id: i64, now: Instant) -> bool {
        let Some(key) = self.connection.calls.by_id(id) else { return false };
        let opens = self.connection.calls.get(key).is_some_and(|c| c.purpose == Purpose::Opening);
        if opens {
            self.connection.observed.call_ended(key, &Failure::Cancelled);
            self.connection.calls.remove(key);
            self.connection.calls.bury(id, &self.connection.config.limits, now);
        }
        opens
    }
}

const fn refuses_authorization(failure: &Failure<'_>) -> bool {
    matches!(failure, Failure::Transport(TransportFailure::AuthorizationFailed { .. }))
}
