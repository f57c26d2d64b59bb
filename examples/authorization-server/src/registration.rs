//! Dynamic client registration (RFC 7591).

use serde::Deserialize;
use serde_json::{Value, json};

use super::clients::{Client, ClientAuthentication, Clients, GrantType};
use super::failure::Failure;
use super::keys::secret;
use super::redirect_uri::ApplicationType;

/// The maximum number of redirect URIs of one client.
const REDIRECT_URIS_MAX: usize = 16;

/// The client metadata that is used. Other fields are ignored.
#[derive(Deserialize)]
struct ClientMetadata {
    client_name: Option<String>,
    application_type: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    grant_types: Option<Vec<String>>,
    response_types: Option<Vec<String>>,
    token_endpoint_auth_method: Option<String>,
    jwks: Option<Value>,
}

/// Registers a client and returns its registration.
pub(super) fn register(clients: &mut Clients, body: &[u8], now: u64) -> Result<Value, Failure> {
    let metadata: ClientMetadata =
        serde_json::from_slice(body).map_err(|_| invalid("the body is not client metadata"))?;
    let name = metadata.application_type.as_deref();
    let kind = ApplicationType::parse(name, &metadata.redirect_uris)
        .ok_or(invalid("`application_type` must be `native` or `web`"))?;
    check_redirect_uris(kind, &metadata.redirect_uris)?;
    let grant_types = grant_types(metadata.grant_types.as_deref())?;
    if metadata.response_types.is_some_and(|types| types.iter().any(|it| it != "code")) {
        return Err(invalid("the only supported response type is `code`"));
    }
    let authentication = match metadata.token_endpoint_auth_method.as_deref() {
        Some("none") => ClientAuthentication::None,
        None | Some("client_secret_basic") => ClientAuthentication::Basic(secret()?),
        Some("client_secret_post") => ClientAuthentication::Post(secret()?),
        Some("private_key_jwt") => ClientAuthentication::PrivateKey(
            metadata.jwks.ok_or(invalid("`private_key_jwt` needs `jwks`"))?,
        ),
        Some(_) => return Err(invalid("unknown `token_endpoint_auth_method`")),
    };
    let client = Client {
        id: secret()?,
        name: metadata.client_name,
        authentication,
        redirect_uris: metadata.redirect_uris,
        grant_types,
    };
    let response = describe(&client, kind, now);
    clients.register(client);
    Ok(response)
}

// MCP 2025-03-26 basic/authorization#security-considerations [AUTHS-005]
fn check_redirect_uris(kind: ApplicationType, uris: &[String]) -> Result<(), Failure> {
    let refused = match uris {
        [] => "`redirect_uris` is empty",
        _ if uris.len() > REDIRECT_URIS_MAX => "there are too many redirect URIs",
        _ if uris.iter().all(|uri| kind.may_have(uri)) => return Ok(()),
        _ if kind == ApplicationType::Web => {
            "a web application must use `https` URIs of hosts other than loopback"
        }
        _ => "a native application must use `https`, a loopback host, or its own scheme",
    };
    Err(Failure::new("invalid_redirect_uri", refused))
}

/// Returns the allowed grant types. Dynamically registered clients may only use grants that involve
/// the user.
fn grant_types(names: Option<&[String]>) -> Result<Vec<GrantType>, Failure> {
    let Some(names) = names else { return Ok(vec![GrantType::AuthorizationCode]) };
    let types: Option<Vec<_>> = names
        .iter()
        .map(|name| match GrantType::parse(name)? {
            it @ (GrantType::AuthorizationCode | GrantType::RefreshToken) => Some(it),
            GrantType::ClientCredentials | GrantType::JwtBearer => None,
        })
        .collect();
    types
        .filter(|types| types.contains(&GrantType::AuthorizationCode))
        .ok_or(invalid("a registered client may only use authorization codes and refresh tokens"))
}

