//! The token request: signed if necessary, sent, and repeated if the authorization server requires
//! a new nonce.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytestring::ByteString;
use mcp_sansio::Instant;
use mcp_sansio::http::Field;
use mcp_sansio_sync::Arc;

use super::super::exchanges::Fetched;
use super::super::{
    ActionId, AuthorizationClient, AuthorizationFailure, ClientSecret, Generation, GrantFlow,
    SigningKey,
};
use super::identity::{Identity, no_authentication};
use super::{Flow, Next, Outcome, Step, StepResult};
use crate::client::authentication::{
    AuthenticationMethod, ClientProof, SigningInput, UNSUPPORTED, assertion,
};
use crate::client::credential::StoredTokens;
use crate::client::form;
use crate::client::metadata::is_same_issuer;
use crate::client::scopes::Scopes;
use crate::client::token::{TokenGrant, TokenPurpose, TokenRequest, TokenResponse, TokenType};
use crate::{AnswerFault, AuthorizationCode, CodeVerifier, ErrorResponse};

/// A token request.
pub(super) struct TokenStep {
    source: GrantSource,
    /// The authorization server and the identity of the client.
    identity: Arc<Identity>,
    stage: Stage,
    /// The signed assertion that authenticates the client, if its method uses one.
    assertion: Option<String>,
    /// The nonce in the proof.
    nonce: Option<String>,
    /// How often the request was repeated for a new nonce.
    nonces: u32,
    /// The credential in the request, in its encoded form.
    credential: Option<String>,
}

/// The grant of a token request.
pub(super) enum GrantSource {
    /// An authorization code, with the verifier of its request.
    Code { code: AuthorizationCode, verifier: CodeVerifier },
    /// The refresh token.
    Renewal,
    /// The identity of the client alone.
    ClientCredentials,
    /// An assertion.
    Assertion { assertion: String },
    /// An ID token, exchanged at the identity provider.
    Exchange { id_token: String },
}

/// The input that a token request waits for.
#[derive(Debug)]
enum Stage {
    /// The signature of the assertion that authenticates the client.
    Authentication(ActionId, SigningInput),
    /// The signature of the proof.
    Proof(ActionId, SigningInput),
    /// The response.
    Answer,
}

impl TokenStep {
    pub(super) const fn action(&self) -> Option<ActionId> {
        match &self.stage {
            Stage::Authentication(action, _) | Stage::Proof(action, _) => Some(*action),
            Stage::Answer => None,
        }
    }

    const fn is_renewal(&self) -> bool {
        matches!(self.source, GrantSource::Renewal)
    }

    /// Whether this answer to a renewal shows that the refresh token is useless. Authorization
    /// servers say so in many ways. It is kept if the same request may succeed later, or if the
    /// answer is about the configured client or its proof.
    fn is_useless(&self, status: u16, fault: &AnswerFault) -> bool {
        // A page with status 200 is often that of an outage.
        let page = status < 300 && *fault == AnswerFault::Malformed;
        let passing = page || matches!(status, 408 | 429 | 500..);
        let kept = match fault {
            AnswerFault::Refused(error) => match &*error.error {
                "invalid_client" => !self.identity.reused,
                "temporarily_unavailable" | "server_error" | "slow_down" => true,
                "invalid_dpop_proof" | "use_dpop_nonce" => true,
                _ => false,
            },
            _ => false,
        };
        self.is_renewal() && !passing && !kept
    }
}

