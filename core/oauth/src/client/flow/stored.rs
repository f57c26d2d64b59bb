//! Existing tokens: loaded from the store, or to be renewed.

use alloc::string::{String, ToString};

use mcp_sansio::Instant;
use mcp_sansio_sync::Arc;

use crate::ResourceUri;
use crate::client_authentication::AuthenticationMethod;
use crate::credential::StoredTokens;
use crate::endpoint::endpoint;
use crate::metadata::is_same_issuer;

use super::super::tokens::Tokens;
use super::super::{
    ActionFailure, ActionId, AuthorizationAction, AuthorizationClient, ClientSecret, Credential,
    CredentialKey,
};
use super::identity::Identity;
use super::token::GrantSource;
use super::{Flow, Goal, Next, Outcome, Step, StepResult, TokenLock};

impl AuthorizationClient {
    fn tokens_key(&self) -> CredentialKey {
        CredentialKey::Tokens(self.server.to_string())
    }

    pub(super) fn load_tokens(&mut self) -> Next {
        self.loaded = true;
        let action = self.actions.next_id();
        self.actions.push(AuthorizationAction::Load(action, self.tokens_key()));
        Next::Wait(Step::LoadTokens(action))
    }

    /// Locks the stored tokens and loads them.
    pub(super) fn lock_tokens(&mut self, flow: &mut Flow) -> Next {
        self.loaded = true;
        let action = self.actions.next_id();
        self.actions.push(AuthorizationAction::Lock(action, self.tokens_key()));
        flow.lock = TokenLock::Requested(action);
        Next::Wait(Step::LoadTokens(action))
    }

    /// Releases the lock on the stored tokens, which others wait for.
    pub(super) fn unlock_tokens(&mut self, flow: &mut Flow) {
        if let TokenLock::Requested(action) = flow.lock {
            self.actions.push(AuthorizationAction::Unlock(action));
            flow.lock = TokenLock::Gone;
        }
    }

    /// Handles a loaded credential. A failure counts as an empty store, because a token can be
    /// requested again.
    pub(in super::super) fn flow_loaded(
        &mut self,
        action: ActionId,
        credential: Result<Option<Credential>, ActionFailure>,
        now: Instant,
    ) {
        let Some((mut flow, step)) = self.take_flow_of(action) else { return };
        if let Step::LoadIssuer(_, at) = step {
            // Without the stored issuer the flow fails: the credential could go to the wrong
            // authorization server.
            return self.advance(flow, now, |client, flow| {
                client.issuer_loaded(flow, at, credential?.as_ref(), now)
            });
        }
        if credential.is_err() {
            flow.lock.fail();
        }
        let credential = credential.ok().flatten();
        self.advance(flow, now, |client, flow| match step {
            Step::LoadTokens(_) => client.tokens_loaded(flow, credential.as_ref(), now),
            Step::LoadClient(_) => client.client_loaded(flow, credential.as_ref(), now),
            step => Ok(Next::Wait(step)),
        });
    }

    pub(super) fn tokens_loaded(
        &mut self,
        flow: &mut Flow,
        credential: Option<&Credential>,
        now: Instant,
    ) -> StepResult {
        let kept = credential.and_then(StoredTokens::read).filter(|it| self.is_usable(it));
        let replaced =
            kept.as_ref().is_some_and(|it| self.generations.has_replaced(&it.generation));
        if replaced {
            // The tokens that replaced them were not saved.
            self.save_tokens();
        }
        let ours = self.tokens.as_ref().map(|it| &*it.stored.access_token);
        let other = kept.filter(|it| !replaced && Some(&*it.access_token) != ours);
        let is_other = other.is_some();
        if let Some(kept) = other {
            let options = &self.options;
            for (client, bound) in options.registered.iter().zip(&mut self.bound) {
                let public = !options.shows_credential(client);
                if public && client.client_id == kept.client_id && bound.is_none() {
                    *bound = Some(kept.issuer.clone());
                }
            }
            self.set_tokens(kept, None);
        }
        match flow.goal {
            Goal::Load { .. } => Ok(Next::Done(Outcome::Loaded)),
            _ if is_other && self.due(false, now).is_none() => Ok(Next::Done(Outcome::Renewed)),
            Goal::Renew { .. } => self.renew(flow, now),
            Goal::Replace | Goal::Authorize { .. } => match flow.lock {
                TokenLock::NotNeeded => self.find_resource(flow),
                _ => self.ask_for_token(flow, now),
            },
        }
    }

    /// Whether these tokens are for this server and the current key.
    fn is_usable(&self, kept: &StoredTokens) -> bool {
        let resource = ResourceUri::from_metadata(&kept.resource, &self.server);
        let thumbprint = self.options.dpop.as_ref().map(|key| key.thumbprint());
        let key = match &kept.thumbprint {
            Some(_) => kept.thumbprint == thumbprint,
            None => thumbprint.is_none() || !self.options.bound_only,
        };
        resource.is_ok() && key
    }

