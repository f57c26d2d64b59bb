//! The application of a client: it calls, cancels, subscribes, answers input requests, closes, and
//! checks every event of its machine.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CallHandle, CallOptions, ClientCommand, ClientMachine, CloseReason, Ended, Event, Failure,
    InputHandle, InputRequested, Limits, Notification, OpeningFailure, Progress, Subject,
    TransportFailure, Violation,
};
use mcp_sansio::protocol::SubscriptionFilter;
use mcp_sansio::{Capability, Era, ErrorCode, Instant, LoggingLevel, Method, Revision};

use crate::coverage::Happening;
use crate::messages::{self, Answer, Note};
use crate::scene::Scene;

/// The transport of a client, which decides the failures that its machine may report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// An ordered byte stream, which can only end.
    Stream,
    /// HTTP exchanges, each of which can fail.
    Exchanges,
}

/// How long a machine remembers cancelled calls.
pub(crate) const MEMORY: Duration = Limits::DEFAULT.tombstone_duration;

const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// The application of one client.
#[derive(Debug)]
pub(crate) struct ClientApplication {
    pub(crate) name: String,
    binding: Binding,
    calls: BTreeMap<CallHandle, Call>,
    /// Serial numbers of ended calls, with the run that gave the result.
    ended: BTreeMap<u64, Option<u64>>,
    inputs: Vec<(InputHandle, Method)>,
    /// The greatest number of a broadcast that was received.
    broadcast: u64,
    /// Index of the last broadcast among those of its server, in this session.
    broadcasts: Option<u64>,
    pub(crate) opened: u32,
    /// Updates that were received, once for each subscription.
    pub(crate) updates: u64,
    /// Whether the machine reported the loss of the server's event stream.
    pub(crate) event_stream_lost: bool,
    pub(crate) closing: bool,
    pub(crate) closed: Option<CloseReason>,
    /// From this time on, responses to cancelled calls may be reported as unknown.
    pub(crate) forgets_at: Instant,
    /// Whether the machine reported the loss of messages.
    lossy: bool,
    /// Whether it is unknown if the server still sends updates of the resource.
    pub(crate) uncertain: bool,
}

#[derive(Debug)]
struct Call {
    serial: u64,
    kind: Kind,
    progress: bool,
    logs: bool,
    since: Instant,
    least: Duration,
    cancelled: bool,
    input_refused: bool,
    asked: bool,
    heard: BTreeMap<u64, Heard>,
    last_progress: f64,
}

/// Progress and log messages received from one run of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    progress: u64,
    logs: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Answered by the server application.
    Work,
    /// Answered by the server machine.
    Machine,
    /// Whether it was acknowledged, and if so, whether with the resource.
    Subscription { honoured: Option<bool> },
}

impl ClientApplication {
    pub(crate) fn new(name: String, binding: Binding) -> Self {
        Self {
            name,
            binding,
            calls: BTreeMap::new(),
            ended: BTreeMap::new(),
            inputs: Vec::new(),
            broadcast: 0,
            broadcasts: None,
            opened: 0,
            updates: 0,
            event_stream_lost: false,
            closing: false,
            closed: None,
            forgets_at: NEVER,
            lossy: false,
            uncertain: false,
        }
    }

    /// Returns the number of pending calls.
    pub(crate) fn calls(&self) -> usize {
        let subscribed = |call: &&Call| !matches!(call.kind, Kind::Subscription { .. });
        self.calls.values().filter(subscribed).count()
    }

    pub(crate) const fn last_broadcast(&self) -> u64 {
        self.broadcast
    }

    pub(crate) fn questions(&self) -> usize {
        self.inputs.len()
    }

    // ------------------------------------------------------------------ events

    pub(crate) fn listen(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        while let Some(event) = machine.poll_event() {
            self.hear(event, machine, scene);
        }
    }

