//! Clients, a protected server and an authorization server, over sockets in one process.

use std::time::Duration;

use authorization_server::browser::Browser;
use authorization_server::protected;
use authorization_server::{
    Approval, AuthorizationServer, Client as KnownClient, ClientAuthentication, GrantType, Options,
    SigningKeys, TrustedIssuer,
};
use mcp_sansio_auth::{Algorithm, Signer};
use mcp_sansio_tokio::auth::client::{
    ActionFailure, ApplicationType, AssertionRequest, AuthorizationOptions, AuthorizationRequest,
    ClientMetadata, ClientSecret, RegisteredClient, SigningRequest,
};
use mcp_sansio_tokio::http::{HttpClientOptions, HttpServerOptions, Location};
use mcp_sansio_tokio::{
    Authorization, Connector, Host, HttpConnection, HttpListener, HttpService, connect_with,
    unix_time,
};
use mcp_sansio_tokio::{Call, NoArguments, Server};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The lifetime of an access token in tests that wait for its expiry.
const BRIEF: Duration = Duration::from_secs(2);

/// A protected server and its authorization server.
struct TestSetup {
    authorization_server: AuthorizationServer,
    url: String,
    connector: Connector,
    serving: JoinHandle<()>,
}

impl TestSetup {
    async fn new(options: Options) -> Self {
        let authorization_server = protected::authorization_server(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let server = Server::new("test", "1")
            .tool("whoami", "Returns the subject of the token", |call: Call<NoArguments>| {
                let principal = call.principal().map(|it| it.as_str().to_owned());
                principal.unwrap_or_default().rsplit('|').next().unwrap_or_default().to_owned()
            })
            .tool("write", "Changes something", |_: Call<NoArguments>| "done");
        let issuer = authorization_server.issuer();
        let server = protected::protect(server, &url, issuer, "write").unwrap();
        let service = HttpService::new(&server, HttpServerOptions::new()).unwrap();
        let serving =
            tokio::spawn(HttpListener::new(listener).serve(service, std::future::pending()));
        Self { authorization_server, url, connector: Connector::new().unwrap(), serving }
    }

    async fn connect(&self, authorization: Authorization) -> Result<HttpConnection, String> {
        let host = Host::new("test", "1").authorization(authorization);
        let options = HttpClientOptions::new(Location::parse(&self.url).unwrap()).listen(false);
        let connected = connect_with(options, &self.connector, &host).await;
        connected.map_err(|error| error.to_string())
    }

    /// Returns a client authorization whose user is a browser that only follows redirects.
    fn user(&self) -> Authorization {
        let options = AuthorizationOptions::code("http://127.0.0.1:8910/callback").unwrap();
        let metadata = ClientMetadata::new("test", ApplicationType::Native);
        let browser = Browser::new(self.connector.clone());
        Authorization::new(options.register_as(metadata)).on_authorize(
            move |request: AuthorizationRequest| {
                let browser = browser.clone();
                async move {
                    let redirect = browser.visit(&request.url).await;
                    redirect.map_err(|error| ActionFailure::Failed(error.to_string()))
                }
            },
        )
    }

    /// Returns the subject of the client's token.
    async fn subject(&self, authorization: Authorization) -> String {
        let client = self.connect(authorization).await.unwrap();
        let subject = ask(&client, "whoami").await.unwrap();
        client.close().await;
        subject
    }
}

impl Drop for TestSetup {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn ask(client: &HttpConnection, tool: &str) -> Result<String, String> {
    let result = client.call_tool(tool, &json!({})).await.map_err(|error| error.to_string())?;
    Ok(result.content[0].as_text().unwrap_or_default().to_owned())
}

fn known_as(setup: &TestSetup, client_id: &str, secret: ClientSecret) -> RegisteredClient {
    RegisteredClient::new(client_id, secret).issuer(setup.authorization_server.issuer())
}

#[tokio::test]
async fn a_client_authenticates_with_a_password() {
    let authentication = ClientAuthentication::Basic("p:w/d+ü".into());
    let known =
        KnownClient::new("robot 1", authentication).grant_type(GrantType::ClientCredentials);
    let setup = TestSetup::new(protected::options().client(known)).await;
    let client = known_as(&setup, "robot 1", ClientSecret::Password("p:w/d+ü".into()));
    let options = AuthorizationOptions::client_credentials().registered(client).unwrap();
    assert_eq!(setup.subject(Authorization::new(options)).await, "robot 1");

    let client = known_as(&setup, "robot 1", ClientSecret::Password("wrong".into()));
    let options = AuthorizationOptions::client_credentials().registered(client).unwrap();
    let refused = setup.connect(Authorization::new(options)).await.unwrap_err();
    assert!(refused.contains("invalid_client") && !refused.contains("wrong"), "{refused}");
}

#[tokio::test]
async fn a_client_authenticates_with_a_key() {
    let signer = Signer::generate_es256().unwrap();
    let jwk: serde_json::Value = serde_json::from_str(&signer.public_jwk()).unwrap();
    let authentication = ClientAuthentication::PrivateKey(json!({ "keys": [jwk] }));
    let known = KnownClient::new("robot", authentication).grant_type(GrantType::ClientCredentials);
    let setup = TestSetup::new(protected::options().client(known)).await;
    let algorithm = Algorithm::Es256.as_str().to_owned();
    let client = known_as(&setup, "robot", ClientSecret::PrivateKey { algorithm, key_id: None });
    let options = AuthorizationOptions::client_credentials().registered(client).unwrap();
    let authorization = Authorization::new(options).on_sign(move |request: SigningRequest| {
        let signature = signer.sign(&request.algorithm, request.input.as_bytes());
        signature.map_err(ActionFailure::from)
    });
    assert_eq!(setup.subject(authorization).await, "robot");
}

#[tokio::test]
async fn a_workload_presents_an_assertion_from_its_identity_provider() {
    let platform = SigningKeys::generate().unwrap();
    let trusted = TrustedIssuer { issuer: "http://platform".into(), keys: platform.to_jwks() };
    let known =
        KnownClient::new("workload", ClientAuthentication::None).grant_type(GrantType::JwtBearer);
    let setup = TestSetup::new(protected::options().client(known).trust(trusted)).await;
    let client = known_as(&setup, "workload", ClientSecret::None);
    let options = AuthorizationOptions::assertion().registered(client).unwrap();
    let authorization =
        Authorization::new(options).on_assertion(move |request: AssertionRequest| {
            let claims = json!({
                "iss": "http://platform", "sub": "job 7", "aud": request.audience,
                "resource": request.resource, "exp": unix_time() + 60,
            });
            let assertion = platform.sign("JWT", &claims);
            assertion.map_err(|error| ActionFailure::Failed(error.to_string()))
        });
    assert_eq!(setup.subject(authorization).await, "job 7");
}

#[tokio::test]
async fn concurrent_calls_share_one_refresh() {
    let setup = TestSetup::new(protected::options().access_token_lifetime(BRIEF)).await;
    let client = setup.connect(setup.user()).await.unwrap();
    tokio::time::sleep(BRIEF).await;
    let (one, two, three) =
        tokio::join!(ask(&client, "whoami"), ask(&client, "whoami"), ask(&client, "whoami"));
    assert_eq!([one, two, three], ["user"; 3].map(|user| Ok(user.to_owned())));
    let tally = setup.authorization_server.tally();
    assert_eq!((tally.authorizations, tally.refreshes, tally.refusals), (1, 1, 0));
    client.close().await;
}

#[tokio::test]
async fn a_user_who_revoked_consent_is_asked_again() {
    let setup = TestSetup::new(protected::options().access_token_lifetime(BRIEF)).await;
    let client = setup.connect(setup.user()).await.unwrap();
    setup.authorization_server.revoke_refresh_tokens();
    tokio::time::sleep(BRIEF).await;
    assert_eq!(ask(&client, "whoami").await, Ok("user".into()));
    let tally = setup.authorization_server.tally();
    assert_eq!((tally.registrations, tally.authorizations), (1, 2));
    client.close().await;
}

#[tokio::test]
async fn concurrent_calls_that_need_more_scopes_ask_the_user_once() {
    let setup = TestSetup::new(protected::options()).await;
    let client = setup.connect(setup.user()).await.unwrap();
    let (one, two) = tokio::join!(ask(&client, "write"), ask(&client, "write"));
    assert_eq!([one, two], ["done"; 2].map(|done| Ok(done.to_owned())));
    assert_eq!(setup.authorization_server.tally().authorizations, 2);
    client.close().await;
}

#[tokio::test]
async fn a_later_connection_reuses_the_stored_tokens() {
    let setup = TestSetup::new(protected::options()).await;
    let authorization = setup.user();
    assert_eq!(setup.subject(authorization.clone()).await, "user");
    assert_eq!(setup.subject(authorization).await, "user");
    let tally = setup.authorization_server.tally();
    assert_eq!((tally.registrations, tally.authorizations), (1, 1));
}

#[tokio::test]
async fn a_user_who_declines_ends_the_wait() {
    let setup = TestSetup::new(protected::options().approval(Approval::Denied)).await;
    let refused = setup.connect(setup.user()).await.unwrap_err();
    assert!(refused.contains("access_denied"), "{refused}");
    assert_eq!(setup.authorization_server.tally().authorizations, 1);
}
