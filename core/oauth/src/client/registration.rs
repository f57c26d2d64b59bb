//! Dynamic Client Registration (RFC 7591).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::http::{Location, Scheme};
use serde::{Deserialize, Serialize};

use super::authentication::{AuthenticationMethod, UNSUPPORTED};
use super::metadata::{error_code, lenient, printable, read_object, seconds, texts};
use super::response::check_redirect_uri;
use super::scopes::Scopes;
use super::token::{AnswerFault, ErrorResponse, GrantType};
use crate::UrlFault;
use crate::client::{ApplicationType, ClientMetadata, InvalidOption};

/// The longest accepted id and password, in bytes: they are sent often.
const TEXT_LENGTH_MAX: usize = 4096;

/// The grants that a client registers for.
const GRANT_TYPES: &[&str] =
    &[GrantType::AuthorizationCode.as_str(), GrantType::RefreshToken.as_str()];

/// The data of a registration request.
#[derive(Clone, Debug)]
pub(crate) struct RegistrationRequest<'a> {
    /// The metadata of the client.
    pub(crate) metadata: &'a ClientMetadata,
    /// The redirect URIs.
    pub(crate) redirect_uris: &'a [String],
    /// How it will authenticate: see [`method_to_register`].
    pub(crate) method: AuthenticationMethod,
    /// The scopes that it will request, if known.
    pub(crate) scopes: &'a Scopes,
    /// Whether it asks for refresh tokens.
    pub(crate) refresh: bool,
}

/// A registration as returned by the authorization server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Registration {
    /// The client id.
    pub(crate) client_id: String,
    /// The password.
    pub(crate) client_secret: Option<String>,
    /// When the password expires, in seconds since 1970; `None` if never.
    pub(crate) secret_expires_at: Option<u64>,
    /// How the client authenticates, if the server says so; otherwise as requested.
    pub(crate) method: Option<String>,
    /// The registered redirect URIs, if the server names them; otherwise those requested.
    pub(crate) redirect_uris: Option<Vec<String>>,
}

/// Chooses the method to register with from those that the authorization server's metadata lists.
/// `secret` is set if the server issued a password to a client that asked for none.
///
/// # Errors
///
/// [`UNSUPPORTED`].
// MCP 2025-06-18 basic/authorization#standards-compliance [AUTHC-066]
pub(crate) fn method_to_register(
    supported: Option<&[String]>,
    secret: bool,
) -> Result<AuthenticationMethod, &'static str> {
    use AuthenticationMethod::{ClientSecretBasic, ClientSecretPost, None as Public};
    let Some(supported) = supported else {
        // RFC 8414, section 2.
        return Ok(ClientSecretBasic);
    };
    // A password that any client can get by registering proves little, so no authentication is
    // preferred. The body is preferred to `Authorization`, which servers decode differently, and which
    // some refuse with the client id in the body and others without.
    let candidates: &[_] = if secret {
        &[ClientSecretPost, ClientSecretBasic]
    } else {
        &[Public, ClientSecretPost, ClientSecretBasic]
    };
    let listed = |method: &AuthenticationMethod| supported.iter().any(|it| it == method.as_str());
    candidates.iter().copied().find(listed).ok_or(UNSUPPORTED)
}

impl RegistrationRequest<'_> {
    /// Returns the body of the request, in JSON.
    ///
    /// # Errors
    ///
    /// The application's error: a redirect URI that it must not use.
    pub(crate) fn to_json(&self) -> Result<String, UrlFault> {
        self.members(None)
    }

    /// Like [`to_json`](Self::to_json), with the id of a client that already has one.
    pub(crate) fn members(&self, client_id: Option<&str>) -> Result<String, UrlFault> {
        if self.redirect_uris.is_empty() {
            return Err(UrlFault::Count);
        }
        for uri in self.redirect_uris {
            check_redirect_uri(uri, self.metadata.application_type)?;
        }
        let members = Members {
            client_id,
            client_name: &self.metadata.client_name,
            client_uri: self.metadata.client_uri.as_deref(),
            // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-033] [AUTHC-034]
            application_type: match self.metadata.application_type {
                ApplicationType::Native => "native",
                ApplicationType::Web => "web",
            },
            redirect_uris: self.redirect_uris,
            // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-063]
            grant_types: if self.refresh { GRANT_TYPES } else { &GRANT_TYPES[..1] },
            response_types: &["code"],
            token_endpoint_auth_method: self.method.as_str(),
            scope: (!self.scopes.is_empty()).then(|| self.scopes.to_string()),
        };
        Ok(serde_json::to_string(&members).expect("strings serialize"))
    }
}

