//! The outcome of a handler that needs input from the user or the host.

use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

use mcp_sansio::Instant;
use mcp_sansio::peer::{CommandError, Request, ServerMachine as _};
use mcp_sansio::protocol::InputRequiredResult;

use super::elicitation_ids::ElicitationIds;
use super::server_endpoint::StreamServer;

/// Input requests that must be answered before a request can be completed. Built by
/// [`InputRequiredBuilder`](super::InputRequiredBuilder), or from an [`InputRequiredResult`].
///
/// The code that sends input requests is reached only through this type, so the binary of a server
/// without input requests does not contain it.
#[derive(Debug)]
pub struct InputRequired(Box<dyn InputRequirement>);

/// The operations on a set of input requests.
trait InputRequirement: fmt::Debug + Send + Sync {
    fn put(
        &self,
        server: &mut StreamServer,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError>;

    fn name_elicitations(&mut self, ids: ElicitationIds, request: &Request<'_>);

    fn required(&self) -> &InputRequiredResult;

    fn required_mut(&mut self) -> &mut InputRequiredResult;

    fn into_required(self: Box<Self>) -> InputRequiredResult;
}

impl InputRequirement for InputRequiredResult {
    fn put(
        &self,
        server: &mut StreamServer,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        server.require_input(request, self, now)
    }

    fn name_elicitations(&mut self, ids: ElicitationIds, request: &Request<'_>) {
        if let Some(questions) = &mut self.input_requests {
            ids.name(request, questions);
        }
    }

    fn required(&self) -> &InputRequiredResult {
        self
    }

    fn required_mut(&mut self) -> &mut InputRequiredResult {
        self
    }

    fn into_required(self: Box<Self>) -> InputRequiredResult {
        *self
    }
}

impl InputRequired {
    /// Sets the ids of URL elicitations that the revision of `request` requires.
    pub(super) fn name_elicitations(&mut self, ids: ElicitationIds, request: &Request<'_>) {
        self.0.name_elicitations(ids, request);
    }

    /// Answers a request of `server` with these input requests.
    pub(super) fn put(
        &self,
        server: &mut StreamServer,
        request: &Request<'_>,
        now: Instant,
    ) -> Result<(), CommandError> {
        self.0.put(server, request, now)
    }
}

impl From<InputRequiredResult> for InputRequired {
    fn from(required: InputRequiredResult) -> Self {
        Self(Box::new(required))
    }
}

impl From<InputRequired> for InputRequiredResult {
    fn from(questions: InputRequired) -> Self {
        questions.0.into_required()
    }
}

impl Deref for InputRequired {
    type Target = InputRequiredResult;

    fn deref(&self) -> &InputRequiredResult {
        self.0.required()
    }
}

impl DerefMut for InputRequired {
    fn deref_mut(&mut self) -> &mut InputRequiredResult {
        self.0.required_mut()
    }
}
