//! The application of a server: it works on requests step by step, in any order, answers some,
//! fails some, requests input, leaves some unanswered, and checks every event of its machine.

use std::collections::BTreeMap;
use std::time::Duration;

use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CallHandle, CallOptions, CloseReason, CommandError, Event, MethodName, Request, RequestHandle,
    ServerCommand, Subject, Violation,
};
use mcp_sansio::{Era, Instant, LoggingLevel, Method};

use crate::coverage::Happening;
use crate::machine::BoundServerMachine;
use crate::messages::{self, Answer, Note};
use crate::scene::Scene;

/// The application of a server.
#[derive(Debug)]
pub(crate) struct ServerApplication {
    pub(crate) name: String,
    /// Pending requests.
    jobs: Vec<Job>,
    /// Requests that are left unanswered.
    forgotten: Vec<Job>,
    /// Requests that wait for input. They are delivered again with the answers.
    asking: Vec<RequestHandle>,
    /// How each request ended.
    ended: BTreeMap<RequestHandle, &'static str>,
    calls: Vec<CallHandle>,
    pub(crate) closed: bool,
    /// The violations that are expected.
    pub(crate) tolerance: Tolerance,
    /// Number of the last broadcast.
    pub(crate) broadcast: u64,
    /// How many broadcasts were sent.
    broadcasts: u64,
}

/// Violations that the network or the limits of a schedule can cause.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tolerance {
    /// Requests can be repeated.
    pub(crate) copies: bool,
    /// The limits are tight.
    pub(crate) refusals: bool,
    /// Responses can be late, or have no request.
    pub(crate) late: bool,
}

#[derive(Debug)]
struct Job {
    request: Request<'static>,
    serial: u64,
    run: u64,
    progress: u64,
    logs: u64,
}

/// Timeout of the calls that a server makes.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(20);

/// The greatest number of progress notifications, and of log messages, of a run.
const STEPS_MAX: u64 = 30;

impl ServerApplication {
    pub(crate) const fn new(name: String) -> Self {
        Self {
            name,
            jobs: Vec::new(),
            forgotten: Vec::new(),
            asking: Vec::new(),
            ended: BTreeMap::new(),
            calls: Vec::new(),
            closed: false,
            tolerance: Tolerance { copies: false, refusals: false, late: false },
            broadcast: 0,
            broadcasts: 0,
        }
    }

    /// Returns the number of requests that can be answered.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Returns the number of requests that do not wait for this application, plus its own calls.
    pub(crate) fn waiting(&self) -> usize {
        self.forgotten.len() + self.asking.len() + self.calls.len()
    }

    // ------------------------------------------------------------------ events

    pub(crate) fn listen(&mut self, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        while let Some(event) = machine.poll_event() {
            self.hear(event, scene);
        }
    }

