//! Input that a handler requests from the user or the host, the same in both eras.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::jsonrpc::{ErrorObject, Json, JsonError};
use mcp_sansio::peer::{CommandError, Request, RequestHandle, ServerMachine as _};
use mcp_sansio::protocol::{
    CreateMessageResult, ElicitAction, ElicitFormParams, ElicitParams, ElicitSchema,
    ElicitUrlParams, InputRequest, InputRequests, InputRequiredResult, ListRootsResult,
    PrimitiveSchema,
};
use mcp_sansio::{Instant, LoggingLevel, Revision};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::reply::HandlerError;
use super::server_endpoint::StreamServer;

/// Checks what the type of an input request does not ensure.
fn check(request: &InputRequest) -> Result<(), String> {
    match request {
        // MCP 2025-11-25 client/sampling#message-content-constraints [SAMP-008] [SAMP-009]
        InputRequest::CreateMessage(params) => {
            params.check_tool_results().map_err(|error| error.to_string())
        }
        // MCP 2025-11-25 client/elicitation#requested-schema [ELIC-007]
        InputRequest::Elicit(ElicitParams::Form(form)) => {
            let mut fields = form.requested_schema.properties.iter();
            match fields.find(|(_, field)| matches!(field, PrimitiveSchema::Unknown(_))) {
                Some((name, _)) => {
                    Err(alloc::format!("a form cannot have a field such as `{name}`"))
                }
                None => Ok(()),
            }
        }
        InputRequest::Elicit(ElicitParams::Url(params)) => {
            params.check_url().map_err(|error| error.to_string())
        }
        _ => Ok(()),
    }
}

impl Context {
    /// Starts a set of input requests.
    pub fn require_input(
        &self,
        key: impl Into<String>,
        question: impl Into<InputRequest>,
    ) -> InputRequired {
        InputRequired::default().and(key, question)
    }

    /// Returns the user's answer to the elicitation `key` with its content decoded; `None` if it
    /// was not asked yet. Only the types of `T` are checked: a host may send values out of the
    /// ranges of the form, which [`ElicitSchema::validate`] finds.
    ///
    /// # Errors
    ///
    /// The client refused to ask, or its answer does not have the shape of `T`.
    // MCP 2026-07-28 client/elicitation#response-actions [ELIC-002] [ELIC-013]
    pub fn input<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<ElicitResponse<T>>, HandlerError> {
        let Some(Answered { action, content }) = self.input_result(key)? else { return Ok(None) };
        let content = match content {
            Some(content) if action == ElicitAction::Accept => {
                Some(content.decode().map_err(|error| invalid(key, &error))?)
            }
            _ => None,
        };
        Ok(Some(ElicitResponse { content, action }))
    }

    /// Returns the host's answer to the sampling request `key`; `None` if it was not asked yet.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// call the API of a model.
    ///
    /// # Errors
    ///
    /// The client refused, or its answer is not valid. Malformed blocks of several and malformed
    /// annotations are left out, and named in a log message to the client.
    // Inline, so that the decoders are compiled only for programs that call it.
    #[inline]
    pub fn sampled(&self, key: &str) -> Result<Option<CreateMessageResult>, HandlerError> {
        self.lossy_result(key)
    }

    /// Returns the host's roots, requested under `key`; `None` if they were not requested yet.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// take directories and files as arguments, as URIs of resources or from the configuration.
    ///
    /// # Errors
    ///
    /// The client refused, or its answer is not valid. Malformed roots are left out, and
    /// named in a log message to the client.
    // As `sampled`.
    #[inline]
    pub fn roots(&self, key: &str) -> Result<Option<ListRootsResult>, HandlerError> {
        self.lossy_result(key)
    }

