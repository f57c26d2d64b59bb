use http::StatusCode;
use serde_json::{Value, json};

/// Why a request is refused, as RFC 6749 (section 5.2) and RFC 7591 (section 3.2.2) have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The code: `invalid_grant`, …
    pub(super) error: &'static str,
    /// The same in words, without anything of the request.
    pub(super) description: &'static str,
}

impl Failure {
    pub(super) const fn new(error: &'static str, description: &'static str) -> Self {
        Self { error, description }
    }

    pub(super) const fn request(description: &'static str) -> Self {
        Self::new("invalid_request", description)
    }

    pub(super) const fn client() -> Self {
        Self::new("invalid_client", "the client is not known, or does not prove that it is it")
    }

    pub(super) const fn grant(description: &'static str) -> Self {
        Self::new("invalid_grant", description)
    }

    pub(super) const fn entropy() -> Self {
        Self::new("server_error", "the system has no entropy")
    }

    pub(super) fn status(&self) -> StatusCode {
        match self.error {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "server_error" => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn to_json(self) -> Value {
        json!({ "error": self.error, "error_description": self.description })
    }
}
