//! Signatures that the application is asked for.

use alloc::string::String;

use mcp_sansio::Instant;
use mcp_sansio::http::Location;

use crate::dpop::ProvenRequest;
use crate::jwt::SigningInput;

use super::{ActionId, AuthorizationAction, AuthorizationClient, SigningKey, SigningRequest};

impl AuthorizationClient {
    /// Requests the proof that a request's sender has the key; `None` without a key. `token` is the
    /// token in the request's `Authorization`.
    pub(super) fn ask_for_proof(
        &mut self,
        method: &str,
        url: &Location,
        token: Option<&str>,
        now: Instant,
    ) -> Option<(ActionId, SigningInput)> {
        let key = self.options.dpop.as_ref()?;
        let jti = self.entropy.jti();
        let input = key.proof(&ProvenRequest {
            method,
            url,
            access_token: token,
            nonce: self.nonces.get(url),
            jti: &jti,
            unix_time: self.clock.unix_time(now),
        });
        let algorithm = String::from(key.algorithm());
        let action = self.ask_for_signature(SigningKey::Dpop, algorithm, &input);
        Some((action, input))
    }

    pub(super) fn ask_for_signature(
        &mut self,
        key: SigningKey,
        algorithm: String,
        input: &SigningInput,
    ) -> ActionId {
        let id = self.actions.next_id();
        let input = input.as_str().into();
        self.actions.push(AuthorizationAction::Sign(SigningRequest { id, key, algorithm, input }));
        id
    }
}
