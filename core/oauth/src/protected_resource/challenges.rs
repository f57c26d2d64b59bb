//! The responses to requests without a token, or with an insufficient one.

use alloc::format;
use alloc::string::String;

use mcp_sansio::http::{HttpRejection, Status};
use mcp_sansio::jsonrpc::ErrorObject;

use super::dpop::{ProofRefusal, Unaccepted};
use super::{Grant, ProtectedResource, TokenRefusal, scope};
use crate::dpop::USE_DPOP_NONCE;

/// How the token of a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presented {
    /// As `Bearer` (RFC 6750).
    Bearer,
    /// As `DPoP`, with a proof (RFC 9449).
    WithProof,
}

impl ProtectedResource {
    /// Returns the response to a request without a token.
    #[must_use]
    // MCP 2026-07-28 basic/authorization/index#error-handling [AUTHS-001]
    pub fn no_token(&self) -> HttpRejection {
        // RFC 6750, section 3.1: no error code if the client did not present a token.
        let challenge = |presented| self.challenge(presented, None, &self.base_scopes, None);
        let challenge = match &self.dpop {
            None => challenge(Presented::Bearer),
            Some(_) if self.requires_proof() => challenge(Presented::WithProof),
            // RFC 9449, section 7.1: a server that accepts both has two challenges.
            Some(_) => [Presented::Bearer, Presented::WithProof].map(challenge).join(", "),
        };
        refused(Status::UNAUTHORIZED, challenge, "this server requires an access token")
    }

    /// Returns the response to a request that presents a token in a forbidden way.
    // MCP 2026-07-28 basic/authorization/index#error-handling [AUTHS-002]
    pub(super) fn malformed(&self, what: &'static str) -> HttpRejection {
        let presented =
            if self.requires_proof() { Presented::WithProof } else { Presented::Bearer };
        let challenge = self.challenge(presented, Some("invalid_request"), &[], Some(what));
        refused(Status::BAD_REQUEST, challenge, what)
    }

    /// Returns the response to a request whose token is refused.
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHS-001] [AUTHS-012]
    pub(super) fn refused_token(
        &self,
        refusal: TokenRefusal,
        presented: Presented,
    ) -> HttpRejection {
        let what = match refusal {
            TokenRefusal::Invalid => "the access token is not valid for this resource",
            TokenRefusal::Expired => "the access token has expired",
            TokenRefusal::Unavailable => return self.unavailable(),
        };
        self.unauthorized(presented, "invalid_token", what)
    }

    /// Returns the response to a request whose token needs a proof and was sent without one.
    pub(super) fn unproven_token(&self) -> HttpRejection {
        // Without a verifier, the client cannot do any better than to get another token.
        let presented = if self.dpop.is_some() { Presented::WithProof } else { Presented::Bearer };
        self.unauthorized(presented, "invalid_token", "the access token was sent without a proof")
    }

    /// Returns the response to a request whose proof does not fit.
    // RFC 9449, sections 7.1 and 9.
    pub(super) fn refused_proof(&self, refusal: ProofRefusal) -> HttpRejection {
        let refuse = |error, what| self.unauthorized(Presented::WithProof, error, what);
        match refusal {
            ProofRefusal::Invalid(what) => refuse("invalid_dpop_proof", what),
            ProofRefusal::Nonce(nonce) => {
                refuse(USE_DPOP_NONCE, "the proof needs a nonce of this server").dpop_nonce(nonce)
            }
        }
    }

    /// Returns the response to a request whose proof has fitting claims.
    pub(super) fn unaccepted_proof(&self, fault: Unaccepted) -> HttpRejection {
        let what = match fault {
            Unaccepted::Signature => "the signature of the proof is not valid",
            Unaccepted::Repeated => "the proof was used before",
            Unaccepted::Full => return self.unavailable(),
        };
        self.refused_proof(ProofRefusal::Invalid(what))
    }

    fn unauthorized(&self, presented: Presented, error: &str, what: &'static str) -> HttpRejection {
        let challenge = self.challenge(presented, Some(error), &self.base_scopes, Some(what));
        refused(Status::UNAUTHORIZED, challenge, what)
    }

    /// Returns the response to a request whose token could not be checked: because of a timeout, a
    /// panic, or too many concurrent checks. It does not refuse the token.
    #[must_use]
    pub fn unavailable(&self) -> HttpRejection {
        let error = ErrorObject::internal("the access token cannot be checked at the moment");
        let mut refusal = HttpRejection::new(Status::SERVICE_UNAVAILABLE, error);
        refusal.retry_after = Some(10);
        refusal
    }

    /// Returns the response to a request whose token lacks a scope that the request `needs`.
    ///
    /// The challenge always names all scopes that the request needs, and those of the token that
    /// this resource uses. So a client that requests exactly the named scopes loses none, whether
    /// or not it accumulates earlier ones.
    // MCP 2026-07-28 basic/authorization/index#runtime-insufficient-scope-errors [AUTHS-002] [AUTHS-015] [AUTHS-016] [AUTHS-018]
    // MCP 2025-11-25 basic/authorization#runtime-insufficient-scope-errors [AUTHS-017]
    pub(super) fn insufficient(&self, grant: &Grant, needs: &[String]) -> HttpRejection {
        let mut scopes = needs.to_vec();
        for scope in grant.scopes().iter().filter(|it| self.knows_scope(it)) {
            scope::add(&mut scopes, scope);
        }
        let what = "the access token lacks a scope that the request needs";
        let presented = grant.presented();
        let challenge = self.challenge(presented, Some("insufficient_scope"), &scopes, Some(what));
        let message = format!("{what}: `{}`", needs.join(" "));
        refused(Status::FORBIDDEN, challenge, message)
    }

    /// Returns a challenge of `WWW-Authenticate`. No part of it needs an escape: scopes and URLs are
    /// validated, and the rest is constant.
    // MCP 2025-06-18 basic/authorization#authorization-server-location [AUTHS-009]
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements [AUTHS-010]
    // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHS-011]
    fn challenge(
        &self,
        presented: Presented,
        error: Option<&str>,
        scopes: &[String],
        description: Option<&str>,
    ) -> String {
        let scheme = match presented {
            Presented::Bearer => "Bearer",
            Presented::WithProof => "DPoP",
        };
        let mut challenge = match self.metadata_url() {
            Some(url) => format!("{scheme} resource_metadata=\"{url}\""),
            // RFC 6750, section 3: the scheme is followed by at least one parameter.
            None => format!("{scheme} realm=\"MCP\""),
        };
        let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
        // RFC 9449, section 7.1.
        let algorithms = self.proof_algorithms().filter(|_| presented == Presented::WithProof);
        let params = [
            ("algs", algorithms.as_deref()),
            ("error", error),
            ("scope", scope.as_deref()),
            ("error_description", description),
        ];
        for (name, value) in params {
            if let Some(value) = value {
                challenge.push_str(&format!(", {name}=\"{value}\""));
            }
        }
        challenge
    }
}

fn refused(
    status: Status,
    challenge: String,
    message: impl Into<alloc::borrow::Cow<'static, str>>,
) -> HttpRejection {
    let error = ErrorObject::invalid_request(message);
    HttpRejection::new(status, error).challenge(challenge)
}
