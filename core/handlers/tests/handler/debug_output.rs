//! `Debug` output of every type that holds a secret.

use mcp_sansio::http::{HttpServerOptions, Location, RequestHead};
use mcp_sansio::{Caller, Instant, Principal};
use mcp_sansio_handlers::{Authorization, Host, MemoryStore, Server, TokenRequirement};
use mcp_sansio_oauth::client::{
    AuthorizationAction, AuthorizationClient, AuthorizationOptions, ClientSecret, Credential,
    CredentialKey, DpopKey, IdentityProvider, RegisteredClient,
};
use mcp_sansio_oauth::protected_resource::{ProtectedResource, VerifiedToken};
use mcp_sansio_oauth::{AuthorizationResponse, CodeVerifier, State};

/// The secret that must not appear. Verifiers and states are derived from it as well.
const SECRET: &str = "hush-hush-hush-hush-hush-hush-32";

fn entropy() -> [u8; 32] {
    *SECRET.as_bytes().first_chunk().expect("32 bytes")
}

fn password() -> ClientSecret {
    ClientSecret::Password(SECRET.to_owned())
}

fn registered() -> RegisteredClient {
    RegisteredClient::new("demo", password()).issuer("https://as.example")
}

fn provider() -> IdentityProvider {
    let token_endpoint = Location::parse("https://idp.example/token").unwrap();
    IdentityProvider::new("https://idp.example", token_endpoint, "demo", password())
}

/// Returns the `Debug` output of the client types that hold a secret.
fn shown() -> Vec<String> {
    let options = AuthorizationOptions::code("http://127.0.0.1:1/callback").unwrap();
    let options = options.registered(registered()).unwrap();
    let server = Location::parse("https://mcp.example/mcp").unwrap();
    let client = AuthorizationClient::new(options.clone(), server, entropy(), 0, Instant::ZERO);
    let credential = Credential::new(SECRET);
    let key = CredentialKey::Tokens("https://mcp.example/mcp".to_owned());
    let (state, verifier) = (State::new(entropy()), CodeVerifier::new(entropy()));
    let redirect = format!("/callback?code={SECRET}&state={}", state.as_str());
    let response = AuthorizationResponse::parse(&redirect).unwrap();
    let code = response.clone().check(&state, "https://as.example", false).unwrap();
    let jwk = format!(r#"{{"kty":"EC","crv":"P-256","x":"x","y":"y","d":"{SECRET}"}}"#);
    let authorization = Authorization::new(options.clone()).store(MemoryStore::new());
    let host = Host::new("host", "1").authorization(authorization.clone());
    Vec::from([
        format!("{options:?}"),
        format!("{client:?}"),
        format!("{:?}", AuthorizationAction::Save(key, credential.clone())),
        format!("{credential:?} {verifier:?} {state:?} {response:?} {code:?}"),
        format!(
            "{:?} {:?} {:?}",
            password(),
            registered(),
            AuthorizationOptions::enterprise(provider())
        ),
        format!("{:?}", DpopKey::new("ES256", jwk)),
        format!("{authorization:?} {host:?}"),
    ])
}

/// Returns the `Debug` output of the server types that hold a secret.
fn shown_by_servers() -> Vec<String> {
    let resource =
        ProtectedResource::new("https://mcp.example/mcp", ["https://as.example"]).unwrap();
    let token = VerifiedToken::new(Principal::new(SECRET));
    let field = format!("Bearer {SECRET}");
    let target = format!("/mcp?session={SECRET}");
    let mut head = RequestHead::new("POST", &target);
    head.field("host", b"localhost");
    head.field("authorization", field.as_bytes());
    let check = resource.extract_token(&head, 0).unwrap();
    let granted = token.clone();
    let server =
        Server::new("s", "1").protect(resource, move |_| Ok(granted.clone())).unix_time(|| 0);
    let http = server.http(HttpServerOptions::new(), entropy(), 0).unwrap();
    let demand = http.authorize(&head, &Caller::ANONYMOUS);
    assert!(matches!(demand, TokenRequirement::Check(_)));
    Vec::from([
        format!("{head:?} {check:?} {token:?} {demand:?}"),
        format!("{server:?}"),
        format!("{http:?}"),
    ])
}

#[test]
fn debug_output_never_contains_secrets() {
    // Rule: [AUTHC-046] [AUTHC-062].
    // The secret as bytes, and the values that are derived from entropy.
    let bytes = format!("{:?}", &SECRET.as_bytes()[..4]);
    let bytes = bytes.trim_matches(['[', ']']);
    let (state, verifier) = (State::new(entropy()), CodeVerifier::new(entropy()));
    for text in shown().into_iter().chain(shown_by_servers()) {
        for secret in [SECRET, bytes, state.as_str(), verifier.as_str()] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

/// Prints the fields that the macro names, and no others.
struct Login<T> {
    user: T,
    password: &'static str,
}

mcp_sansio::partial_debug! { impl<T: std::fmt::Debug> Debug for Login<T> { user, .. } }

struct Password(&'static str);

mcp_sansio::partial_debug! { impl Debug for Password(..) }

struct Unnamed(&'static str);

mcp_sansio::partial_debug! { impl Debug for Unnamed }

#[test]
fn a_type_that_prints_a_part_prints_its_name_and_the_named_fields() {
    let login = Login { user: 7, password: SECRET };
    assert_eq!(format!("{login:?}"), "Login { user: 7, .. }");
    assert_eq!(format!("{:?} {:?}", Password(SECRET), Unnamed(SECRET)), "Password(..) Unnamed");
    assert_eq!([login.password, Password(SECRET).0, Unnamed(SECRET).0], [SECRET; 3]);
}
