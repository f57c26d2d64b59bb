//! The authorization response, which arrives with the user's redirect.

use alloc::format;
use alloc::string::String;
use core::hint;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_sansio::catalog::{InvalidUri, check_uri};
use mcp_sansio::http::{InvalidUrl, LOCATION_LENGTH_MAX, Location};
use sha2::{Digest, Sha256};

use super::form::{decode, decode_lossy, parameters};
use super::metadata::printable;
use super::token::ErrorResponse;
use crate::client::{ApplicationType, AuthorizationRequest};
use crate::discovery::{UrlFault, is_secure};

/// The longest accepted redirect, in bytes.
pub const REDIRECT_LENGTH_MAX: usize = 64 * 1024;

/// An unchecked authorization response: its contents are accessible only through
/// [`AuthorizationResponse::check`].
#[derive(Clone, Default)]
pub struct AuthorizationResponse {
    code: Option<String>,
    state: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
    error_uri: Option<String>,
    /// Another parameter than `state` is malformed.
    malformed: bool,
}

/// A code to exchange for a token, from the expected issuer.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizationCode(String);

/// Why an authorization response is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseFault {
    /// The redirect is longer than [`REDIRECT_LENGTH_MAX`].
    #[error("the redirect is longer than {REDIRECT_LENGTH_MAX} bytes")]
    TooLong,
    /// The redirect is not `application/x-www-form-urlencoded` in UTF-8, or has a duplicate
    /// parameter. The error of its sender.
    #[error("the redirect is malformed")]
    Malformed,
    /// `state` is missing or different: the response does not answer a request of this client. Keep
    /// waiting for one that does.
    #[error("the response does not have the state of the request")]
    State,
    /// `iss` names another issuer: a mix-up attack of an authorization server.
    #[error("the response comes from another issuer than the requested one")]
    Issuer,
    /// `iss` is missing although the authorization server declares that it is always present.
    #[error("the response does not name its issuer")]
    NoIssuer,
    /// The response has neither a code nor an error, or both. The authorization server's error.
    #[error("the response has neither a code nor an error, or both")]
    NoCode,
    /// The authorization server, or the user, refused the request.
    #[error(
        "the authorization server answered `{}`{}",
        .0.error,
        .0.description.as_ref().map_or_else(String::new, |it| format!(" ({it})"))
    )]
    Refused(ErrorResponse),
}

impl AuthorizationResponse {
    /// Parses the redirect: a URL, or the target of the HTTP request that the client received.
    /// Without a `?` the response is empty. Ignores unknown parameters. Linear.
    ///
    /// # Errors
    ///
    /// [`ResponseFault::TooLong`]; [`ResponseFault::Malformed`] if its `state` cannot be read.
    /// [`check`](Self::check) reports other malformed parameters: the response ends the request
    /// that it answers.
    pub fn parse(redirect: &str) -> Result<Self, ResponseFault> {
        if redirect.len() > REDIRECT_LENGTH_MAX {
            return Err(ResponseFault::TooLong);
        }
        let url = redirect.split('#').next().unwrap_or_default();
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let mut response = Self::default();
        for (name, value) in parameters(query) {
            let Some(name) = decode(name) else { continue };
            let member = match &*name {
                "code" => &mut response.code,
                "state" => &mut response.state,
                "iss" => &mut response.iss,
                "error" => &mut response.error,
                // For people only, so that it need not be well-formed.
                "error_description" => {
                    response.error_description.get_or_insert_with(|| decode_lossy(value));
                    continue;
                }
                "error_uri" => {
                    response.error_uri.get_or_insert_with(|| decode_lossy(value));
                    continue;
                }
                _ => continue,
            };
            // Duplicate parameters are forbidden (RFC 6749, section 3.1).
            match decode(value) {
                Some(value) if member.is_none() => *member = Some(value),
                _ if name == "state" => return Err(ResponseFault::Malformed),
                _ => response.malformed = true,
            }
        }
        Ok(response)
    }

