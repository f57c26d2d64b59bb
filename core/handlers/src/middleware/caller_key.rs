use mcp_sansio::{Caller, Principal};

use super::server_request::ServerRequest;

/// Tells callers apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallerKey {
    /// The other end of a byte stream, by the number of the endpoint. Endpoints of one server may
    /// have different clients.
    Owner(usize),
    /// All unknown senders to an endpoint: nothing tells them apart.
    Anonymous(usize),
    Known(Principal),
}

impl CallerKey {
    pub(super) fn new(request: &ServerRequest) -> Self {
        let (caller, endpoint) = (request.caller(), request.clock().endpoint());
        match caller.principal() {
            Some(principal) => Self::Known(principal.clone()),
            None if Caller::is_owner(caller) => Self::Owner(endpoint),
            None => Self::Anonymous(endpoint),
        }
    }
}
