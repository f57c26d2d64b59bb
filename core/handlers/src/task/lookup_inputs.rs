//! Input requests of tasks on other nodes, sent through requests that wait here.

use mcp_sansio::Instant;
use mcp_sansio::http::{TaskCommand, TaskMessage, TaskRecord};
use mcp_sansio::peer::{Request, RequestHandle, ServerMachine as _};
use mcp_sansio::protocol::InputRequiredResult;

use crate::http_server::HttpServerMachine;
use crate::server_binding::ServerBinding;

use super::lookup::Lookup;
use super::record::Details;
use super::table::TaskTable;

impl TaskTable {
    /// Sends the input requests of a task through a request that waits for its result.
    // MCP 2025-11-25 basic/utilities/tasks#input-required-status [TASK-015]
    pub(super) fn ask_client(
        &mut self,
        machine: &mut HttpServerMachine,
        handle: RequestHandle,
        record: &TaskRecord,
        now: Instant,
    ) {
        let Some(shared) = &mut self.shared else { return };
        let Some(lookup) = shared.lookups.entries.get(&handle) else { return };
        let (details, key) = (Details::from_record(record), lookup.key.clone());
        let (round, questions) = (details.round, details.questions());
        let asked = lookup.asked;
        if round <= lookup.answered {
            return;
        }
        if asked.is_some_and(|(asked, _)| asked != round || questions.is_none()) {
            // Answered by another request.
            ServerBinding::withdraw(machine, handle, now);
            if let Some(lookup) = self.lookup_mut(handle) {
                lookup.asked = None;
            }
        } else if asked.is_some() {
            return;
        }
        let Some(questions) = questions else { return };
        let Some(shared) = &self.shared else { return };
        let others = shared
            .lookups
            .about(&key, |other| other.asked.is_some_and(|(asked, _)| asked == round));
        if others.iter().any(|other| machine.has_open_stream(*other)) {
            return;
        }
        let Some(Lookup { request, .. }) = shared.lookups.entries.get(&handle) else { return };
        let mut required = InputRequiredResult::new();
        required.input_requests = Some(questions);
        // If the input request cannot be sent, the machine has answered the request.
        if machine.require_input(request, &required, now).is_err() {
            self.take_lookup(handle);
        } else if let Some(lookup) = self.lookup_mut(handle) {
            lookup.asked = Some((round, record.node));
        }
    }

    /// Passes the answers of a client on to the node of the task.
    pub(super) fn relay_inputs(
        &mut self,
        machine: &mut HttpServerMachine,
        request: &Request<'_>,
        now: Instant,
    ) {
        let Some(lookup) = self.lookup_mut(request.handle) else { return };
        let Some((round, to)) = lookup.asked.take() else { return };
        (lookup.answered, lookup.pending) = (round, true);
        let key = lookup.key.clone();
        let mut inputs = request.inputs.clone().into_owned();
        inputs.set_state(None);
        let message = TaskMessage::Update { round, inputs };
        let handle = request.handle;
        self.shared_mut().lookups.set_due(handle, None);
        machine.share_task(TaskCommand::Relay { request: handle, to, key, message }, now);
    }
}
