//! Input rounds: requests for input that a server needs before it can respond; since 2026-07-28.

use alloc::string::String;
use core::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde::ser::{SerializeMap, Serializer};

use super::Method;
use super::Revision;
use super::elicitation::{ElicitParams, ElicitResult};
use super::map::Map;
use super::message::{forward_wire, message};
use super::meta::Meta;
use super::root::{ListRootsParams, ListRootsResult};
use super::sampling::{CreateMessageParams, CreateMessageResult};
use super::task::TaskMetadata;
use super::wire::{NotExpressible, SerializeAt};
use super::{Capabilities, Capability};
use crate::jsonrpc::{Json, RawJson};

/// The input requests of a server, by keys that it chooses.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-004]
pub type InputRequests = Map<InputRequest>;

/// The client's responses, by the same keys.
// MCP 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow [MRTR-010]
pub type InputResponses = Map<InputResponse>;

/// An input request: a method with its parameters, without an id.
///
/// Until 2025-11-25 a server sends the same as a JSON-RPC request, with the parameters from
/// [`InputRequest::params`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InputRequest {
    /// Calls the model: `sampling/createMessage`.
    CreateMessage(CreateMessageParams),
    /// Lists the roots: `roots/list`.
    ListRoots(ListRootsParams),
    /// Asks the user: `elicitation/create`.
    Elicit(ElicitParams),
    /// An unknown method, kept and written back unchanged.
    Unknown(Json),
}

impl InputRequest {
    /// Returns the method, or `None` if it is unknown.
    #[must_use]
    pub const fn method(&self) -> Option<Method> {
        match self {
            Self::CreateMessage(_) => Some(Method::SamplingCreateMessage),
            Self::ListRoots(_) => Some(Method::RootsList),
            Self::Elicit(_) => Some(Method::ElicitationCreate),
            Self::Unknown(_) => None,
        }
    }

    /// Asks the client to run this request as a task that it keeps for `ttl`, or for a time that it
    /// chooses. At 2025-11-25, a client that supports it answers at once, and works without an open
    /// request; the server fetches the result of the task, which becomes the response to this
    /// request, and waits `ttl` for it at most, or an hour. All other clients are asked without a
    /// task. Has no effect on [`ListRoots`](Self::ListRoots) and [`Unknown`](Self::Unknown).
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]
    #[must_use]
    pub fn as_task(mut self, ttl: Option<Duration>) -> Self {
        let mut task = TaskMetadata::new();
        task.ttl = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        if let Some(asked) = self.task_mut() {
            *asked = Some(task);
        }
        self
    }

    /// Returns how the request asks for a task, if it does.
    pub(crate) const fn task(&self) -> Option<&TaskMetadata> {
        match self {
            Self::CreateMessage(params) => params.task.as_ref(),
            Self::Elicit(ElicitParams::Form(params)) => params.task.as_ref(),
            Self::Elicit(ElicitParams::Url(params)) => params.task.as_ref(),
            _ => None,
        }
    }

    pub(crate) const fn task_mut(&mut self) -> Option<&mut Option<TaskMetadata>> {
        match self {
            Self::CreateMessage(params) => Some(&mut params.task),
            Self::Elicit(ElicitParams::Form(params)) => Some(&mut params.task),
            Self::Elicit(ElicitParams::Url(params)) => Some(&mut params.task),
            _ => None,
        }
    }

    /// Returns only the parameters.
    #[must_use]
    pub const fn params(&self) -> impl SerializeAt + '_ {
        self.params_for(self.task())
    }

    /// Returns only the parameters, asking for `task`.
    pub(crate) const fn params_for<'a>(
        &'a self,
        task: Option<&'a TaskMetadata>,
    ) -> InputParams<'a> {
        InputParams { request: self, task }
    }

    /// Returns the capabilities that a client must have declared to receive this request at
    /// `revision`.
    // MCP 2025-11-25 client/elicitation#capabilities [ELIC-001] [ELIC-005]
    // MCP 2025-11-25 client/sampling#capabilities [SAMP-001] [SAMP-006] [SAMP-013]
    // MCP 2025-11-25 client/roots#capabilities [ROOT-001]
    pub fn needs(&self, revision: Revision) -> impl Iterator<Item = Capability> {
        let modes = revision >= Revision::V2025_11_25;
        let (first, second, third) = match self {
            Self::ListRoots(_) => (Some(Capability::Roots), None, None),
            Self::Elicit(params) => {
                let mode = match params {
                    ElicitParams::Url(_) => Some(Capability::ElicitationUrl),
                    _ => modes.then_some(Capability::ElicitationForm),
                };
                (Some(Capability::Elicitation), mode, None)
            }
            Self::CreateMessage(params) => {
                let tools = params.tools.is_some() || params.tool_choice.is_some();
                let context = params
                    .include_context
                    .as_ref()
                    .is_some_and(|context| context.as_str() != "none");
                (
                    Some(Capability::Sampling),
                    (modes && tools).then_some(Capability::SamplingTools),
                    (modes && context).then_some(Capability::SamplingContext),
                )
            }
            Self::Unknown(_) => (None, None, None),
        };
        [first, second, third].into_iter().flatten()
    }
}

