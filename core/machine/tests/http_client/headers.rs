use mcp_sansio::http::ClientLimits;
use mcp_sansio::peer::TransportFailure;
use mcp_sansio::{Method, Revision, Revisions};

use crate::net::{EVENTS, JSON, Net, OK, error, event, http_options, peer_options, result};

/// Returns a client that reads the list of tools; the next exchange is number 2.
fn modern() -> Net {
    Net::modern_with(peer_options(), http_options().limits(ClientLimits::DEFAULT))
}

/// Returns a client that listed `echo` before it had mirrored arguments; the next exchange is
/// number 3, and the next call number 2.
fn outdated() -> Net {
    let mut net = modern();
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.json(2, &result(2, r#"{"resultType":"complete","tools":[{"name":"echo"}]}"#));
    net.told();
    net
}

fn fields(net: &Net, n: usize) -> Vec<(String, String)> {
    let fields = net.request(n).fields();
    let mirrored = fields.filter(|(name, _)| name.starts_with("mcp-"));
    mirrored.map(|(name, value)| (name.into(), value.into())).collect()
}

fn expect_fields(net: &Net, n: usize, expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect();
    assert_eq!(fields(net, n), expected);
}

#[test]
fn method_and_name_are_repeated_in_the_header() {
    // Rule: [HDR-003] [HDR-005] [HDR-006] [HDR-007] [HCLI-013].
    let mut net = Net::modern();
    for (method, params, name) in [
        (Method::ToolsCall, r#"{"name":"a b","arguments":{"name":"x"}}"#, Some("a b")),
        (Method::PromptsGet, r#"{"name":"caf\u00e9"}"#, Some("=?base64?Y2Fmw6k=?=")),
        (Method::ResourcesRead, r#"{"uri":"file:///a%20b?c=d"}"#, Some("file:///a%20b?c=d")),
        (Method::ToolsList, "{}", None),
        (Method::PromptsList, r#"{"name":"x"}"#, None),
    ] {
        net.call(method, params);
        net.sent();
        let mut expected =
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method.as_str())];
        expected.extend(name.map(|name| ("mcp-name", name)));
        let n = net.last();
        expect_fields(&net, n, &expected);
    }
}

const TOOLS: &str = r#"{"resultType":"complete", "tools" : [ {"name":"plain","inputSchema":{"type":"object"}},
 {"name":"bad","inputSchema":{"properties":{"x":{"type":"number","x-mcp-header":"X"}}}} , {"name":"echo","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"Flag"}}},"i":{"type":"integer","x-mcp-header":"Count"}}},"z":1e3}],"ttlMs":0}"#;

fn listed() -> Net {
    let mut net = modern();
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.json(2, &result(2, TOOLS));
    net
}

#[test]
fn a_tool_with_invalid_headers_is_removed_from_the_list() {
    // Rule: [HDR-016] [HDR-017].
    let mut net = listed();
    let told = net.told();
    let (first, rest) = told.split_once('\n').unwrap();
    assert!(first.starts_with("violation: the tool `bad` is left out of the list"), "{first}");
    let from = TOOLS.find(r#"{"name":"bad""#).unwrap();
    let to = TOOLS.find(r#"{"name":"echo""#).unwrap();
    let expected = [&TOOLS[..from], &TOOLS[to..]].concat();
    assert_eq!(rest, format!("call 1: {expected}\n"));
}

#[test]
fn a_list_on_a_stream_is_the_same() {
    // Rule: [HDR-016].
    let mut net = Net::modern();
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.answer_head(2, 200, EVENTS);
    net.body(2, &event(&result(2, &TOOLS.replace('\n', " "))));
    assert!(net.told().contains("violation: the tool `bad`"));
}

#[test]
fn a_legacy_list_is_not_changed() {
    // Rule: [HDR-018].
    let mut net = Net::legacy(Revision::V2025_11_25);
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.json(4, &result(2, TOOLS));
    assert_eq!(net.told(), format!("call 1: {TOOLS}\n"));
    net.call(Method::ToolsCall, r#"{"name":"echo","arguments":{"region":"eu"}}"#);
    net.sent();
    assert_eq!(net.field(5, "mcp-param-region"), None);
}

#[test]
fn arguments_are_sent_as_headers_per_the_tool_list() {
    // Rule: [HDR-008] [HDR-019] [HDR-020] [HDR-021].
    let mut net = listed();
    for (arguments, expected) in [
        (
            r#"{"region":"eu west","n":{"b":true},"i":42}"#,
            &[("region", "eu west"), ("flag", "true"), ("count", "42")][..],
        ),
        (r#"{"region":"\u4e16","other":1}"#, &[("region", "=?base64?5LiW?=")]),
        (r#"{"region":null,"b":false,"n":{}}"#, &[]),
        (r#"{"region":""}"#, &[("region", "")]),
    ] {
        net.call(Method::ToolsCall, &format!(r#"{{"name":"echo","arguments":{arguments}}}"#));
        net.sent();
        let n = net.last();
        let mirrored = fields(&net, n).into_iter().filter_map(|(name, value)| {
            name.strip_prefix("mcp-param-").map(|name| (String::from(name), value.clone()))
        });
        let mut mirrored: Vec<_> = mirrored.collect();
        let mut expected: Vec<_> =
            expected.iter().map(|(a, b)| (String::from(*a), String::from(*b))).collect();
        mirrored.sort();
        expected.sort();
        assert_eq!(mirrored, expected, "{arguments}");
    }
}

#[test]
fn an_integer_without_an_exact_header_value_is_not_sent() {
    // Rule: [HDR-014].
    let mut net = listed();
    net.told();
    net.call(Method::ToolsCall, r#"{"name":"echo","arguments":{"i":9007199254740992}}"#);
    assert_eq!(net.sent(), "");
    let told = net.told();
    assert!(told.starts_with("call 2 failed: Unmirrorable"), "{told}");
}

#[test]
fn the_list_is_read_before_the_first_call_of_a_tool_that_was_not_listed() {
    // Rule: [HDR-008].
    let mut net = modern();
    for region in ["eu", "us"] {
        let params = format!(r#"{{"name":"echo","arguments":{{"region":"{region}"}}}}"#);
        net.call(Method::ToolsCall, &params);
    }
    assert_eq!(net.sent(), "#2 POST tools/list\n");
    // The tool is on the second page.
    net.json(2, &result(3, r#"{"resultType":"complete","tools":[],"nextCursor":"c"}"#));
    assert_eq!(net.sent(), "#3 POST tools/list\n");
    assert!(net.full(3).contains(r#""cursor":"c""#));
    net.json(3, &result(5, TOOLS));
    assert_eq!(net.sent(), "#4 POST tools/call\n#5 POST tools/call\n");
    let regions = [4, 5].map(|n| net.field(n, "mcp-param-region").unwrap());
    assert!(regions.contains(&"eu".into()) && regions.contains(&"us".into()), "{regions:?}");
    for name in ["echo", "plain"] {
        net.call(Method::ToolsCall, &format!(r#"{{"name":"{name}"}}"#));
    }
    assert_eq!(net.sent(), "#6 POST tools/call\n#7 POST tools/call\n");
}

#[test]
fn a_call_is_sent_if_no_list_has_its_tool() {
    type Script = fn(&mut Net, &str);
    let none = r#"{"resultType":"complete","tools":[]}"#;
    let scripts: [(bool, Script); 4] = [
        (false, |net, _| net.answer(2, 500, &[], "")),
        (false, |net, _| net.json(2, &error("3", -32603, ""))),
        (true, |net, none| net.json(2, &result(3, none))),
        (false, |net, _| net.broken(2)),
    ];
    for (arrives, script) in scripts {
        let mut net = modern();
        net.call_echo();
        assert_eq!(net.sent(), "#2 POST tools/list\n");
        script(&mut net, none);
        assert_eq!(net.sent(), "#3 POST tools/call\n");
        net.json(3, &result(2, OK));
        assert_eq!(net.told(), format!("call 1: {OK}\n"));
        // A list that has arrived is not read again.
        net.call_echo();
        let next = if arrives { "call" } else { "list" };
        assert_eq!(net.sent(), format!("#4 POST tools/{next}\n"));
    }
}

#[test]
fn a_call_ends_with_the_list_that_needs_a_token() {
    let refused: [fn(&mut Net); 2] = [
        |net| net.answer(2, 401, &[], ""),
        |net| {
            let failure = TransportFailure::AuthorizationFailed { reason: "declined".into() };
            let list = net.exchange(2);
            net.client.refuse(list, failure, net.now);
        },
    ];
    for refuse in refused {
        let mut net = modern();
        net.call_echo();
        assert_eq!(net.sent(), "#2 POST tools/list\n");
        refuse(&mut net);
        let told = net.told();
        assert!(told.starts_with("call 1 failed: "), "{told}");
        assert!(told.contains("uthoriz"), "{told}");
        assert_eq!(net.sent(), "");
    }
}

#[test]
fn a_call_of_a_tool_with_invalid_headers_fails_with_the_reason() {
    // Rule: [HDR-016].
    for mut net in [modern(), listed()] {
        net.call(Method::ToolsCall, r#"{"name":"bad","arguments":{"x":1}}"#);
        assert!(net.sent().ends_with(" POST tools/list\n"));
        let (list, call) = (net.last(), net.id_of(net.last()));
        net.json(list, &result(call, TOOLS));
        let told = net.told();
        assert!(told.contains("failed: Unmirrorable"), "{told}");
        assert!(told.contains("the definition of the tool `bad` is invalid"), "{told}");
        assert_eq!(told.matches("violation").count(), 1, "{told}");
        assert_eq!(net.sent(), "");
    }
}

#[test]
fn a_tool_whose_definition_has_been_mended_can_be_called() {
    let mut net = listed();
    net.told();
    net.call(Method::ToolsCall, r#"{"name":"bad","arguments":{"x":1}}"#);
    assert_eq!(net.sent(), "#3 POST tools/list\n");
    net.json(3, &result(net.id_of(3), &TOOLS.replace(r#""type":"number""#, r#""type":"integer""#)));
    assert_eq!(net.sent(), "#4 POST tools/call\n");
    assert_eq!(net.field(4, "mcp-param-x").as_deref(), Some("1"));
    assert_eq!(net.told(), "");
}

#[test]
fn an_invalid_definition_is_reported_once() {
    let mut net = listed();
    net.told();
    for name in ["other", "another"] {
        net.call(Method::ToolsCall, &format!(r#"{{"name":"{name}"}}"#));
        net.sent();
        let list = net.last();
        net.json(list, &result(net.id_of(list), TOOLS));
        net.sent();
        assert_eq!(net.told(), "");
    }
}

#[test]
fn a_call_that_waits_for_the_list_is_paused_with_it_and_can_be_cancelled() {
    let mut net = modern();
    net.call_echo();
    net.sent();
    let list = net.exchange(2);
    net.client.pause(list, net.now);
    net.advance(std::time::Duration::from_secs(3600));
    assert_eq!(net.told(), "");
    net.client.resume(list, net.now);
    net.cancel(1);
    assert_eq!(net.told(), "call 1 failed: Cancelled\n");
    net.json(2, &result(3, TOOLS));
    assert_eq!(net.sent(), "");
}

#[test]
fn a_refused_call_that_needs_a_paused_list_is_paused_with_it() {
    let mut net = outdated();
    for _ in 0..2 {
        net.call_echo();
    }
    assert_eq!(net.sent(), "#3 POST tools/call\n#4 POST tools/call\n");
    net.answer(3, 400, JSON, &error("3", -32020, ""));
    assert_eq!(net.sent(), "#5 POST tools/list\n");
    let list = net.exchange(5);
    net.client.pause(list, net.now);
    net.answer(4, 400, JSON, &error("4", -32020, ""));
    net.advance(std::time::Duration::from_secs(3600));
    assert_eq!(net.told(), "");
}

#[test]
fn a_call_refused_for_its_headers_is_repeated_with_the_correct_ones() {
    // Rule: [HDR-032].
    let mut net = outdated();
    for (status, id) in [(400, "3"), (400, "null")] {
        net = outdated();
        net.call(Method::ToolsCall, r#"{"name":"echo","arguments":{"region":"eu"}}"#);
        net.sent();
        assert_eq!(net.field(3, "mcp-param-region"), None);
        net.answer(3, status, JSON, &error(id, -32020, ""));
        assert_eq!(net.sent(), "#4 POST tools/list\n");
        // The tool is on the second page.
        net.json(4, &result(4, r#"{"resultType":"complete","tools":[],"nextCursor":"c"}"#));
        assert_eq!(net.sent(), "#5 POST tools/list\n");
        assert!(net.full(5).contains(r#""cursor":"c""#));
        net.json(5, &result(5, TOOLS));
        assert_eq!(net.sent(), "#6 POST tools/call\n");
        assert_eq!(net.field(6, "mcp-param-region").as_deref(), Some("eu"));
        assert!(net.told().starts_with("violation: the tool `bad`"));
    }
    // The call is repeated only once.
    net.answer(6, 400, JSON, &error("3", -32020, ""));
    assert_eq!(net.told(), "call 2 failed: refused, -32020\n");
    net.expect_silence();
}

#[test]
fn a_header_mismatch_is_final_if_the_tool_list_does_not_resolve_it() {
    // Rule: [HDR-032].
    type Script = fn(&mut Net);
    let scripts: [Script; 4] = [
        |net| net.answer(4, 500, &[], ""),
        |net| net.json(4, &error("4", -32603, "")),
        |net| net.json(4, &result(4, r#"{"resultType":"complete","tools":[{"name":"other"}]}"#)),
        |net| net.broken(4),
    ];
    for script in scripts {
        let mut net = outdated();
        net.call_echo();
        net.sent();
        net.answer(3, 400, JSON, &error("3", -32020, ""));
        net.sent();
        script(&mut net);
        assert_eq!(net.told(), "call 2 failed: refused, -32020\n");
        net.expect_silence();
    }
    // A cursor that repeats is followed only once.
    let mut net = outdated();
    net.call_echo();
    net.sent();
    net.answer(3, 400, JSON, &error("3", -32020, ""));
    for (exchange, id) in [(4, 4), (5, 5)] {
        net.sent();
        net.json(exchange, &result(id, r#"{"tools":[],"nextCursor":"c"}"#));
    }
    assert_eq!(net.told(), "call 2 failed: refused, -32020\n");
    net.expect_silence();
}

#[test]
fn a_call_that_is_cancelled_during_the_header_lookup_is_not_repeated() {
    // Rule: [HDR-032].
    let mut net = outdated();
    net.call_echo();
    net.sent();
    net.answer_head(3, 200, EVENTS);
    net.body(3, &event(&error("3", -32020, "")));
    net.cancel(2);
    net.sent();
    net.json(4, &result(4, TOOLS));
    assert!(net.told().starts_with("call 2 failed: Cancelled\n"));
    assert_eq!(net.sent(), "");
}

#[test]
fn a_correct_call_is_answered_after_the_correction() {
    let mut net = outdated();
    net.call_echo();
    net.sent();
    net.answer_head(3, 200, EVENTS);
    net.body(3, &event(&error("3", -32020, "")));
    net.end(3);
    assert_eq!(net.sent(), "#4 POST tools/list\n");
    net.json(4, &result(4, r#"{"tools":[{"name":"echo"}]}"#));
    assert_eq!(net.sent(), "#5 POST tools/call\n");
    net.json(5, &result(3, OK));
    assert_eq!(net.told(), format!("call 2: {OK}\n"));
}

#[test]
fn a_session_whose_server_wants_mirrored_arguments_gets_them_once_it_has_refused_a_call() {
    // No header is due in a session, but a widely used server refuses calls without them.
    let options = peer_options().revisions(Revisions::only(Revision::V2025_11_25));
    let mut net = Net::new(options, http_options().limits(ClientLimits::DEFAULT));
    net.sent();
    net.initialize(1, 1, Revision::V2025_11_25, Some("s1"));
    net.sent();
    net.answer(2, 202, &[], "");
    net.sent();
    net.answer(3, 405, &[], "");
    net.told();
    let has = |net: &Net, n, value: &str| {
        fields(net, n).contains(&("mcp-param-region".into(), value.into()))
    };
    // A tool without such arguments is not called again, as the code may mean anything here.
    net.call(Method::ToolsCall, r#"{"name":"plain"}"#);
    net.sent();
    net.answer(4, 400, JSON, &error("2", -32020, ""));
    assert!(net.sent().starts_with("#5 POST tools/list"));
    net.json(5, &result(3, TOOLS));
    let told = net.told();
    assert!(told.contains("call 1 failed"), "{told}");
    net.call(Method::ToolsCall, r#"{"name":"echo","arguments":{"region":"eu"}}"#);
    assert!(net.sent().starts_with("#6 POST tools/call"));
    assert!(!has(&net, 6, "eu"));
    net.answer(6, 400, JSON, &error("4", -32020, ""));
    assert!(net.sent().starts_with("#7 POST tools/list"));
    net.json(7, &result(5, TOOLS));
    assert!(net.sent().starts_with("#8 POST tools/call"));
    assert!(has(&net, 8, "eu"));
    net.json(8, &result(4, OK));
    net.told();
    // From then on they are sent at once, and a refusal is the answer.
    net.call(Method::ToolsCall, r#"{"name":"echo","arguments":{"region":"us"}}"#);
    net.sent();
    assert!(has(&net, 9, "us"));
    net.answer(9, 400, JSON, &error("6", -32020, ""));
    assert_eq!(net.sent(), "");
    assert!(net.told().contains("-32020"));
    // A tool that was not on a list so far is looked up, too.
    let late = TOOLS.replace(r#""name":"echo""#, r#""name":"late""#);
    net.call(Method::ToolsCall, r#"{"name":"late","arguments":{"region":"eu"}}"#);
    net.sent();
    net.answer(10, 400, JSON, &error("7", -32020, ""));
    assert!(net.sent().starts_with("#11 POST tools/list"));
    net.json(11, &result(8, &late));
    assert!(net.sent().starts_with("#12 POST tools/call"));
    assert!(has(&net, 12, "eu"));
}

#[test]
fn all_calls_that_a_server_refuses_in_a_session_for_want_of_mirrored_arguments_are_repeated() {
    let mut net = Net::legacy_with(
        Revision::V2025_11_25,
        peer_options(),
        http_options().limits(ClientLimits::DEFAULT),
    );
    for region in ["eu", "us"] {
        let params = format!(r#"{{"name":"echo","arguments":{{"region":"{region}"}}}}"#);
        net.call(Method::ToolsCall, &params);
    }
    net.sent();
    for (exchange, id) in [(4, "2"), (5, "3")] {
        net.answer(exchange, 400, JSON, &error(id, -32020, ""));
    }
    assert!(net.sent().starts_with("#6 POST tools/list"));
    net.json(6, &result(4, TOOLS));
    net.sent();
    let mut regions = [7, 8].map(|n| net.field(n, "mcp-param-region").unwrap());
    regions.sort();
    assert_eq!(regions, ["eu", "us"]);
}

#[test]
fn a_call_of_a_session_that_is_cancelled_while_the_list_is_read_is_not_cancelled_at_the_server() {
    // Rule: [CANC-001].
    let mut net = Net::legacy_with(
        Revision::V2025_11_25,
        peer_options(),
        http_options().limits(ClientLimits::DEFAULT),
    );
    net.call_echo();
    net.sent();
    net.answer(4, 400, JSON, &error("2", -32020, ""));
    assert!(net.sent().starts_with("#5 POST tools/list"));
    net.cancel(1);
    assert_eq!(net.sent(), "");
}

#[test]
fn a_response_to_another_call_on_the_stream_of_a_list_is_not_taken_for_the_list() {
    let mut net = Net::legacy_with(
        Revision::V2025_11_25,
        peer_options(),
        http_options().limits(ClientLimits::DEFAULT),
    );
    net.call(Method::ToolsCall, r#"{"name":"other"}"#);
    net.call_echo();
    net.sent();
    net.answer(5, 400, JSON, &error("3", -32020, ""));
    assert!(net.sent().starts_with("#6 POST tools/list"));
    net.answer_head(6, 200, EVENTS);
    net.body(6, &event(&result(2, &TOOLS.replace('\n', " "))));
    net.told();
    net.body(6, &event(&error("4", -32603, "")));
    assert_eq!(net.told(), "call 2 failed: refused, -32020\n");
    // The declarations of that text were not learned.
    net.call(Method::ToolsCall, r#"{"name":"echo","arguments":{"region":"eu"}}"#);
    net.sent();
    assert_eq!(net.field(7, "mcp-param-region"), None);
}

/// Returns a page of tools with a mirrored argument each, whose header is this long.
fn page(names: std::ops::Range<usize>, length: usize, next: &str) -> String {
    let header = "h".repeat(length);
    let tool = |name| {
        format!(
            r#"{{"name":"t{name}","inputSchema":{{"properties":{{"a":{{"type":"string","x-mcp-header":"{header}"}}}}}}}}"#
        )
    };
    let tools: Vec<String> = names.map(tool).collect();
    format!(r#"{{"resultType":"complete","tools":[{}]{next}}}"#, tools.join(","))
}

#[test]
fn the_tools_that_are_kept_are_bounded_in_bytes() {
    let mut limits = ClientLimits::DEFAULT;
    limits.mirrored_bytes_max = 6000;
    let mut net = Net::modern_with(peer_options(), http_options().limits(limits));
    net.call(Method::ToolsList, "{}");
    net.sent();
    net.json(2, &result(2, &page(0..20, 1000, "")));
    net.told();
    let call = |net: &mut Net, tool: &str| {
        net.call(Method::ToolsCall, &format!(r#"{{"name":"{tool}","arguments":{{"a":"x"}}}}"#));
        net.sent()
    };
    // The tools listed last are known.
    assert!(call(&mut net, "t19").ends_with("POST tools/call\n"));
    assert!(call(&mut net, "t0").ends_with("POST tools/list\n"));
}

#[test]
fn a_call_has_the_headers_of_its_tool_on_a_page_that_exceeds_the_limit() {
    // Rule: [HDR-008].
    let mut limits = ClientLimits::DEFAULT;
    limits.mirrored_bytes_max = 6000;
    let mut net = Net::modern_with(peer_options(), http_options().limits(limits));
    for tool in ["t0", "t7", "t19"] {
        net.call(Method::ToolsCall, &format!(r#"{{"name":"{tool}","arguments":{{"a":"x"}}}}"#));
    }
    assert_eq!(net.sent(), "#2 POST tools/list\n");
    net.json(2, &result(3, &page(0..20, 500, "")));
    assert_eq!(net.sent(), "#3 POST tools/call\n#4 POST tools/call\n#5 POST tools/call\n");
    let header = format!("mcp-param-{}", "h".repeat(500));
    for n in 3..=5 {
        assert_eq!(net.field(n, &header).as_deref(), Some("x"));
    }
}

#[test]
fn calls_that_wait_for_the_same_page_request_the_next_one_once() {
    let mut net = modern();
    for at in 0..40 {
        net.call(Method::ToolsCall, &format!(r#"{{"name":"t{at}","arguments":{{"a":"x"}}}}"#));
    }
    assert_eq!(net.sent(), "#2 POST tools/list\n");
    net.json(2, &result(3, &page(0..10, 1, r#","nextCursor":"c""#)));
    let sent = net.sent();
    assert_eq!(sent.matches("tools/list").count(), 1, "{sent}");
    assert_eq!(sent.matches("tools/call").count(), 10, "{sent}");
    // A page whose cursor is its own is the last one.
    let list = sent.lines().find(|line| line.contains("tools/list")).unwrap();
    let n: usize = list[1..].split(' ').next().unwrap().parse().unwrap();
    let body = net.full(n);
    let id = body.split(r#""id":"#).nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    net.json(n, &result(id, &page(10..20, 1, r#","nextCursor":"c""#)));
    let sent = net.sent();
    assert_eq!((sent.matches("list").count(), sent.matches("call").count()), (0, 30), "{sent}");
}
