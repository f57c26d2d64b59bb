//! Header fields that the application adds, to all requests or to those of one call.

use mcp_sansio::http::HttpClientOptions;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{
    CallOptions, Client, ClientCommand, ClientOptions, CommandError, MethodName,
};
use mcp_sansio::peer::{HeaderFields, InvalidHeader};
use mcp_sansio::protocol::Implementation;
use mcp_sansio::{Instant, Method, Revision};

use crate::net::{AGENT, Net, http_options, peer_options};

const KEY: &str = "key-7f3a";

fn with_key() -> HttpClientOptions {
    let options = http_options().header("X-Api-Key", "old").unwrap();
    options.header("x-api-key", KEY).unwrap().header("Authorization", "Bearer static").unwrap()
}

#[test]
fn every_request_to_the_server_has_the_headers_of_the_application() {
    let mut net = Net::modern_with(peer_options(), with_key());
    net.call(Method::ToolsList, "{}");
    net.sent();
    assert_eq!(net.field(1, "x-api-key").as_deref(), Some(KEY));
    assert_eq!(net.field(2, "authorization").as_deref(), Some("Bearer static"));
    assert_eq!(net.request(2).fields().filter(|(name, _)| *name == "x-api-key").count(), 1);
    net.answer(2, 307, &[("location", "/other")], "");
    net.sent();
    assert_eq!(net.field(3, "x-api-key").as_deref(), Some(KEY));
}

#[test]
fn requests_name_the_client_and_this_library_unless_the_application_names_another_agent() {
    let mut net = Net::modern();
    net.call(Method::ToolsList, "{}");
    net.sent();
    assert_eq!(net.field(2, "user-agent"), Some(format!("demo/1.0 {AGENT}")));
    let options = http_options().header("User-Agent", "other/2.0").unwrap();
    let mut net = Net::modern_with(peer_options(), options);
    net.call(Method::ToolsList, "{}");
    net.sent();
    let agents: Vec<_> =
        net.request(2).fields().filter(|(name, _)| *name == "user-agent").collect();
    assert_eq!(agents, [("user-agent", "other/2.0")]);
}

#[test]
fn no_other_origin_gets_the_headers_of_the_application() {
    let mut net = Net::modern_with(peer_options(), with_key());
    for target in ["https://other.example/mcp", "http://example.com/mcp", "//example.com:444/mcp"] {
        net.call(Method::ToolsList, "{}");
        net.sent();
        let n = net.last();
        net.answer(n, 307, &[("location", target)], "");
        assert_eq!(net.sent(), "");
    }
}

#[test]
fn a_legacy_session_has_the_headers_of_the_application() {
    let mut net = Net::new(peer_options(), with_key());
    net.sent();
    net.answer(1, 400, &[], "");
    assert!(net.sent().contains("POST initialize"));
    net.initialize(2, 1, Revision::V2025_11_25, Some("s1"));
    net.sent();
    assert_eq!(net.field(2, "x-api-key").as_deref(), Some(KEY));
    assert_eq!(net.field(3, "x-api-key").as_deref(), Some(KEY));
}

#[test]
fn logs_do_not_contain_the_headers_of_the_application() {
    let net = Net::modern_with(peer_options(), with_key());
    let shown = format!("{:?} {:?}", net.request(1), with_key());
    assert!(shown.contains("x-api-key") && !shown.contains(KEY), "{shown}");
    assert!(!shown.contains("static"), "{shown}");
}

#[test]
fn a_field_added_later_replaces_the_one_of_the_application() {
    let net = Net::modern_with(peer_options(), with_key());
    let token = ("authorization".into(), "Bearer fresh".into());
    let again = net.request(1).again(net.request(1).exchange, [token]);
    let values = again.fields().filter(|(name, _)| *name == "authorization");
    assert_eq!(values.collect::<Vec<_>>(), [("authorization", "Bearer fresh")]);
}

#[test]
fn headers_of_the_protocol_and_of_http_are_refused() {
    let refused = |name: &str, value: &str| http_options().header(name, value).unwrap_err();
    for name in ["Mcp-Session-Id", "MCP-Anything", "Host", "content-length", "Accept", "DPoP"] {
        let lower = name.to_ascii_lowercase();
        assert_eq!(refused(name, "x"), InvalidHeader::Reserved(lower));
    }
    for name in ["", "a b", "a:", "é"] {
        assert_eq!(refused(name, "x"), InvalidHeader::Name(name.into()));
    }
    for value in ["a\r\nb: c", "é", "\0"] {
        let error = refused("x-key", value);
        assert_eq!(error, InvalidHeader::Value("x-key".into()));
        assert!(!error.to_string().contains(value));
    }
}

fn tenant(name: &str) -> HeaderFields {
    HeaderFields::new().field("X-Tenant", name).unwrap().field("X-Api-Key", "of-call").unwrap()
}

fn call_with(fields: &HeaderFields, apply: impl FnOnce(ClientCommand<'_>)) {
    let method = MethodName::Known(Method::ToolsCall);
    let params = RawJson::parse(r#"{"name":"now"}"#).unwrap();
    let (params, options) = (params.into(), CallOptions::default().into());
    apply(ClientCommand::CallWithFields { method, params, options, fields });
}

#[test]
fn a_call_has_its_own_headers_and_other_calls_do_not() {
    let mut net = Net::modern_with(peer_options(), with_key());
    let now = net.now;
    call_with(&tenant("north"), |command| {
        let _started = net.client.apply(command, now).unwrap();
    });
    net.sent();
    let of_call = net.last();
    net.call(Method::ToolsList, "{}");
    net.sent();
    let other = net.last();
    assert_eq!(net.field(of_call, "x-tenant").as_deref(), Some("north"));
    assert_eq!(net.field(of_call, "x-api-key").as_deref(), Some("of-call"), "it replaces");
    assert_eq!(net.request(of_call).fields().filter(|(name, _)| *name == "x-api-key").count(), 1);
    assert_eq!(net.field(other, "x-tenant"), None);
    assert_eq!(net.field(other, "x-api-key").as_deref(), Some(KEY));
    let shown = format!("{:?} {:?}", net.request(of_call), tenant("north"));
    assert!(shown.contains("x-tenant") && !shown.contains("north"), "{shown}");
}

#[test]
fn the_headers_of_a_call_follow_redirects_within_the_origin_only() {
    for (target, follows) in [("/other", true), ("https://other.example/mcp", false)] {
        let mut net = Net::modern_with(peer_options(), http_options());
        let now = net.now;
        call_with(&tenant("north"), |command| {
            let _started = net.client.apply(command, now).unwrap();
        });
        net.sent();
        let first = net.last();
        net.answer(first, 307, &[("location", target)], "");
        assert_eq!(!net.sent().is_empty(), follows, "{target}");
        if follows {
            assert_eq!(net.field(net.last(), "x-tenant").as_deref(), Some("north"));
        }
    }
}

#[test]
fn a_call_with_headers_is_not_sent_on_a_byte_stream() {
    let options = ClientOptions::new(Implementation::new("test", "1"));
    let mut client = Client::new(options, 7, Instant::ZERO);
    call_with(&tenant("north"), |command| {
        let refused = client.apply(command, Instant::ZERO);
        assert!(matches!(refused, Err(CommandError::NoHeaderFields)), "{refused:?}");
    });
}
