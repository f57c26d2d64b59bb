//! AuthorizationClient authentication at a token endpoint.

use alloc::string::String;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Serialize;

use super::form::Form;
use crate::client::{ClientSecret, form};

/// The lifetime of an assertion, in seconds: it is used at once, but clocks differ.
const ASSERTION_SECONDS: u64 = 300;
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A method of `token_endpoint_auth_method` (RFC 7591, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthenticationMethod {
    /// No authentication: a public client sends only its id.
    None,
    /// A password in `Authorization`.
    ClientSecretBasic,
    /// A password in the body.
    ClientSecretPost,
    /// An assertion signed with a private key (RFC 7523).
    PrivateKeyJwt,
}

/// The authorization server supports no method that fits the client's credential. The client's
/// configuration is wrong.
pub(crate) const UNSUPPORTED: &str =
    "the authorization server accepts no authentication method that the client supports";
/// The client is registered with a method that is unknown here, or that it lacks the credential for.
pub(crate) const REGISTERED: &str =
    "the client is registered with an authentication method that it does not support";

/// The authentication of a token request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientProof<'a> {
    /// Only the client id.
    None,
    /// A password in `Authorization`.
    Basic(&'a str),
    /// A password in the body.
    Post(&'a str),
    /// A signed assertion: see [`assertion`].
    Assertion(&'a str),
}

impl AuthenticationMethod {
    /// Returns the name of the method.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Returns the method with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let all =
            [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt];
        all.into_iter().find(|it| it.as_str() == name)
    }

    /// Chooses the method for a client with this secret from those that the authorization server's
    /// metadata lists. `registered` is the method of the client's registration.
    ///
    /// # Errors
    ///
    /// The reason, if no method fits.
    // MCP 2025-06-18 basic/authorization#standards-compliance [AUTHC-066]
    pub(crate) fn choose(
        supported: Option<&[String]>,
        registered: Option<&str>,
        secret: &ClientSecret,
    ) -> Result<Self, &'static str> {
        if let Some(name) = registered {
            let password = [Self::ClientSecretBasic, Self::ClientSecretPost].map(Self::as_str);
            if *secret == ClientSecret::None && password.contains(&name) {
                // Some servers return the method of the request, and issue no password because all
                // of their clients are public.
                return Ok(Self::None);
            }
            let method = Self::parse(name).filter(|it| it.goes_with(secret));
            return method.ok_or(REGISTERED);
        }
        let lists = |method: Self| {
            supported.is_some_and(|names| names.iter().any(|it| it == method.as_str()))
        };
        let candidates: &[Self] = match (secret, supported) {
            // An authorization server refuses public clients if it does not support them: many list
            // only the methods of the others.
            (ClientSecret::None, _) => return Ok(Self::None),
            // RFC 8414, section 2.
            (ClientSecret::Password(_), None) => return Ok(Self::ClientSecretBasic),
            // RFC 7591, section 2: a client that was registered without a method uses `Basic`. Some
            // servers hold each client to its own.
            (ClientSecret::Password(_), Some(_)) => {
                &[Self::ClientSecretBasic, Self::ClientSecretPost, Self::None]
            }
            // The server knows the key: it was registered beforehand.
            (ClientSecret::PrivateKey { .. }, None) => return Ok(Self::PrivateKeyJwt),
            (ClientSecret::PrivateKey { .. }, Some(_)) => &[Self::PrivateKeyJwt],
        };
        let fitting = candidates.iter().copied().find(|it| lists(*it));
        fitting.ok_or(UNSUPPORTED)
    }

    /// Whether a client with this secret supports the method. A client with a password can omit it.
    const fn goes_with(self, secret: &ClientSecret) -> bool {
        match self {
            Self::None => true,
            Self::ClientSecretBasic | Self::ClientSecretPost => {
                matches!(secret, ClientSecret::Password(_))
            }
            Self::PrivateKeyJwt => matches!(secret, ClientSecret::PrivateKey { .. }),
        }
    }
}

impl<'a> ClientProof<'a> {
    /// Returns the authentication for a method; `None` if the secret is for another method, or if
    /// [`AuthenticationMethod::PrivateKeyJwt`] lacks its assertion.
    pub(crate) fn new(
        method: AuthenticationMethod,
        secret: &'a ClientSecret,
        assertion: Option<&'a str>,
    ) -> Option<Self> {
        Some(match (method, secret) {
            (AuthenticationMethod::None, _) => Self::None,
            (AuthenticationMethod::ClientSecretBasic, ClientSecret::Password(password)) => {
                Self::Basic(password)
            }
            (AuthenticationMethod::ClientSecretPost, ClientSecret::Password(password)) => {
                Self::Post(password)
            }
            (AuthenticationMethod::PrivateKeyJwt, _) => Self::Assertion(assertion?),
            _ => return None,
        })
    }

    /// Adds the client's identity to a token request, and returns the value of its `Authorization`,
    /// if it has one. Exactly one method is used (RFC 6749, section 2.3).
    // MCP 2026-07-28 auth:oauth-client-credentials#client-authentication-methods [OACC-003]
    // MCP 2026-07-28 auth:enterprise-managed-authorization#4-token-exchange [EMA-008]
    // MCP 2026-07-28 auth:enterprise-managed-authorization#5-access-token-request [EMA-012]
    pub(crate) fn add_to(self, form: &mut Form, client_id: &str) -> Option<String> {
        // The official Python SDK reads it here even if the client uses `Basic`. It is no second
        // method: it proves nothing.
        form.push("client_id", client_id);
        if let Self::Basic(password) = self {
            let mut credentials = String::new();
            form::encode(client_id, &mut credentials);
            credentials.push(':');
            form::encode(password, &mut credentials);
            let mut value = String::from("Basic ");
            STANDARD.encode_string(credentials, &mut value);
            return Some(value);
        }
        match self {
            Self::None | Self::Basic(_) => {}
            Self::Post(password) => form.push("client_secret", password),
            Self::Assertion(assertion) => {
                form.push("client_assertion_type", ASSERTION_TYPE);
                form.push("client_assertion", assertion);
            }
        }
        None
    }
}

impl fmt::Debug for ClientProof<'_> {
    /// Omits the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic(_) => "Basic(..)",
            Self::Post(_) => "Post(..)",
            Self::Assertion(_) => "Assertion(..)",
        })
    }
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'a str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: &'a str,
    iat: u64,
    exp: u64,
}

