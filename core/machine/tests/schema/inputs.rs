//! Requests of servers to clients: sampling, roots, elicitation and input rounds; and
//! subscriptions.

use mcp_sansio::protocol::*;

use super::definitions::*;
use super::report::Report;
use super::samples::*;

pub(crate) fn sampling_and_roots(report: &mut Report) {
    report.data("Root", ALL, &[root(), Root::new("file:///")]);
    report.params(
        "ListRootsRequest",
        "roots/list",
        ALL,
        &[ListRootsParams::new().meta(meta()), ListRootsParams::new()],
    );
    report.data(
        "ListRootsResult",
        ALL,
        &[ListRootsResult::new([root()]).meta(meta()), ListRootsResult::new([])],
    );
    report.data("ModelPreferences", ALL, &[model_preferences(), ModelPreferences::new()]);
    report.data("ModelHint", ALL, &[ModelHint::new().name("m"), ModelHint::new()]);
    report.data(
        "SamplingMessage",
        ALL,
        &[
            SamplingMessage::user("text").meta(meta()),
            SamplingMessage::assistant(SamplingContent::from(image())),
        ],
    );
    report.params(
        "CreateMessageRequest",
        "sampling/createMessage",
        ALL,
        &[create_message(), CreateMessageParams::new([], 1)],
    );
    report.data("CreateMessageResult", ALL, &[created_message()]);
    with_tools(report);
}

/// Sampling with tools, since 2025-11-25.
fn with_tools(report: &mut Report) {
    let input = [tool_use(), ToolUseContent::new("1", "t", json("{}"))];
    report.data("ToolUseContent", SINCE_NOVEMBER, &input);
    report.data(
        "ToolResultContent",
        SINCE_NOVEMBER,
        &[
            tool_result(),
            ToolResultContent::new("1", []),
            ToolResultContent::new("1", []).structured_content(json("7")),
        ],
    );
    let modes = [ToolChoiceMode::Auto, ToolChoiceMode::Required, ToolChoiceMode::None];
    let choices = modes.map(|mode| ToolChoice::new().mode(mode));
    report.data("ToolChoice", SINCE_NOVEMBER, &choices);
    report.data(
        "SamplingMessageContentBlock",
        SINCE_NOVEMBER,
        &[
            text().into(),
            image().into(),
            audio().into(),
            tool_use().into(),
            SamplingContent::from(tool_result()),
        ],
    );
    for message in create_message_with_tools().messages {
        report.since("SamplingMessage", None, SINCE_NOVEMBER, &message);
    }
    report.since(
        "CreateMessageRequest",
        Some("sampling/createMessage"),
        SINCE_NOVEMBER,
        &create_message_with_tools(),
    );
    let several = CreateMessageResult::new(
        Role::Assistant,
        vec![tool_use().into(), SamplingContent::text("text")],
        "m",
    );
    report.since("CreateMessageResult", None, SINCE_NOVEMBER, &several);
    let sound = SamplingMessage::user(SamplingContent::from(audio()));
    report.since("SamplingMessage", None, SINCE_MARCH, &sound);
}

pub(crate) fn elicitation(report: &mut Report) {
    let method = "elicitation/create";
    let bare = ElicitFormParams::new("text", ElicitSchema::new());
    report.params(
        "ElicitRequest",
        method,
        SINCE_JUNE,
        &[ElicitParams::from(form()), bare.clone().into()],
    );
    let address = ElicitParams::from(url());
    report.since("ElicitRequest", Some(method), SINCE_NOVEMBER, &address);
    let several = ElicitParams::from(form_with_several());
    report.since("ElicitRequest", Some(method), SINCE_NOVEMBER, &several);
    report.data("ElicitRequestFormParams", SINCE_NOVEMBER, &[form(), form_with_several(), bare]);
    report.data("ElicitRequestURLParams", SINCE_NOVEMBER, &[url()]);
    report.data(
        "ElicitResult",
        SINCE_JUNE,
        &[elicited(), ElicitResult::decline(), ElicitResult::cancel(), ElicitResult::accept_url()],
    );
    let choices = ElicitValue::Choices(vec!["r".into()]);
    let chosen = ElicitResult::accept(Map::new().with("c", choices));
    report.since("ElicitResult", None, SINCE_NOVEMBER, &chosen);
    report.params(
        "ElicitationCompleteNotification",
        "notifications/elicitation/complete",
        NOVEMBER,
        &[ElicitationCompleteParams::new("e").meta(meta())],
    );
    report.data("StringSchema", SINCE_JUNE, &[string_schema(), StringSchema::new()]);
    report.data("NumberSchema", SINCE_JUNE, &[number_schema(), NumberSchema::integer()]);
    report.data("BooleanSchema", SINCE_JUNE, &[boolean_schema(), BooleanSchema::new()]);
    let singles = [single(["r", "g"]), single(options()), single(legacy_titled())];
    report.data("EnumSchema", SINCE_JUNE, &singles);
    report.since("EnumSchema", None, SINCE_NOVEMBER, &multi(["r", "g"]));
    report.data("SingleSelectEnumSchema", SINCE_NOVEMBER, &singles[..2]);
    report.data("UntitledSingleSelectEnumSchema", SINCE_NOVEMBER, &singles[..1]);
    report.data("TitledSingleSelectEnumSchema", SINCE_NOVEMBER, &singles[1..2]);
    report.data("LegacyTitledEnumSchema", SINCE_NOVEMBER, &singles[2..]);
    let multis = [multi(["r", "g"]), multi(options())];
    report.data("MultiSelectEnumSchema", SINCE_NOVEMBER, &multis);
    report.data("UntitledMultiSelectEnumSchema", SINCE_NOVEMBER, &multis[..1]);
    report.data("TitledMultiSelectEnumSchema", SINCE_NOVEMBER, &multis[1..]);
    let fields: [PrimitiveSchema; 5] = [
        string_schema().into(),
        number_schema().into(),
        boolean_schema().into(),
        single(options()).into(),
        single(legacy_titled()).into(),
    ];
    report.data("PrimitiveSchemaDefinition", SINCE_JUNE, &fields);
    let several = PrimitiveSchema::from(multi(options()));
    report.since("PrimitiveSchemaDefinition", None, SINCE_NOVEMBER, &several);
}

pub(crate) fn input_and_subscriptions(report: &mut Report) {
    report.data("InputRequests", JULY, &[input_requests(), InputRequests::new()]);
    let requests: Vec<InputRequest> =
        input_requests().into_iter().map(|(_, request)| request).collect();
    report.data("InputRequest", JULY, &requests);
    report.data("InputResponses", JULY, &[input_responses(), InputResponses::new()]);
    let responses: Vec<InputResponse> =
        input_responses().into_iter().map(|(_, response)| response).collect();
    report.data("InputResponse", JULY, &responses);
    report.data(
        "InputRequiredResult",
        JULY,
        &[
            InputRequiredResult::new()
                .input_requests(input_requests())
                .request_state("s")
                .meta(meta()),
            InputRequiredResult::new().request_state(""),
        ],
    );
    report.data("SubscriptionFilter", JULY, &[filter(), SubscriptionFilter::new()]);
}