    /// Whether this response answers the request with this `state`, to choose among several pending
    /// requests. The rest of the response stays unchecked.
    #[must_use]
    pub fn answers(&self, state: &State) -> bool {
        self.state.as_deref().is_some_and(|it| state.matches(it))
    }

    /// Returns the code after checking its origin: first `state`, then `iss`, and only then the
    /// content of the response.
    ///
    /// All arguments were recorded before the user was sent to the authorization server: the `state`
    /// of the request, the `issuer` of the validated metadata, and whether the metadata says that
    /// every response has `iss`
    /// ([`authorization_response_iss_parameter_supported`](crate::AuthorizationServerMetadata)).
    ///
    /// # Errors
    ///
    /// See [`ResponseFault`]. Only [`ResponseFault::Refused`] contains text of the response.
    pub fn check(
        self,
        state: &State,
        issuer: &str,
        iss_supported: bool,
    ) -> Result<AuthorizationCode, ResponseFault> {
        // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
        if !self.answers(state) {
            return Err(ResponseFault::State);
        }
        if self.malformed {
            return Err(ResponseFault::Malformed);
        }
        // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-057]
        // [AUTHC-058] [AUTHC-059] [AUTHC-060]: compared as text, whether the server declared it or
        // not.
        match &self.iss {
            Some(iss) if iss != issuer => return Err(ResponseFault::Issuer),
            None if iss_supported => return Err(ResponseFault::NoIssuer),
            _ => {}
        }
        // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-061]:
        // only after these checks.
        match (self.code, self.error) {
            (Some(code), None) if !code.is_empty() => Ok(AuthorizationCode(code)),
            (None, Some(error)) => {
                let mut refusal = ErrorResponse {
                    error: printable(&error),
                    description: self.error_description.as_deref().map(printable),
                    uri: self.error_uri.as_deref().map(printable),
                };
                refusal.leave_out(state.as_str());
                Err(ResponseFault::Refused(refusal))
            }
            _ => Err(ResponseFault::NoCode),
        }
    }
}

impl AuthorizationRequest {
    /// Whether a redirect answers this request, according to its `state`. Any website can send a
    /// browser to the redirect URI, so a listening application must ignore other redirects and keep
    /// listening.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
    #[must_use]
    pub fn is_answered_by(&self, redirect: &str) -> bool {
        let state = |url| AuthorizationResponse::parse(url).ok().and_then(|it| it.state);
        let (Some(ours), Some(theirs)) = (state(&self.url), state(redirect)) else { return false };
        are_same(&ours, &theirs)
    }
}

mcp_sansio::partial_debug! {
    /// Prints no fields: they are unchecked, and some are secret.
    impl Debug for AuthorizationResponse(..)
}

impl AuthorizationCode {
    /// Returns the value of `code`, for the token request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

mcp_sansio::partial_debug! {
    /// Omits the secret.
    impl Debug for AuthorizationCode(..)
}

// ------------------------------------------------------------------ validation of redirect URIs

/// Checks that an application of this type may use this redirect URI. Linear.
///
/// # Errors
///
/// The application's error: see [`UrlFault`].
pub fn check_redirect_uri(uri: &str, of: ApplicationType) -> Result<(), UrlFault> {
    if uri.len() > LOCATION_LENGTH_MAX {
        return Err(UrlFault::Url(InvalidUrl::TooLong));
    }
    check_uri(uri).map_err(|error| match error {
        InvalidUri::Scheme => UrlFault::Url(InvalidUrl::Scheme),
        error => UrlFault::Url(InvalidUrl::Syntax(error)),
    })?;
    // RFC 6749, section 3.1.2.
    if uri.contains('#') {
        return Err(UrlFault::Fragment);
    }
    let scheme = uri.split(':').next().unwrap_or_default();
    if !["http", "https"].iter().any(|it| it.eq_ignore_ascii_case(scheme)) {
        return match of {
            ApplicationType::Web => Err(UrlFault::Web),
            ApplicationType::Native if scheme.contains('.') => Ok(()),
            ApplicationType::Native => Err(UrlFault::Scheme),
        };
    }
    let location = Location::parse(uri).map_err(UrlFault::Url)?;
    // MCP 2026-07-28 basic/authorization/security-considerations#communication-security [AUTHC-047]
    if !is_secure(&location) {
        return Err(UrlFault::Insecure);
    }
    // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-033] [AUTHC-034]:
    // OpenID Connect requires web applications to be on public hosts.
    match of {
        ApplicationType::Web if location.origin().is_loopback() => Err(UrlFault::Web),
        _ => Ok(()),
    }
}

// ------------------------------------------------------------------ secrets of one authorization

/// The number of bytes of entropy in each secret.
pub const ENTROPY_LENGTH: usize = 32;

/// The PKCE verifier of one authorization. It proves to the token endpoint that the client that
/// presents the code also requested it.
///
/// Each authorization has its own; it is sent only to the token endpoint.
// MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-011]
pub struct CodeVerifier(String);

impl CodeVerifier {
    /// Creates a verifier of 43 characters. The bytes must be unpredictable and used for nothing
    /// else.
    #[must_use]
    pub fn new(entropy: [u8; ENTROPY_LENGTH]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(entropy))
    }

