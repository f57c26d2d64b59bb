use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::Principal;
use mcp_sansio::envelope::ParseLimits;
use mcp_sansio::http::ParsedBody;
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio_sync::Arc;

use crate::{BearerChallenge, Challenge};

use super::*;

const URI: &str = "https://mcp.example.com/mcp";
const ISSUERS: [&str; 1] = ["https://auth.example.com"];

/// Returns a resource with base scopes, a tool that needs more, and a scope that implies others.
pub(super) fn resource() -> ProtectedResource {
    let resource = ProtectedResource::new(URI, ISSUERS).expect("a resource");
    let resource = resource.base_scopes(["use"]).expect("scopes");
    let resource = resource.scopes_for(Operation::tool("delete"), ["files:write", "audit"]);
    resource.and_then(|it| it.implies("files", ["files:read", "files:write"])).expect("scopes")
}

/// Returns a token for the resource with these scopes, separated by spaces.
fn token(scope: &str) -> VerifiedToken {
    VerifiedToken::new(Principal::new("ann")).audiences([URI]).scope(scope)
}

fn grant(scope: &str) -> Grant {
    Grant::new(&Arc::new(resource()), Ok(token(scope)), 0).expect(scope)
}

/// Parses the challenge of a refusal with the client's code.
pub(super) fn read(refusal: &HttpRejection) -> BearerChallenge {
    let challenge = refusal.challenge.as_deref().expect("a challenge");
    let challenges = Challenge::parse([challenge.as_bytes()]);
    BearerChallenge::select(&challenges).expect("one for a token")
}

/// Returns the status and the required scopes if a grant does not permit a body.
fn against(grant: &Grant, body: &str) -> Option<(Status, String)> {
    let body = ParsedBody::parse(body.as_bytes(), ParseLimits::default()).expect(body);
    let refusal = grant.check(Some(&body)).err()?;
    let challenge = read(&refusal);
    assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"));
    assert_eq!(challenge.resource_metadata, resource().metadata_url());
    assert!(challenge.error_description.is_some());
    Some((refusal.status, challenge.scope.unwrap_or_default()))
}

