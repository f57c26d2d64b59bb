//! Requests to the host, and the answers of its handlers.

use alloc::string::ToString;
use alloc::sync::Arc;

use mcp_sansio::Instant;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{ClientMachine, CommandError, InputHandle, InputRequested};
use mcp_sansio_collections::Key;

use super::client_endpoint::ClientEndpoint;
use super::context::RequestParts;
use super::pending::Pending;
use super::reply::{Outcome, ResultBody};
use super::threading::{Step, Threading};

/// The request that a host's handler answers.
#[derive(Debug)]
pub(super) enum Asked {
    Input(InputHandle),
    /// An input request of a task that is followed.
    Task(Arc<Pending>),
    Request(mcp_sansio::peer::RequestHandle),
}

impl<K: Threading, M: ClientMachine> ClientEndpoint<K, M> {
    pub(super) fn ask(&mut self, input: InputRequested<'_>, now: Instant) {
        let Some(function) = self.handlers.of_input(input.method).cloned() else {
            let error = ErrorObject::method_not_found(input.method.as_str());
            let input = input.handle;
            let _answered = self.machine.refuse_input(input, error, now);
            return;
        };
        let parts = RequestParts::from_host_request(&input, self.default_spawner);
        self.run(Asked::Input(input.handle), &function, parts, now);
    }

    /// Calls a handler.
    pub(super) fn run(
        &mut self,
        asked: Asked,
        function: &K::Function,
        parts: RequestParts<'_, '_>,
        now: Instant,
    ) {
        let observation = match &asked {
            Asked::Input(input) => self.machine.observation_of_input(*input),
            Asked::Task(_) => None,
            Asked::Request(request) => self.machine.observation_of(*request),
        };
        let parts = RequestParts { observation: observation.as_ref(), ..parts };
        let place = self.inputs.insert(asked);
        let observation = observation.clone();
        let guard = self.tasks.guard;
        let call = || {
            let called = guard.run(|| function(parts));
            called.unwrap_or_else(|panicked| Step::Ready(panicked.into()))
        };
        let step = super::observed_handler::call_observed(observation, call);
        match step {
            Step::Ready(outcome) => self.answer(place, outcome, now),
            Step::Pending(task) => {
                if let Some((place, outcome)) = self.tasks.start(place.slot, task, place) {
                    self.answer(place, outcome.unwrap_or_else(Outcome::from), now);
                }
            }
        }
    }

    pub(super) fn answer(&mut self, place: Key, outcome: Outcome, now: Instant) {
        let Some(asked) = self.inputs.remove(place) else { return };
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

    pub(super) fn withdraw(&mut self, is_meant: impl Fn(&Asked) -> bool) {
        if let Some(place) = self.inputs.find_from(0, is_meant) {
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
        Outcome::Refused(refusal) => Some(refusal.error),
        Outcome::InputRequired(_) => {
            Some(ErrorObject::internal("a host's handler cannot ask for input"))
        }
    }
}