    /// Returns the state that the handler gave to [`InputRequired::state`]. A modern client
    /// can return any state unless the server seals states.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.inputs().state()
    }

    // MCP 2026-07-28 basic/patterns/mrtr#error-handling [MRTR-016]: a missing answer is requested
    // again, a malformed one is an error.
    pub(crate) fn input_result<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<T>, HandlerError> {
        if let Some(error) = self.inputs().refusal(key) {
            return Err(HandlerError::failed(alloc::format!("`{key}` was not answered: {error}")));
        }
        let Some(response) = self.inputs().response(key) else { return Ok(None) };
        response.decode().map(Some).map_err(|error| invalid(key, &error))
    }

    /// Like [`input_result`](Self::input_result), without the malformed elements of lists and the
    /// malformed hints in the answer, which a log message to the client names.
    fn lossy_result<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, HandlerError> {
        let read = self.input_result::<Json>(key)?.map(|answer| answer.as_raw().decode_lossy());
        let Some(read) = read else { return Ok(None) };
        let (result, omissions) = read.map_err(|error| invalid(key, &error))?;
        if !omissions.is_empty() {
            let text = alloc::format!("left out of the answer to `{key}`: {omissions}");
            self.log(LoggingLevel::Warning, &text);
        }
        Ok(Some(result))
    }
}

fn invalid(key: &str, error: &JsonError) -> HandlerError {
    HandlerError::invalid_params(alloc::format!("the answer to `{key}`: {error}"))
}

/// An answer whose content is decoded into the handler's type only, not into the values of any form.
#[derive(Deserialize)]
struct Answered {
    action: ElicitAction,
    content: Option<Json>,
}

/// The user's answer to an elicitation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElicitResponse<T> {
    /// The form content, if the user accepted.
    pub content: Option<T>,
    /// The choice of the user.
    pub action: ElicitAction,
}

impl<T> ElicitResponse<T> {
    /// Whether the user accepted, rather than declined or cancelled.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.action == ElicitAction::Accept
    }
}

/// Builds elicitations.
///
/// ```
/// use mcp_sansio_handlers::Elicit;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Booking { /** Number of people */ people: u8 }
///
/// let form = Elicit::form::<Booking>("For how many?");
/// let page = Elicit::url("Sign in to continue", "https://bank.example.com/sign-in");
/// # let _ = (form, page);
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Elicit {}

impl Elicit {
    /// Asks the user to fill in a form.
    #[must_use]
    pub fn form_with(message: impl Into<String>, schema: ElicitSchema) -> InputRequest {
        ElicitParams::from(ElicitFormParams::new(message, schema)).into()
    }

    /// Sends the user to a URL with `https` or `http`; the answer says only whether the user agreed
    /// to go. Another URL ends the request with an internal error.
    ///
    /// At 2025-11-25 the elicitation has an unguessable id, derived from the secret of the endpoint
    /// when it is sent. The same request keeps the id as long as it asks for the same URL under the
    /// same key. To choose the id, which `notifications/elicitation/complete` then names, build
    /// [`ElicitUrlParams`] with [`elicitation_id`](ElicitUrlParams::elicitation_id).
    // MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014] [ELIC-016]
    // MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]
    #[must_use]
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> InputRequest {
        ElicitParams::from(ElicitUrlParams::new(message, url)).into()
    }
}

// ------------------------------------------------------------------ outcome of a handler that asks

/// Input requests that must be answered before a request can be completed.
///
/// Return it as `ask.into_result()` or use `?` on that; the handler is called again with the
/// answers. It may be called any number of times, and each call repeats the work before the input
/// request. Each round contains the answers to its own input requests only: store data that must
/// outlast a round in [`state`](Self::state). See the [crate](crate#questions) for an example.
///
/// The code that sends input requests is reached only through this type, so the binary of a server
/// without input requests does not contain it.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-009]
#[must_use = "return `ask.into_result()`"]
pub struct InputRequired(Box<dyn InputRequirement>);

// Names the input requests only: the texts of every type that one may contain take 30 kilobytes of a
// module.
impl fmt::Debug for InputRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.0.required().input_requests.iter().flat_map(InputRequests::iter);
        f.write_str("InputRequired")?;
        f.debug_list().entries(requests.map(|(name, _)| name)).finish()
    }
}