fn call(tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

#[test]
fn a_resource_is_a_url_with_an_authorization_server() {
    // Rule: [AUTHS-008].
    let fault = |uri: &str, issuers: &[&str]| {
        ProtectedResource::new(uri, issuers.iter().copied()).map(drop).expect_err(uri)
    };
    assert_eq!(fault("mcp.example.com", &ISSUERS), InvalidResource::Url(InvalidUrl::Scheme));
    assert_eq!(fault("ftp://a.example", &ISSUERS), InvalidResource::Url(InvalidUrl::Scheme));
    assert_eq!(fault("https://a.example#b", &ISSUERS), InvalidResource::Fragment);
    assert_eq!(fault("https://a.example.:8443/b", &ISSUERS), InvalidResource::FinalDot);
    assert_eq!(fault(URI, &[]), InvalidResource::NoIssuer);
    for issuer in ["http://auth.example.com", "auth", "https://auth.example.com/?a", ""] {
        let fault = fault(URI, &["https://auth.example.com", issuer]);
        assert!(matches!(fault, InvalidResource::Issuer { .. }), "{issuer}");
    }
    for uri in ["http://127.0.0.1:3000/mcp", "https://mcp.example.com"] {
        assert!(ProtectedResource::new(uri, ["http://localhost:9000"]).is_ok(), "{uri}");
    }
}

#[test]
fn a_resource_cannot_require_offline_access() {
    // Rule: [AUTHS-020].
    let base = || ProtectedResource::new(URI, ISSUERS).expect("a resource");
    let scopes = ["use", "offline_access"];
    for refused in [
        base().base_scopes(scopes),
        base().scopes_supported(scopes),
        base().scopes_for(Method::ToolsList, scopes),
        base().implies("all", scopes),
        base().implies("offline_access", ["use"]),
    ] {
        assert_eq!(refused.err(), Some(InvalidResource::OfflineAccess));
    }
    // A challenge omits it even if the token has it.
    let (_, scope) = against(&grant("offline_access use"), &call("delete")).expect("a refusal");
    assert_eq!(scope, "use files:write audit");
}

#[test]
fn an_invalid_scope_is_refused() {
    for scope in ["", "a b", "a\"", "a\\", "ü", "a\n"] {
        let refused = ProtectedResource::new(URI, ISSUERS).and_then(|it| it.base_scopes([scope]));
        assert_eq!(refused.err(), Some(InvalidResource::Scope(scope.into())));
    }
}

#[test]
fn a_token_of_another_audience_is_refused() {
    // Rule: [AUTHS-013] [SEC-008] [AUTHS-012].
    let resource = Arc::new(resource().audience("api://files"));
    let judge = |audiences: &[&str]| {
        let token = VerifiedToken::new(Principal::new("ann")).scope("use files");
        Grant::new(&resource, Ok(token.audiences(audiences.iter().copied())), 0)
    };
    for audiences in
        [&[URI][..], &["other", URI], &["HTTPS://MCP.Example.com:443/mcp"], &["api://files"]]
    {
        assert!(judge(audiences).is_ok(), "{audiences:?}");
    }
    for audiences in [
        &[][..],
        &[""],
        &["https://mcp.example.com"],
        &["https://mcp.example.com/"],
        &["https://mcp.example.com/mcp/other"],
        &["https://mcp.example.com/mcp#a"],
        &["https://mcp.example.com/MCP"],
        &["http://mcp.example.com/mcp"],
        &["https://mcp.example.com.evil.example/mcp", "API://files"],
        &["https://mcp.example.com./mcp"],
        &["HTTPS://MCP.Example.com.:443/mcp"],
    ] {
        let refusal = judge(audiences).expect_err("another audience");
        assert_eq!(refusal.status, Status::UNAUTHORIZED, "{audiences:?}");
        let challenge = read(&refusal);
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
        assert_eq!(challenge.scope.as_deref(), Some("use"));
    }
}

#[test]
fn an_expired_token_is_refused_from_its_expiry_on() {
    // Rule: [AUTHS-001].
    let resource = Arc::new(resource());
    let at = |now| Grant::new(&resource, Ok(token("use").expires_at(100)), now);
    assert!(at(99).is_ok());
    for now in [100, u64::MAX] {
        let refusal = at(now).expect_err("expired");
        assert_eq!(refusal.status, Status::UNAUTHORIZED);
        assert_eq!(read(&refusal).error.as_deref(), Some("invalid_token"));
    }
}

#[test]
fn a_failed_check_refuses_the_request() {
    // Rule: [AUTHS-001] [AUTHS-009] [AUTHS-010] [AUTHS-012].
    let resource = Arc::new(resource());
    for refused in [TokenRefusal::Invalid, TokenRefusal::Expired] {
        let refusal = Grant::new(&resource, Err(refused), 0).expect_err("refused");
        assert_eq!(refusal.status, Status::UNAUTHORIZED);
        let challenge = read(&refusal);
        assert_eq!(challenge.error.as_deref(), Some("invalid_token"));
        assert_eq!(challenge.resource_metadata, resource.metadata_url());
    }
    // A failed check does not tell the client to get another token.
    let refusal = Grant::new(&resource, Err(TokenRefusal::Unavailable), 0).expect_err("refused");
    assert_eq!((refusal.status, refusal.challenge), (Status::SERVICE_UNAVAILABLE, None));
    assert!(refusal.retry_after.is_some());
}

#[test]
fn a_resource_without_an_issuer_challenges_without_metadata() {
    // Rule: [AUTHC-001] [AUTHS-001] [AUTHS-002].
    let resource = ProtectedResource::without_issuer(URI).expect("a resource");
    assert_eq!(resource.no_token().challenge.as_deref(), Some("Bearer realm=\"MCP\""));
    let resource = Arc::new(resource.base_scopes(["use"]).expect("scopes"));
    let refusal = resource.no_token();
    assert_eq!(refusal.status, Status::UNAUTHORIZED);
    let challenge = read(&refusal);
    assert_eq!((challenge.resource_metadata, challenge.error), (None, None));
    assert_eq!(challenge.scope.as_deref(), Some("use"));
    let refusal = Grant::new(&resource, Err(TokenRefusal::Invalid), 0).expect_err("refused");
    assert_eq!(refusal.status, Status::UNAUTHORIZED);
    assert_eq!(read(&refusal).error.as_deref(), Some("invalid_token"));
    let grant = Grant::new(&resource, Ok(token("other")), 0).expect("a token");
    let refusal = grant.require(&[]).expect_err("no scope");
    assert_eq!(refusal.status, Status::FORBIDDEN);
    assert_eq!(read(&refusal).resource_metadata, None);
}

#[test]
fn a_challenge_names_the_required_and_the_granted_scopes() {
    // Rule: [AUTHS-002] [AUTHS-015] [AUTHS-016] [AUTHS-017] [AUTHS-018].
    let forbidden = |scope: &str| Some((Status::FORBIDDEN, String::from(scope)));
    assert_eq!(against(&grant("use"), &call("list")), None);
    assert_eq!(against(&grant("use files:write audit"), &call("delete")), None);
    assert_eq!(against(&grant(""), &call("list")), forbidden("use"));
    assert_eq!(against(&grant("use"), &call("delete")), forbidden("use files:write audit"));
    // The scopes of every request are included with the others.
    assert_eq!(against(&grant(""), &call("delete")), forbidden("use files:write audit"));
    // The scopes of the token are kept, except for those that this resource does not use.
    let scope = "use files:write audit files:read";
    assert_eq!(against(&grant("files:read email use"), &call("delete")), forbidden(scope));
}

#[test]
fn a_broad_scope_is_enough_for_a_narrow_one() {
    // Rule: [AUTHS-019].
    let resource = resource().implies("admin", ["files", "audit", "use"]).expect("scopes");
    let resource = Arc::new(resource.implies("files", ["admin"]).expect("a circle"));
    let has = |scopes: &str, scope: &str| {
        Grant::new(&resource, Ok(token(scopes)), 0).expect(scopes).has_scope(scope)
    };
    for (scopes, scope, enough) in [
        ("files", "files:write", true),
        ("admin", "files:write", true),
        ("x files", "use", true),
        ("files:write", "files:read", false),
        ("files:write files:read", "files", false),
        ("file", "files", false),
        ("", "", false),
        ("use", "unheard-of", false),
        ("unheard-of", "unheard-of", true),
    ] {
        assert_eq!(has(scopes, scope), enough, "{scopes} for {scope}");
    }
}

#[test]
fn a_batch_needs_what_all_its_requests_need() {
    // Rule: [AUTHS-018].
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let batch = format!("[{},{note},5,{}]", call("list"), call("delete"));
    let refused = Some((Status::FORBIDDEN, "use files:write audit".to_string()));
    assert_eq!(against(&grant("use"), &batch), refused);
    assert_eq!(against(&grant("use files audit"), &batch), None);
    assert_eq!(against(&grant(""), note), Some((Status::FORBIDDEN, "use".into())));
    assert!(grant("").check(None).is_err(), "nothing that can be read");
    assert!(grant("use").check(None).is_ok());
}

#[test]
fn method_and_name_scopes_accumulate() {
    use mcp_sansio::Method;
    let resource = ProtectedResource::new(URI, ISSUERS).expect("a resource");
    let resource = resource.scopes_for(Method::ResourcesRead, ["read"]);
    let resource = resource.and_then(|it| it.scopes_for(Operation::resource("a:b"), ["secret"]));
    let resource = resource.and_then(|it| it.scopes_for(Operation::prompt("p"), ["prompts"]));
    let resource = resource.and_then(|it| it.scopes_for(Operation::method("x/y"), ["x"]));
    let grant = Grant::new(&Arc::new(resource.expect("scopes")), Ok(token("")), 0);
    let grant = grant.expect("a grant");
    let needs = |method: &str, params: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        against(&grant, &body).map(|(_, scope)| scope)
    };
    let scope = |scope: &str| Some(String::from(scope));
    assert_eq!(needs("resources/read", r#"{"uri":"a:c","name":"a:b"}"#), scope("read"));
    assert_eq!(needs("resources/read", r#"{"uri":"a:b"}"#), scope("read secret"));
    assert_eq!(needs("resources/read", r#"{"uri":"\u0061:b"}"#), scope("read secret"));
    assert_eq!(needs("prompts/get", r#"{"name":"p"}"#), scope("prompts"));
    assert_eq!(needs("tools/call", r#"{"name":"p"}"#), None);
    assert_eq!(needs("x/y", "{}"), scope("x"));
    // A subscription needs the scopes for reading the same resource, but not those for all reads.
    assert_eq!(needs("resources/subscribe", r#"{"uri":"a:b"}"#), scope("secret"));
    assert_eq!(needs("resources/subscribe", r#"{"uri":"a:c"}"#), None);
    assert_eq!(needs("resources/unsubscribe", r#"{"uri":"a:b"}"#), None);
    let listen = |uris: &str| {
        let params =
            format!(r#"{{"uri":"a:b","notifications":{{"resourceSubscriptions":{uris}}}}}"#);
        needs("subscriptions/listen", &params)
    };
    assert_eq!(listen(r#"["a:c", "\u0061:b"]"#), scope("secret"));
    assert_eq!(listen(r#"["a:c",5]"#), None);
    assert_eq!(listen("[]"), None);
    assert_eq!(needs("tools/list", "{}"), None);
}

#[test]
fn a_handler_requires_valid_scopes() {
    // Rule: [AUTHS-015] [AUTHS-020].
    let granted = grant("use files");
    assert!(granted.require(&["files:read", "files"]).is_ok());
    let refusal = granted.require(&["audit", "mail"]).expect_err("not granted");
    assert_eq!(refusal.status, Status::FORBIDDEN);
    assert_eq!(read(&refusal).scope.as_deref(), Some("use audit mail files"));
    for scope in ["offline_access", "a b", "x\", error=\"y"] {
        let refusal = granted.require(&[scope]).expect_err("no scope");
        assert_eq!((refusal.status, refusal.challenge), (Status::INTERNAL_SERVER_ERROR, None));
    }
}

#[test]
fn a_grant_is_valid_only_for_its_resource() {
    let (ours, theirs) = (Arc::new(resource()), Arc::new(resource()));
    let granted = Grant::new(&ours, Ok(token("use")), 0).expect("a grant");
    assert!(granted.is_for(&ours) && !granted.is_for(&theirs));
}

#[test]
fn scopes_are_read_from_the_claim() {
    let scopes: Vec<_> = grant(" use  files ").scopes().to_vec();
    assert_eq!(scopes, ["use", "files"]);
}