impl AuthorizationClient {
    pub(super) fn request_token(
        &mut self,
        flow: &Flow,
        source: GrantSource,
        now: Instant,
    ) -> StepResult {
        let identity = match &self.options.grant {
            GrantFlow::Enterprise(provider) if matches!(source, GrantSource::Exchange { .. }) => {
                let method = AuthenticationMethod::choose(None, None, &provider.secret)
                    .map_err(|reason| no_authentication(&provider.issuer, reason))?;
                Arc::new(Identity {
                    issuer: provider.issuer.clone(),
                    token_endpoint: provider.token_endpoint.clone(),
                    client_id: provider.client_id.clone(),
                    secret: provider.secret.clone(),
                    method,
                    reused: false,
                    fallback: false,
                })
            }
            _ => Arc::clone(flow.discovered.identity.as_ref().ok_or(AuthorizationFailure::Closed)?),
        };
        let step = TokenStep {
            source,
            identity,
            stage: Stage::Answer,
            assertion: None,
            nonce: None,
            nonces: 0,
            credential: None,
        };
        self.sign_or_send(flow, Box::new(step), now)
    }

    /// Requests the next signature, or sends the request once all are present.
    fn sign_or_send(&mut self, flow: &Flow, mut step: Box<TokenStep>, now: Instant) -> StepResult {
        let identity = Arc::clone(&step.identity);
        if identity.method == AuthenticationMethod::PrivateKeyJwt
            && step.assertion.is_none()
            && let ClientSecret::PrivateKey { algorithm, key_id } = &identity.secret
        {
            let jti = self.entropy.jti();
            let key = (&**algorithm, key_id.as_deref());
            let unix_time = self.clock.unix_time(now);
            let Identity { client_id, issuer, .. } = &*identity;
            let input = assertion(client_id, issuer, key, &jti, unix_time);
            let key = SigningKey::Client(client_id.clone());
            let action = self.ask_for_signature(key, algorithm.clone(), &input);
            step.stage = Stage::Authentication(action, input);
            return Ok(Next::Wait(Step::Token(step)));
        }
        let endpoint = &identity.token_endpoint;
        if !matches!(step.source, GrantSource::Exchange { .. }) {
            step.nonce = self.nonces.get(endpoint).map(String::from);
            if let Some((action, input)) = self.ask_for_proof("POST", endpoint, None, now) {
                step.stage = Stage::Proof(action, input);
                return Ok(Next::Wait(Step::Token(step)));
            }
        }
        self.send_request(flow, step, None)
    }

    pub(super) fn token_signed(
        &mut self,
        flow: &Flow,
        mut step: Box<TokenStep>,
        signature: &[u8],
        now: Instant,
    ) -> StepResult {
        match core::mem::replace(&mut step.stage, Stage::Answer) {
            Stage::Authentication(_, input) => {
                step.assertion = Some(input.signed(signature));
                self.sign_or_send(flow, step, now)
            }
            Stage::Proof(_, input) => self.send_request(flow, step, Some(input.signed(signature))),
            Stage::Answer => Ok(Next::Wait(Step::Token(step))),
        }
    }

    fn send_request(
        &mut self,
        flow: &Flow,
        mut step: Box<TokenStep>,
        proof: Option<String>,
    ) -> StepResult {
        let Identity { issuer, token_endpoint, client_id, secret, method, .. } = &*step.identity;
        let resource = flow.discovered.resource.as_ref().ok_or(AuthorizationFailure::Closed)?;
        let as_before = Scopes::new();
        let mut scopes = &flow.discovered.scopes;
        let grant = &self.options.grant;
        let grant = match &step.source {
            GrantSource::Code { code, verifier } => TokenGrant::AuthorizationCode {
                code: code.as_str(),
                redirect_uri: grant.redirect_uri(step.identity.fallback).unwrap_or_default(),
                code_verifier: verifier.as_str(),
            },
            GrantSource::Renewal => {
                scopes = &as_before;
                let tokens = self.tokens.as_ref();
                let token = tokens.and_then(|it| it.stored.refresh_token.as_deref());
                TokenGrant::RefreshToken(token.ok_or(AuthorizationFailure::Closed)?)
            }
            GrantSource::ClientCredentials => TokenGrant::ClientCredentials,
            GrantSource::Assertion { assertion } => TokenGrant::JwtBearer { assertion },
            GrantSource::Exchange { id_token } => {
                let server =
                    flow.discovered.identity.as_ref().ok_or(AuthorizationFailure::Closed)?;
                TokenGrant::IdToken { id_token, audience: &server.issuer }
            }
        };
        let mut form = TokenRequest { grant, resource, scopes }.form();
        let shown = ClientProof::new(*method, secret, step.assertion.as_deref());
        let shown = shown.ok_or_else(|| no_authentication(issuer, UNSUPPORTED))?;
        let password = shown.add_to(&mut form, client_id);
        let written = password.as_deref().and_then(|it| it.split_once(' ')).map(|it| it.1.into());
        let mut fields: Vec<Field> = Vec::new();
        fields.push(("content-type".into(), ByteString::from_static(form::MEDIA_TYPE)));
        fields.extend(password.map(|value| ("authorization".into(), value.into())));
        fields.extend(proof.map(|value| ("dpop".into(), value.into())));
        self.post(token_endpoint.clone(), fields, form.as_str().to_string());
        // Each request has its own signatures.
        step.credential = written.or_else(|| step.assertion.take());
        Ok(Next::Wait(Step::Token(step)))
    }

