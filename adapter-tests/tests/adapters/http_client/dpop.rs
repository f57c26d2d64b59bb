//! Tokens that are bound to a key, between a client and a server of this project, over sockets.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mcp_sansio_tokio::auth::client::SigningRequest;
use mcp_sansio_tokio::auth::client::{AuthorizationOptions, ClientSecret, RegisteredClient};
use mcp_sansio_tokio::auth::dpop_verifier;
use mcp_sansio_tokio::auth::protected_resource::{DpopVerifier, StaticTokens};
use mcp_sansio_tokio::http::Location;
use mcp_sansio_tokio::{
    Authorization, Call, ConnectError, Error, Host, HttpClientOptions, NoArguments, Principal,
    ProtectedResource, Signer, VerifiedToken, connect, serve_http,
};
use tokio::net::TcpListener;

use super::server::{RecordedRequest, Server, respond};
use super::{text, within};

/// Starts an authorization server whose token `t1` has this type.
async fn authorization_server(kind: &'static str) -> (Server, String) {
    let own = Arc::new(OnceLock::new());
    let known = Arc::clone(&own);
    let server = Server::start(move |asked: &RecordedRequest, _| {
        let base: &String = known.get().expect("the address is set before the first request");
        let json = "content-type: application/json\r\n";
        match &*asked.target {
            "/.well-known/oauth-authorization-server" => {
                let body = format!(
                    r#"{{"issuer":"{base}","authorization_endpoint":"{base}/authorize","token_endpoint":"{base}/token","response_types_supported":["code"],"code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["client_secret_basic"],"dpop_signing_alg_values_supported":["ES256"]}}"#
                );
                respond(200, json, &body)
            }
            "/token" => {
                let body = format!(r#"{{"access_token":"t1","token_type":"{kind}"}}"#);
                respond(200, json, &body)
            }
            _ => respond(404, "", ""),
        }
    })
    .await;
    let base = format!("http://{}", server.address);
    own.set(base.clone()).expect("the address is set once");
    (server, base)
}

/// Starts an MCP server that knows one token, which is bound to the key of `signer`.
async fn protected(issuer: &str, signer: &Signer, verifier: DpopVerifier) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let thumbprint = signer.dpop_key().thumbprint().unwrap();
    let ann = VerifiedToken::new(Principal::new("ann")).bound_to(thumbprint);
    let tokens = StaticTokens::new([("t1", ann)]).unwrap();
    let resource = ProtectedResource::new(&url, [issuer]).unwrap().dpop(verifier).unwrap();
    let server = mcp_sansio_tokio::Server::new("files", "1")
        .tool("who", "Names the caller", |call: Call<NoArguments>| {
            call.principal().map_or("nobody", Principal::as_str).to_owned()
        })
        .protect(resource, move |check| tokens.check(&check));
    tokio::spawn(serve_http(server, listener));
    url
}

/// Returns a client that binds its token to the key of `signer`, and the signed texts.
fn client(signer: Signer) -> (Host, Arc<Mutex<Vec<String>>>) {
    let secret = ClientSecret::Password("secret".into());
    let registered = RegisteredClient::new("demo", secret);
    let options = AuthorizationOptions::client_credentials()
        .registered_trusting_first_issuer(registered)
        .unwrap()
        .dpop(&signer.dpop_key())
        .unwrap();
    let signed = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&signed);
    let authorization = Authorization::new(options).on_sign(move |request: SigningRequest| {
        log.lock().unwrap().push(request.input.to_string());
        Ok(signer.sign(&request.algorithm, request.input.as_bytes())?)
    });
    (Host::new("host", "1").authorization(authorization), signed)
}

#[tokio::test]
async fn each_request_proves_the_key_of_its_token() {
    let (_issuer, base) = authorization_server("DPoP").await;
    let signer = Signer::generate_es256().unwrap();
    let url = protected(&base, &signer, dpop_verifier().required()).await;
    let (host, signed) = client(signer);
    within(async {
        let client = connect(&url, &host).await.unwrap();
        for _ in 0..3 {
            assert_eq!(text(&client.call_tool("who", &NoArguments {}).await), "ann");
        }
        client.close().await;
    })
    .await;
    assert!(signed.lock().unwrap().len() >= 5);
}

#[tokio::test]
async fn a_client_answers_a_challenge_for_a_nonce() {
    let (_issuer, base) = authorization_server("DPoP").await;
    let signer = Signer::generate_es256().unwrap();
    let verifier = dpop_verifier().nonces(&[7; 32], Duration::from_secs(300));
    let url = protected(&base, &signer, verifier).await;
    let (host, signed) = client(signer);
    within(async {
        let client = connect(&url, &host).await.unwrap();
        assert_eq!(text(&client.call_tool("who", &NoArguments {}).await), "ann");
        client.close().await;
    })
    .await;
    // The first proof for the server has no nonce, and the following ones have one.
    assert!(signed.lock().unwrap().len() >= 4);
}

#[tokio::test]
async fn a_stolen_token_is_refused() {
    let (_issuer, base) = authorization_server("DPoP").await;
    let (owner, thief) = (Signer::generate_es256().unwrap(), Signer::generate_es256().unwrap());
    let url = protected(&base, &owner, dpop_verifier()).await;
    within(async {
        // With a proof of another key, the server asks for another token each time.
        let (host, _) = client(thief);
        assert!(connect(&url, &host).await.is_err());
        // Without a proof.
        let options = HttpClientOptions::new(Location::parse(&url).unwrap());
        let options = options.header("Authorization", "Bearer t1").unwrap();
        let connector = mcp_sansio_tokio::Connector::new().unwrap();
        let host = Host::new("host", "1");
        let refused = mcp_sansio_tokio::connect_with(options, &connector, &host).await;
        let Err(Error::Connect(error)) = refused else { panic!("accepted") };
        let ConnectError::Unauthorized { challenge: Some(challenge), .. } = *error else {
            panic!("{error}")
        };
        assert!(challenge.starts_with("DPoP resource_metadata="), "{challenge}");
        assert!(challenge.contains("without a proof"), "{challenge}");
    })
    .await;
}
