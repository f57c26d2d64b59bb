//! Token requests, and the responses of the token endpoint.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::http::DOCUMENT_LENGTH_MAX;
use serde::Deserialize;

use super::form::Form;
use super::metadata::{error_code, lenient, printable, read_object, seconds, texts};
use super::scopes::Scopes;
use crate::dpop::USE_DPOP_NONCE;
use crate::resource::ResourceUri;

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The type of a grant: a value of `grant_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantType {
    /// A code from the user's redirect.
    AuthorizationCode,
    /// A refresh token from an earlier response.
    RefreshToken,
    /// The identity of the client alone.
    ClientCredentials,
    /// An assertion (RFC 7523).
    JwtBearer,
    /// Another token (RFC 8693).
    TokenExchange,
}

/// The grant that is exchanged for a token.
#[derive(Clone, Copy)]
pub(crate) enum TokenGrant<'a> {
    /// See [`GrantType::AuthorizationCode`].
    AuthorizationCode {
        /// The code.
        code: &'a str,
        /// The redirect URI of the authorization request.
        redirect_uri: &'a str,
        /// The verifier of the authorization request's challenge.
        code_verifier: &'a str,
    },
    /// See [`GrantType::RefreshToken`].
    RefreshToken(&'a str),
    /// See [`GrantType::ClientCredentials`].
    ClientCredentials,
    /// See [`GrantType::JwtBearer`].
    JwtBearer {
        /// The signed assertion.
        assertion: &'a str,
    },
    /// An ID token, to be exchanged for a grant (ID-JAG) that the authorization server accepts as
    /// an assertion. See [`GrantType::TokenExchange`].
    IdToken {
        /// The ID token.
        id_token: &'a str,
        /// The issuer of the authorization server.
        audience: &'a str,
    },
}

/// A token request without the client's identity, which
/// [`ClientProof::add_to`](crate::client::authentication::ClientProof::add_to) adds.
#[derive(Clone, Copy)]
pub(crate) struct TokenRequest<'a> {
    /// The grant.
    pub(crate) grant: TokenGrant<'a>,
    /// The resource that the token is for.
    pub(crate) resource: &'a ResourceUri,
    /// The requested scopes. Omitted if empty, and with a code, whose authorization request
    /// contained them.
    pub(crate) scopes: &'a Scopes,
}

impl GrantType {
    /// Returns the value of `grant_type`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::AuthorizationCode => "authorization_code",
            Self::RefreshToken => "refresh_token",
            Self::ClientCredentials => "client_credentials",
            Self::JwtBearer => "urn:ietf:params:oauth:grant-type:jwt-bearer",
            Self::TokenExchange => "urn:ietf:params:oauth:grant-type:token-exchange",
        }
    }
}

impl TokenGrant<'_> {
    const fn grant_type(&self) -> GrantType {
        match self {
            Self::AuthorizationCode { .. } => GrantType::AuthorizationCode,
            Self::RefreshToken(_) => GrantType::RefreshToken,
            Self::ClientCredentials => GrantType::ClientCredentials,
            Self::JwtBearer { .. } => GrantType::JwtBearer,
            Self::IdToken { .. } => GrantType::TokenExchange,
        }
    }
}

impl TokenRequest<'_> {
    /// Returns the parameters of the request.
    pub(crate) fn form(&self) -> Form {
        let mut form = Form::new();
        form.push("grant_type", self.grant.grant_type().as_str());
        let mut scoped = true;
        match self.grant {
            TokenGrant::AuthorizationCode { code, redirect_uri, code_verifier } => {
                form.push("code", code);
                form.push("redirect_uri", redirect_uri);
                // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-011]
                form.push("code_verifier", code_verifier);
                scoped = false;
            }
            TokenGrant::RefreshToken(token) => form.push("refresh_token", token),
            // MCP 2026-07-28 auth:oauth-client-credentials#examples [OACC-006]
            TokenGrant::ClientCredentials => {}
            // MCP 2026-07-28 auth:enterprise-managed-authorization#5-access-token-request [EMA-011]
            // MCP 2026-07-28 auth:SEP-1933#flow-steps [WIF-002]
            TokenGrant::JwtBearer { assertion } => form.push("assertion", assertion),
            // MCP 2026-07-28 auth:enterprise-managed-authorization#4-token-exchange [EMA-004] [EMA-005] [EMA-007]
            TokenGrant::IdToken { id_token, audience } => {
                form.push("subject_token", id_token);
                form.push("subject_token_type", ID_TOKEN);
                form.push("requested_token_type", ID_JAG);
                form.push("audience", audience);
            }
        }
        // MCP 2026-07-28 basic/authorization/index#resource-parameter-implementation [AUTHC-040]
        form.push("resource", self.resource.as_str());
        if scoped && !self.scopes.is_empty() {
            form.push("scope", &self.scopes.to_string());
        }
        form
    }
}

// ------------------------------------------------------------------ responses

/// The longest accepted token, in bytes: what fits into a request.
const TOKEN_LENGTH_MAX: usize = 32 * 1024;
/// The longest assumed lifetime of a token, in seconds: a year.
const LIFETIME_MAX: u64 = 365 * 24 * 60 * 60;

/// The intended use of the token in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenPurpose {
    /// As a bearer token.
    Bearer,
    /// With proofs, as the request had one. An authorization server without DPoP still answers with
    /// a bearer token.
    Dpop,
    /// Only with proofs.
    BoundOnly,
    /// As an assertion at another server.
    Assertion,
}

/// The type of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
pub(crate) enum TokenType {
    /// A bearer token (RFC 6750).
    Bearer,
    /// A token with proofs that the client holds a key (RFC 9449).
    #[serde(rename = "DPoP")]
    Dpop,
    /// Not an access token (RFC 8693, section 2.2.1).
    NotApplicable,
}

/// A token with its properties.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TokenResponse {
    /// The token: visible ASCII that can go into a field of a request.
    pub(crate) access_token: String,
    /// The type of the token.
    pub(crate) token_type: TokenType,
    /// The lifetime in seconds, at most a year; `None` if unknown.
    pub(crate) expires_in: Option<u64>,
    /// The refresh token.
    // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-065]
    pub(crate) refresh_token: Option<String>,
    /// The scopes, separated by spaces; `None` if they are those requested.
    pub(crate) scope: Option<String>,
}

/// The error of an authorization server, from any of its endpoints. Unverified text, for display
/// only; that of an authorization has come through the user's browser. Only printable characters are
/// kept, at most 1,024 per field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The error code: `invalid_grant`, `invalid_redirect_uri`, `access_denied`, …
    pub error: String,
    /// The error message for developers.
    pub description: Option<String>,
    /// The URL of a page about the error.
    pub uri: Option<String>,
}

/// Why the answer of a token or registration endpoint cannot be used. The authorization server's
/// error, unless it refuses the request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFault {
    /// It is longer than 256 KiB.
    #[error("the answer is longer than {DOCUMENT_LENGTH_MAX} bytes")]
    TooLong,
    /// It is not a JSON object, has a duplicate member, or a member of the wrong type.
    #[error("the answer is malformed")]
    Malformed,
    /// It has no token.
    #[error("the answer has neither a token nor an error")]
    NoToken,
    /// The token has no type, or another one than requested.
    #[error("the token has no `token_type`, or another one than requested")]
    TokenType,
    /// The token is empty, longer than 32 KiB, or has characters that are not allowed in a request
    /// field.
    #[error("the token cannot be used in a request")]
    Token,
    /// The answer to a registration has no client id, or an id or a password that is longer than
    /// 4 KiB or has invalid characters.
    #[error("the answer to the registration has no usable client id and password")]
    Client,
    /// The authorization server does not accept the redirect URIs, or not for this type of
    /// application: see [`ApplicationType`](super::ApplicationType).
    #[error("the authorization server does not accept the redirect URI: {0}")]
    RedirectUri(ErrorResponse),
    /// The authorization server refuses the request.
    #[error("the authorization server refused the request: {0}")]
    Refused(ErrorResponse),
}

/// The members of a response. Those that the client can do without are read leniently: the user has
/// consented, and a code is valid once.
#[derive(Deserialize)]
struct Answer {
    access_token: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    token_type: Option<String>,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    refresh_token: Option<String>,
    /// A list in the answers of some servers.
    #[serde(default, deserialize_with = "texts")]
    scope: Option<Vec<String>>,
    issued_token_type: Option<String>,
    #[serde(default, deserialize_with = "error_code")]
    error: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    error_description: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    error_uri: Option<String>,
}

impl TokenResponse {
    /// Parses the body of a response, regardless of its status: some servers refuse with 200.
    /// Linear in its length.
    ///
    /// # Errors
    ///
    /// See [`AnswerFault`].
    pub(crate) fn parse(body: &[u8], purpose: TokenPurpose) -> Result<Self, AnswerFault> {
        let answer: Answer = read_object(body)?;
        if let Some(error) = &answer.error {
            return Err(AnswerFault::Refused(ErrorResponse {
                error: printable(error),
                description: answer.error_description.as_deref().map(printable),
                uri: answer.error_uri.as_deref().map(printable),
            }));
        }
        let access_token = answer.access_token.ok_or(AnswerFault::NoToken)?;
        let token_type = answer.token_type.ok_or(AnswerFault::TokenType)?;
        let token_type = purpose.accept(&token_type).ok_or(AnswerFault::TokenType)?;
        // MCP 2026-07-28 auth:enterprise-managed-authorization#42-token-exchange-response [EMA-009]: not another
        // token of the user.
        let issued = answer.issued_token_type.as_deref();
        if purpose == TokenPurpose::Assertion && issued.is_some_and(|it| it != ID_JAG) {
            return Err(AnswerFault::TokenType);
        }
        if !is_token(&access_token) {
            return Err(AnswerFault::Token);
        }
        Ok(Self {
            access_token,
            token_type,
            expires_in: answer.expires_in.map(|it| it.min(LIFETIME_MAX)),
            refresh_token: answer
                .refresh_token
                .filter(|it| (1..=TOKEN_LENGTH_MAX).contains(&it.len())),
            // GitHub separates them by commas. An empty text, as Slack writes it, names none.
            scope: answer
                .scope
                .map(|it| it.join(" ").replace(',', " "))
                .filter(|it| !it.trim().is_empty()),
        })
    }
}

impl TokenPurpose {
    /// Returns the type with this name, if it fits the purpose. Names are case-insensitive (RFC
    /// 6749, section 7.1).
    fn accept(self, name: &str) -> Option<TokenType> {
        let known = [
            ("bearer", TokenType::Bearer, !matches!(self, Self::Assertion | Self::BoundOnly)),
            ("dpop", TokenType::Dpop, matches!(self, Self::Dpop | Self::BoundOnly)),
            ("n_a", TokenType::NotApplicable, self == Self::Assertion),
        ];
        let mut known = known.into_iter();
        known.find(|(it, _, wanted)| *wanted && it.eq_ignore_ascii_case(name)).map(|it| it.1)
    }
}

impl ErrorResponse {
    /// Removes a secret that the authorization server repeats.
    pub(crate) fn leave_out(&mut self, secret: &str) {
        let texts = [&mut self.description, &mut self.uri].into_iter().flatten();
        for text in [&mut self.error].into_iter().chain(texts) {
            if !secret.is_empty() && text.contains(secret) {
                *text = text.replace(secret, "..");
            }
        }
    }

    /// Whether the same request with another nonce in its proof may succeed (RFC 9449, section 8).
    pub(crate) fn asks_for_nonce(&self) -> bool {
        self.error == USE_DPOP_NONCE
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        match &self.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
    }
}

mcp_sansio::partial_debug! {
    /// Omits the tokens.
    impl Debug for TokenResponse { token_type, expires_in, scope, .. }
}

/// Whether a token can be sent unescaped: visible ASCII, which includes the characters that RFC
/// 6750 allows.
pub(crate) fn is_token(text: &str) -> bool {
    let length = 1..=TOKEN_LENGTH_MAX;
    length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use mcp_sansio::http::Location;

    use super::*;

    const RESOURCE: &str = "&resource=https%3A%2F%2Fr.example%2Fmcp";

    fn form(grant: TokenGrant<'_>, scopes: &str) -> String {
        let server = Location::parse("https://r.example/mcp").expect("a URL");
        let resource = &ResourceUri::from_server(&server);
        let scopes = &Scopes::parse(scopes, 8).expect("few scopes");
        TokenRequest { grant, resource, scopes }.form().as_str().into()
    }

    const CODE: TokenGrant<'_> = TokenGrant::AuthorizationCode {
        code: "c+",
        redirect_uri: "http://localhost:1/cb",
        code_verifier: "v",
    };

    #[test]
    fn each_grant_has_its_parameters() {
        // Rule: [AUTHC-011].
        for (grant, text) in [
            (
                CODE,
                "grant_type=authorization_code&code=c%2B\
                 &redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcb&code_verifier=v",
            ),
            (TokenGrant::RefreshToken("t"), "grant_type=refresh_token&refresh_token=t"),
            (TokenGrant::ClientCredentials, "grant_type=client_credentials"),
            (
                TokenGrant::JwtBearer { assertion: "a.b.c" },
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c",
            ),
            (
                TokenGrant::IdToken { id_token: "a.b.c", audience: "https://a.example" },
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange\
                 &subject_token=a.b.c\
                 &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid_token\
                 &requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aid-jag\
                 &audience=https%3A%2F%2Fa.example",
            ),
        ] {
            assert_eq!(form(grant, ""), [text, RESOURCE].concat());
        }
    }

    #[test]
    fn every_request_names_the_resource() {
        // Rule: [AUTHC-040].
        for grant in [
            CODE,
            TokenGrant::RefreshToken("t"),
            TokenGrant::ClientCredentials,
            TokenGrant::JwtBearer { assertion: "a" },
            TokenGrant::IdToken { id_token: "i", audience: "a" },
        ] {
            assert_eq!(form(grant, "a b").matches(RESOURCE).count(), 1);
        }
    }

    #[test]
    fn scopes_are_sent_except_with_a_code() {
        assert!(!form(CODE, "a b").contains("scope"));
        assert!(form(TokenGrant::RefreshToken("t"), "a b").ends_with("&scope=a+b"));
        assert!(form(TokenGrant::ClientCredentials, "a").ends_with("&scope=a"));
    }
}

#[cfg(test)]
mod response_tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    fn parse(members: &str, purpose: TokenPurpose) -> Result<TokenResponse, AnswerFault> {
        TokenResponse::parse(format!("{{{members}}}").as_bytes(), purpose)
    }

    fn bearer(members: &str) -> Result<TokenResponse, AnswerFault> {
        parse(&format!(r#""token_type":"Bearer",{members}"#), TokenPurpose::Bearer)
    }

    #[test]
    fn a_token_response_is_parsed_with_all_its_members() {
        let members =
            r#""access_token":"t","expires_in":3600,"refresh_token":"r","scope":"a b","x":1"#;
        let token = TokenResponse {
            access_token: "t".into(),
            token_type: TokenType::Bearer,
            expires_in: Some(3600),
            refresh_token: Some("r".into()),
            scope: Some("a b".into()),
        };
        assert_eq!(bearer(members), Ok(token));
    }

    #[test]
    fn only_the_token_is_required() {
        // Rule: [AUTHC-065].
        for members in [
            "",
            r#","refresh_token":null,"expires_in":null,"scope":null,"error":null"#,
            r#","refresh_token":"""#,
        ] {
            let token = bearer(&format!(r#""access_token":"t"{members}"#)).expect(members);
            assert_eq!((token.refresh_token, token.expires_in, token.scope), (None, None, None));
        }
    }

    #[test]
    fn an_odd_member_does_not_hide_the_token() {
        let odd = ["5", "true", "{}", r#"{"a":["b"]}"#, "[]", "[[1],null]", "\"\"", "null"];
        let members =
            ["expires_in", "refresh_token", "scope", "error_description", "error_uri", "id_token"];
        for member in members {
            for value in odd {
                let token = bearer(&format!(r#""access_token":"t","{member}":{value}"#));
                let token = token.unwrap_or_else(|fault| panic!("{member} {value}: {fault}"));
                assert_eq!(token.refresh_token, None, "{member} {value}");
            }
        }
        for (scope, expected) in
            [(r#"["a","b c",5]"#, Some("a b c")), ("[]", None), ("{}", None), ("5", None)]
        {
            let token = bearer(&format!(r#""access_token":"t","scope":{scope}"#)).expect(scope);
            assert_eq!(token.scope.as_deref(), expected, "{scope}");
        }
    }

    #[test]
    fn an_odd_error_is_an_error() {
        let fault = bearer(r#""access_token":"t","error":{"message":"no"}"#);
        let Err(AnswerFault::Refused(error)) = fault else { panic!("a token") };
        assert_eq!(error.to_string(), r#"{"message":"no"}"#);
        for error in ["false", "0", "\"\""] {
            assert!(bearer(&format!(r#""access_token":"t","error":{error}"#)).is_ok(), "{error}");
        }
    }

    #[test]
    fn the_token_type_matches_the_request() {
        use TokenPurpose::{Assertion, Bearer, Dpop};
        for (name, purpose, token_type) in [
            ("bearer", Bearer, Some(TokenType::Bearer)),
            ("BEARER", Dpop, Some(TokenType::Bearer)),
            ("dpop", Dpop, Some(TokenType::Dpop)),
            ("DPoP", Bearer, None),
            ("mac", Dpop, None),
            ("", Bearer, None),
            ("N_A", Assertion, Some(TokenType::NotApplicable)),
            ("N_A", Bearer, None),
            ("Bearer", Assertion, None),
        ] {
            let members = format!(r#""access_token":"t","token_type":"{name}""#);
            let token = parse(&members, purpose).map(|it| it.token_type);
            assert_eq!(token, token_type.ok_or(AnswerFault::TokenType), "{name} {purpose:?}");
        }
        let fault = parse(r#""access_token":"t""#, Bearer);
        assert_eq!(fault, Err(AnswerFault::TokenType));
    }

    #[test]
    fn the_exchanged_token_is_used_as_the_grant() {
        // Rule: [EMA-009].
        let exchanged = |of| {
            let of = format!("urn:ietf:params:oauth:token-type:{of}");
            let members =
                format!(r#""access_token":"t","token_type":"N_A","issued_token_type":"{of}""#);
            parse(&members, TokenPurpose::Assertion).map(|it| it.access_token)
        };
        assert_eq!(exchanged("id-jag"), Ok("t".into()));
        assert_eq!(exchanged("access_token"), Err(AnswerFault::TokenType));
    }

    #[test]
    fn a_token_cannot_inject_fields() {
        let long = "x".repeat(TOKEN_LENGTH_MAX + 1);
        for token in ["", "a b", "a\\r\\nX: y", "\\u0000", "é", &long] {
            let fault = bearer(&format!(r#""access_token":"{token}""#));
            assert_eq!(fault, Err(AnswerFault::Token), "{token}");
        }
        assert!(bearer(&format!(r#""access_token":"{}""#, &long[1..])).is_ok());
        assert!(bearer(r#""access_token":"aZ09-._~+/==""#).is_ok());
        assert_eq!(bearer(r#""scope":"a""#), Err(AnswerFault::NoToken));
    }

    #[test]
    fn the_lifetime_of_a_token_is_bounded() {
        for (text, seconds) in [("1e30", LIFETIME_MAX), ("-1", 0), (r#""60""#, 60)] {
            let token = bearer(&format!(r#""access_token":"t","expires_in":{text}"#));
            assert_eq!(token.map(|it| it.expires_in), Ok(Some(seconds)), "{text}");
        }
    }

    #[test]
    fn a_refusal_shows_only_printable_characters() {
        let members =
            r#""error":"invalid_grant","error_description":"Too\n \u202elate","access_token":"t""#;
        let Err(AnswerFault::Refused(error)) = bearer(members) else { panic!("a token") };
        assert_eq!(error.to_string(), "invalid_grant (Too late)");
        assert_eq!(error.uri, None);
        assert!(!error.asks_for_nonce());
        let Err(AnswerFault::Refused(error)) = bearer(r#""error":"use_dpop_nonce""#) else {
            panic!("a token")
        };
        assert!(error.asks_for_nonce());
    }

    #[test]
    fn malformed_input_is_not_shown() {
        for members in
            [r#""access_token":["secret"]"#, r#""access_token":"secret","access_token":"secret""#]
        {
            let fault = bearer(members).expect_err(members);
            assert_eq!(fault, AnswerFault::Malformed);
            assert!(!format!("{fault} {fault:?}").contains("secret"));
        }
        let token = bearer(r#""access_token":"secret","refresh_token":"secret""#);
        assert!(!format!("{token:?}").contains("secret"));
    }

    proptest::proptest! {
        #[test]
        fn every_accepted_token_is_usable(body in "\\PC{0,40}", token in "\\PC{0,6}") {
            let _ = TokenResponse::parse(body.as_bytes(), TokenPurpose::Dpop);
            let token = serde_json::to_string(&token).expect("a text");
            if let Ok(it) = bearer(&format!(r#""access_token":{token}"#)) {
                proptest::prop_assert!(is_token(&it.access_token));
            }
        }
    }
}
