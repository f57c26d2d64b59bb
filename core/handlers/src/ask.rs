//! What a handler asks the user or the host, the same in both eras.

use alloc::string::String;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::protocol::{
    CreateMessageResult, ElicitFormParams, ElicitParams, ElicitResult, ElicitSchema,
    ElicitUrlParams, InputRequest, InputRequests, InputRequiredResult, ListRootsResult,
};
use serde::de::DeserializeOwned;

use super::context::Context;
use super::reply::Error;

/// Questions that a request needs answered before it can be.
///
/// Return it as `ask.into_result()` or use `?` on that; the handler is called again with the
/// answers. It may be called any number of times, so whatever it did before it asked, it does
/// again. Each round brings the answers to its own questions only: what must outlast a round goes
/// into [`state`](Self::state). See the [module](super) for an example.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-009]
#[derive(Clone, Debug, Default)]
#[must_use = "return `ask.into_result()`"]
pub struct InputRequiredBuilder {
    requests: InputRequests,
    state: Option<String>,
}

impl InputRequiredBuilder {
    /// One more question, under a key of its own.
    pub fn and(mut self, key: impl Into<String>, question: impl Into<InputRequest>) -> Self {
        self.requests.insert(key, question);
        self
    }

    /// What the handler wants back with the answers.
    ///
    /// In the modern era it travels through the client, which can read it. On HTTP it is sealed
    /// (feature `seal`), so that it comes back as it was or not at all; on a byte stream, where the
    /// client is whoever started this process, with `Server::seal`.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// The questions in the form that a handler returns.
    ///
    /// # Errors
    ///
    /// Always: that is how the handler ends for now. If a model is asked to go on with tool calls that
    /// have no results, the request fails instead, with the reason: the handler's fault.
    pub fn into_result<T>(self) -> Result<T, Error> {
        for (key, request) in self.requests.iter() {
            // MCP 2025-11-25 client/sampling#message-content-constraints [SAMP-008] [SAMP-009]
            if let InputRequest::CreateMessage(params) = request {
                let matching = params.check_tool_results();
                matching.map_err(|error| {
                    Error::Protocol(ErrorObject::internal(alloc::format!("`{key}`: {error}")))
                })?;
            }
        }
        let mut required = InputRequiredResult::new();
        let asks = !self.requests.is_empty();
        required.input_requests = asks.then_some(self.requests);
        required.request_state = self.state;
        Err(Error::InputRequired(required.into()))
    }
}

impl Context {
    /// Starts a set of questions.
    pub fn require_input(
        &self,
        key: impl Into<String>,
        question: impl Into<InputRequest>,
    ) -> InputRequiredBuilder {
        InputRequiredBuilder::default().and(key, question)
    }

    /// The user's answer to the elicitation `key`, its content decoded; `None` if it was not asked
    /// yet.
    ///
    /// # Errors
    ///
    /// The client refused to ask, or its answer does not have the shape of `T`.
    // MCP 2026-07-28 client/elicitation#response-actions [ELIC-002] [ELIC-013]
    pub fn input<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<ElicitResponse<T>>, Error> {
        let Some(result) = self.input_result::<ElicitResult>(key)? else { return Ok(None) };
        let content = match &result.content {
            Some(_) if result.is_accepted() => {
                let decoded = result.decode_content();
                Some(decoded.map_err(|error| {
                    Error::invalid_params(alloc::format!("the answer to `{key}`: {error}"))
                })?)
            }
            _ => None,
        };
        Ok(Some(ElicitResponse { content, result }))
    }

    /// The host's answer to the sampling request `key`; `None` if it was not asked yet.
    ///
    /// # Errors
    ///
    /// The client refused, or its answer is not valid.
    pub fn sampled(&self, key: &str) -> Result<Option<CreateMessageResult>, Error> {
        self.input_result(key)
    }

    /// The host's roots, asked for under `key`; `None` if they were not asked for yet.
    ///
    /// # Errors
    ///
    /// The client refused, or its answer is not valid.
    pub fn roots(&self, key: &str) -> Result<Option<ListRootsResult>, Error> {
        self.input_result(key)
    }

    /// The state that the handler gave to [`InputRequiredBuilder::state`]. From a modern client it is what the
    /// client says that it was, unless the server has states sealed.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.inputs().state()
    }

    // MCP 2026-07-28 basic/patterns/mrtr#error-handling [MRTR-016]: what is missing is asked for
    // again, what is malformed is an error.
    fn input_result<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Error> {
        if let Some(error) = self.inputs().refusal(key) {
            return Err(Error::failed(alloc::format!("`{key}` was refused: {error}")));
        }
        let Some(response) = self.inputs().response(key) else { return Ok(None) };
        match response.decode() {
            Ok(result) => Ok(Some(result)),
            Err(error) => {
                let message = alloc::format!("the answer to `{key}`: {error}");
                Err(Error::invalid_params(message))
            }
        }
    }
}

/// The user's answer to an elicitation.
#[derive(Clone, Debug)]
pub struct ElicitResponse<T> {
    /// What the user filled in, if they accepted.
    pub content: Option<T>,
    /// The answer as it came.
    pub result: ElicitResult,
}

impl<T> ElicitResponse<T> {
    /// Whether the user accepted, rather than declined or cancelled.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.result.is_accepted()
    }
}

/// Makes elicitations.
#[derive(Clone, Copy, Debug)]
pub enum Elicit {}

impl Elicit {
    /// Asks the user to fill in a form.
    #[must_use]
    pub fn form_with(message: impl Into<String>, schema: ElicitSchema) -> InputRequest {
        ElicitParams::from(ElicitFormParams::new(message, schema)).into()
    }

    /// Asks the user to fill in a form with the fields of `T`, a flat struct of strings, numbers,
    /// booleans and plain enums.
    ///
    /// # Panics
    ///
    /// When `T` has fields that a form cannot have: a fault of the program that its first test
    /// shows.
    // MCP 2025-11-25 client/elicitation#requested-schema [ELIC-007]
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn form<T: schemars::JsonSchema>(message: impl Into<String>) -> InputRequest {
        let schema = super::schema::of_form::<T>();
        let form = schema.decode::<ElicitSchema>();
        let form = form.unwrap_or_else(|error| panic!("not the fields of a form: {error}"));
        let unknown = form
            .properties
            .iter()
            .find(|(_, field)| matches!(field, mcp_sansio::protocol::PrimitiveSchema::Unknown(_)));
        if let Some((name, _)) = unknown {
            panic!("a form cannot have a field such as `{name}`");
        }
        Self::form_with(message, form)
    }

    /// Sends the user to an address; the answer says only whether they agreed to go.
    ///
    /// At 2025-11-25 the question has an id that nobody can guess, drawn from the secret of the endpoint
    /// when it is asked. The same request keeps it as long as it asks for the same address under the
    /// same key. For an id of your own, to be named in `notifications/elicitation/complete`, make
    /// [`ElicitUrlParams`] with [`elicitation_id`](ElicitUrlParams::elicitation_id).
    // MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014] [ELIC-016]
    // MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> InputRequest {
        ElicitParams::from(ElicitUrlParams::new(message, url)).into()
    }
}
