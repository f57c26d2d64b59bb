use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use mcp_sansio_tokio::ClientError;
use mcp_sansio_tokio::auth::client::{ActionFailure, AuthorizationRequest};
use mcp_sansio_tokio::auth::client::{AuthorizationOptions, ClientSecret, RegisteredClient};
use mcp_sansio_tokio::protocol::CallToolResult;
use mcp_sansio_tokio::{Authorization, ConnectError, Error, HttpConnection, connect};
use tokio::sync::Notify;

use super::scripts::{host, modern, said};
use super::server::{Action, RecordedRequest, Server, answer, respond};
use super::{text, within};

/// Starts a server whose tools require a token, together with its authorization server. With
/// `opens`, opening the connection requires no token.
async fn guarded(opens: bool) -> Server {
    let own = Arc::new(OnceLock::new());
    let known = Arc::clone(&own);
    let server = Server::start(move |asked, _| {
        let base = known.get().expect("the address is set before the first request");
        script(asked, base, opens)
    })
    .await;
    own.set(format!("http://{}", server.address)).expect("the address is set once");
    server
}

fn script(asked: &RecordedRequest, base: &String, opens: bool) -> Vec<Action> {
    const JSON: &str = "content-type: application/json\r\n";
    match &*asked.target {
        "/.well-known/oauth-protected-resource/mcp" => {
            let body =
                format!(r#"{{"resource":"{base}/mcp","authorization_servers":["{base}/as"]}}"#);
            respond(200, JSON, &body)
        }
        "/.well-known/oauth-authorization-server/as" => {
            let body = format!(
                r#"{{"issuer":"{base}/as","authorization_endpoint":"{base}/as/authorize","token_endpoint":"{base}/as/token","response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["none"]}}"#
            );
            respond(200, JSON, &body)
        }
        "/as/token" => {
            assert!(asked.body.contains("code=c1") && asked.body.contains("code_verifier="));
            respond(200, JSON, r#"{"access_token":"t1","token_type":"Bearer","expires_in":3600}"#)
        }
        "/mcp" if asked.field("authorization") == Some("Bearer t1") => {
            modern(asked, |asked| answer(asked, "", &said("sunny")))
        }
        "/mcp" if opens => modern(asked, |_| unauthorized(base)),
        "/mcp" => unauthorized(base),
        _ => respond(404, "", ""),
    }
}

fn unauthorized(base: &String) -> Vec<Action> {
    let field = format!(
        "www-authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"\r\n"
    );
    respond(401, &field, "")
}

fn options() -> AuthorizationOptions {
    let client = RegisteredClient::new("demo", ClientSecret::None);
    AuthorizationOptions::code("http://127.0.0.1:8910/callback")
        .unwrap()
        .registered(client)
        .unwrap()
}

/// Returns the redirect of a user who agrees.
fn agreed(request: &AuthorizationRequest) -> String {
    let (_, query) = request.url.split_once('?').expect("a query");
    let state = query.split('&').find(|pair| pair.starts_with("state=")).expect("a state");
    format!("/callback?code=c1&{state}")
}

/// Returns a user who agrees at once, and the number of times the user was asked.
fn at_once() -> (Authorization, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let authorization =
        Authorization::new(options()).on_authorize(move |request: AuthorizationRequest| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(agreed(&request))
        });
    (authorization, asked)
}

async fn call(client: &HttpConnection) -> Result<CallToolResult, ClientError> {
    client.call_tool("forecast", &BTreeMap::<String, String>::new()).await
}

#[tokio::test]
async fn a_connection_is_open_after_the_user_signed_in() {
    let server = guarded(false).await;
    let (authorization, asked) = at_once();
    within(async {
        let client = connect(&server.url(), &host().authorization(authorization)).await.unwrap();
        assert_eq!(text(&call(&client).await), "sunny");
        client.close().await;
    })
    .await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_connection_without_a_runtime_is_open_after_the_user_signed_in() {
    use mcp_sansio_std::Wait;

    let server = guarded(false).await;
    let (authorization, asked) = at_once();
    let url = server.url();
    let visit = move || {
        let host = host().authorization(authorization);
        let client = mcp_sansio_std::connect(&url, &host).unwrap();
        let arguments = BTreeMap::<String, String>::new();
        assert_eq!(text(&client.call_tool("forecast", &arguments).wait()), "sunny");
        client.close();
    };
    within(tokio::task::spawn_blocking(visit)).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connections_on_smol_and_on_async_std_are_open_after_the_user_signed_in() {
    for block_on in [smol::block_on, async_std::task::block_on] as [fn(Visit); 2] {
        let server = guarded(false).await;
        let (authorization, asked) = at_once();
        let url = server.url();
        let visit: Visit = Box::pin(async move {
            let host = host().authorization(authorization);
            let client = mcp_sansio_async_std::connect(&url, &host).await.unwrap();
            let arguments = BTreeMap::<String, String>::new();
            assert_eq!(text(&client.call_tool("forecast", &arguments).await), "sunny");
            client.close().await;
        });
        within(tokio::task::spawn_blocking(move || block_on(visit))).await.unwrap();
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

type Visit = Pin<Box<dyn Future<Output = ()> + Send>>;

#[tokio::test]
async fn concurrent_calls_wait_for_one_authorization_and_run_once() {
    let server = guarded(true).await;
    let (authorization, asked) = at_once();
    within(async {
        let client = connect(&server.url(), &host().authorization(authorization)).await.unwrap();
        let (one, other) = tokio::join!(call(&client), call(&client));
        assert_eq!((text(&one), text(&other)), ("sunny", "sunny"));
    })
    .await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let with_token =
        |asked: &&RecordedRequest| asked.is("tools/call") && asked.field("authorization").is_some();
    assert_eq!(server.asked().iter().filter(with_token).count(), 2);
}

#[tokio::test]
async fn a_user_who_declines_fails_the_connection() {
    let server = guarded(false).await;
    let authorization = Authorization::new(options())
        .on_authorize(async |_: AuthorizationRequest| Err(ActionFailure::Declined));
    let host = host().authorization(authorization);
    let refused = within(connect(&server.url(), &host)).await;
    let Err(Error::Connect(error)) = refused else { panic!("{refused:?}") };
    assert!(matches!(&*error, ConnectError::AuthorizationFailed { .. }), "{error:?}");
    assert!(error.to_string().contains("the user declined"), "{error}");
}

#[tokio::test]
async fn a_user_who_declines_fails_the_call() {
    let server = guarded(true).await;
    let authorization = Authorization::new(options())
        .on_authorize(async |_: AuthorizationRequest| Err(ActionFailure::Declined));
    let host = host().authorization(authorization);
    within(async {
        let client = connect(&server.url(), &host).await.unwrap();
        let error = call(&client).await.unwrap_err().to_string();
        assert!(error.contains("the user declined"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn closing_drops_a_pending_authorization() {
    let server = guarded(true).await;
    let (begins, ends) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, ended) = (Arc::clone(&begins), Arc::clone(&ends));
    let authorization =
        Authorization::new(options()).on_authorize(move |_: AuthorizationRequest| {
            let (begins, ends) = (Arc::clone(&begins), OnDrop(Arc::clone(&ends)));
            async move {
                begins.notify_one();
                std::future::pending::<()>().await;
                drop(ends);
                Err(ActionFailure::Declined)
            }
        });
    let host = host().authorization(authorization);
    within(async {
        let client = connect(&server.url(), &host).await.unwrap();
        let arguments = BTreeMap::<String, String>::new();
        let waiting = tokio::spawn(client.call_tool("forecast", &arguments).into_future());
        begun.notified().await;
        client.close().await;
        ended.notified().await;
        waiting.await.unwrap().unwrap_err();
    })
    .await;
}

struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