/// Returns the assertion that authenticates a client (RFC 7523, section 3), to be signed with
/// `algorithm`. `issuer` is the only authorization server that it is valid for. `jti` must be
/// unique. `now` is in seconds since 1970.
pub(crate) fn assertion(
    client_id: &str,
    issuer: &str,
    (algorithm, key_id): (&str, Option<&str>),
    jti: &str,
    now: u64,
) -> SigningInput {
    let header = Header { alg: algorithm, typ: "JWT", kid: key_id };
    let exp = now.saturating_add(ASSERTION_SECONDS);
    // MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements
    // [AUTHC-030]: the issuer is the only audience, so that no endpoint can use the assertion
    // elsewhere.
    let claims = Claims { iss: client_id, sub: client_id, aud: issuer, jti, iat: now, exp };
    SigningInput::new(&header, &claims)
}

// ------------------------------------------------------------------ JSON Web Tokens, signed by the application

/// A token without its signature: the input of the signature (RFC 7515, section 5.1).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SigningInput(String);

impl SigningInput {
    /// Creates a token from these two JSON objects.
    pub(crate) fn new(header: &impl Serialize, claims: &impl Serialize) -> Self {
        let mut input = String::new();
        push(&mut input, header);
        input.push('.');
        push(&mut input, claims);
        Self(input)
    }