    pub(crate) fn hear(&mut self, event: Event<'_>, scene: &mut Scene) {
        scene.note(format_args!("{} hears {}", self.name, messages::describe(&event)));
        assert!(!self.closed, "{} receives an event after `Closed`: {event:?}", self.name);
        match event {
            Event::Request(request) => self.take(request.into_owned(), scene),
            Event::Cancelled(cancelled) => {
                let Subject::Request(handle) = cancelled.subject else {
                    panic!("a call of the server is cancelled")
                };
                scene.count(Happening::RequestGivenUp);
                self.drop_request(handle);
                self.end(handle, "given up");
            }
            Event::Ended(ended) => {
                let at = self.calls.iter().position(|call| *call == ended.call);
                self.calls.swap_remove(at.expect("each call ends once"));
            }
            Event::Violation(violation) => self.violation(&violation),
            Event::Closed(reason) => {
                scene.note(format_args!("{} is closed: {reason}", self.name));
                assert!(self.calls.is_empty(), "calls are pending after the end");
                self.closed = true;
                self.asking.clear();
                if reason == CloseReason::Local {
                    self.jobs.clear();
                    self.forgotten.clear();
                }
            }
            Event::Opened(_) | Event::Notification(_) => {}
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, request: Request<'static>, scene: &mut Scene) {
        let handle = request.handle;
        let before = self.ended.get(&handle);
        assert_eq!(before, None, "{}: a request is delivered after its end", self.name);
        assert!(
            self.jobs.iter().all(|job| job.request.handle != handle),
            "a request is delivered twice"
        );
        let forgotten = self.forgotten.iter().any(|job| job.request.handle == handle);
        assert!(!forgotten, "an unanswered request is delivered again");
        let asked = self.asking.iter().position(|asking| *asking == handle);
        if let Some(at) = asked {
            self.asking.swap_remove(at);
            assert!(!request.inputs.is_empty(), "a request is delivered again without answers");
        }
        let MethodName::Known(method) = request.method else { panic!("{:?}", request.method) };
        let serial =
            if matches!(method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead) {
                messages::serial_of(&request).expect("calls have a serial number")
            } else {
                0
            };
        let run = scene.serial();
        scene.note(format_args!("{} begins run {run} of number {serial}", self.name));
        self.jobs.push(Job { request, serial, run, progress: 0, logs: 0 });
    }

    fn end(&mut self, handle: RequestHandle, how: &'static str) {
        let before = self.ended.insert(handle, how);
        assert_eq!(before, None, "{}: {how}, but it has ended", self.name);
    }

    /// Removes a request, which must be known.
    fn drop_request(&mut self, handle: RequestHandle) {
        let before = self.jobs.len() + self.waiting();
        self.jobs.retain(|job| job.request.handle != handle);
        self.forgotten.retain(|job| job.request.handle != handle);
        self.asking.retain(|known| *known != handle);
        let after = self.jobs.len() + self.waiting();
        assert_eq!(after + 1, before, "{}: only a pending request is cancelled", self.name);
    }

    fn violation(&self, violation: &Violation) {
        let Tolerance { copies, refusals, late } = self.tolerance;
        let expected = match violation {
            Violation::DuplicateId(_) => copies,
            Violation::TooManyRequests => refusals,
            Violation::UnknownResponse(_) => late || copies,
            Violation::FrameCutShort { .. } | Violation::FrameTooLong { .. } => true,
            // A copy of `initialize`, or of a message that follows it, is received too late.
            Violation::OutOfPlace(_) => copies,
            _ => false,
        };
        assert!(expected, "{}: {violation}", self.name);
    }

    /// Makes the application answer the requests that it left unanswered.
    pub(crate) fn remember(&mut self) {
        self.jobs.append(&mut self.forgotten);
    }

    // ------------------------------------------------------------------ actions

    /// Performs a random action.
    pub(crate) fn act(&mut self, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        let at = scene.random.index(self.jobs.len());
        if self.jobs.is_empty() || (!scene.calm && scene.random.once_in(8)) {
            self.act_unasked(machine, scene);
        } else {
            self.work(at, machine, scene);
        }
        self.listen(machine, scene);
    }

    fn act_unasked(&mut self, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        if scene.calm {
            return;
        }
        match scene.random.below(6) {
            0 | 1 => self.broadcast(machine, scene),
            2 | 3 => self.update(machine, scene),
            4 => {
                let method = scene.random.one_of([Method::Ping, Method::RootsList]);
                let options = &CallOptions::default().timeout(QUESTION_TIMEOUT);
                let params = &RawJson::EMPTY_OBJECT;
                if let Ok(call) = machine.call(method, params, options, scene.now) {
                    scene.count(Happening::Questioned);
                    self.calls.push(call);
                }
            }
            _ => self.answer_too_late(machine, scene),
        }
    }

    pub(crate) fn broadcast(&mut self, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        let (number, index) = (scene.serial(), self.broadcasts + 1);
        let data = Note::Broadcast { number, index }.write(scene);
        if machine.is_behind() {
            // A client that still receives it receives the next one with this index, too.
            scene.count(Happening::LeftOut);
            return log(machine, None, &data, scene.now);
        }
        scene.count(Happening::Broadcast);
        (self.broadcast, self.broadcasts) = (number, index);
        scene.note(format_args!("{} broadcasts {}", self.name, self.broadcast));
        log(machine, None, &data, scene.now);
    }

    pub(crate) fn update(&self, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        scene.note(format_args!("{} changes its resource", self.name));
        let told = machine
            .apply(ServerCommand::ResourceUpdated { uri: messages::RESOURCE.into() }, scene.now);
        assert!(told.is_ok(), "{}: {told:?} for its resource", self.name);
    }

    /// Sends messages for a request that has ended, which are dropped.
    fn answer_too_late(&self, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        let ended: Vec<RequestHandle> = self.ended.keys().copied().collect();
        let Some(&handle) = scene.random.pick(&ended) else { return };
        scene.count(Happening::LateAnswer);
        progress(machine, handle, 1e9, scene.now);
        let data = Note::OfRun { n: 0, run: 0, step: 0 }.write(scene);
        log(machine, Some(handle), &data, scene.now);
        let late = Answer { n: 0, run: 0, progress: 0, logs: 0 }.write(scene);
        let outcome = respond(machine, handle, &late, scene.now);
        assert!(matches!(outcome, Err(CommandError::NotDue)), "{outcome:?}");
    }

    fn work(&mut self, at: usize, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        let now = scene.now;
        let talks = if scene.calm { 2 } else { 12 };
        let job = &mut self.jobs[at];
        let handle = job.request.handle;
        match scene.random.below(20) {
            talk if talk < talks => {
                if job.progress.max(job.logs) >= STEPS_MAX {
                    return;
                }
                if scene.random.once_in(2) {
                    let step = job.progress + 1;
                    if machine.is_behind() {
                        scene.count(Happening::LeftOut);
                        return progress(
                            machine,
                            handle,
                            messages::progress_at(job.run, step),
                            now,
                        );
                    }
                    scene.count(Happening::Progress);
                    job.progress = step;
                    progress(machine, handle, messages::progress_at(job.run, step), now);
                    if scene.random.once_in(8) {
                        // Less than before, so it is dropped.
                        progress(machine, handle, 0.5, now);
                    }
                } else {
                    let Job { serial: n, run, logs, .. } = *job;
                    let data = Note::OfRun { n, run, step: logs + 1 }.write(scene);
                    if machine.is_behind() {
                        scene.count(Happening::LeftOut);
                        return log(machine, Some(handle), &data, now);
                    }
                    scene.count(Happening::Logged);
                    job.logs += 1;
                    log(machine, Some(handle), &data, now);
                }
            }
            12 if !scene.calm => {
                scene.count(Happening::Forgotten);
                let job = self.jobs.swap_remove(at);
                self.forgotten.push(job);
            }
            13 if !scene.calm => {
                scene.count(Happening::Released);
                machine.release(handle, Duration::from_millis(scene.random.below(3000)));
            }
            14 if !scene.calm => self.ask(at, machine, scene),
            15 => {
                scene.count(Happening::Rejected);
                self.jobs.swap_remove(at);
                self.end(handle, "rejected");
                let error = ErrorObject::internal("not today");
                let outcome = machine.reject(handle, error, now);
                assert!(outcome.is_ok(), "{}: {outcome:?} for a pending request", self.name);
            }
            _ => {
                scene.count(Happening::Answered);
                let job = self.jobs.swap_remove(at);
                self.end(handle, "answered");
                let Job { serial: n, run, progress, logs, .. } = job;
                scene.note(format_args!("{} answers run {run} of number {n}", self.name));
                let result = Answer { n, run, progress, logs }.write(scene);
                let outcome = respond(machine, handle, &result, now);
                assert!(outcome.is_ok(), "{}: {outcome:?} for a pending request", self.name);
            }
        }
    }

    fn ask(&mut self, at: usize, machine: &mut impl BoundServerMachine, scene: &mut Scene) {
        let job = self.jobs.swap_remove(at);
        let handle = job.request.handle;
        let era = job.request.revision.era();
        let required = messages::questions(scene);
        scene.note(format_args!("{} requests input for run {}", self.name, job.run));
        match machine.require_input(&job.request, &required, scene.now) {
            Ok(()) => {
                scene.count(Happening::Asked);
                match era {
                    Era::Legacy => self.asking.push(handle),
                    // The answers are delivered as a new request.
                    _ => self.end(handle, "asked"),
                }
            }
            Err(CommandError::NotDeclared(_) | CommandError::InputNotAllowed(_)) => {
                self.end(handle, "answered, as input could not be requested");
            }
            Err(other) => panic!("{}: {other} for a pending request", self.name),
        }
    }
}

fn respond(
    machine: &mut impl BoundServerMachine,
    request: RequestHandle,
    result: &RawJson<'_>,
    now: Instant,
) -> Result<(), CommandError> {
    machine.respond_with(request, result, now)
}

fn progress(
    machine: &mut impl BoundServerMachine,
    request: RequestHandle,
    progress: f64,
    now: Instant,
) {
    let message = Some("on its way".into());
    let told =
        machine.apply(ServerCommand::Progress { request, progress, total: None, message }, now);
    assert!(told.is_ok(), "progress is sent or dropped: {told:?}");
}

fn log(
    machine: &mut impl BoundServerMachine,
    request: Option<RequestHandle>,
    data: &RawJson<'_>,
    now: Instant,
) {
    let level = LoggingLevel::Emergency;
    let logged = machine.apply(
        ServerCommand::Log { request, level, logger: None, data: data.borrow().into() },
        now,
    );
    assert!(logged.is_ok(), "the data is JSON: {logged:?}");
}
