//! Options and values of the applications in the operation targets.

use std::time::Duration;

use mcp_sansio::catalog::Catalog;
use mcp_sansio::gate::TABLE;
use mcp_sansio::jsonrpc::{ErrorObject, RawJson};
use mcp_sansio::peer::{
    CallOptions, ClientOptions, Limits, Policy, Reaction, ServerOptions, Timeouts,
};
use mcp_sansio::protocol::*;
use mcp_sansio::{Era, ErrorCode, Method, Revision, Revisions};

use super::operation::Operation;

/// An object without members.
pub(super) const EMPTY: RawJson<'static> = RawJson::EMPTY_OBJECT;

/// Returns the setting at a position; `0` if absent.
fn setting(settings: &[u8], at: usize) -> u8 {
    settings.get(at).copied().unwrap_or(b'0')
}

/// Selects one revision or a range: `1` to `5` a single one, `l` the legacy ones, `m` the modern
/// one, anything else all.
pub(super) fn revisions(letter: u8) -> Revisions {
    match letter {
        b'1'..=b'5' => Revisions::only(Revision::ALL[usize::from(letter - b'1')]),
        b'l' => Revisions::LEGACY,
        b'm' => Revisions::MODERN,
        _ => Revisions::ALL,
    }
}

/// Returns the limits of a machine with these settings.
pub(super) fn limits(settings: &[u8]) -> Limits {
    match setting(settings, 1) {
        b's' => Limits::SMALL,
        b't' => tiny_limits(),
        _ => Limits::DEFAULT,
    }
}

/// Sets every limit to one where possible.
fn tiny_limits() -> Limits {
    let mut limits = Limits::SMALL;
    limits.requests_in_flight_max = 1;
    limits.calls_in_flight_max = 1;
    limits.tombstones_max = 1;
    limits.subscribed_resources_max = 1;
    limits.listen_streams_max = 1;
    limits.rounds_max = 1;
    limits.inputs_per_round_max = 1;
    limits.batch_length_max = 2;
    limits
}

fn policy(letter: u8) -> Policy {
    let reaction = |bit| if letter & bit > 0 { Reaction::Close } else { Reaction::Survive };
    let mut policy = Policy::default();
    policy.malformed = reaction(1);
    policy.duplicate_id = reaction(2);
    policy.unknown_response = reaction(4);
    policy.forbidden = reaction(8);
    policy.deliver_unknown_methods = letter >= b'@';
    policy.accept_incomplete_initialize = letter & 16 > 0;
    policy
}

fn timeouts(letter: u8) -> Timeouts {
    let mut timeouts = Timeouts::default();
    timeouts.keep_alive = (letter == b'k').then_some(Duration::from_secs(1));
    timeouts
}

/// Parses the settings of a server: a letter each for revisions, limits, policy and timeouts.
pub(super) fn server_options(settings: &[u8]) -> ServerOptions {
    ServerOptions::new(Implementation::new("s", "1"))
        .capabilities(
            ServerCapabilities::new()
                .tools(ToolsCapability::new().list_changed(true))
                .resources(ResourcesCapability::new().list_changed(true).subscribe(true))
                .prompts(PromptsCapability::new().list_changed(true))
                .completions(CapabilitySettings::default())
                .logging(CapabilitySettings::default()),
        )
        .catalog(if setting(settings, 4) == b'c' { catalog() } else { Catalog::new() })
        .revisions(revisions(setting(settings, 0)))
        .limits(limits(settings))
        .policy(policy(setting(settings, 2)))
        .timeouts(timeouts(setting(settings, 3)))
}

/// Returns a catalog with one entry of each kind.
fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;
    let schema = RawJson::parse(schema).expect("valid JSON");
    catalog.add_tool(Tool::new("t", schema)).expect("a unique name");
    catalog.add_resource(Resource::new("a:1", "one")).expect("a unique name");
    let template = ResourceTemplate::new("a:{id}", "any");
    catalog.add_resource_template(template).expect("a unique name");
    catalog.add_prompt(Prompt::new("p")).expect("a unique name");
    catalog.take_changes();
    catalog
}

/// Parses the settings of a client: a letter each for revisions, limits, policy, timeouts, and the
/// known era.
pub(super) fn client_options(settings: &[u8]) -> ClientOptions {
    let options = ClientOptions::new(Implementation::new("c", "1"))
        .capabilities(
            ClientCapabilities::new()
                .roots(RootsCapability::new().list_changed(true))
                .sampling(SamplingCapability::new())
                .elicitation(ElicitationCapability::new()),
        )
        .revisions(revisions(setting(settings, 0)))
        .limits(limits(settings))
        .policy(policy(setting(settings, 2)))
        .timeouts(timeouts(setting(settings, 3)));
    match setting(settings, 4) {
        b'l' => options.known_era(Era::Legacy),
        b'm' => options.known_era(Era::Modern),
        _ => options,
    }
}

/// Selects the method of a call by the last two digits of the number.
pub(super) fn method(operation: &Operation<'_>) -> Method {
    TABLE[operation.number % 100 % TABLE.len()].method
}

/// Returns the text if it is an object, or else an empty object.
pub(super) fn params<'a>(operation: &Operation<'a>) -> RawJson<'a> {
    match RawJson::parse(operation.text()) {
        Ok(json) if json.as_str().trim_start().starts_with('{') => json,
        _ => EMPTY,
    }
}

/// Enables progress and custom timeouts if the hundreds digit of the number is odd.
pub(super) fn call_options<'a>(operation: &Operation<'_>) -> CallOptions<'a> {
    let options = CallOptions::default();
    if (operation.number / 100).is_multiple_of(2) {
        return options;
    }
    options.progress().timeout(Duration::from_secs(1)).timeout_hard(Duration::from_secs(3))
}

/// Returns an error whose code is the negated number.
pub(super) fn error<'a>(operation: &Operation<'a>) -> ErrorObject<'a> {
    ErrorObject::new(ErrorCode(-(operation.number as i64)), operation.text())
}

/// Returns as many questions as the number says, and a state if there is text.
pub(super) fn questions(operation: &Operation<'_>) -> InputRequiredResult {
    let mut questions: Map<InputRequest> = Map::default();
    for (index, key) in ["a", "b", "c"].into_iter().take(operation.number % 4).enumerate() {
        let form = ElicitParams::from(ElicitFormParams::new("?", ElicitSchema::new()));
        let question: InputRequest =
            if index == 1 { ListRootsParams::new().into() } else { form.into() };
        questions.insert(key, question);
    }
    let required = InputRequiredResult::new().input_requests(questions);
    if operation.text.is_empty() { required } else { required.request_state(operation.text()) }
}

/// Returns a filter with the changes selected by the bits of the number, and the resource in the
/// text.
pub(super) fn filter(operation: &Operation<'_>) -> SubscriptionFilter {
    let bit = |bit| operation.number & bit > 0;
    let filter = SubscriptionFilter::new()
        .tools_list_changed(bit(1))
        .resources_list_changed(bit(2))
        .prompts_list_changed(bit(4));
    if operation.text.is_empty() {
        return filter;
    }
    filter.resource_subscriptions([operation.text().into()])
}