impl InputRequests {
    /// Returns the first capability that these requests need at `revision` and the client has not
    /// `declared`: they must not be sent to it.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-005],
    // MCP 2026-07-28 basic/index#_meta [CAP-021]
    #[must_use]
    pub fn missing(&self, declared: Capabilities, revision: Revision) -> Option<Capability> {
        let lacks = |capability: &Capability| !declared.contains(*capability);
        self.iter().find_map(|(_, request)| request.needs(revision).find(lacks))
    }
}

impl From<CreateMessageParams> for InputRequest {
    fn from(params: CreateMessageParams) -> Self {
        Self::CreateMessage(params)
    }
}

impl From<ListRootsParams> for InputRequest {
    fn from(params: ListRootsParams) -> Self {
        Self::ListRoots(params)
    }
}

impl From<ElicitParams> for InputRequest {
    fn from(params: ElicitParams) -> Self {
        Self::Elicit(params)
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Request<'a> {
            method: String,
            #[serde(borrow)]
            params: Option<RawJson<'a>>,
        }

        let json = Json::deserialize(deserializer)?;
        let request: Request<'_> = json.decode().map_err(D::Error::custom)?;
        let params = request.params.unwrap_or(RawJson::EMPTY_OBJECT);
        match request.method.as_str() {
            "sampling/createMessage" => params.decode().map(Self::CreateMessage),
            "roots/list" => params.decode().map(Self::ListRoots),
            "elicitation/create" => params.decode().map(Self::Elicit),
            _ => return Ok(Self::Unknown(json)),
        }
        .map_err(D::Error::custom)
    }
}

impl SerializeAt for InputRequest {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let Some(method) = self.method() else {
            return self.params().serialize_at(revision, serializer);
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", method.as_str())?;
        // Parameters without members can be omitted; only `roots/list` may have such parameters.
        if *self != Self::ListRoots(ListRootsParams::new()) {
            map.serialize_entry("params", &self.params().at(revision))?;
        }
        map.end()
    }
}

/// The parameters of an [`InputRequest`], or the complete request if its method is unknown.
pub(crate) struct InputParams<'a> {
    request: &'a InputRequest,
    task: Option<&'a TaskMetadata>,
}

impl SerializeAt for InputParams<'_> {
    fn serialize_at<S: Serializer>(
        &self,
        revision: Revision,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if let InputRequest::Unknown(json) | InputRequest::Elicit(ElicitParams::Unknown(json)) =
            self.request
        {
            return json.serialize_at(revision, serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self.request {
            InputRequest::CreateMessage(params) => params.write_fields(revision, &mut map)?,
            InputRequest::ListRoots(params) => params.write_fields(revision, &mut map)?,
            InputRequest::Elicit(ElicitParams::Form(params)) => {
                params.write_fields(revision, &mut map)?;
            }
            InputRequest::Elicit(ElicitParams::Url(params)) => {
                params.write_fields(revision, &mut map)?;
            }
            InputRequest::Elicit(ElicitParams::Unknown(_)) | InputRequest::Unknown(_) => {}
        }
        if let Some(task) = self.task
            && revision == Revision::V2025_11_25
        {
            map.serialize_entry("task", &task.at(revision))?;
        }
        map.end()
    }
}

/// The response to one input request: the result without an envelope.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InputResponse {
    /// The message of the model.
    CreateMessage(CreateMessageResult),
    /// The roots.
    ListRoots(ListRootsResult),
    /// The response of the user.
    Elicit(ElicitResult),
    /// Any other response, kept and written back unchanged.
    Unknown(Json),
}

forward_wire!(InputResponse { CreateMessage, ListRoots, Elicit, Unknown });

impl From<CreateMessageResult> for InputResponse {
    fn from(result: CreateMessageResult) -> Self {
        Self::CreateMessage(result)
    }
}

impl From<ListRootsResult> for InputResponse {
    fn from(result: ListRootsResult) -> Self {
        Self::ListRoots(result)
    }
}

impl From<ElicitResult> for InputResponse {
    fn from(result: ElicitResult) -> Self {
        Self::Elicit(result)
    }
}

impl<'de> Deserialize<'de> for InputResponse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A response does not name its request, but each kind has a member that the others lack.
        #[derive(Deserialize)]
        struct Probe<'a> {
            #[serde(borrow)]
            action: Option<RawJson<'a>>,
            #[serde(borrow)]
            roots: Option<RawJson<'a>>,
            #[serde(borrow)]
            model: Option<RawJson<'a>>,
        }

        let json = Json::deserialize(deserializer)?;
        let probe: Probe<'_> = json.decode().map_err(D::Error::custom)?;
        match (probe.action, probe.roots, probe.model) {
            (Some(_), ..) => json.decode().map(Self::Elicit),
            (None, Some(_), _) => json.decode().map(Self::ListRoots),
            (None, None, Some(_)) => json.decode().map(Self::CreateMessage),
            (None, None, None) => return Ok(Self::Unknown(json)),
        }
        .map_err(D::Error::custom)
    }
}