impl Registration {
    /// Parses the body of a response, regardless of its status. Linear in its length.
    ///
    /// # Errors
    ///
    /// See [`AnswerFault`].
    pub(crate) fn parse(body: &[u8]) -> Result<Self, AnswerFault> {
        let answer: Answer = read_object(body)?;
        if let Some(error) = &answer.error {
            let description = answer.error_description.as_deref().map(printable);
            let error = ErrorResponse { error: printable(error), description, uri: None };
            // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-035]
            return Err(match &*error.error {
                "invalid_redirect_uri" => AnswerFault::RedirectUri(error),
                _ => AnswerFault::Refused(error),
            });
        }
        let client_id = answer.client_id.filter(|it| !it.is_empty());
        let client_id = client_id.ok_or(AnswerFault::Client)?;
        let client_secret = answer.client_secret.filter(|it| !it.is_empty());
        if ![&client_id].into_iter().chain(&client_secret).all(|it| is_usable(it)) {
            return Err(AnswerFault::Client);
        }
        Ok(Self {
            client_id,
            client_secret,
            // RFC 7591, section 3.2.1.
            secret_expires_at: answer.client_secret_expires_at.filter(|it| *it != 0),
            method: answer.token_endpoint_auth_method,
            redirect_uris: answer.redirect_uris,
        })
    }
}

/// Whether the text is a valid id or password: visible ASCII and spaces (RFC 6749, appendix A).
fn is_usable(text: &str) -> bool {
    text.len() <= TEXT_LENGTH_MAX && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[derive(Serialize)]
struct Members<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<&'a str>,
    client_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_uri: Option<&'a str>,
    application_type: &'static str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    redirect_uris: &'a [String],
    grant_types: &'static [&'static str],
    response_types: &'static [&'static str],
    token_endpoint_auth_method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    client_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    client_secret: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    client_secret_expires_at: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    token_endpoint_auth_method: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    redirect_uris: Option<Vec<String>>,
    #[serde(default, deserialize_with = "error_code")]
    error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    error_description: Option<String>,
}

mcp_sansio::partial_debug! {
    /// Omits the password.
    impl Debug for Registration { client_id, .. }
}

// ------------------------------------------------------------------ client document

/// Checks that a URL may be the id of a client.
///
/// # Errors
///
/// The application's error: see [`UrlFault`].
// MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-029]
pub(crate) fn check_client_id(url: &Location) -> Result<(), UrlFault> {
    if url.origin().scheme() != Scheme::Https {
        return Err(UrlFault::Web);
    }
    match url.path_and_query() {
        "/" => Err(UrlFault::NoPath),
        target if target.starts_with("/?") => Err(UrlFault::NoPath),
        _ => Ok(()),
    }
}