    pub(crate) fn hear(
        &mut self,
        event: Event<'_>,
        machine: &impl ClientMachine,
        scene: &mut Scene,
    ) {
        scene.note(format_args!("{} hears {}", self.name, messages::describe(&event)));
        assert!(self.closed.is_none(), "{} receives an event after `Closed`: {event:?}", self.name);
        match event {
            Event::Opened(opened) => self.open(opened.revision, scene),
            Event::Ended(ended) => self.end(ended, scene),
            Event::Progress(progress) => self.progress(&progress, scene),
            Event::Notification(notification) => self.notification(&notification, scene),
            Event::InputRequested(input) => self.input(&input, machine),
            Event::Cancelled(cancelled) => {
                let Subject::Input(input) = cancelled.subject else {
                    panic!("a client receives no requests")
                };
                let at = self.inputs.iter().position(|(known, _)| *known == input);
                self.inputs.remove(at.expect("only a pending input request is withdrawn"));
                scene.count(Happening::InputWithdrawn);
            }
            Event::Subscribed(subscribed) => {
                let call = self.calls.get_mut(&subscribed.subscription);
                let call = call.expect("only an open subscription is acknowledged");
                let Kind::Subscription { honoured } = &mut call.kind else {
                    panic!("acknowledged: {:?}", call.kind)
                };
                let again = honoured.is_some();
                *honoured = Some(subscribed.honoured.resource_subscriptions.is_some());
                assert!(!again || self.binding == Binding::Exchanges, "acknowledged twice");
            }
            Event::Violation(violation) => self.violation(&violation, scene),
            Event::DeliveryFailed(failed) => {
                assert_eq!(self.binding, Binding::Exchanges, "{}: {failed}", self.name);
                // A server that did not receive this notification may have no stream for the
                // session.
                if failed.method == Some(Method::Initialized) {
                    self.event_stream_lost(scene);
                }
            }
            Event::EventStreamLost(failure) => {
                assert_eq!(self.binding, Binding::Exchanges, "{}: {failure}", self.name);
                self.event_stream_lost(scene);
            }
            Event::Closed(reason) => self.close(reason, scene),
            other => panic!("{other:?}"),
        }
    }

    fn open(&mut self, revision: Revision, scene: &mut Scene) {
        self.opened += 1;
        self.broadcasts = None;
        if self.opened > 1 {
            assert_eq!(self.binding, Binding::Exchanges, "a stream has one session");
            scene.count(Happening::Reopened);
        }
        scene.count(match revision {
            Revision::V2024_11_05 => Happening::Open20241105,
            Revision::V2025_03_26 => Happening::Open20250326,
            Revision::V2025_06_18 => Happening::Open20250618,
            Revision::V2025_11_25 => Happening::Open20251125,
            Revision::V2026_07_28 => Happening::Open20260728,
            other => panic!("{other} is not simulated"),
        });
    }

    /// Records that a call is abandoned, now or after `pause`.
    fn gives_up(&mut self, pause: Duration, scene: &Scene) {
        self.forgets_at = self.forgets_at.min(scene.now + pause + MEMORY);
    }

    fn end(&mut self, ended: Ended<'_>, scene: &mut Scene) {
        let call = self.calls.remove(&ended.call);
        let call = call.unwrap_or_else(|| panic!("unknown call: {ended:?}"));
        let answer = ended.outcome.as_ref().ok().and_then(Answer::read);
        self.ended.insert(call.serial, answer.map(|answer| answer.run));
        // Over HTTP the end of a subscription can overtake its start, or the start of the next one.
        let subscribed = matches!(call.kind, Kind::Subscription { .. });
        self.uncertain |= subscribed && self.binding == Binding::Exchanges;
        if matches!(ended.outcome, Err(Failure::TimedOut { .. } | Failure::Cancelled)) {
            self.gives_up(Duration::ZERO, scene);
        }
        match ended.outcome {
            Ok(result) => {
                scene.count(Happening::Succeeded);
                self.check_result(&call, &result, scene);
            }
            Err(failure) => self.check_failure(&call, &failure, scene),
        }
    }