    // ------------------------------------------------------------------ the answer

    pub(super) fn token_answered(
        &mut self,
        flow: &mut Flow,
        mut step: Box<TokenStep>,
        fetched: &Fetched,
        now: Instant,
    ) -> StepResult {
        let exchange = matches!(step.source, GrantSource::Exchange { .. });
        let purpose = match &self.options.dpop {
            _ if exchange => TokenPurpose::Assertion,
            Some(_) if self.options.bound_only => TokenPurpose::BoundOnly,
            Some(_) => TokenPurpose::Dpop,
            None => TokenPurpose::Bearer,
        };
        let answer = TokenResponse::parse(&fetched.body, purpose);
        let failed = |fault| AuthorizationFailure::Token { url: fetched.place(), fault };
        match answer.map_err(|fault| self.without_secrets(fault, &step)) {
            Ok(token) if exchange && fetched.is_success() => {
                let source = GrantSource::Assertion { assertion: token.access_token };
                self.request_token(flow, source, now)
            }
            Ok(token) if fetched.is_success() => self.take_token(flow, &step, token, now),
            Err(AnswerFault::Refused(error))
                if error.asks_for_nonce()
                    && step.nonces < self.options.limits.nonces_max
                    && self.nonces.get(&fetched.url) != step.nonce.as_deref() =>
            {
                step.nonces += 1;
                self.sign_or_send(flow, step, now)
            }
            Err(AnswerFault::Refused(error))
                if fetched.status < 500 && self.must_register_again(flow, &step, &error) =>
            {
                match step.source {
                    GrantSource::Renewal => self.cannot_renew(flow, now),
                    _ => self.find_identity(flow, now),
                }
            }
            Err(fault) if step.is_useless(fetched.status, &fault) => self.cannot_renew(flow, now),
            Err(fault) if fetched.is_success() || matches!(fault, AnswerFault::Refused(_)) => {
                Err(failed(fault))
            }
            Ok(_) | Err(_) => Err(fetched.refusal_without(self.secrets(&step))),
        }
    }

    /// Removes secrets of the request from the fault that the token endpoint reports.
    // MCP 2026-07-28 basic/authorization/security-considerations#token-theft [AUTHC-046]
    fn without_secrets(&self, fault: AnswerFault, step: &TokenStep) -> AnswerFault {
        let AnswerFault::Refused(mut error) = fault else { return fault };
        for secret in self.secrets(step) {
            error.leave_out(secret);
        }
        AnswerFault::Refused(error)
    }

