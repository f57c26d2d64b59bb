use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::http::ParsedBody;
use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::{HttpRejection, Status};
use mcp_sansio::{Caller, Credentials, Principal};
use mcp_sansio_sync::Arc;

use super::ItemLookup;
use super::document::Presented;
use super::dpop::{Unaccepted, UsedProof};
use super::{DpopProof, ProtectedResource, TokenRefusal, VerifiedToken, scope};

/// The permissions of a request's token at this resource. Cheap to clone.
///
/// Can only be created from a checked token.
#[derive(Clone)]
pub struct Grant(Arc<GrantInner>);

struct GrantInner {
    resource: Arc<ProtectedResource>,
    principal: Principal,
    scopes: Vec<String>,
    expires_at: Option<u64>,
    presented: Presented,
    proof: Option<UsedProof>,
}

impl Grant {
    /// Evaluates the result of a token check, at `unix_time`, in seconds since 1970. A token that
    /// is bound to a key is refused: see [`with_proof`](Self::with_proof).
    ///
    /// # Errors
    ///
    /// The token is refused, or could not be checked; the error is the response that refuses the
    /// request.
    // MCP 2026-07-28 basic/authorization/security-considerations#access-token-privilege-restriction [AUTHS-013]
    // MCP 2026-07-28 security-best-practices#token-passthrough [SEC-008]
    pub fn new(
        resource: &Arc<ProtectedResource>,
        checked: Result<VerifiedToken, TokenRefusal>,
        unix_time: u64,
    ) -> Result<Self, HttpRejection> {
        Self::with_proof(resource, checked, None, unix_time)
    }

