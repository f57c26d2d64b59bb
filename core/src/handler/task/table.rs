use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;

use crate::jsonrpc::{ErrorObject, Json};
use crate::peer::connection::error_at;
use crate::peer::deadlines::Deadlines;
use crate::peer::slab::{Key, Slab};
use crate::peer::{Limits, Request, RequestHandle};
use crate::protocol::{CreateTaskResult, InputRequiredResult, Task, TaskStatusParams, Wire};
use crate::{Instant, Principal};

use super::entry::{Entry, State};
use super::settings::TaskSettings;
use super::tasks::{Handler, Served, Tasks};
use crate::handler::reply::{Body, Outcome};

/// The tasks of a server: of one connection on a byte stream, of all clients on HTTP.
///
/// It holds no handlers, only what is known of them: those run where the endpoint has them run.
#[derive(Debug)]
pub(in crate::handler) struct TaskTable {
    pub(super) settings: TaskSettings,
    limits: Limits,
    pub(super) entries: Slab<Entry>,
    names: BTreeMap<String, Key>,
    requests: BTreeMap<RequestHandle, Key>,
    deadlines: Deadlines,
    bytes: usize,
    /// Tasks whose status has changed.
    changed: VecDeque<Key>,
    /// Requests whose handlers are to be called again.
    resumed: VecDeque<RequestHandle>,
    /// Requests whose handlers want to be tasks.
    wishes: BTreeSet<RequestHandle>,
}

/// The longest message about a status that is kept, in bytes: one or two lines for people.
const MESSAGE_LENGTH_MAX: usize = 512;

/// How often a name is drawn that is in use, before the entropy is taken for none.
const DRAWS_MAX: usize = 4;

impl Tasks for TaskTable {
    fn wish(&mut self, request: RequestHandle) {
        self.wishes.insert(request);
    }

    fn take_wish(&mut self, request: RequestHandle) -> bool {
        self.wishes.remove(&request)
    }

    // MCP 2026-07-28 ext-tasks:tasks#task-creation [TASK-029]
    fn create(
        &mut self,
        request: Request<'static>,
        principal: Option<Principal>,
        now: Instant,
    ) -> Option<CreateTaskResult> {
        if self.entries.len() >= self.settings.tasks_max || self.bytes >= self.settings.bytes_max {
            return None;
        }
        // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
        let name = (0..DRAWS_MAX)
            .map(|_| self.settings.draw())
            .find(|name| !self.names.contains_key(name))?;
        let mut task = Task::new(&*name, self.settings.time(now));
        // In whole milliseconds, and the promise not longer than what is kept.
        task.ttl_ms = Some(millis(self.settings.ttl));
        task.poll_interval_ms = Some(millis(self.settings.poll_interval).max(1));
        let result = CreateTaskResult { task: task.clone(), meta: None };
        let (handle, expires) = (request.handle, now + self.settings.ttl);
        let entry = Entry::new(task, principal, request, expires);
        self.bytes += entry.bytes();
        let key = self.entries.insert(entry);
        self.names.insert(name, key);
        self.requests.insert(handle, key);
        self.deadlines.set(key.slot, expires);
        Some(result)
    }

    fn settle(
        &mut self,
        request: RequestHandle,
        outcome: Outcome,
        now: Instant,
    ) -> Option<Outcome> {
        let Some(&key) = self.requests.get(&request) else { return Some(outcome) };
        let entry = self.entries.get(key)?;
        // MCP 2026-07-28 ext-tasks:tasks#task-cancellation [TASK-034]: it may come too late.
        if entry.is_over() {
            return None;
        }
        let revision = entry.request.revision;
        let state = match outcome {
            // MCP 2026-07-28 ext-tasks:tasks#task-execution-errors [TASK-037]: whatever it says.
            Outcome::Result(body) => match body.to_json_at(revision) {
                Ok(result) => Ok(State::Completed(result)),
                Err(_) => Err(ErrorObject::internal("the result could not be written")),
            },
            Outcome::Error(error) => Err(error),
            #[cfg(feature = "http")]
            Outcome::Refused(refusal) => Err(refusal.error),
            Outcome::InputRequired(required) => match self.ask(key, required.into()) {
                Ok(Some(state)) => Ok(state),
                Ok(None) => return None,
                Err(error) => Err(error),
            },
        };
        self.change(key, state, now);
        None
    }

    fn describe(&mut self, request: RequestHandle, message: Option<&str>, now: Instant) -> bool {
        let Some(&key) = self.requests.get(&request) else { return false };
        let time = self.settings.time(now);
        if let Some(message) = message
            && let Some(entry) = self.entries.get_mut(key)
            && !entry.is_over()
        {
            let held = self.bytes - entry.bytes();
            entry.task.status_message = Some(shortened(message).into());
            entry.task.last_updated_at = time;
            self.bytes = held + entry.bytes();
            self.note(key);
        }
        true
    }

    fn place_of(&self, request: RequestHandle) -> Option<u32> {
        self.requests.get(&request).map(|key| key.slot)
    }

    #[cfg(feature = "http")]
    fn is_working(&self, request: RequestHandle) -> bool {
        let key = self.requests.get(&request);
        key.and_then(|key| self.entries.get(*key)).is_some_and(|entry| !entry.is_over())
    }

