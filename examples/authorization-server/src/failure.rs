use http::StatusCode;
use serde_json::{Value, json};

/// The reason for refusing a request, as defined in RFC 6749 (section 5.2) and RFC 7591 (section
/// 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The error code, such as `invalid_grant`.
    pub(super) error: &'static str,
    /// A description that contains no part of the request.
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
        Self::new("invalid_client", "the client is unknown or its authentication failed")
    }

    pub(super) const fn grant(description: &'static str) -> Self {
        Self::new("invalid_grant", description)
    }

    pub(super) const fn entropy() -> Self {
        Self::new("server_error", "the system's random number generator failed")
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