/// Returns the document for an application to publish at `url`, as `application/json`. `url` is the
/// id of a public client. Authorization servers accept only these redirect URIs.
///
/// # Errors
///
/// [`InvalidOption::MetadataUrl`] or [`InvalidOption::RedirectUri`], the application's error.
pub fn client_document(
    url: &Location,
    metadata: &ClientMetadata,
    redirect_uris: &[String],
) -> Result<String, InvalidOption> {
    check_client_id(url).map_err(InvalidOption::MetadataUrl)?;
    let request = RegistrationRequest {
        metadata,
        redirect_uris,
        method: AuthenticationMethod::None,
        scopes: &Scopes::new(),
        refresh: true,
    };
    // MCP 2026-07-28 basic/authorization/client-registration#implementation-requirements [AUTHC-029]
    request.members(Some(url.as_str())).map_err(InvalidOption::RedirectUri)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::AuthenticationMethod::{ClientSecretBasic, ClientSecretPost, None as Public};
    use super::*;

    fn metadata(application_type: ApplicationType) -> ClientMetadata {
        ClientMetadata { client_name: "A \"B\"".into(), client_uri: None, application_type }
    }

    fn request<'a>(
        metadata: &'a ClientMetadata,
        redirect_uris: &'a [String],
        scopes: &'a Scopes,
    ) -> RegistrationRequest<'a> {
        RegistrationRequest { metadata, redirect_uris, method: Public, scopes, refresh: true }
    }

    #[test]
    fn a_registration_describes_the_client() {
        // Rule: [AUTHC-033] [AUTHC-063].
        let mut metadata = metadata(ApplicationType::Native);
        metadata.client_uri = Some("https://c.example".into());
        let redirect_uris = ["http://127.0.0.1:1/cb".into()];
        let scopes = Scopes::parse("a b", 2).expect("few scopes");
        let json = request(&metadata, &redirect_uris, &scopes).to_json();
        let expected = concat!(
            r#"{"client_name":"A \"B\"","client_uri":"https://c.example","#,
            r#""application_type":"native","redirect_uris":["http://127.0.0.1:1/cb"],"#,
            r#""grant_types":["authorization_code","refresh_token"],"#,
            r#""response_types":["code"],"token_endpoint_auth_method":"none","scope":"a b"}"#
        );
        assert_eq!(json.as_deref(), Ok(expected));
    }

    #[test]
    fn a_registration_has_a_redirect_uri() {
        let without = request(&metadata(ApplicationType::Web), &[], &Scopes::new()).to_json();
        assert_eq!(without, Err(UrlFault::Count));
    }

    #[test]
    fn redirect_uris_fit_the_type_of_application() {
        // Rule: [AUTHC-034] [AUTHC-047].
        let redirect_uris = ["https://c.example/cb".into(), "http://localhost/cb".into()];
        let (web, native) = (metadata(ApplicationType::Web), metadata(ApplicationType::Native));
        let none = Scopes::new();
        assert!(request(&native, &redirect_uris, &none).to_json().is_ok());
        let refused = request(&web, &redirect_uris, &none).to_json();
        assert_eq!(refused, Err(UrlFault::Web));
    }

    #[test]
    fn a_client_registers_a_method_that_the_server_lists() {
        // Rule: [AUTHC-066].
        let unsupported = Err(UNSUPPORTED);
        for (supported, public, secret) in [
            ("client_secret_basic client_secret_post none", Ok(Public), Ok(ClientSecretPost)),
            ("client_secret_basic client_secret_post", Ok(ClientSecretPost), Ok(ClientSecretPost)),
            ("client_secret_basic", Ok(ClientSecretBasic), Ok(ClientSecretBasic)),
            ("client_secret_post", Ok(ClientSecretPost), Ok(ClientSecretPost)),
            ("none", Ok(Public), unsupported),
            ("private_key_jwt", unsupported, unsupported),
        ] {
            let names: Vec<String> = supported.split(' ').map(String::from).collect();
            assert_eq!(method_to_register(Some(&names), false), public, "{supported}");
            assert_eq!(method_to_register(Some(&names), true), secret, "{supported}");
        }
        assert_eq!(method_to_register(None, false), Ok(ClientSecretBasic));
    }

    #[test]
    fn a_registration_is_read_from_the_response() {
        let parse = |body: &str| Registration::parse(body.as_bytes());
        let registration = Registration {
            client_id: "c".into(),
            client_secret: None,
            secret_expires_at: None,
            method: None,
            redirect_uris: None,
        };
        let least =
            r#"{"client_id":"c","client_secret":"","client_secret_expires_at":0,"error":null}"#;
        assert_eq!(parse(least), Ok(registration.clone()));
        let most = r#"{"client_id":"c","client_secret":"s","client_secret_expires_at":1577858400,
            "token_endpoint_auth_method":"client_secret_post",
            "redirect_uris":["https://c.example"],"x":[]}"#;
        let expected = Registration {
            client_secret: Some("s".into()),
            secret_expires_at: Some(1_577_858_400),
            method: Some("client_secret_post".into()),
            redirect_uris: Some(["https://c.example".into()].into()),
            ..registration
        };
        assert!(!format!("{expected:?}").contains("client_secret"));
        assert_eq!(parse(most), Ok(expected));
        let odd = r#"{"client_id":"c","client_secret":5,"client_secret_expires_at":[],
            "token_endpoint_auth_method":{},"redirect_uris":7,"error":false}"#;
        assert_eq!(parse(odd), parse(least));
    }

    #[test]
    fn a_response_without_a_usable_client_is_refused() {
        let parse = |body: &str| Registration::parse(body.as_bytes());
        let long = "x".repeat(TEXT_LENGTH_MAX + 1);
        for body in [
            "{}",
            r#"{"client_id":""}"#,
            &format!(r#"{{"client_id":"{long}"}}"#),
            &format!(r#"{{"client_id":"c","client_secret":"{long}"}}"#),
        ] {
            assert_eq!(parse(body), Err(AnswerFault::Client), "{body}");
        }
        for body in ["", "[]", r#"{"client_id":5}"#, r#"{"client_id":"a","client_id":"b"}"#] {
            let fault = AnswerFault::Malformed;
            assert_eq!(parse(body), Err(fault), "{body}");
        }
    }

    #[test]
    fn a_refused_redirect_uri_has_its_own_fault() {
        // Rule: [AUTHC-035].
        let told = |code| {
            let body = format!(r#"{{"error":"{code}","error_description":"No\u0007 http!"}}"#);
            Registration::parse(body.as_bytes()).map_err(|fault| format!("{fault}"))
        };
        assert_eq!(
            told("invalid_redirect_uri").err().as_deref(),
            Some(
                "the authorization server does not accept the redirect URI: \
                 invalid_redirect_uri (No http!)"
            )
        );
        assert_eq!(
            told("invalid_client_metadata").err().as_deref(),
            Some(
                "the authorization server refused the request: \
                 invalid_client_metadata (No http!)"
            )
        );
    }
}

#[cfg(test)]
mod client_document_tests {
    use super::*;
    use crate::client::ApplicationType;

    fn document(url: &str, redirect_uris: &[String]) -> Result<String, InvalidOption> {
        let metadata = ClientMetadata {
            client_name: "C".into(),
            client_uri: None,
            application_type: ApplicationType::Native,
        };
        client_document(&Location::parse(url).expect(url), &metadata, redirect_uris)
    }

    #[test]
    fn a_document_has_its_own_url_as_the_id() {
        // Rule: [AUTHC-029].
        let json = document("https://c.example/x.json", &["http://localhost/cb".into()]);
        let expected = concat!(
            r#"{"client_id":"https://c.example/x.json","client_name":"C","#,
            r#""application_type":"native","redirect_uris":["http://localhost/cb"],"#,
            r#""grant_types":["authorization_code","refresh_token"],"#,
            r#""response_types":["code"],"token_endpoint_auth_method":"none"}"#
        );
        assert_eq!(json.as_deref(), Ok(expected));
    }

    #[test]
    fn a_document_url_is_https_and_has_a_path() {
        // Rule: [AUTHC-029].
        for (url, reason) in [
            ("http://localhost/x.json", UrlFault::Web),
            ("https://c.example", UrlFault::NoPath),
            ("https://c.example/?x", UrlFault::NoPath),
        ] {
            let refused = document(url, &["http://localhost/cb".into()]);
            assert_eq!(refused, Err(InvalidOption::MetadataUrl(reason)), "{url}");
        }
    }

    #[test]
    fn the_redirect_uris_of_a_document_are_checked() {
        // Rule: [AUTHC-047].
        for (redirect_uris, reason) in
            [(&[][..], UrlFault::Count), (&["http://c.example/cb".into()][..], UrlFault::Insecure)]
        {
            let refused = document("https://c.example/x.json", redirect_uris);
            assert_eq!(refused, Err(InvalidOption::RedirectUri(reason)));
        }
    }
}