    /// Returns the secrets in a token request.
    fn secrets<'a>(&'a self, step: &'a TokenStep) -> impl Iterator<Item = &'a str> {
        let (sent, verifier) = match &step.source {
            GrantSource::Code { code, verifier } => (Some(code.as_str()), Some(verifier.as_str())),
            GrantSource::Renewal => {
                (self.tokens.as_ref().and_then(|it| it.stored.refresh_token.as_deref()), None)
            }
            GrantSource::ClientCredentials => (None, None),
            GrantSource::Assertion { assertion } => (Some(&**assertion), None),
            GrantSource::Exchange { id_token } => (Some(&**id_token), None),
        };
        let password = match &step.identity.secret {
            ClientSecret::Password(password) => Some(&**password),
            _ => None,
        };
        [sent, verifier, password, step.credential.as_deref()].into_iter().flatten()
    }

    /// Whether this error means that the client must register again before another attempt.
    fn must_register_again(
        &mut self,
        flow: &mut Flow,
        step: &TokenStep,
        error: &ErrorResponse,
    ) -> bool {
        let identity = &step.identity;
        let reused = identity.reused && !flow.registered_again;
        match &*error.error {
            "invalid_client" if reused && self.is_registration(identity) => {
                self.drop_registration();
            }
            "invalid_scope"
                if !step.is_renewal() && self.needs_wider_registration(flow, identity) => {}
            _ => return false,
        }
        flow.registered_again = true;
        true
    }

    /// Whether the identity is the dynamic registration of the client.
    pub(super) fn is_registration(&self, identity: &Identity) -> bool {
        self.client.as_ref().is_some_and(|it| {
            is_same_issuer(&it.issuer, &identity.issuer) && it.client_id == identity.client_id
        })
    }

    /// Stores a new token. It replaces the previous one at once, including its refresh token.
    // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-065]: the response may contain
    // no refresh token.
    fn take_token(
        &mut self,
        flow: &Flow,
        step: &TokenStep,
        token: TokenResponse,
        now: Instant,
    ) -> StepResult {
        let max = self.options.limits.scopes_max;
        let scope = token.scope.map(|it| Scopes::parse(&it, max)).transpose()?;
        let identity = &step.identity;
        let renewed = step.is_renewal();
        let before = self.tokens.take().map(|tokens| tokens.stored).filter(|_| renewed);
        let (old_refresh_token, requested, granted, generation) = match before {
            Some(kept) => {
                let generation = kept.generation.next();
                (kept.refresh_token, kept.requested, kept.granted, generation)
            }
            None => {
                let scopes = flow.discovered.scopes.to_string();
                (None, scopes.clone(), scopes, Generation::first(self.entropy.jti()))
            }
        };
        let unix_time = self.clock.unix_time(now);
        let bound = self.options.dpop.as_ref().filter(|_| token.token_type == TokenType::Dpop);
        let kept = StoredTokens {
            issuer: identity.issuer.clone(),
            token_endpoint: identity.token_endpoint.to_string(),
            client_id: identity.client_id.clone(),
            method: identity.method,
            client_secret: match &identity.secret {
                ClientSecret::Password(password)
                    if identity.reused || self.is_registration(identity) =>
                {
                    Some(password.clone())
                }
                _ => None,
            },
            resource: flow
                .discovered
                .resource
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            access_token: token.access_token,
            token_type: token.token_type,
            refresh_token: token.refresh_token.or(old_refresh_token),
            expires_at: token.expires_in.map(|seconds| unix_time.saturating_add(seconds)),
            requested,
            granted: scope.map_or(granted, |it| it.to_string()),
            thumbprint: bound.map(|key| key.thumbprint()),
            generation,
        };
        self.set_tokens(kept, token.expires_in);
        self.save_tokens();
        Ok(Next::Done(if renewed { Outcome::Renewed } else { Outcome::Authorized }))
    }
}

mcp_sansio::partial_debug! {
    /// Omits the credentials of the client.
    impl Debug for TokenStep { source, identity, stage, nonces, .. }
}

impl core::fmt::Debug for GrantSource {
    /// Omits the secrets.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Code { .. } => "Code",
            Self::Renewal => "Renewal",
            Self::ClientCredentials => "ClientCredentials",
            Self::Assertion { .. } => "Assertion",
            Self::Exchange { .. } => "Exchange",
        })
    }
}
