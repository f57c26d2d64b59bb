//! How the client obtains tokens, depending on the scenario.

use authorization_server::browser::Browser;
use mcp_sansio::http::Location;
use mcp_sansio_auth::{Algorithm, Signer};
use mcp_sansio_handlers::Authorization;
use mcp_sansio_oauth::client::{
    ActionFailure, ApplicationType, AssertionRequest, AuthorizationOptions, AuthorizationRequest,
    ClientMetadata, ClientSecret, IdentityProvider, InvalidOption, RegisteredClient,
    SigningRequest,
};
use mcp_sansio_tokio::Connector;
use serde_json::Value;

use crate::{Outcome, Task};

/// The redirect URI. No server listens there, because this program acts as the browser.
const REDIRECT_URI: &str = "http://127.0.0.1:8910/callback";
/// The client id for scenarios with a client ID metadata document. The document is never fetched.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Returns the authorization for a scenario.
pub(crate) fn authorization(task: &Task, connector: &Connector) -> Outcome<Authorization> {
    let context = &task.context;
    let mut signer = None;
    let options = match task.scenario.as_str() {
        "auth/client-credentials-basic" => {
            let client = with_password(context)?;
            AuthorizationOptions::client_credentials().registered_trusting_first_issuer(client)?
        }
        "auth/client-credentials-jwt" => {
            let algorithm = text(context, "signing_algorithm")?.parse::<Algorithm>()?;
            let pem = text(context, "private_key_pem")?;
            signer = Some(Signer::from_pkcs8_pem(pem.as_bytes(), algorithm)?);
            let algorithm = algorithm.as_str().to_owned();
            let secret = ClientSecret::PrivateKey { algorithm, key_id: None };
            let client = registered(context, secret)?;
            AuthorizationOptions::client_credentials().registered_trusting_first_issuer(client)?
        }
        "auth/enterprise-managed-authorization" => {
            AuthorizationOptions::enterprise(identity_provider(context)?)?
                .registered_trusting_first_issuer(with_password(context)?)?
        }
        "auth/wif-jwt-bearer" => {
            let client = registered(context, ClientSecret::None)?;
            AuthorizationOptions::assertion().registered_trusting_first_issuer(client)?
        }
        "auth/pre-registration" => {
            user()?.registered_trusting_first_issuer(with_password(context)?)?
        }
        "auth/dpop" | "auth/dpop-nonce" => {
            let key = Signer::generate_es256()?;
            let options = registering()?.dpop(&key.dpop_key())?;
            signer = Some(key);
            options
        }
        "auth/basic-cimd" => {
            registering()?.metadata_document(METADATA_DOCUMENT, ClientSecret::None)?
        }
        "auth/offline-access-scope" => registering()?.offline_access(true),
        _ => registering()?,
    };
    let browser = Browser::new(connector.clone());
    let mut authorization =
        Authorization::new(options).on_authorize(move |request: AuthorizationRequest| {
            let browser = browser.clone();
            async move {
                let redirect = browser.visit(&request.url).await;
                redirect.map_err(|error| ActionFailure::Failed(error.to_string()))
            }
        });
    if let Some(signer) = signer {
        authorization = authorization.on_sign(move |request: SigningRequest| {
            let signature = signer.sign(&request.algorithm, request.input.as_bytes());
            signature.map_err(ActionFailure::from)
        });
    }
    // The identity of the user or the workload.
    let mut assertions = ["idp_id_token", "valid_jwt"].into_iter();
    if let Some(assertion) = assertions.find_map(|name| context[name].as_str()) {
        let assertion = assertion.to_owned();
        authorization = authorization
            .on_assertion(move |_: AssertionRequest| Ok::<_, ActionFailure>(assertion.clone()));
    }
    Ok(authorization)
}

/// Options for a user who signs in.
fn user() -> Result<AuthorizationOptions, InvalidOption> {
    AuthorizationOptions::code(REDIRECT_URI)
}

/// Options for a user who signs in, with registration if the client is unknown.
fn registering() -> Result<AuthorizationOptions, InvalidOption> {
    let metadata = ClientMetadata::new("everything-client", ApplicationType::Native);
    Ok(user()?.register_as(metadata))
}

// The suite starts an authorization server for each scenario on its own port, and only the MCP
// server tells the client which one it is. A program outside of tests should name the issuer.

fn with_password(context: &Value) -> Outcome<RegisteredClient> {
    let secret = ClientSecret::Password(text(context, "client_secret")?.into());
    registered(context, secret)
}

fn registered(context: &Value, secret: ClientSecret) -> Outcome<RegisteredClient> {
    Ok(RegisteredClient::new(text(context, "client_id")?, secret))
}

fn identity_provider(context: &Value) -> Outcome<IdentityProvider> {
    let token_endpoint = Location::parse(text(context, "idp_token_endpoint")?)?;
    let (issuer, client_id) = (text(context, "idp_issuer")?, text(context, "idp_client_id")?);
    Ok(IdentityProvider::new(issuer, token_endpoint, client_id, ClientSecret::None))
}

fn text<'a>(context: &'a Value, name: &str) -> Outcome<&'a str> {
    context[name].as_str().ok_or_else(|| format!("the context has no `{name}`").into())
}