fn describe(client: &Client, kind: ApplicationType, now: u64) -> Value {
    let mut response = json!({
        "client_id": client.id,
        "client_id_issued_at": now,
        "redirect_uris": client.redirect_uris,
        "grant_types": client.grant_types.iter().map(|it| it.name()).collect::<Vec<_>>(),
        "response_types": ["code"],
        "token_endpoint_auth_method": client.authentication.name(),
        "application_type": kind.name(),
    });
    if let Some(name) = &client.name {
        response["client_name"] = json!(name);
    }
    match &client.authentication {
        ClientAuthentication::Basic(secret) | ClientAuthentication::Post(secret) => {
            response["client_secret"] = json!(secret);
            // The secret does not expire.
            response["client_secret_expires_at"] = json!(0);
        }
        ClientAuthentication::PrivateKey(jwks) => response["jwks"] = jwks.clone(),
        ClientAuthentication::None => {}
    }
    response
}

const fn invalid(description: &'static str) -> Failure {
    Failure::new("invalid_client_metadata", description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_to(metadata: &Value) -> Result<Value, &'static str> {
        let mut clients = Clients::new(Vec::new(), 1);
        let response = register(&mut clients, metadata.to_string().as_bytes(), 7);
        if let Ok(response) = &response {
            assert!(clients.find(response["client_id"].as_str().unwrap()).is_some());
        }
        response.map_err(|failure| failure.error)
    }

    fn native() -> Value {
        json!({
            "client_name": "test", "application_type": "native",
            "redirect_uris": ["http://127.0.0.1/callback"],
        })
    }

    #[test]
    fn a_registration_returns_the_client_id_and_the_secret() {
        let response = try_to(&native()).unwrap();
        assert_eq!(response["client_name"], "test");
        assert_eq!(response["application_type"], "native");
        assert_eq!(response["grant_types"], json!(["authorization_code"]));
        assert_eq!(response["token_endpoint_auth_method"], "client_secret_basic");
        assert!(response["client_secret"].is_string());

        let mut metadata = native();
        metadata["token_endpoint_auth_method"] = json!("none");
        metadata["grant_types"] = json!(["authorization_code", "refresh_token"]);
        let response = try_to(&metadata).unwrap();
        assert_eq!(response["client_secret"], Value::Null);
        assert_eq!(response["grant_types"], metadata["grant_types"]);
    }

    #[test]
    fn redirect_uris_must_fit_the_application_type() {
        // Rule: [AUTHS-005].
        let mut metadata = native();
        metadata["redirect_uris"] = json!(["http://app.example/"]);
        assert_eq!(try_to(&metadata), Err("invalid_redirect_uri"));
        metadata["redirect_uris"] = json!([]);
        assert_eq!(try_to(&metadata), Err("invalid_redirect_uri"));
        let mut metadata = native();
        metadata["application_type"] = json!("web");
        assert_eq!(try_to(&metadata), Err("invalid_redirect_uri"));
    }

    #[test]
    fn a_client_without_a_type_is_native_if_it_listens_on_the_users_machine_only() {
        let local = "http://localhost:53999/callback";
        for (uris, result) in [
            (vec![local], Ok("native")),
            (vec![local, "http://127.0.0.1/callback"], Ok("native")),
            (vec!["https://app.example/callback"], Ok("web")),
            (vec![local, "https://app.example/callback"], Err("invalid_redirect_uri")),
            (vec!["https://localhost/callback"], Err("invalid_redirect_uri")),
            (vec!["com.example.app:/callback"], Err("invalid_redirect_uri")),
            (vec![], Err("invalid_redirect_uri")),
        ] {
            let registered = try_to(&json!({ "redirect_uris": uris }));
            let kind = registered.map(|it| it["application_type"].as_str().map(String::from));
            assert_eq!(kind, result.map(|kind| Some(kind.into())), "{uris:?}");
        }
    }

    #[test]
    fn dynamically_registered_clients_need_a_user() {
        for (name, value) in [
            ("grant_types", json!(["client_credentials"])),
            ("grant_types", json!(["refresh_token"])),
            ("grant_types", json!(["implicit"])),
            ("response_types", json!(["token"])),
            ("token_endpoint_auth_method", json!("tls_client_auth")),
            ("token_endpoint_auth_method", json!("private_key_jwt")),
            ("application_type", json!("other")),
        ] {
            let mut metadata = native();
            metadata[name] = value;
            assert_eq!(try_to(&metadata), Err("invalid_client_metadata"), "{metadata}");
        }
        assert_eq!(try_to(&json!("x")), Err("invalid_client_metadata"));
    }
}
