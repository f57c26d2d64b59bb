//! A client that authorizes itself against an authorization server with arbitrary responses.

use mcp_sansio::Instant;
use mcp_sansio::http::{self, ClientTransmit, IncomingResponse, Location, OutgoingRequest};
use mcp_sansio::peer;
use mcp_sansio::peer::Status;
use mcp_sansio::protocol::Implementation;
use mcp_sansio_oauth::client::{
    ActionFailure, ApplicationType, AuthorizationAction, AuthorizationClient, AuthorizationOptions,
    ClientMetadata, ClientSecret, RegisteredClient, Routing,
};
use serde_json::Value;

const SERVER: &str = "https://mcp.example/mcp";
const RESOURCE: &str =
    r#"{"resource":"https://mcp.example/mcp","authorization_servers":["https://as.example"]}"#;
const ISSUER: &str = r#"{"issuer":"https://as.example","authorization_endpoint":"https://as.example/authorize","token_endpoint":"https://as.example/token","registration_endpoint":"https://as.example/register","code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_basic"]}"#;

/// More steps than any authorization takes.
const STEPS_MAX: usize = 100;

/// Answers token and registration requests with `body`. Checks that invalid values are not sent,
/// and secrets are not shown.
pub(super) fn answer_endpoints(body: &[u8]) {
    let secret = ClientSecret::Password("password".into());
    let client = RegisteredClient::new("app", secret).issuer("https://as.example");
    let machine = AuthorizationOptions::client_credentials()
        .registered(client)
        .expect("the client has an issuer");
    run(machine, body);
    let metadata = ClientMetadata::new("app", ApplicationType::Native);
    let code = AuthorizationOptions::code("http://127.0.0.1:7777/callback")
        .expect("a loopback redirect URI");
    run(code.register_as(metadata), body);
}

fn run(options: AuthorizationOptions, body: &[u8]) {
    let now = Instant::ZERO;
    let server = Location::parse(SERVER).expect("a valid URL");
    let peer = peer::ClientOptions::new(Implementation::new("c", "1"));
    let mut http = http::Client::new(peer, http::HttpClientOptions::new(server.clone()), 0, now);
    let mut auth = AuthorizationClient::new(options, server, [7; 32], 1_800_000_000, now);
    for _ in 0..STEPS_MAX {
        while let Some(transmit) = http.poll_transmit() {
            auth.handle_transmit(transmit, now);
        }
        while let Some(action) = auth.poll_action() {
            act(&mut auth, action);
        }
        while auth.poll_event().is_some() {}
        match auth.poll_transmit() {
            None => return,
            Some(ClientTransmit::Abort(_)) => {}
            Some(ClientTransmit::Send(request)) => {
                let Some((status, answer)) = answer(&request, body) else { return };
                receive(&mut auth, &mut http, &request, status, answer);
                check_shown(&format!("{auth:?}"), body);
            }
        }
    }
    panic!("an authorization does not end");
}

fn act(auth: &mut AuthorizationClient, action: AuthorizationAction) {
    let now = Instant::ZERO;
    match action {
        AuthorizationAction::Load(id, _) | AuthorizationAction::Lock(id, _) => {
            auth.handle_loaded(id, Ok(None), now)
        }
        AuthorizationAction::Authorize(request) => {
            assert!(is_visible(&request.url), "{:?} for a browser", request.url);
            auth.handle_redirect(request.id, Err(ActionFailure::Declined), now);
        }
        AuthorizationAction::Sign(_) | AuthorizationAction::Assert(_) => {
            panic!("no key or assertion is configured")
        }
        AuthorizationAction::Save(..)
        | AuthorizationAction::Remove(_)
        | AuthorizationAction::Unlock(_)
        | AuthorizationAction::Withdraw(_) => {}
    }
}

/// Returns the response to a request, if it is relevant; panics if the request is invalid.
fn answer<'b>(request: &OutgoingRequest, body: &'b [u8]) -> Option<(u16, &'b [u8])> {
    for (name, value) in request.fields() {
        assert!(is_visible(&value.replace(' ', "-")), "{name}: {value:?}");
    }
    let path = request.url().path_and_query();
    assert!(matches!(request.url().authority(), "mcp.example" | "as.example"), "another origin");
    match path {
        "/.well-known/oauth-protected-resource/mcp" => Some((200, RESOURCE.as_bytes())),
        "/.well-known/oauth-authorization-server" => Some((200, ISSUER.as_bytes())),
        "/token" => Some((200, body)),
        "/register" => Some((201, body)),
        "/mcp" => {
            let authorization = request.fields().find(|(name, _)| *name == "authorization");
            let Some((_, value)) = authorization else { return Some((401, b"")) };
            let tree: Value = serde_json::from_slice(body).expect("tokens only come from JSON");
            let token = tree["access_token"].as_str().expect("the token of the response");
            assert_eq!(value, format!("Bearer {token}"));
            let kind = tree["token_type"].as_str().expect("its type");
            assert!(kind.eq_ignore_ascii_case("bearer"), "a token of type {kind}");
            None
        }
        _ => Some((404, b"")),
    }
}

fn receive(
    auth: &mut AuthorizationClient,
    http: &mut http::Client,
    request: &OutgoingRequest,
    status: u16,
    body: &[u8],
) {
    let (exchange, now) = (request.exchange, Instant::ZERO);
    let mut head = IncomingResponse::new(Status(status));
    head.field("content-type", b"application/json");
    if status == 401 {
        head.field("www-authenticate", b"Bearer");
    }
    if let Routing::Forward(inner) = auth.handle_response(exchange, &head, now) {
        http.handle_response(inner, &head, now);
    }
    if let Routing::Forward(inner) = auth.handle_body(exchange, body, now) {
        http.handle_body(inner, body, now);
    }
    if let Routing::Forward(inner) = auth.handle_body_end(exchange, now) {
        http.handle_body_end(inner, now);
    }
}

/// Panics if a text contains a secret of the response that is too long to occur by chance.
fn check_shown(shown: &str, body: &[u8]) {
    let Ok(tree) = serde_json::from_slice::<Value>(body) else { return };
    for name in ["access_token", "refresh_token", "client_secret"] {
        if let Some(secret) = tree[name].as_str().filter(|it| it.len() > 32) {
            assert!(!shown.contains(secret), "{name} in {shown}");
        }
    }
}

fn is_visible(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}