    fn check_result(&self, call: &Call, result: &RawJson<'_>, scene: &mut Scene) {
        if call.kind != Kind::Work {
            return;
        }
        let Some(answer) = Answer::read(result) else {
            // A legacy client without the capability that an input request needs.
            assert!(result.as_str().contains(r#""isError":true"#), "{result}");
            return;
        };
        assert_eq!(answer.n, call.serial, "{} received the response to another call", self.name);
        if call.asked {
            scene.count(Happening::WithInput);
        }
        let heard = call.heard.get(&answer.run).copied().unwrap_or_default();
        // Each message is received exactly once and in order, or its loss is reported.
        if self.lossy {
            return;
        }
        if call.progress {
            assert_eq!(
                heard.progress, answer.progress,
                "{}: progress before {answer:?}",
                self.name
            );
        }
        if call.logs {
            assert_eq!(heard.logs, answer.logs, "{}: messages before {answer:?}", self.name);
        }
    }

    fn check_failure(&self, call: &Call, failure: &Failure<'_>, scene: &mut Scene) {
        let exchanges = self.binding == Binding::Exchanges;
        match failure {
            Failure::Refused(_) => scene.count(Happening::Refused),
            Failure::TimedOut { hard } => {
                let waited = scene.now.saturating_since(call.since);
                assert!(waited >= call.least, "timed out after {waited:?} of {:?}", call.least);
                scene.count(if *hard { Happening::TimedOutHard } else { Happening::TimedOut });
            }
            Failure::Cancelled => {
                assert!(call.cancelled, "the application did not cancel this call")
            }
            Failure::ConnectionLost => scene.count(Happening::ConnectionLost),
            Failure::InputRefused { .. } => assert!(call.input_refused, "nobody refused"),
            // Rounds with input requests, or with a state only, which the application does not see.
            Failure::TooManyRounds { .. } => {}
            Failure::Transport(failure) => {
                assert!(exchanges, "{failure} on a stream");
                scene.count(Happening::TransportFailed);
                if matches!(
                    failure,
                    TransportFailure::NotResumed { .. }
                        | TransportFailure::StreamLost { .. }
                        | TransportFailure::StreamEnded
                ) {
                    scene.count(Happening::LossReported);
                }
            }
            other => panic!("{}: {other}", self.name),
        }
    }

    fn progress(&mut self, progress: &Progress<'_>, scene: &mut Scene) {
        scene.count(Happening::ProgressHeard);
        let call = self.calls.get_mut(&progress.call).expect("progress belongs to a pending call");
        assert!(call.progress, "progress without a progress token");
        assert!(progress.progress > call.last_progress, "progress does not increase: {progress:?}");
        call.last_progress = progress.progress;
        let (run, step) = messages::run_and_step(progress.progress);
        let heard = call.heard.entry(run).or_default();
        assert!(step > heard.progress, "{}: progress is repeated", self.name);
        assert!(self.lossy || step == heard.progress + 1, "{}: progress is lost", self.name);
        heard.progress = step;
    }

    fn notification(&mut self, notification: &Notification<'_>, scene: &mut Scene) {
        if notification.method == Method::ResourcesUpdated {
            scene.count(Happening::UpdateHeard);
            self.updates += u64::try_from(notification.subscriptions.len()).unwrap();
            return;
        }
        if notification.method != Method::Message {
            return;
        }
        match Note::read(&notification.params) {
            Note::Broadcast { number, index } => {
                assert!(number > self.broadcast, "{}: {number} is repeated", self.name);
                self.broadcast = number;
                let before = self.broadcasts.replace(index);
                let gapless = before.is_none_or(|before| before + 1 == index) || self.lossy;
                assert!(gapless, "{}: {index} follows {before:?}", self.name);
            }
            Note::OfRun { n, run, step } => {
                scene.count(Happening::LogHeard);
                let ended = self.ended.get(&n).copied();
                // A copy of the request may run for longer.
                let late = ended == Some(Some(run));
                assert!(!late, "{}: a message after the response", self.name);
                let Some(call) = self.calls.values_mut().find(|call| call.serial == n) else {
                    return assert!(ended.is_some(), "{}: a message of an unknown call", self.name);
                };
                let heard = call.heard.entry(run).or_default();
                assert!(step > heard.logs, "{}: a message is repeated", self.name);
                let gapless = step == heard.logs + 1 || !call.logs || self.lossy;
                assert!(gapless, "{}: a message is lost", self.name);
                heard.logs = step;
            }
        }
    }

    fn input(&mut self, input: &InputRequested<'_>, machine: &impl ClientMachine) {
        if let Some(call) = input.call {
            self.calls.get_mut(&call).expect("input is requested by a pending call").asked = true;
        } else {
            self.calls.values_mut().for_each(|call| call.asked = true);
        }
        let session = machine.session().expect("an open connection has a session");
        assert_eq!(input.revision, session.revision());
        let known = self.inputs.iter().any(|(known, _)| *known == input.handle);
        assert!(!known, "an input handle is used twice");
        self.inputs.push((input.handle, input.method));
    }

    fn violation(&mut self, violation: &Violation, scene: &mut Scene) {
        let exchanges = self.binding == Binding::Exchanges;
        let expected = match violation {
            // The machine forgets cancelled calls after a while.
            Violation::UnknownResponse(id) => {
                id.is_none() || exchanges || scene.now >= self.forgets_at
            }
            // The answer to a message that was too long for the server.
            Violation::UnaddressedError(_) => true,
            Violation::FrameTooLong { .. } => {
                scene.count(Happening::Overlong);
                self.lossy = true;
                true
            }
            Violation::FrameCutShort { .. } => true,
            // A truncated body that looks complete.
            Violation::Malformed(_) => exchanges,
            _ => false,
        };
        assert!(expected, "{}: {violation}", self.name);
    }

    fn event_stream_lost(&mut self, scene: &mut Scene) {
        scene.count(Happening::LossReported);
        self.event_stream_lost = true;
    }

    fn close(&mut self, reason: CloseReason, scene: &mut Scene) {
        let exchanges = self.binding == Binding::Exchanges;
        let expected = match &reason {
            CloseReason::Local => self.closing,
            // HTTP+SSE ends with its stream.
            CloseReason::EndOfInput | CloseReason::Unresponsive => true,
            CloseReason::OpeningFailed(OpeningFailure::TimedOut) => true,
            CloseReason::OpeningFailed(OpeningFailure::Transport(_)) => exchanges,
            CloseReason::OpeningFailed(OpeningFailure::InvalidAnswer(_)) => exchanges,
            // An opening request that was cut off, or is too long for the server, is a parse error,
            // with which legacy servers also answer what they do not know.
            CloseReason::OpeningFailed(OpeningFailure::LegacyServer) => !exchanges,
            CloseReason::OpeningFailed(OpeningFailure::Refused(error)) => {
                exchanges || error.code == ErrorCode::PARSE_ERROR
            }
            CloseReason::Transport(_) => exchanges,
            _ => false,
        };
        assert!(expected, "{}: {reason}", self.name);
        assert!(self.calls.is_empty(), "{}: calls are pending after `Closed`", self.name);
        scene.note(format_args!("{} is closed: {reason}", self.name));
        self.inputs.clear();
        self.closed = Some(reason);
    }

    // ------------------------------------------------------------------ actions

    /// Performs a random action.
    pub(crate) fn act(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        if self.closed.is_some() {
            return self.listen(machine, scene);
        }
        let now = scene.now;
        match scene.random.below(if scene.calm { 3 } else { 20 }) {
            0..=2 => self.answer(machine, scene),
            3..=11 => self.call(machine, scene),
            12 | 13 => self.cancel(machine, scene),
            14 => {
                let filter = SubscriptionFilter::new()
                    .tools_list_changed(true)
                    .resource_subscriptions([messages::RESOURCE.to_owned()]);
                if let Ok(handle) = machine.subscribe(&filter, now) {
                    scene.count(Happening::Subscribed);
                    let kind = Kind::Subscription { honoured: None };
                    self.begin(handle, kind, &CallOptions::default(), false, scene);
                    self.gives_up(messages::CALL_TIMEOUT, scene);
                }
            }
            15 => {
                let level = scene.random.one_of([
                    LoggingLevel::Debug,
                    LoggingLevel::Warning,
                    LoggingLevel::Emergency,
                ]);
                // The connection is not open yet, or the server does not log.
                let _sent = machine.set_log_level(level, now);
                self.gives_up(messages::CALL_TIMEOUT, scene);
            }
            16 => {
                // The connection is not open yet, or the client has no roots.
                let method = Method::RootsListChanged;
                let params = &RawJson::EMPTY_OBJECT;
                let _sent = machine.notify(method, params, now);
            }
            17 if scene.random.once_in(12) => {
                scene.count(Happening::Closed);
                self.leave(machine, scene);
            }
            _ => {}
        }
        self.listen(machine, scene);
    }

    /// Sends a request, so that a silent client learns whether its session still exists.
    pub(crate) fn touch(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        let options = CallOptions::default();
        let (method, params) = (Method::ToolsList, &RawJson::EMPTY_OBJECT);
        if let Ok(handle) = machine.call(method, params, &options, scene.now) {
            scene.count(Happening::Called);
            self.begin(handle, Kind::Machine, &options, false, scene);
        }
        self.listen(machine, scene);
    }

    /// Closes the connection.
    pub(crate) fn leave(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        if self.closed.is_some() {
            return;
        }
        scene.note(format_args!("{} closes", self.name));
        self.closing = true;
        let left = machine.apply(ClientCommand::Close, scene.now);
        assert!(left.is_ok(), "{}: {left:?} on an open connection", self.name);
        self.listen(machine, scene);
        assert!(self.closed.is_some(), "closing is reported at once");
    }

    fn call(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        let mut options = CallOptions::default();
        if scene.random.once_in(2) {
            options = options.progress();
        }
        if scene.random.once_in(3) {
            let timeout = Duration::from_millis(200 + scene.random.below(20_000));
            options = options.timeout(timeout).timeout_hard(3 * timeout);
        }
        options.progress_keeps_deadline = scene.random.once_in(4);
        if scene.random.once_in(2) {
            options = options.log_level(LoggingLevel::Info);
        }
        let (kind, method) = match scene.random.below(8) {
            0 => (Kind::Machine, scene.random.one_of([Method::ToolsList, Method::Ping])),
            1 => (Kind::Work, Method::PromptsGet),
            2 => (Kind::Work, Method::ResourcesRead),
            _ => (Kind::Work, Method::ToolsCall),
        };
        let serial = scene.serial();
        let params = messages::params(method, serial, scene);
        let Ok(handle) = machine.call(method, &params, &options, scene.now) else { return };
        scene.count(Happening::Called);
        let session = machine.session().expect("only open connections make calls");
        let logs = session.server_capabilities().contains(Capability::Logging)
            && (session.revision().era() == Era::Legacy || options.log_level.is_some());
        let call = self.begin(handle, kind, &options, logs, scene);
        call.serial = serial;
        scene.note(format_args!("{} calls {method}, number {serial}", self.name));
    }

    fn begin(
        &mut self,
        handle: CallHandle,
        kind: Kind,
        options: &CallOptions<'_>,
        logs: bool,
        scene: &mut Scene,
    ) -> &mut Call {
        let call = Call {
            serial: 0,
            kind,
            progress: options.wants_progress(),
            logs,
            since: scene.now,
            least: options.timeout.unwrap_or(messages::CALL_TIMEOUT),
            cancelled: false,
            input_refused: false,
            asked: false,
            heard: BTreeMap::new(),
            last_progress: 0.0,
        };
        let before = self.calls.insert(handle, call);
        assert!(before.is_none(), "a call handle is used twice");
        self.calls.get_mut(&handle).expect("it is there")
    }

    fn cancel(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        let handles: Vec<CallHandle> = self.calls.keys().copied().collect();
        let Some(&handle) = scene.random.pick(&handles) else { return };
        scene.count(Happening::Cancelled);
        let call = self.calls.get_mut(&handle).expect("it is there");
        call.cancelled = true;
        scene.note(format_args!("{} cancels number {}", self.name, call.serial));
        // Cancelling again has no effect.
        for _ in 0..2 {
            let command = ClientCommand::Cancel { call: handle, reason: "enough".into() };
            let cancelled = machine.apply(command, scene.now);
            assert!(cancelled.is_ok(), "{}: {cancelled:?}", self.name);
            self.listen(machine, scene);
            assert!(!self.calls.contains_key(&handle), "cancelling ends a call at once");
        }
    }

    fn answer(&mut self, machine: &mut impl ClientMachine, scene: &mut Scene) {
        if self.inputs.is_empty() {
            return;
        }
        let at = scene.random.index(self.inputs.len());
        let (input, method) = self.inputs.swap_remove(at);
        let result = messages::answer_to(method);
        let result = result.into();
        let command = if scene.strikes(5) {
            scene.count(Happening::InputRefused);
            self.calls.values_mut().for_each(|call| call.input_refused = true);
            ClientCommand::RefuseInput { input, error: ErrorObject::internal("not today") }
        } else {
            scene.count(Happening::InputAnswered);
            ClientCommand::AnswerInput { input, result }
        };
        let outcome = machine.apply(command, scene.now);
        assert!(outcome.is_ok(), "{}: {outcome:?} for a pending input request", self.name);
    }
}

impl ClientApplication {
    /// Returns whether broadcasts must be received, and how many subscriptions receive updates, if
    /// that is certain.
    pub(crate) fn listens(&self, machine: &impl ClientMachine) -> (bool, Option<u64>) {
        let Some(session) = machine.session() else { return (false, None) };
        if self.closed.is_some() || self.event_stream_lost {
            return (false, None);
        }
        let (revision, server) = (session.revision(), session.server_capabilities());
        // Streamable HTTP has no stream for them at the oldest revision.
        let stream = self.binding == Binding::Stream || revision > Revision::V2024_11_05;
        let hears = stream && revision.era() == Era::Legacy && server.contains(Capability::Logging);
        let mut subscribed = 0;
        for call in self.calls.values() {
            match call.kind {
                Kind::Subscription { honoured: Some(true) } => subscribed += 1,
                // The subscription is not acknowledged yet.
                Kind::Subscription { .. } => return (hears, None),
                _ => {}
            }
        }
        if !stream || self.uncertain {
            return (hears, None);
        }
        (hears, Some(subscribed))
    }
}