    fn poll_resumed(&mut self) -> Option<(Request<'static>, Option<Principal>)> {
        while let Some(handle) = self.resumed.pop_front() {
            let key = self.requests.get(&handle);
            let Some(entry) = key.and_then(|key| self.entries.get(*key)) else { continue };
            if matches!(entry.state, State::Working) {
                return Some((entry.request.clone(), entry.principal.clone()));
            }
        }
        None
    }

    // MCP 2026-07-28 ext-tasks:tasks#task-status-notifications [TASK-038]
    fn poll_change(&mut self) -> Option<(TaskStatusParams, Option<Principal>)> {
        while let Some(key) = self.changed.pop_front() {
            if let Some(entry) = self.entries.get(key) {
                return Some((entry.detailed().into(), entry.principal.clone()));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| deadline)
    }

    fn expire(&mut self, now: Instant) -> Option<Handler> {
        let (_, place) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now)?;
        self.deadlines.clear(place);
        let key = self.entries.key_at(place)?;
        let entry = self.entries.remove(key)?;
        self.bytes -= entry.bytes();
        self.names.remove(&entry.task.task_id);
        let request = entry.request.handle;
        self.requests.remove(&request);
        Some(Handler { request, place })
    }

    fn serve(
        &mut self,
        request: &Request<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Served {
        let mut dropped = None;
        let outcome = match self.answer(request, principal, now, &mut dropped) {
            Ok(result) => Outcome::Result(Body::Other(result)),
            Err(error) => Outcome::Error(error),
        };
        Served { outcome, dropped }
    }
}

impl TaskTable {
    pub(in crate::handler) fn new(settings: TaskSettings, limits: Limits) -> Self {
        Self {
            settings,
            limits,
            entries: Slab::new(),
            names: BTreeMap::new(),
            requests: BTreeMap::new(),
            deadlines: Deadlines::default(),
            bytes: 0,
            changed: VecDeque::new(),
            resumed: VecDeque::new(),
            wishes: BTreeSet::new(),
        }
    }

    fn ask(
        &mut self,
        key: Key,
        required: InputRequiredResult,
    ) -> Result<Option<State>, ErrorObject<'static>> {
        let Some(entry) = self.entries.get_mut(key) else { return Ok(None) };
        let before = entry.bytes();
        let asked = entry.ask(required, &self.limits);
        self.bytes = self.bytes + entry.bytes() - before;
        if matches!(asked, Ok(None)) {
            self.resumed.push_back(entry.request.handle);
        }
        Ok(asked?.map(State::Waiting))
    }

    /// Lets a task go over to another state, or fail.
    pub(super) fn change(
        &mut self,
        key: Key,
        state: Result<State, ErrorObject<'static>>,
        now: Instant,
    ) {
        let time = self.settings.time(now);
        let Some(entry) = self.entries.get_mut(key) else { return };
        let held = self.bytes - entry.bytes();
        let ended = match state {
            Ok(state) => {
                entry.pass_to(state, time.clone());
                let fits = held + entry.bytes() <= self.settings.bytes_max;
                if fits || matches!(entry.state, State::Working | State::Cancelled) {
                    None
                } else {
                    entry.state = State::Working;
                    Some(ErrorObject::internal("the server holds too much for its tasks"))
                }
            }
            Err(error) => Some(error),
        };
        if let Some(error) = ended {
            let error = error_at(error, entry.request.revision);
            // MCP 2026-07-28 ext-tasks:tasks#task-execution-errors [TASK-037]
            entry.task.status_message = Some(shortened(&error.message).into());
            let error = Json::from_serialize(&error).expect("an error is JSON");
            entry.pass_to(State::Failed(error), time);
        }
        self.bytes = held + entry.bytes();
        self.note(key);
    }

    pub(super) fn resume(&mut self, request: RequestHandle) {
        self.resumed.push_back(request);
    }

    /// The task called `name`, for whoever it belongs to.
    // MCP 2026-07-28 ext-tasks:tasks#security-considerations [TASK-041]
    pub(super) fn find(
        &self,
        name: &str,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Option<Key> {
        let key = *self.names.get(name)?;
        let entry = self.entries.get(key)?;
        (entry.principal.as_ref() == principal && now < entry.expires).then_some(key)
    }

    /// Adds or takes away what an entry holds more or less than `before`.
    pub(super) fn weigh(&mut self, key: Key, before: usize) {
        let after = self.entries.get(key).map_or(0, Entry::bytes);
        self.bytes = self.bytes + after - before;
    }

    /// Whether `more` bytes are too many.
    pub(super) const fn is_too_much(&self, more: usize) -> bool {
        self.bytes.saturating_add(more) > self.settings.bytes_max
    }

    pub(super) fn note(&mut self, key: Key) {
        if !self.changed.contains(&key) {
            self.changed.push_back(key);
        }
    }
}

fn millis(duration: core::time::Duration) -> u64 {
    // What JSON numbers hold exactly.
    const MOST: u64 = (1 << 53) - 1;
    u64::try_from(duration.as_millis()).map_or(MOST, |millis| millis.min(MOST))
}

/// The beginning of a message that people are to read.
fn shortened(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_LENGTH_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}
