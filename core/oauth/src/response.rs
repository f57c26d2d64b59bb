//! What comes back with the user: the authorization response.

use alloc::string::String;
use core::fmt;

use super::client::AuthorizationRequest;
use super::form::{decode, parameters};
use super::json_response::printable;
use super::pkce::{State, are_same};

/// The longest redirect that is read, in bytes.
pub const REDIRECT_LENGTH_MAX: usize = 64 * 1024;

/// An authorization response that nobody has checked: nothing in it can be got at before
/// [`AuthorizationResponse::check`].
#[derive(Clone, Default)]
pub struct AuthorizationResponse {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    error_uri: Option<String>,
}

/// Whom a response must come from, as recorded before the user was sent there.
#[derive(Debug)]
pub struct ExpectedResponse<'a> {
    /// The `state` that the request had.
    pub state: &'a State,
    /// The `issuer` of the metadata, after it was validated.
    pub issuer: &'a str,
    /// Whether that metadata says that every response has `iss`:
    /// `authorization_response_iss_parameter_supported`.
    pub iss_supported: bool,
}

/// The code to exchange for a token, from the issuer that it was expected from.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizationCode(String);

/// What an authorization server says in place of a code. It comes from the issuer, but by way of
/// the user's browser: a text to show, not to trust. Only what can be printed is kept of it, at most
/// 1,024 characters each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthorizationError {
    /// Its code: `access_denied`, `invalid_scope`, …
    pub error: String,
    /// The same in words, for a developer.
    pub description: Option<String>,
    /// A page about it.
    pub uri: Option<String>,
}

/// Why an authorization response is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseFault {
    /// The redirect is longer than [`REDIRECT_LENGTH_MAX`].
    #[error("the redirect is longer than {REDIRECT_LENGTH_MAX} bytes")]
    TooLong,
    /// The redirect is no `application/x-www-form-urlencoded` in UTF-8, or has a parameter twice.
    /// The fault of whoever made it.
    #[error("the redirect is malformed")]
    Malformed,
    /// `state` is absent or another: the response is to no request of this client. Go on waiting
    /// for the one that is.
    #[error("the response has not the state of the request")]
    State,
    /// `iss` is another issuer: one authorization server poses as another.
    #[error("the response is of another issuer than the request was for")]
    Issuer,
    /// `iss` is absent although the authorization server says that it always is there.
    #[error("the response does not say which issuer it is of")]
    NoIssuer,
    /// There is neither a code nor an error, or both. The authorization server's fault.
    #[error("the response has neither a code nor an error, or both")]
    NoCode,
    /// The authorization server, or the user, refuses.
    #[error("the authorization server answers `{}`", .0.error)]
    Refused(AuthorizationError),
}

impl AuthorizationResponse {
    /// Reads the redirect: a URL, or the target of the request that a listening client got. Without
    /// a `?` there is nothing in it. Parameters that are not known are passed over. Linear.
    ///
    /// # Errors
    ///
    /// [`ResponseFault::TooLong`] and [`ResponseFault::Malformed`].
    pub fn parse(redirect: &str) -> Result<Self, ResponseFault> {
        if redirect.len() > REDIRECT_LENGTH_MAX {
            return Err(ResponseFault::TooLong);
        }
        let url = redirect.split('#').next().unwrap_or_default();
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let mut response = Self::default();
        for (name, value) in parameters(query) {
            let name = decode(name).ok_or(ResponseFault::Malformed)?;
            let member = match &*name {
                "code" => &mut response.code,
                "state" => &mut response.state,
                "iss" => &mut response.iss,
                "error" => &mut response.error,
                "error_description" => &mut response.error_description,
                "error_uri" => &mut response.error_uri,
                _ => continue,
            };
            let value = decode(value).ok_or(ResponseFault::Malformed)?;
            // No parameter may be there twice (RFC 6749, section 3.1).
            if member.replace(value).is_some() {
                return Err(ResponseFault::Malformed);
            }
        }
        Ok(response)
    }

    /// Whether this is the response to the request with this `state`: with several requests under
    /// way, it says which. The rest of the response stays unchecked.
    #[must_use]
    pub fn answers(&self, state: &State) -> bool {
        self.state.as_deref().is_some_and(|it| state.matches(it))
    }

    /// The code, once it is certain whom it is from: first `state`, then `iss`, and only then what
    /// the response says.
    ///
    /// # Errors
    ///
    /// See [`ResponseFault`]. Only [`ResponseFault::Refused`] says anything of what the response
    /// has.
    pub fn check(
        self,
        expected: &ExpectedResponse<'_>,
    ) -> Result<AuthorizationCode, ResponseFault> {
        // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
        if !self.answers(expected.state) {
            return Err(ResponseFault::State);
        }
        // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-057] [AUTHC-058] [AUTHC-059] [AUTHC-060]:
        // compared as texts, whether it was announced or not.
        match &self.iss {
            Some(iss) if iss != expected.issuer => return Err(ResponseFault::Issuer),
            None if expected.iss_supported => return Err(ResponseFault::NoIssuer),
            _ => {}
        }
        // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-061]: not before this
        // point.
        match (self.code, self.error) {
            (Some(code), None) if !code.is_empty() => Ok(AuthorizationCode(code)),
            (None, Some(error)) => Err(ResponseFault::Refused(AuthorizationError {
                error: printable(&error),
                description: self.error_description.as_deref().map(printable),
                uri: self.error_uri.as_deref().map(printable),
            })),
            _ => Err(ResponseFault::NoCode),
        }
    }
}