/// The operations on a set of input requests.
trait InputRequirement: Send + Sync {
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
    /// Adds another input request under its own key.
    pub fn and(mut self, key: impl Into<String>, question: impl Into<InputRequest>) -> Self {
        self.input_requests.get_or_insert_default().insert(key, question);
        self
    }

    /// Sets the state that is returned to the handler with the answers.
    ///
    /// In the modern era it travels through the client, which can read it. On HTTP it is sealed, so
    /// that a modified state is refused. On a byte stream, where the client started this process,
    /// it is sealed only with `Server::seal`.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.request_state = Some(state.into());
        self
    }

    /// Returns the input requests in the form that a handler returns.
    ///
    /// # Errors
    ///
    /// Always returns an error, which ends this call of the handler. The error makes the request
    /// fail if an input request is not allowed, which is a bug in the handler: a form with a field
    /// that forms cannot have, or a sampling request that continues tool calls without results.
    pub fn into_result<T>(self) -> Result<T, HandlerError> {
        for (key, request) in self.input_requests.iter().flat_map(InputRequests::iter) {
            check(request).map_err(|error| {
                HandlerError::Protocol(ErrorObject::internal(alloc::format!("`{key}`: {error}")))
            })?;
        }
        Err(HandlerError::InputRequired(self))
    }

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

impl Default for InputRequired {
    fn default() -> Self {
        InputRequiredResult::new().into()
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

// ------------------------------------------------------------------ elicitation ids

/// Derives the id of a URL elicitation from a secret.
///
/// An id is a keyed hash of the request, the key of the input request and the URL. Without the
/// secret an id is indistinguishable from random bytes. The same input request of the same request
/// keeps its id however often a handler sends it, and any other one gets a different id. So entropy
/// is needed only once, and the endpoint stays deterministic.
// MCP 2025-11-25 client/elicitation#url-mode-elicitation-requests [ELIC-014]
#[derive(Clone, Copy)]
pub(super) struct ElicitationIds(u64, u64);

/// Separates these hashes from other uses of the seed.
const LABEL: u64 = u64::from_be_bytes(*b"elicit\0\x01");

impl ElicitationIds {
    pub(super) const fn from_seed(seed: u64) -> Self {
        Self(seed, LABEL)
    }

    /// Derives the keys in a way that does not reveal other values derived from the secret.
    #[cfg(feature = "http")]
    pub(super) fn from_secret(secret: &[u8; 32]) -> Self {
        use sha2::{Digest, Sha256};

        let hash = Sha256::new().chain_update(LABEL.to_be_bytes()).chain_update(secret).finalize();
        let half =
            |at: usize| hash[at..at + 8].iter().fold(0, |it, byte| it << 8 | u64::from(*byte));
        Self(half(0), half(8))
    }

    /// Sets the ids that the input requests to the client of `request` need and lack.
    // MCP 2026-07-28 client/elicitation#url-mode-elicitation-requests [ELIC-015]: this revision has
    // no ids.
    pub(super) fn name(self, request: &Request<'_>, questions: &mut InputRequests) {
        if request.revision != Revision::V2025_11_25 {
            return;
        }
        for (key, question) in questions.iter_mut() {
            if let InputRequest::Elicit(ElicitParams::Url(params)) = question
                && params.elicitation_id.is_none()
            {
                params.elicitation_id = Some(self.id(request.handle, key, &params.url));
            }
        }
    }

    /// Returns an id of 128 bits.
    fn id(self, request: RequestHandle, key: &str, url: &str) -> String {
        let half = |number: u8| {
            // SipHash-2-4 is a pseudorandom function; the hashers of the tables are not.
            #[expect(deprecated, reason = "`DefaultHasher` may change its algorithm")]
            let mut hasher = core::hash::SipHasher::new_with_keys(self.0, self.1);
            (number, request, key, url).hash(&mut hasher);
            hasher.finish().to_be_bytes()
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half(0));
        bytes[8..].copy_from_slice(&half(1));
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

mcp_sansio::partial_debug! {
    /// Omits the secret.
    impl Debug for ElicitationIds(..)
}