    /// Like [`new`](Self::new), with the [proof](super::TokenCheck::proof) of the request: accepts
    /// tokens that are bound to its key, and no others. Verifies the signature of the proof, which
    /// cannot be used again.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_proof(
        resource: &Arc<ProtectedResource>,
        checked: Result<VerifiedToken, TokenRefusal>,
        proof: Option<&DpopProof>,
        unix_time: u64,
    ) -> Result<Self, HttpRejection> {
        let presented = if proof.is_some() { Presented::WithProof } else { Presented::Bearer };
        let refused = |refusal| resource.refused_token(&refusal, presented);
        let token = checked.map_err(refused)?;
        if !token.audiences.iter().any(|audience| resource.is_audience(audience)) {
            return Err(refused(TokenRefusal::Invalid));
        }
        // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-001]
        if token.expires_at.is_some_and(|end| end <= unix_time) {
            return Err(refused(TokenRefusal::Expired));
        }
        let proof = match (&token.bound_to, proof) {
            (None, None) if !resource.requires_proof() => None,
            // RFC 9449, section 7.1: the proof has the key that the token is bound to.
            (Some(key), Some(proof)) if key == proof.thumbprint() => {
                let accepted = resource.accept_proof(proof, unix_time);
                Some(accepted.map_err(|fault| resource.unaccepted_proof(fault))?)
            }
            // RFC 9449, section 7.2: a bound token without a proof may be stolen.
            (_, None) => return Err(resource.unproven_token()),
            (_, Some(_)) => return Err(refused(TokenRefusal::Invalid)),
        };
        Ok(Self(Arc::new(GrantInner {
            resource: Arc::clone(resource),
            principal: token.principal,
            scopes: token.scopes,
            expires_at: token.expires_at,
            presented,
            proof,
        })))
    }

    pub(super) fn presented(&self) -> Presented {
        self.0.presented
    }

    /// Returns what identifies the proof of the request, if its token is bound to a key: a hash of
    /// its key and its id, as 64 hexadecimal digits; and when it could no longer be used again, in
    /// seconds since 1970. Until then, processes that serve the same resource must not accept it
    /// again.
    #[must_use]
    pub fn used_proof(&self) -> Option<(&str, u64)> {
        self.0.proof.as_ref().map(|proof| (&*proof.id, proof.expires_at))
    }

    /// Returns the response to a request whose proof another process has accepted before.
    #[must_use]
    pub fn repeated_proof(&self) -> HttpRejection {
        self.0.resource.unaccepted_proof(Unaccepted::Repeated)
    }

    /// Returns the response to a request if it is not known whether another process has accepted
    /// its proof.
    #[must_use]
    pub fn unrecorded_proof(&self) -> HttpRejection {
        self.0.resource.unaccepted_proof(Unaccepted::Full)
    }

    /// Returns the principal of the token.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the scopes of the token, unchanged.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.0.scopes
    }

    /// Returns the expiry of the token in seconds since 1970, if it has one.
    #[must_use]
    pub fn expires_at(&self) -> Option<u64> {
        self.0.expires_at
    }

    /// Whether the grant was created for this resource.
    #[must_use]
    pub fn is_for(&self, resource: &Arc<ProtectedResource>) -> bool {
        Arc::ptr_eq(&self.0.resource, resource)
    }

    /// Whether the token has a scope, or one that implies it.
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHS-019]
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.resource.hierarchy.satisfies(&self.0.scopes, scope)
    }

    /// Checks that the token permits a request as a whole: every message in its body, if the body
    /// can be parsed.
    ///
    /// Without the items, a read needs the scopes of all
    /// [templates](super::Operation::template).
    ///
    /// # Errors
    ///
    /// The token does not permit the request: refuse the request with this response and do not act
    /// on it.
    pub fn check(&self, body: Option<&ParsedBody<'_>>) -> Result<(), HttpRejection> {
        self.check_with(body, None)
    }

    /// Like [`check`](Self::check), with the items of the server.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    pub fn check_with(
        &self,
        body: Option<&ParsedBody<'_>>,
        items: Option<&dyn ItemLookup>,
    ) -> Result<(), HttpRejection> {
        let resource = &*self.0.resource;
        let mut needs = resource.base_scopes.clone();
        if let Some(body) = body {
            body.for_each_request(|method, subject| {
                let scopes = resource.operations.scopes_for(method, subject, items);
                scopes.for_each(|it| scope::add(&mut needs, it));
                let item = items.zip(subject).map(|(items, name)| items.scopes_of(method, name));
                item.iter().flatten().for_each(|it| scope::add(&mut needs, it));
            });
        }
        self.need(&needs)
    }

    /// Checks that the token has all of these scopes, and those that every request needs.
    ///
    /// # Errors
    ///
    /// The token lacks a scope; the error is the response that refuses the request.
    // MCP 2026-07-28 basic/authorization/index#runtime-insufficient-scope-errors [AUTHS-015] [AUTHS-018]
    pub fn require(&self, scopes: &[&str]) -> Result<(), HttpRejection> {
        let mut needs = self.0.resource.base_scopes.clone();
        scopes.iter().for_each(|it| scope::add(&mut needs, it));
        self.need(&needs)
    }

    fn need(&self, needs: &[String]) -> Result<(), HttpRejection> {
        if needs.iter().any(|it| scope::check_scope(it).is_err()) {
            let error = ErrorObject::internal("the server requires an invalid scope");
            return Err(HttpRejection::new(Status::INTERNAL_SERVER_ERROR, error));
        }
        if needs.iter().all(|it| self.has_scope(it)) {
            return Ok(());
        }
        Err(self.0.resource.insufficient(self, needs))
    }
}

impl Credentials for Grant {
    fn scopes(&self) -> &[String] {
        &self.0.scopes
    }

    fn has_scope(&self, scope: &str) -> bool {
        self.0.resource.hierarchy.satisfies(&self.0.scopes, scope)
    }
}

impl From<Grant> for Caller {
    fn from(grant: Grant) -> Self {
        Self::from_credentials(grant.principal().clone(), grant)
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("scopes", &self.0.scopes).finish_non_exhaustive()
    }
}
