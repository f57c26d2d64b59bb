//! Input rounds, with the same test body for both eras: neither the application nor the host sees
//! the era.

use std::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{
    CallHandle, CallOptions, ClientMachine, CommandError, Event, Failure, InputRequested, Limits,
    Request, ServerMachine, Subject,
};
use mcp_sansio::protocol::{
    CallToolResult, ElicitFormParams, ElicitParams, ElicitSchema, ElicitUrlParams, InputRequest,
    InputRequiredResult, ListRootsParams, Map,
};
use mcp_sansio::{Capability, ErrorCode, Method, Revision};

use crate::fixtures::*;
use crate::pair::Pair;
use crate::wire::server;

const REVISIONS: [Revision; 3] =
    [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

fn form() -> InputRequest {
    ElicitParams::from(ElicitFormParams::new("Sure?", ElicitSchema::new())).into()
}

fn url() -> InputRequest {
    ElicitParams::from(ElicitUrlParams::new("Pay", "https://pay.example/")).into()
}

fn roots() -> InputRequest {
    ListRootsParams::new().into()
}

fn ask(questions: impl IntoIterator<Item = (&'static str, InputRequest)>) -> InputRequiredResult {
    let questions = questions
        .into_iter()
        .fold(Map::default(), |map: Map<InputRequest>, (key, question)| map.with(key, question));
    InputRequiredResult::new().input_requests(questions)
}

fn start(pair: &mut Pair, options: &CallOptions<'_>) -> (CallHandle, Request<'static>) {
    let call = pair.client.call(Method::ToolsCall, &echo(), options, pair.now).unwrap();
    pair.drive();
    (call, pair.request())
}

fn open(revision: Revision) -> Pair {
    Pair::open_at(revision, host(), full_server())
}

fn answer(pair: &mut Pair, input: &InputRequested<'_>, text: &str) {
    pair.client.answer_input_with(input.handle, &raw(text), pair.now).unwrap();
    pair.drive();
}

const ACCEPTED: &str = r#"{"action":"accept","content":{}}"#;

#[test]
fn one_input_response_completes_the_call_once() {
    // Rule: [MRTR-001] [MRTR-004] [MRTR-010] [MRTR-012] [MRTR-014] [ELIC-001].
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (call, request) = start(&mut pair, &CallOptions::default());
        assert!(request.inputs.is_empty());
        let required = ask([("sure", form())]).request_state("s\"1");
        pair.server.require_input(&request, &required, pair.now).unwrap();
        pair.drive();
        let input = pair.input();
        assert_eq!(input.method, Method::ElicitationCreate);
        assert_eq!(input.params.get("message").unwrap().as_str(), r#""Sure?""#);
        answer(&mut pair, &input, ACCEPTED);
        let again = pair.request();
        assert_eq!(again.params.get("arguments").unwrap().as_str(), r#"{"text":"hi"}"#);
        assert_eq!(again.inputs.response("sure").unwrap().as_str(), ACCEPTED);
        assert_eq!(again.inputs.state(), Some("s\"1"));
        assert!(again.inputs.refusal("sure").is_none());
        pair.server.respond_with(again.handle, &raw(r#"{"content":[]}"#), pair.now).unwrap();
        pair.drive();
        let ended = pair.ended();
        assert_eq!(ended.call, call);
        assert!(ended.outcome.is_ok());
        assert!(pair.client_events.is_empty() && pair.server_events.is_empty());
        assert_eq!(pair.next_deadline(), None);
    }
}

#[test]
fn the_messages_of_an_input_round() {
    // Rule: [MRTR-001] [MRTR-012] [MRTR-014].
    let mut transcript = String::new();
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (_, request) = start(&mut pair, &CallOptions::default());
        let required = ask([("sure", form())]).request_state("s");
        pair.server.require_input(&request, &required, pair.now).unwrap();
        pair.drive();
        let input = pair.input();
        answer(&mut pair, &input, ACCEPTED);
        let again = pair.request();
        pair.server.respond_with(again.handle, &raw(r#"{"content":[]}"#), pair.now).unwrap();
        pair.drive();
        transcript.push_str(&format!("{revision}\n{}", pair.take_transcript()));
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn input_requests_are_answered_in_any_order() {
    // Rule: [MRTR-010] [MRTR-015].
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (_, request) = start(&mut pair, &CallOptions::default());
        let required = ask([("a", form()), ("b", roots())]);
        pair.server.require_input(&request, &required, pair.now).unwrap();
        pair.drive();
        let (first, second) = (pair.input(), pair.input());
        assert_eq!(second.method, Method::RootsList);
        answer(&mut pair, &second, r#"{"roots":[]}"#);
        assert!(pair.server_events.is_empty(), "one answer is missing");
        let twice = pair.client.answer_input_with(second.handle, &raw("{}"), pair.now);
        assert!(matches!(twice, Err(CommandError::NotDue)));
        answer(&mut pair, &first, ACCEPTED);
        let again = pair.request();
        assert_eq!(again.inputs.response("a").unwrap().as_str(), ACCEPTED);
        assert_eq!(again.inputs.response("b").unwrap().as_str(), r#"{"roots":[]}"#);
        assert_eq!(again.inputs.state(), None);
    }
}

#[test]
fn rounds_follow_one_another_until_the_limit() {
    // Rule: [MRTR-009] [MRTR-013].
    for revision in REVISIONS {
        let mut limits = Limits::DEFAULT;
        limits.rounds_max = 3;
        let client = host().limits(limits.clone());
        let mut pair = Pair::open_at(revision, client, full_server().limits(limits));
        let (_, mut request) = start(&mut pair, &CallOptions::default());
        for round in 0..3 {
            let mut required = ask([("q", form())]);
            if round == 0 {
                required = required.request_state("only once");
            }
            pair.server.require_input(&request, &required, pair.now).unwrap();
            pair.drive();
            let input = pair.input();
            answer(&mut pair, &input, ACCEPTED);
            request = pair.request();
            assert_eq!(request.inputs.state().is_some(), round == 0);
        }
        let required = ask([("q", form())]);
        let _refused_in_one_era = pair.server.require_input(&request, &required, pair.now);
        pair.drive();
        match pair.ended().outcome.unwrap_err() {
            Failure::TooManyRounds { limit: 3 } => assert_eq!(revision, Revision::V2026_07_28),
            Failure::Refused(error) => assert_eq!(error.code, ErrorCode::INTERNAL_ERROR),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_bytes_of_pending_input_are_bounded_and_the_call_ends() {
    // Rule: [MRTR-009].
    for revision in REVISIONS {
        let mut limits = Limits::DEFAULT;
        limits.input_bytes_max = 100;
        let client = host().limits(limits.clone());
        let mut pair = Pair::open_at(revision, client, full_server().limits(limits));
        let (_, request) = start(&mut pair, &CallOptions::default());
        let required = ask([("q", form())]).request_state("s".repeat(101));
        let _refused_in_one_era = pair.server.require_input(&request, &required, pair.now);
        pair.drive();
        match pair.ended().outcome.unwrap_err() {
            Failure::TooMuchInput { limit: 100 } => assert_eq!(revision, Revision::V2026_07_28),
            Failure::Refused(error) => assert_eq!(error.code, ErrorCode::INTERNAL_ERROR),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_answer_over_the_limit_is_delivered_as_a_refusal() {
    // Rule: [ELIC-001].
    let mut limits = Limits::DEFAULT;
    limits.input_bytes_max = 200;
    let server = full_server().limits(limits);
    let mut pair = Pair::open_at(Revision::V2025_11_25, host(), server);
    let (_, request) = start(&mut pair, &CallOptions::default());
    pair.server.require_input(&request, &ask([("q", form())]), pair.now).unwrap();
    pair.drive();
    let input = pair.input();
    let long = format!(r#"{{"action":"accept","content":{{"a":"{}"}}}}"#, "x".repeat(200));
    answer(&mut pair, &input, &long);
    let again = pair.request();
    assert_eq!(
        again.inputs.refusal("q").unwrap().message,
        "the input response is too long to be stored"
    );
    // The bytes are released, so the next input request has room.
    pair.server.require_input(&again, &ask([("q", form())]), pair.now).unwrap();
    pair.drive();
    let input = pair.input();
    answer(&mut pair, &input, ACCEPTED);
    assert!(pair.request().inputs.response("q").is_some());
}

#[test]
fn a_state_without_input_requests_repeats_the_request() {
    // Rule: [MRTR-003] [MRTR-011] [MRTR-012].
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (_, request) = start(&mut pair, &CallOptions::default());
        let required = InputRequiredResult::new().request_state("later");
        pair.server.require_input(&request, &required, pair.now).unwrap();
        pair.drive();
        let again = pair.request();
        assert_eq!(again.inputs.state(), Some("later"));
        pair.server.respond_with(again.handle, &raw("{}"), pair.now).unwrap();
        pair.drive();
        assert!(pair.ended().outcome.is_ok());
    }
}

#[test]
fn a_state_without_input_requests_requires_no_capability() {
    // Rule: [MRTR-003] [MRTR-011].
    for revision in REVISIONS {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let (_, request) = start(&mut pair, &CallOptions::default());
        let required = InputRequiredResult::new().request_state("later");
        pair.server.require_input(&request, &required, pair.now).unwrap();
        pair.drive();
        let again = pair.request();
        assert_eq!(again.inputs.state(), Some("later"));
        pair.server.respond_with(again.handle, &raw("{}"), pair.now).unwrap();
        pair.drive();
        assert!(pair.ended().outcome.is_ok());
    }
}

#[test]
fn a_rejected_input_request_ends_a_modern_call_and_is_reported_to_a_legacy_one() {
    // Rule: [SAMP-012] [RPC-028].
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (_, request) = start(&mut pair, &CallOptions::default());
        let required = ask([("a", form()), ("b", roots())]);
        pair.server.require_input(&request, &required, pair.now).unwrap();
        pair.drive();
        let (first, second) = (pair.input(), pair.input());
        let no = ErrorObject::new(ErrorCode::USER_REJECTED, "no");
        pair.client.refuse_input(first.handle, no, pair.now).unwrap();
        pair.drive();
        if revision == Revision::V2026_07_28 {
            let told: Vec<_> = pair.client_events.drain(..).collect();
            assert!(told.iter().any(|event| matches!(
                event,
                Event::Cancelled(c) if c.subject == Subject::Input(second.handle)
            )));
            assert!(told.iter().any(|event| matches!(
                event,
                Event::Ended(e) if matches!(&e.outcome, Err(Failure::InputRefused { key, .. }) if key == "a")
            )));
            let late = pair.client.answer_input_with(second.handle, &raw("{}"), pair.now);
            assert!(matches!(late, Err(CommandError::NotDue)));
        } else {
            answer(&mut pair, &second, r#"{"roots":[]}"#);
            let again = pair.request();
            assert_eq!(again.inputs.refusal("a").unwrap().code, ErrorCode::USER_REJECTED);
            assert!(again.inputs.response("a").is_none());
            assert!(again.inputs.response("b").is_some());
        }
    }
}

#[test]
fn an_undeclared_input_request_is_not_sent() {
    // Rule: [MRTR-005] [CAP-021] [CAP-022] [ELIC-001].
    for revision in REVISIONS {
        let mut pair = Pair::open_at(revision, plain_client(), full_server());
        let (_, request) = start(&mut pair, &CallOptions::default());
        let asked = pair.server.require_input(&request, &ask([("a", form())]), pair.now);
        assert!(matches!(asked, Err(CommandError::NotDeclared(Capability::Elicitation))));
        pair.drive();
        let text = "the request needs the client capability `elicitation`, which the client did not \
                    declare";
        match pair.ended().outcome {
            Err(Failure::Refused(error)) => {
                assert_eq!(revision, Revision::V2026_07_28);
                assert_eq!(error.message, text);
                assert_eq!(error.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY);
                let data = error.data.unwrap();
                assert_eq!(data.as_str(), r#"{"requiredCapabilities":{"elicitation":{}}}"#);
            }
            // A tool error, which the model sees. Rule: [TOOL-008].
            Ok(result) => {
                assert_ne!(revision, Revision::V2026_07_28);
                let result: CallToolResult = result.decode().unwrap();
                assert_eq!((result.is_error, result.first_text()), (Some(true), Some(text)));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_capability_that_a_clients_revision_lacks_is_named_with_the_first_revision_that_has_it() {
    for (question, revision, missing) in [
        (form(), Revision::V2025_03_26, "`elicitation`, which is new in revision 2025-06-18"),
        (url(), Revision::V2025_06_18, "`elicitation.url`, which is new in revision 2025-11-25"),
    ] {
        let mut pair = open(revision);
        let (_, request) = start(&mut pair, &CallOptions::default());
        let asked = pair.server.require_input(&request, &ask([("a", question)]), pair.now);
        assert!(matches!(asked, Err(CommandError::NotDeclared(_))), "{asked:?}");
        pair.drive();
        let result: CallToolResult = pair.ended().outcome.unwrap().decode().unwrap();
        let text = result.first_text().unwrap();
        assert_eq!(text, format!("the request needs the client capability {missing}"));
    }
}

#[test]
fn empty_or_oversized_input_rounds_are_application_errors() {
    // Rule: [MRTR-002] [MRTR-003].
    for revision in REVISIONS {
        let keys: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let many = keys
            .iter()
            .fold(Map::default(), |map: Map<InputRequest>, key| map.with(key.as_str(), roots()));
        let cases = [InputRequiredResult::new(), InputRequiredResult::new().input_requests(many)];
        for required in cases {
            let mut pair = open(revision);
            let (_, request) = start(&mut pair, &CallOptions::default());
            let asked = pair.server.require_input(&request, &required, pair.now);
            assert!(matches!(asked, Err(CommandError::InputNotAllowed(_))));
            pair.drive();
            assert!(matches!(pair.ended().outcome, Err(Failure::Refused(_))));
        }
    }
}

#[test]
fn cancelling_a_call_withdraws_its_input_requests() {
    // Rule: [CANC-001] [CANC-003] [MRTR-009].
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (call, request) = start(&mut pair, &CallOptions::default());
        let handle = request.handle;
        pair.server.require_input(&request, &ask([("a", form())]), pair.now).unwrap();
        pair.drive();
        let input = pair.input();
        pair.client.cancel(call, "", pair.now);
        pair.drive();
        let told: Vec<_> = pair.client_events.drain(..).collect();
        let withdrawn = told
            .iter()
            .filter(|event| matches!(event, Event::Cancelled(c) if c.subject == Subject::Input(input.handle)));
        assert_eq!(withdrawn.count(), 1);
        let ends = told.iter().filter(|event| matches!(event, Event::Ended(e) if e.call == call));
        assert_eq!(ends.count(), 1);
        let late = pair.client.answer_input_with(input.handle, &raw("{}"), pair.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        let late = pair.server.respond_with(handle, &raw("{}"), pair.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        assert_eq!(pair.next_deadline(), None);
    }
}

#[test]
fn a_call_timeout_withdraws_its_input_requests() {
    // Rule: [TIME-002] [TIME-006].
    for revision in REVISIONS {
        let mut pair = open(revision);
        let hour = Duration::from_secs(3600);
        let options = CallOptions::default().timeout(hour).timeout_hard(Duration::from_secs(9));
        let (call, request) = start(&mut pair, &options);
        pair.server.require_input(&request, &ask([("a", form())]), pair.now).unwrap();
        pair.drive();
        pair.input();
        pair.advance(Duration::from_secs(9));
        let mut told: Vec<_> = pair.client_events.drain(..).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        let ended = told.iter().position(|event| matches!(event, Event::Ended(_))).unwrap();
        let Event::Ended(ended) = told.remove(ended) else { unreachable!() };
        assert_eq!((ended.call, ended.outcome), (call, Err(Failure::TimedOut { hard: true })));
        assert!(matches!(&told[0], Event::Cancelled(_)));
        assert_eq!(pair.next_deadline(), None);
    }
}

#[test]
fn a_connection_that_ends_in_a_round_ends_the_call_once() {
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (call, request) = start(&mut pair, &CallOptions::default());
        pair.server.require_input(&request, &ask([("a", form())]), pair.now).unwrap();
        pair.drive();
        let input = pair.input();
        pair.server.handle_eof();
        pair.client.handle_eof();
        pair.drive();
        let ended = pair.ended();
        assert_eq!((ended.call, ended.outcome), (call, Err(Failure::ConnectionLost)));
        let late = pair.client.answer_input_with(input.handle, &raw("{}"), pair.now);
        assert!(matches!(late, Err(CommandError::NotDue)));
        assert!(pair.server.is_drained());
    }
}

#[test]
fn no_input_is_requested_after_the_end_of_input() {
    // The last event is the end; the legacy application gets no other.
    for revision in REVISIONS {
        let mut pair = open(revision);
        let (_, request) = start(&mut pair, &CallOptions::default());
        pair.server.handle_eof();
        let asked = pair.server.require_input(&request, &ask([("a", form())]), pair.now);
        let told: Vec<_> = core::iter::from_fn(|| pair.server.poll_event()).collect();
        assert!(matches!(told.as_slice(), [Event::Closed(_)]), "{told:?}");
        assert_eq!(asked.is_ok(), revision == Revision::V2026_07_28);
        assert!(pair.server.poll_transmit().is_some(), "the client may still read");
    }
}

#[test]
fn requests_without_input_rounds_refuse_them() {
    // Rule: [MRTR-002].
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let capabilities: mcp_sansio::protocol::ServerCapabilities =
            serde_json::from_str(r#"{"completions":{}}"#).unwrap();
        let mut pair = Pair::open_at(revision, host(), bare_server().capabilities(capabilities));
        let options = CallOptions::default();
        pair.client.call(Method::CompletionComplete, &raw(r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"v"}}"#), &options, pair.now).unwrap();
        pair.drive();
        let request = pair.request();
        let asked = pair.server.require_input(&request, &ask([("a", form())]), pair.now);
        assert!(matches!(asked, Err(CommandError::InputNotAllowed(_))));
        pair.drive();
        assert!(matches!(pair.ended().outcome, Err(Failure::Refused(_))));
    }
}

#[test]
fn a_client_that_has_not_confirmed_its_session_gets_no_input_requests() {
    // Rule: [LIFE-005].
    let mut wire = server(full_server());
    wire.send(&initialize("2025-11-25", r#"{"roots":{}}"#));
    wire.line();
    wire.send(&request("2", "tools/call", r#"{"name":"t"}"#));
    let Event::Request(early) = wire.event() else { panic!("no request") };
    let asked = wire.machine.require_input(&early, &ask([("a", roots())]), wire.now);
    assert!(matches!(asked, Err(CommandError::InputNotAllowed(_))));
    wire.expect_error("2", -32603);
    wire.expect_silence();
}