impl AuthorizationRequest {
    /// Whether a redirect is the answer to this very request: its `state` says so. Anybody can send
    /// a browser to where the user comes back to, so whoever listens there passes over what answers
    /// nothing and goes on listening.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
    #[must_use]
    pub fn is_answered_by(&self, redirect: &str) -> bool {
        let state = |url| AuthorizationResponse::parse(url).ok().and_then(|it| it.state);
        let (Some(ours), Some(theirs)) = (state(&self.url), state(redirect)) else { return false };
        are_same(&ours, &theirs)
    }
}

impl fmt::Debug for AuthorizationResponse {
    /// Leaves everything out: none of it is checked, and some of it is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthorizationResponse(..)")
    }
}

impl AuthorizationCode {
    /// The value of `code`, for the token request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AuthorizationCode {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuthorizationCode(..)")
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    const ISSUER: &str = "https://a.example";

    /// What comes of a response with the right `state` and this besides.
    fn check(query: &str, iss_supported: bool) -> Result<String, ResponseFault> {
        let state = State::new([7; 32]);
        let redirect = format!("http://localhost:1/cb?state={}{query}#x", state.as_str());
        let expected = ExpectedResponse { state: &state, issuer: ISSUER, iss_supported };
        let code = AuthorizationResponse::parse(&redirect)?.check(&expected)?;
        Ok(code.as_str().to_string())
    }

    #[test]
    fn iss_is_compared_if_present_and_required_if_announced() {
        // Rule: [AUTHC-057] [AUTHC-058] [AUTHC-059].
        let good = "&code=c%2B+d&iss=https%3A%2F%2Fa.example";
        let code = Ok("c+ d".to_string());
        assert_eq!(check(good, true), code);
        assert_eq!(check(good, false), code);
        assert_eq!(check("&code=c%2b%20d", false), code);
        assert_eq!(check("&code=c", true), Err(ResponseFault::NoIssuer));
        for supported in [true, false] {
            let other = check("&code=c&iss=https://b.example", supported);
            assert_eq!(other, Err(ResponseFault::Issuer));
        }
    }

    #[test]
    fn iss_is_not_normalised() {
        // Rule: [AUTHC-060].
        for iss in ["https://a.example/", "HTTPS://a.example", "https://a.example:443", ""] {
            let fault = check(&format!("&code=c&iss={iss}"), false);
            assert_eq!(fault, Err(ResponseFault::Issuer), "{iss}");
        }
        // What is left after the form is decoded is not decoded again.
        let twice = check("&code=c&iss=https%253A%252F%252Fa.example", false);
        assert_eq!(twice, Err(ResponseFault::Issuer));
    }

    #[test]
    fn an_error_is_told_only_if_it_is_the_issuers() {
        // Rule: [AUTHC-061].
        let error = "&error=access_denied&error_description=No%21&error_uri=x";
        let told = ResponseFault::Refused(AuthorizationError {
            error: "access_denied".into(),
            description: Some("No!".into()),
            uri: Some("x".into()),
        });
        assert_eq!(check(error, false), Err(told));
        assert_eq!(check(error, true), Err(ResponseFault::NoIssuer));
        let foreign = check(&format!("{error}&iss=https://b.example"), true);
        assert_eq!(foreign, Err(ResponseFault::Issuer));
    }

    #[test]
    fn the_state_parameter_is_checked_first() {
        // Rule: [AUTHC-048].
        let state = State::new([7; 32]);
        let expected = ExpectedResponse { state: &state, issuer: ISSUER, iss_supported: true };
        for redirect in ["/cb", "/cb?code=c", "/cb?state=x&error=e", "/cb?state=&iss=b"] {
            let response = AuthorizationResponse::parse(redirect).expect(redirect);
            assert!(!response.answers(&state));
            assert_eq!(response.check(&expected), Err(ResponseFault::State), "{redirect}");
        }
    }

    #[test]
    fn a_response_has_a_code_or_an_error() {
        for query in ["", "&code=", "&code=c&error=e", "&x=y"] {
            assert_eq!(check(query, false), Err(ResponseFault::NoCode), "{query}");
        }
    }

    #[test]
    fn malformed_input_is_refused() {
        for query in ["&code=a&code=b", "&iss=a&iss=a", "&code=%", "&code=%4", "&code=%+1", "&%ff"]
        {
            assert_eq!(check(query, false), Err(ResponseFault::Malformed), "{query}");
        }
        let long = "x".repeat(REDIRECT_LENGTH_MAX);
        assert_eq!(check(&long, false), Err(ResponseFault::TooLong));
    }

    #[test]
    fn debug_output_hides_secrets() {
        let response = AuthorizationResponse::parse("/?code=secret").expect("a response");
        assert_eq!(format!("{response:?}"), "AuthorizationResponse(..)");
        assert_eq!(format!("{:?}", AuthorizationCode("secret".into())), "AuthorizationCode(..)");
    }
}
