//! The server as a function from requests to responses, with the time as an argument.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION,
    REFERRER_POLICY, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;

use super::authorization::{AuthorizationResponse, Authorizations};
use super::clients::{Clients, GrantType};
use super::failure::Failure;
use super::grants::Grants;
use super::keys::SigningKeys;
use super::options::Options;
use super::tokens::TokenEndpoint;
use super::{metadata, page, registration};

/// Counts of requests since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Registered clients.
    pub registrations: usize,
    /// Authorization requests.
    pub authorizations: usize,
    /// Tokens issued for codes.
    pub codes_redeemed: usize,
    /// Tokens issued for refresh tokens.
    pub refreshes: usize,
    /// Refused token requests.
    pub refusals: usize,
}

/// The server without its socket.
pub(super) struct Service {
    issuer: String,
    options: Options,
    clients: Clients,
    authorizations: Authorizations,
    grants: Grants,
    pub(super) keys: SigningKeys,
    pub(super) tally: Tally,
}

impl Service {
    pub(super) fn new(issuer: String, options: Options, keys: SigningKeys) -> Self {
        Self {
            clients: Clients::new(options.clients.clone(), options.limits.clients_max),
            authorizations: Authorizations::new(&issuer, &options),
            grants: Grants::new(&options.limits),
            issuer,
            options,
            keys,
            tally: Tally::default(),
        }
    }

    /// Answers a request that arrived at `now`, in seconds since 1970.
    pub(super) fn handle(&mut self, request: &Request<Bytes>, now: u64) -> Response<Bytes> {
        let allowed = match request.uri().path() {
            metadata::OAUTH_METADATA
            | metadata::OPENID_METADATA
            | metadata::KEYS
            | metadata::AUTHORIZATION => Method::GET,
            metadata::APPROVAL | metadata::TOKENS | metadata::REGISTRATION => Method::POST,
            _ => return text(StatusCode::NOT_FOUND, "not found\n"),
        };
        if request.method() != allowed {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            let value =
                HeaderValue::from_static(if allowed == Method::GET { "GET" } else { "POST" });
            response.headers_mut().insert(ALLOW, value);
            return response;
        }
        match request.uri().path() {
            metadata::OAUTH_METADATA => public(&metadata::oauth(&self.issuer, &self.options)),
            metadata::OPENID_METADATA => public(&metadata::openid(&self.issuer, &self.options)),
            metadata::KEYS => public(&self.keys.to_jwks()),
            metadata::AUTHORIZATION => self.authorize(request, now),
            metadata::APPROVAL => {
                show(self.authorizations.answer(request.body(), &mut self.grants, now))
            }
            metadata::TOKENS => self.give_token(request, now),
            _ => self.register(request, now),
        }
    }

    /// Revokes all refresh tokens.
    pub(super) fn revoke_all(&mut self) {
        self.grants.revoke_all();
    }

    fn authorize(&mut self, request: &Request<Bytes>, now: u64) -> Response<Bytes> {
        self.tally.authorizations += 1;
        let query = request.uri().query().unwrap_or_default().as_bytes();
        let Self { authorizations, options, clients, grants, .. } = self;
        show(authorizations.begin(query, options, clients, grants, now))
    }

    fn give_token(&mut self, request: &Request<Bytes>, now: u64) -> Response<Bytes> {
        let Self { issuer, options, clients, grants, keys, tally, .. } = self;
        let mut endpoint = TokenEndpoint { issuer, options, clients, grants, keys };
        let answer = if is_of_type(request, "application/x-www-form-urlencoded") {
            endpoint.answer(request.headers(), request.body(), now)
        } else {
            Err(Failure::request("the body is not a form"))
        };
        match answer {
            Ok((grant_type, response)) => {
                match grant_type {
                    GrantType::AuthorizationCode => tally.codes_redeemed += 1,
                    GrantType::RefreshToken => tally.refreshes += 1,
                    GrantType::ClientCredentials | GrantType::JwtBearer => {}
                }
                private(StatusCode::OK, &response)
            }
            Err(failure) => {
                tally.refusals += 1;
                refused(failure)
            }
        }
    }

    fn register(&mut self, request: &Request<Bytes>, now: u64) -> Response<Bytes> {
        let answer = if is_of_type(request, "application/json") {
            registration::register(&mut self.clients, request.body(), now)
        } else {
            Err(Failure::new("invalid_client_metadata", "the body is not JSON"))
        };
        match answer {
            Ok(response) => {
                self.tally.registrations += 1;
                private(StatusCode::CREATED, &response)
            }
            Err(failure) => refused(failure),
        }
    }
}

fn is_of_type(request: &Request<Bytes>, expected: &str) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(expected)
}

fn refused(failure: Failure) -> Response<Bytes> {
    let mut response = private(failure.status(), &failure.to_json());
    if failure.status() == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Basic realm=\"tokens\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Converts the outcome of an authorization request to a response for the browser.
fn show(shown: AuthorizationResponse) -> Response<Bytes> {
    match shown {
        AuthorizationResponse::Redirect(url) => match HeaderValue::try_from(url) {
            Ok(location) => {
                // The browser follows with a GET and does not send the consent form again.
                let mut response = answer(StatusCode::SEE_OTHER, "text/plain", Bytes::new());
                response.headers_mut().insert(LOCATION, location);
                response
            }
            Err(_) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the redirect URI is not a valid header value\n",
            ),
        },
        AuthorizationResponse::Consent(page) => html(StatusCode::OK, page),
        AuthorizationResponse::Error(failure) => {
            html(failure.status(), page::refusal(failure.description))
        }
    }
}

/// A page that runs no scripts and cannot be framed.
fn html(status: StatusCode, page: String) -> Response<Bytes> {
    let mut response = answer(status, "text/html; charset=utf-8", page.into());
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Bytes> {
    answer(status, "text/plain", Bytes::from_static(text.as_bytes()))
}

/// A document that anyone may read.
fn public(document: &Value) -> Response<Bytes> {
    let mut response = private(StatusCode::OK, document);
    // Tests rotate keys often.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// A document for one client.
fn private(status: StatusCode, document: &Value) -> Response<Bytes> {
    answer(status, "application/json", document.to_string().into())
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