message! {
    /// The result of a request that needs input first; since 2026-07-28.
    // MCP 2026-07-28 basic/patterns/mrtr#multi-round-trip-requests [MRTR-001]
    #[derive(Default)]
    pub struct InputRequiredResult {
        check asks_or_remembers;
        tag "resultType" = "input_required" in ALL;
        required {}
        defaulted {}
        optional {
            /// The requests for input.
            input_requests: InputRequests = "inputRequests" in ALL;
            /// The state that the client returns unchanged.
            // MCP 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow [MRTR-012]
            request_state: String = "requestState" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-003]: at least one.
fn asks_or_remembers(
    result: &InputRequiredResult,
    revision: Revision,
) -> Result<(), NotExpressible> {
    // MCP 2026-07-28 basic/patterns/mrtr#multi-round-trip-requests [MRTR-001]: no older revision
    // has input rounds.
    if revision < Revision::V2026_07_28 {
        Err(NotExpressible::new("a result that requires input", revision))
    } else if result.input_requests.is_none() && result.request_state.is_none() {
        Err(NotExpressible::new(
            "a result that requires input without requests or a state",
            revision,
        ))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::protocol::{ElicitFormParams, ElicitSchema, IncludeContext};

    #[test]
    fn an_input_required_result_has_requests_or_a_state() {
        // Rule: [MRTR-001] [MRTR-003].
        assert!(InputRequiredResult::new().to_json_at(Revision::LATEST).is_err());
        let remembers = InputRequiredResult::new().request_state("s");
        assert_eq!(
            remembers.to_json_at(Revision::LATEST).unwrap().as_str(),
            r#"{"resultType":"input_required","requestState":"s"}"#
        );
        assert!(remembers.to_json_at(Revision::LATEST_LEGACY).is_err());
    }

    #[test]
    fn an_input_request_has_a_method_and_older_revisions_use_only_its_parameters() {
        // Rule: [MRTR-004].
        let request =
            InputRequest::from(ElicitParams::from(ElicitFormParams::new("m", ElicitSchema::new())));
        assert_eq!(
            request.to_json_at(Revision::V2026_07_28).unwrap().as_str(),
            r#"{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}"#
        );
        assert_eq!(
            request.params().to_json_at(Revision::V2025_06_18).unwrap().as_str(),
            r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#
        );
    }

    #[test]
    fn including_context_requires_the_context_capability() {
        // Rule: [SAMP-013].
        let question = |context| {
            let params = CreateMessageParams::new([], 1).include_context(context);
            InputRequest::from(params).needs(Revision::V2025_11_25).collect::<Vec<_>>()
        };
        assert_eq!(question(IncludeContext::None), [Capability::Sampling]);
        for context in [IncludeContext::ThisServer, IncludeContext::AllServers] {
            assert_eq!(question(context), [Capability::Sampling, Capability::SamplingContext]);
        }
    }

    #[test]
    fn the_state_round_trips_byte_for_byte() {
        // Rule: [MRTR-012].
        let state = "\u{e9}\n\"\\ \u{1f600}";
        let result = InputRequiredResult::new().request_state(state);
        let text = result.to_json_at(Revision::LATEST).unwrap();
        assert_eq!(text.decode::<InputRequiredResult>().unwrap().request_state.unwrap(), state);
    }

    #[test]
    fn an_unknown_method_and_an_unknown_answer_survive() {
        let text = r#"{"k":{"method":"quiz/ask","params":{"q":1}}}"#;
        let requests: InputRequests = serde_json::from_str(text).unwrap();
        assert_eq!(requests.to_json_at(Revision::LATEST).unwrap().as_str(), text);
        let text = r#"{"k":{"grade":1}}"#;
        let responses: InputResponses = serde_json::from_str(text).unwrap();
        assert_eq!(responses.to_json_at(Revision::LATEST).unwrap().as_str(), text);
    }

    #[test]
    fn responses_are_distinguished_by_their_members() {
        // Rule: [MRTR-010].
        let read = |text| serde_json::from_str::<InputResponse>(text).unwrap();
        assert!(matches!(read(r#"{"action":"cancel"}"#), InputResponse::Elicit(_)));
        assert!(matches!(read(r#"{"roots":[]}"#), InputResponse::ListRoots(_)));
        let said = r#"{"role":"assistant","content":{"type":"text","text":"t"},"model":"m"}"#;
        assert!(matches!(read(said), InputResponse::CreateMessage(_)));
        assert!(serde_json::from_str::<InputResponse>(r#"{"model":"m"}"#).is_err());
    }
}