    /// Returns the text to sign.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the token, given the raw signature over [`Self::as_str`].
    pub(crate) fn signed(&self, signature: &[u8]) -> String {
        let mut token = self.0.clone();
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }
}

mcp_sansio::partial_debug! {
    /// Omits the text to sign.
    impl Debug for SigningInput(..)
}

fn push(text: &mut String, part: &impl Serialize) {
    let json = serde_json::to_vec(part).expect("strings and numbers serialize");
    URL_SAFE_NO_PAD.encode_string(json, text);
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::AuthenticationMethod::{
        ClientSecretBasic, ClientSecretPost, None as Public, PrivateKeyJwt,
    };
    use super::*;

    const NONE: Result<AuthenticationMethod, &str> = Err(UNSUPPORTED);

    fn password() -> ClientSecret {
        ClientSecret::Password("gX1fBat3bV".into())
    }

    fn key() -> ClientSecret {
        ClientSecret::PrivateKey { algorithm: "ES256".into(), key_id: None }
    }

    fn names(text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(String::from).collect()
    }

    #[test]
    fn the_method_is_supported_by_server_and_client() {
        // Rule: [AUTHC-066].
        for (supported, secret, method) in [
            ("client_secret_basic client_secret_post", password(), Ok(ClientSecretBasic)),
            ("client_secret_basic none", password(), Ok(ClientSecretBasic)),
            ("client_secret_post", password(), Ok(ClientSecretPost)),
            ("none", password(), Ok(Public)),
            ("private_key_jwt client_secret_jwt", password(), NONE),
            ("", password(), NONE),
            ("client_secret_basic private_key_jwt", key(), Ok(PrivateKeyJwt)),
            ("client_secret_basic none", key(), NONE),
            ("client_secret_basic", ClientSecret::None, Ok(Public)),
            ("none", ClientSecret::None, Ok(Public)),
        ] {
            let supported = names(supported);
            let chosen = AuthenticationMethod::choose(Some(&supported), None, &secret);
            assert_eq!(chosen, method, "{supported:?} {secret:?}");
        }
    }

    #[test]
    fn a_server_without_a_list_gets_the_default_method() {
        // Rule: [AUTHC-066].
        for (secret, method) in
            [(password(), ClientSecretBasic), (key(), PrivateKeyJwt), (ClientSecret::None, Public)]
        {
            assert_eq!(AuthenticationMethod::choose(None, None, &secret), Ok(method));
        }
    }

    #[test]
    fn the_registered_method_takes_precedence_over_the_listed_ones() {
        // Rule: [AUTHC-066].
        let supported = names("client_secret_basic client_secret_post none private_key_jwt");
        let choose =
            |name, secret| AuthenticationMethod::choose(Some(&supported), Some(name), &secret);
        assert_eq!(choose("client_secret_post", password()), Ok(ClientSecretPost));
        assert_eq!(choose("none", password()), Ok(Public));
        for name in ["client_secret_basic", "client_secret_post"] {
            assert_eq!(choose(name, ClientSecret::None), Ok(Public), "{name}");
        }
        for (name, secret) in [
            ("private_key_jwt", ClientSecret::None),
            ("private_key_jwt", password()),
            ("client_secret_post", key()),
            ("client_secret_jwt", password()),
            ("", ClientSecret::None),
        ] {
            assert_eq!(choose(name, secret), Err(REGISTERED), "{name}");
        }
    }

    /// Returns the `Authorization` and the parameters of a client.
    fn shown(proof: ClientProof<'_>, client_id: &str) -> (Option<String>, String) {
        let mut form = Form::new();
        let authorization = proof.add_to(&mut form, client_id);
        (authorization, form.as_str().into())
    }

    #[test]
    fn a_client_authenticates_in_one_way_at_a_time() {
        // Rule: [AUTHC-066].
        let id = "s6BhdRkqt3";
        let basic = String::from("Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW");
        let secret = password();
        let proof = |method, assertion| {
            shown(ClientProof::new(method, &secret, assertion).expect("a proof"), id)
        };
        assert_eq!(proof(ClientSecretBasic, None), (Some(basic), format!("client_id={id}")));
        let post = "client_id=s6BhdRkqt3&client_secret=gX1fBat3bV";
        assert_eq!(proof(ClientSecretPost, None), (None, post.into()));
        assert_eq!(proof(Public, None), (None, "client_id=s6BhdRkqt3".into()));
        let assertion = "client_id=s6BhdRkqt3&client_assertion_type=\
            urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer\
            &client_assertion=a.b.c";
        assert_eq!(proof(PrivateKeyJwt, Some("a.b.c")), (None, assertion.into()));
        assert_eq!(ClientProof::new(PrivateKeyJwt, &key(), None), None);
        assert_eq!(ClientProof::new(ClientSecretBasic, &ClientSecret::None, None), None);
    }

    #[test]
    fn id_and_password_are_escaped_before_they_are_joined() {
        let (value, _) = shown(ClientProof::Basic(" :é"), "https://c.example/x:y");
        let credentials = value.as_deref().and_then(|it| it.strip_prefix("Basic "));
        let credentials = credentials.and_then(|it| STANDARD.decode(it).ok());
        assert_eq!(
            credentials.as_deref(),
            Some(&b"https%3A%2F%2Fc.example%2Fx%3Ay:+%3A%C3%A9"[..])
        );
    }

    #[test]
    fn an_assertion_names_client_issuer_and_expiry() {
        // Rule: [AUTHC-030].
        let parts = |key_id| {
            let input = assertion("c", "https://a.example", ("ES256", key_id), "j", 1000);
            let parts = input.as_str().split('.').map(|it| URL_SAFE_NO_PAD.decode(it).ok());
            let parts: Option<Vec<_>> = parts.map(|it| String::from_utf8(it?).ok()).collect();
            parts.expect("base64url").join(" ")
        };
        let claims =
            r#"{"iss":"c","sub":"c","aud":"https://a.example","jti":"j","iat":1000,"exp":1300}"#;
        assert_eq!(parts(None), format!(r#"{{"alg":"ES256","typ":"JWT"}} {claims}"#));
        let header = r#"{"alg":"ES256","typ":"JWT","kid":"k"}"#;
        assert_eq!(parts(Some("k")), format!("{header} {claims}"));
    }

    #[test]
    fn debug_output_hides_secrets() {
        for (proof, shown) in [
            (ClientProof::Basic("secret"), "Basic(..)"),
            (ClientProof::Post("secret"), "Post(..)"),
            (ClientProof::Assertion("secret"), "Assertion(..)"),
        ] {
            assert_eq!(format!("{proof:?}"), shown);
        }
    }
}

#[cfg(test)]
mod jwt_tests {
    use alloc::format;

    use super::*;

    #[derive(Serialize)]
    struct Header {
        alg: &'static str,
    }

    #[derive(Serialize)]
    struct Claims {
        iss: &'static str,
        exp: u64,
    }

    fn input() -> SigningInput {
        SigningInput::new(&Header { alg: "ES256" }, &Claims { iss: "\"é", exp: 1_300_819_380 })
    }

    #[test]
    fn a_token_is_three_parts_in_base64url_without_padding() {
        let input = input();
        let signature = [0xfb, 0xff, 0xfe, 0x01];
        let token = input.signed(&signature);
        assert_eq!(token.strip_prefix(input.as_str()), Some(".-__-AQ"));
        let parts: Option<alloc::vec::Vec<_>> =
            token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).ok()).collect();
        assert_eq!(
            parts.as_deref(),
            Some(
                &[
                    br#"{"alg":"ES256"}"#.to_vec(),
                    r#"{"iss":"\"é","exp":1300819380}"#.into(),
                    signature.to_vec(),
                ][..]
            )
        );
    }

    #[test]
    fn debug_output_hides_the_signing_input() {
        assert_eq!(format!("{:?}", input()), "SigningInput(..)");
    }
}