    /// Returns the value of `code_verifier`, for the token request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value of `code_challenge`, for the authorization request. Its method is `S256`.
    // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-012]
    #[must_use]
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(&self.0))
    }
}

mcp_sansio::partial_debug! {
    /// Omits the secret.
    impl Debug for CodeVerifier(..)
}

/// The `state` of one authorization. It binds the response to the request, so that an attacker
/// cannot make a client complete an authorization that it did not start.
// MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
pub struct State(String);

impl State {
    /// Creates a state of 43 characters. The bytes must be unpredictable and used for nothing else.
    #[must_use]
    pub fn new(entropy: [u8; ENTROPY_LENGTH]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(entropy))
    }

    /// Returns the value of `state`, for the authorization request.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the response has this state, compared in constant time.
    #[must_use]
    pub fn matches(&self, response: &str) -> bool {
        are_same(&self.0, response)
    }
}

/// Whether two secrets are equal, compared in a time that does not depend on the position of a
/// difference.
pub(crate) fn are_same(ours: &str, theirs: &str) -> bool {
    let (ours, theirs) = (ours.as_bytes(), theirs.as_bytes());
    let mut difference = u8::from(ours.len() != theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        difference = hint::black_box(difference | (ours ^ theirs));
    }
    difference == 0
}

mcp_sansio::partial_debug! {
    /// Omits the secret.
    impl Debug for State(..)
}

// ------------------------------------------------------------------ secrets derived from one seed

/// Separates these values from other uses of SHA-256.
const LABEL: &[u8] = b"mcp-sansio authorization entropy";
/// 128 bits: enough to make collisions negligible.
const JTI_LENGTH: usize = 16;

/// A seed with a counter. The seed reveals all secrets; a secret reveals nothing about the others.
pub(crate) struct Entropy {
    seed: [u8; 32],
    count: u64,
}

impl Entropy {
    /// Creates a source. The seed must be unpredictable and unique.
    pub(crate) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// Returns 32 unpredictable bytes: for a PKCE verifier or a `state`.
    pub(crate) fn secret(&mut self) -> [u8; 32] {
        self.next(0)
    }

    /// Returns a unique text for the id of a token. It is public.
    pub(crate) fn jti(&mut self) -> String {
        URL_SAFE_NO_PAD.encode(&self.next(1)[..JTI_LENGTH])
    }

    fn next(&mut self, purpose: u8) -> [u8; 32] {
        let digest = Sha256::new()
            .chain_update(LABEL)
            .chain_update(self.seed)
            .chain_update([purpose])
            .chain_update(self.count.to_be_bytes());
        self.count += 1;
        digest.finalize().into()
    }
}