    pub(super) fn set_tokens(&mut self, kept: StoredTokens, expires_in: Option<u64>) {
        self.token_count += 1;
        self.generations.enter(&kept.generation);
        let renew_before = self.options.timeouts.renew_before;
        self.tokens = Some(Tokens::new(kept, self.token_count, expires_in, renew_before));
    }

    /// Saves the current tokens, replacing the previous ones.
    pub(super) fn save_tokens(&mut self) {
        if let Some(tokens) = &self.tokens {
            let credential = tokens.stored.to_credential();
            self.actions.push(AuthorizationAction::Save(self.tokens_key(), credential));
        }
    }

    pub(in super::super) fn drop_tokens(&mut self) {
        self.tokens = None;
        self.actions.push(AuthorizationAction::Remove(self.tokens_key()));
    }

    /// Drops the refresh token, which is no longer valid.
    pub(super) fn drop_refresh_token(&mut self) {
        if let Some(tokens) = &mut self.tokens
            && tokens.stored.refresh_token.take().is_some()
        {
            self.save_tokens();
        }
    }

    // ------------------------------------------------------------------ renewal

    /// Renews the token at its token endpoint.
    pub(super) fn renew(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        let Some(tokens) = &self.tokens else { return Ok(Next::Done(Outcome::Unchanged)) };
        let kept = &tokens.stored;
        let options = &self.options;
        let mut registered = options.registered.iter().zip(&self.bound);
        let same = |issuer: &Option<String>| {
            issuer.as_ref().is_none_or(|it| is_same_issuer(it, &kept.issuer))
        };
        let registered =
            registered.position(|(it, bound)| it.client_id == kept.client_id && same(bound));
        let document = options.metadata_document.as_ref().filter(|it| it.0 == kept.client_id);
        let secret = match (registered, document) {
            (Some(at), _) => {
                let client = &options.registered[at];
                if self.bound[at].is_none() && options.shows_credential(client) {
                    return Ok(self.load_issuer_of(at));
                }
                client.secret.clone()
            }
            (None, Some((_, secret))) => secret.clone(),
            (None, None) => return self.renew_as_registered(flow, false, now),
        };
        self.renew_with(flow, secret, now)
    }

    /// Renews the token of a dynamically registered client. `looked`: its stored registration was
    /// already loaded.
    pub(super) fn renew_as_registered(
        &mut self,
        flow: &mut Flow,
        looked: bool,
        now: Instant,
    ) -> StepResult {
        let Some(tokens) = &self.tokens else { return Ok(Next::Done(Outcome::Unchanged)) };
        let kept = &tokens.stored;
        if kept.method == AuthenticationMethod::None {
            return self.renew_with(flow, ClientSecret::None, now);
        }
        match &self.client {
            Some(client)
                if is_same_issuer(&client.issuer, &kept.issuer)
                    && client.client_id == kept.client_id =>
            {
                let secret = client.secret();
                self.renew_with(flow, secret, now)
            }
            None if !looked => {
                let action = self.actions.next_id();
                let key = CredentialKey::Client(kept.issuer.clone());
                self.actions.push(AuthorizationAction::Load(action, key));
                Ok(Next::Wait(Step::LoadClient(action)))
            }
            _ => self.cannot_renew(flow),
        }
    }

    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
    fn renew_with(&mut self, flow: &mut Flow, secret: ClientSecret, now: Instant) -> StepResult {
        let Some(tokens) = &self.tokens else { return Ok(Next::Done(Outcome::Unchanged)) };
        let kept = &tokens.stored;
        let resource = ResourceUri::from_metadata(&kept.resource, &self.server);
        let (Ok(token_endpoint), Ok(resource)) = (endpoint(&kept.token_endpoint), resource) else {
            return self.cannot_renew(flow);
        };
        let identity = Identity {
            issuer: kept.issuer.clone(),
            token_endpoint,
            client_id: kept.client_id.clone(),
            secret,
            method: kept.method,
            reused: true,
        };
        flow.discovered.identity = Some(Arc::new(identity));
        flow.discovered.resource = Some(resource);
        self.request_token(flow, GrantSource::Renewal, now)
    }

    /// Drops the refresh token, which is no longer valid. The next 401 starts an authorization; if
    /// the grant needs no user, this flow continues with one.
    pub(super) fn cannot_renew(&mut self, flow: &mut Flow) -> StepResult {
        self.drop_refresh_token();
        self.unlock_tokens(flow);
        flow.goal = match (flow.goal, self.options.grant.needs_user()) {
            (Goal::Renew { then: true }, _) => Goal::Authorize { may_renew: false },
            (_, true) => return Ok(Next::Done(Outcome::Unchanged)),
            (_, false) => Goal::Replace,
        };
        self.find_resource(flow)
    }
}
