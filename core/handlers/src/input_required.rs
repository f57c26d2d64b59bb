//! What a handler that needs the user or the host first comes to.

use alloc::boxed::Box;
use core::fmt;
use core::ops::{Deref, DerefMut};

use mcp_sansio::Instant;
use mcp_sansio::peer::{CommandError, Request};
use mcp_sansio::protocol::InputRequiredResult;

use super::elicitation_ids::ElicitationIds;
use super::machines::StreamServer;

/// Questions that a request needs answered before it can be. Made by [`InputRequiredBuilder`](super::InputRequiredBuilder), or from
/// an [`InputRequiredResult`].
///
/// Only what makes them leads to the code that puts them to a client: the image of a server that
/// asks nothing does without.
#[derive(Debug)]
pub struct InputRequired(Box<dyn InputRequirement>);

/// What there is to be done with questions.
trait InputRequirement: fmt::Debug + Send + Sync {
    fn put(
        &self,
        server: &mut StreamServer,
        request: Request<'_>,
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
        request: Request<'_>,
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
    /// Gives elicitations by an address the ids that the revision of `request` wants.
    pub(super) fn name_elicitations(&mut self, ids: ElicitationIds, request: &Request<'_>) {
        self.0.name_elicitations(ids, request);
    }

    /// Answers a request of `server` with these questions.
    pub(super) fn put(
        &self,
        server: &mut StreamServer,
        request: Request<'_>,
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