mcp_sansio::partial_debug! {
    /// Prints nothing of the seed.
    impl Debug for Entropy(..)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    const ISSUER: &str = "https://a.example";

    /// Checks a response with the right `state` and this additional query.
    fn check(query: &str, iss_supported: bool) -> Result<String, ResponseFault> {
        let state = State::new([7; 32]);
        let redirect = format!("http://localhost:1/cb?state={}{query}#x", state.as_str());
        let response = AuthorizationResponse::parse(&redirect)?;
        let code = response.check(&state, ISSUER, iss_supported)?;
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
    fn iss_is_not_normalized() {
        // Rule: [AUTHC-060].
        for iss in ["https://a.example/", "HTTPS://a.example", "https://a.example:443", ""] {
            let fault = check(&format!("&code=c&iss={iss}"), false);
            assert_eq!(fault, Err(ResponseFault::Issuer), "{iss}");
        }
        // A decoded value is not decoded again.
        let twice = check("&code=c&iss=https%253A%252F%252Fa.example", false);
        assert_eq!(twice, Err(ResponseFault::Issuer));
    }

    #[test]
    fn an_error_is_reported_only_from_the_expected_issuer() {
        // Rule: [AUTHC-061].
        let error = "&error=access_denied&error_description=No%21&error_uri=x";
        let told = ResponseFault::Refused(ErrorResponse {
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
    fn the_description_of_an_error_is_read_as_far_as_possible() {
        for (text, description) in [
            ("Schl%FCssel", "Schlssel"),
            ("100%", "100%"),
            ("a&error_description=b", "a"),
            ("x-%42wcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc-y", "x-..-y"),
        ] {
            let fault = check(&format!("&error=access_denied&error_description={text}"), false);
            let Err(fault @ ResponseFault::Refused(_)) = fault else { panic!("{fault:?}") };
            let told = format!("the authorization server answered `access_denied` ({description})");
            assert_eq!(fault.to_string(), told, "{text}");
        }
    }

    #[test]
    fn the_state_parameter_is_checked_first() {
        // Rule: [AUTHC-048].
        let state = State::new([7; 32]);
        for redirect in ["/cb", "/cb?code=c", "/cb?state=x&error=e", "/cb?state=&iss=b"] {
            let response = AuthorizationResponse::parse(redirect).expect(redirect);
            assert!(!response.answers(&state));
            let refused = response.check(&state, ISSUER, true);
            assert_eq!(refused, Err(ResponseFault::State), "{redirect}");
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
        for query in
            ["&code=a&code=b", "&iss=a&iss=a", "&code=%", "&code=%4", "&code=%+1", "&error=%ff"]
        {
            assert_eq!(check(query, false), Err(ResponseFault::Malformed), "{query}");
            // It does not say whether it answers the request.
            let doubled = check(&format!("{query}&state=x"), false);
            assert_eq!(doubled, Err(ResponseFault::Malformed), "{query}");
        }
        assert_eq!(check("&code=c&%ff=%ff", false), Ok("c".to_string()));
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

#[cfg(test)]
mod redirect_uri_tests {
    use super::*;

    const NATIVE: ApplicationType = ApplicationType::Native;
    const WEB: ApplicationType = ApplicationType::Web;

    #[test]
    fn a_redirect_uri_is_https_loopback_or_a_private_scheme() {
        // Rule: [AUTHC-047].
        for uri in [
            "https://c.example/cb?a=b",
            "HTTP://LOCALHOST:3000/cb",
            "http://127.0.0.1/",
            "http://[::1]:1/cb",
            "com.example.app:/cb",
        ] {
            assert_eq!(check_redirect_uri(uri, NATIVE), Ok(()), "{uri}");
        }
        for (uri, reason) in [
            ("http://c.example/cb", UrlFault::Insecure),
            ("http://localhost.example/cb", UrlFault::Insecure),
            ("http://127.0.0.1@c.example/", UrlFault::Url(InvalidUrl::User)),
            ("https://c.example/#", UrlFault::Fragment),
            ("com.example.app:/cb#x", UrlFault::Fragment),
            ("javascript:alert(1)", UrlFault::Scheme),
            ("data:text/html,x", UrlFault::Scheme),
            ("file:///cb", UrlFault::Scheme),
            ("/cb", UrlFault::Url(InvalidUrl::Scheme)),
            ("", UrlFault::Url(InvalidUrl::Scheme)),
            ("https:///cb", UrlFault::Url(InvalidUrl::Host)),
            ("com.example.app:/c b", UrlFault::Url(InvalidUrl::Syntax(InvalidUri::Character(' ')))),
        ] {
            assert_eq!(check_redirect_uri(uri, NATIVE), Err(reason), "{uri}");
        }
        let long = ["com.example.app:/", &*"x".repeat(LOCATION_LENGTH_MAX)].concat();
        let reason = UrlFault::Url(InvalidUrl::TooLong);
        assert_eq!(check_redirect_uri(&long, NATIVE), Err(reason));
    }

    #[test]
    fn an_application_on_the_users_device_is_native() {
        // Rule: [AUTHC-033] [AUTHC-034].
        assert_eq!(check_redirect_uri("https://c.example/cb", WEB), Ok(()));
        for uri in ["http://localhost:3000/cb", "https://127.0.0.1/cb", "com.example.app:/cb"] {
            assert_eq!(check_redirect_uri(uri, WEB), Err(UrlFault::Web), "{uri}");
        }
        let http = check_redirect_uri("http://c.example/cb", WEB);
        assert_eq!(http, Err(UrlFault::Insecure));
    }
}

#[cfg(test)]
mod pkce_tests {
    use alloc::format;

    use super::*;

    #[test]
    fn the_example_of_rfc_7636_is_reproduced() {
        // Rule: [AUTHC-011] [AUTHC-012].
        let verifier = CodeVerifier::new([
            116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212,
            37, 77, 105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
        ]);
        assert_eq!(verifier.as_str(), "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn a_state_matches_only_itself() {
        // Rule: [AUTHC-048].
        let state = State::new([0xff; 32]);
        assert_eq!(state.as_str().len(), 43);
        assert!(state.matches(state.as_str()));
        let longer = format!("{}A", state.as_str());
        for other in ["", &state.as_str()[1..], &longer, State::new([0xfe; 32]).as_str()] {
            assert!(!state.matches(other), "{other}");
        }
    }

    #[test]
    fn debug_output_hides_secrets() {
        assert_eq!(format!("{:?}", CodeVerifier::new([0; 32])), "CodeVerifier(..)");
        assert_eq!(format!("{:?}", State::new([0; 32])), "State(..)");
    }
}

#[cfg(test)]
mod entropy_tests {
    use alloc::collections::BTreeSet;
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn secrets_depend_only_on_the_seed() {
        let secrets = |seed| {
            let mut entropy = Entropy::new([seed; 32]);
            [entropy.secret(), entropy.secret()]
        };
        assert_eq!(secrets(1), secrets(1));
        assert!(secrets(1).iter().all(|it| !secrets(2).contains(it)));
    }

    #[test]
    fn values_do_not_repeat() {
        let mut entropy = Entropy::new([7; 32]);
        let secrets: BTreeSet<_> = (0..500).map(|_| entropy.secret()).collect();
        let ids: BTreeSet<_> = (0..500).map(|_| entropy.jti()).collect();
        assert_eq!((secrets.len(), ids.len()), (500, 500));
    }

    #[test]
    fn public_values_are_not_derived_from_secrets() {
        let (mut one, mut other) = (Entropy::new([7; 32]), Entropy::new([7; 32]));
        let jti = one.jti();
        assert_eq!(jti.len(), 22);
        assert_ne!(URL_SAFE_NO_PAD.decode(&jti).ok(), Some(Vec::from(&other.secret()[..16])));
    }

    #[test]
    fn debug_output_hides_the_seed() {
        assert_eq!(format!("{:?}", Entropy::new([7; 32])), "Entropy(..)");
    }
}
