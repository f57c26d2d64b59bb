//! The identity of the client at an authorization server.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bytestring::ByteString;
use mcp_sansio::Instant;
use mcp_sansio::http::Location;
use mcp_sansio_sync::Arc;

use super::super::exchanges::Fetched;
use super::super::tokens::Tokens;
use super::super::{
    ActionFailure, ActionId, AuthorizationAction, AuthorizationClient, AuthorizationFailure,
    ClientSecret, Credential, CredentialKey,
};
use super::token::GrantSource;
use super::{Flow, Goal, Next, Outcome, Step, StepResult, TokenLock};
use crate::client::authentication::{AuthenticationMethod, REGISTERED};
use crate::client::credential::{StoredClient, StoredIssuer, StoredTokens};
use crate::client::metadata::is_same_issuer;
use crate::client::registration::{Registration, RegistrationRequest, method_to_register};
use crate::client::scopes::Scopes;
use crate::client::token::GrantType;
use crate::discovery::endpoint;
use crate::{AnswerFault, AuthorizationServerMetadata, MetadataFault, ResourceUri};

/// The identity of a client at one authorization server.
// MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location
// [AUTHC-039]: its credentials go only to this token endpoint.
#[derive(Debug)]
pub(super) struct Identity {
    /// The authorization server.
    pub(super) issuer: String,
    pub(super) token_endpoint: Location,
    pub(super) client_id: String,
    pub(super) secret: ClientSecret,
    pub(super) method: AuthenticationMethod,
    /// Whether it is a dynamic registration from an earlier flow, of this process or another one.
    pub(super) reused: bool,
    /// Whether it uses the other redirect URI.
    pub(super) fallback: bool,
}

/// A registration in progress.
#[derive(Debug)]
pub(super) struct PendingRegistration {
    endpoint: Location,
    /// Whether the body has the other redirect URI.
    fallback: bool,
    /// Whether to try the other redirect URI as well.
    or_fallback: bool,
    method: AuthenticationMethod,
    /// Whether to try the registration of a public client as well.
    or_public: bool,
    /// Whether the body asks for refresh tokens.
    refresh: bool,
    /// Whether to try a registration that does not, as the metadata lists no such grant.
    or_no_refresh: bool,
    /// The scopes to register.
    scopes: Scopes,
    /// Whether the body has them.
    with_scopes: bool,
}

impl PendingRegistration {
    /// Changes what the authorization server may have refused. Returns `false` if there is nothing
    /// left to change.
    fn relax(&mut self, fault: &AnswerFault) -> bool {
        // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-035]
        if let AnswerFault::RedirectUri(_) = fault {
            self.fallback |= self.or_fallback;
            return core::mem::take(&mut self.or_fallback);
        }
        // Some authorization servers refuse the grants that they do not list. Others list too few.
        // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-063]
        if core::mem::take(&mut self.or_no_refresh) {
            self.refresh = false;
            return true;
        }
        // Some authorization servers register no scopes, or only those of a list.
        if self.with_scopes {
            self.with_scopes = false;
            return true;
        }
        // Some that list no methods do not accept the default of RFC 8414.
        let metadata = matches!(fault, AnswerFault::Refused(error) if error.error == "invalid_client_metadata");
        if !self.or_public || !metadata {
            return false;
        }
        self.or_public = false;
        self.method = AuthenticationMethod::None;
        self.with_scopes = !self.scopes.is_empty();
        true
    }
}

/// The data that an identity is created from.
struct KnownClient {
    client_id: String,
    secret: ClientSecret,
    /// The method of the registration.
    method: Option<AuthenticationMethod>,
    reused: bool,
    fallback: bool,
}

impl KnownClient {
    /// Returns a client that the application has configured.
    const fn new(client_id: String, secret: ClientSecret) -> Self {
        Self { client_id, secret, method: None, reused: false, fallback: false }
    }

    fn registered(client: &StoredClient, reused: bool, fallback: bool) -> Self {
        Self {
            client_id: client.client_id.clone(),
            secret: client.secret(),
            method: Some(client.method),
            reused,
            fallback,
        }
    }
}

impl AuthorizationClient {
    /// Determines the identity of the client.
    // MCP 2025-11-25 basic/authorization#client-registration-approaches [AUTHC-027]
    // MCP 2026-07-28 basic/authorization/index#client-registration [AUTHC-026]
    pub(super) fn find_identity(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        let Some(metadata) = flow.discovered.metadata.clone() else {
            return self.next_issuer(flow);
        };
        let issuer = &metadata.issuer;
        if let Some(at) = self.registered_at(issuer) {
            let client = &self.options.registered[at];
            if self.bound[at].is_none() && self.options.shows_credential(client) {
                return Ok(self.load_issuer_of(at));
            }
            let (client_id, secret) = (client.client_id.clone(), client.secret.clone());
            self.bound[at] = Some(issuer.clone());
            return self.identified(flow, &metadata, KnownClient::new(client_id, secret), now);
        }
        // MCP 2026-07-28 basic/authorization/client-registration#advertising-cimd-support [AUTHC-031]
        if metadata.client_id_metadata_document_supported
            && let Some((client_id, secret)) = self.options.metadata_document.clone()
        {
            return self.identified(flow, &metadata, KnownClient::new(client_id, secret), now);
        }
        let endpoint = match self.options.registration {
            Some(_) => metadata.registration_endpoint(),
            None => Ok(None),
        };
        let endpoint = endpoint.map_err(|fault| failure_from_metadata(issuer, fault))?;
        if endpoint.is_none() {
            let last_failure = self.no_identity(issuer);
            flow.discovered.last_failure.get_or_insert(last_failure);
            return self.next_issuer(flow);
        }
        if self.client.as_ref().is_some_and(|it| is_same_issuer(&it.issuer, issuer)) {
            return self.register(flow, now);
        }
        let action = self.actions.next_id();
        self.actions.push(AuthorizationAction::Load(action, CredentialKey::Client(issuer.clone())));
        Ok(Next::Wait(Step::LoadClient(action)))
    }

    /// Returns the registered client that belongs to this authorization server, or is not bound to
    /// one yet.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036] [AUTHC-037] [AUTHC-038]
    fn registered_at(&self, issuer: &str) -> Option<usize> {
        let bound = self
            .bound
            .iter()
            .position(|it| it.as_deref().is_some_and(|it| is_same_issuer(it, issuer)));
        bound.or_else(|| self.bound.iter().position(Option::is_none))
    }

    /// Loads the issuer that a registered client was used with before, in any process: its
    /// credential goes to no other issuer.
    pub(super) fn load_issuer_of(&mut self, at: usize) -> Next {
        let action = self.actions.next_id();
        let key = CredentialKey::Issuer(self.options.registered[at].client_id.clone());
        self.actions.push(AuthorizationAction::Load(action, key));
        Next::Wait(Step::LoadIssuer(action, at))
    }

    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036] [AUTHC-037]
    pub(super) fn issuer_loaded(
        &mut self,
        flow: &mut Flow,
        at: usize,
        kept: Option<&Credential>,
        now: Instant,
    ) -> StepResult {
        // An unreadable value may name any issuer, so the client belongs to none then.
        let kept = kept.map(|it| StoredIssuer::read(it).map_or_else(String::new, |it| it.issuer));
        let Some(metadata) = &flow.discovered.metadata else {
            // The flow renews a token. Without an issuer it is not the token of this client: a
            // dynamically registered client may have had the same id.
            return match kept {
                Some(issuer) => {
                    self.bound[at] = Some(issuer);
                    self.renew(flow, now)
                }
                None => self.cannot_renew(flow, now),
            };
        };
        let issuer = kept.unwrap_or_else(|| {
            let key = CredentialKey::Issuer(self.options.registered[at].client_id.clone());
            let kept = StoredIssuer { issuer: metadata.issuer.clone() };
            self.actions.push(AuthorizationAction::Save(key, kept.to_credential()));
            kept.issuer
        });
        self.bound[at] = Some(issuer);
        self.find_identity(flow, now)
    }

    fn no_identity(&self, issuer: &str) -> AuthorizationFailure {
        let issuer = issuer.into();
        match self.options.registered.first() {
            Some(client) => {
                let client_id = client.client_id.clone();
                AuthorizationFailure::RegisteredElsewhere { issuer, client_id }
            }
            None => AuthorizationFailure::NoIdentity { issuer },
        }
    }

    fn identified(
        &mut self,
        flow: &mut Flow,
        metadata: &AuthorizationServerMetadata,
        known: KnownClient,
        now: Instant,
    ) -> StepResult {
        let KnownClient { client_id, secret, method, reused, fallback } = known;
        let issuer = metadata.issuer.clone();
        let supported = metadata.token_endpoint_auth_methods_supported.as_deref();
        let registered = method.map(AuthenticationMethod::as_str);
        let method = AuthenticationMethod::choose(supported, registered, &secret);
        let method = method.map_err(|reason| no_authentication(&issuer, reason))?;
        let token_endpoint = metadata.token_endpoint();
        let token_endpoint = token_endpoint
            .map_err(|fault| AuthorizationFailure::Metadata { url: issuer.clone(), fault })?;
        if self.tokens.as_ref().is_some_and(|it| !is_same_issuer(&it.stored.issuer, &issuer)) {
            self.leave_issuer();
        }
        self.check_place(&token_endpoint)?;
        let identity =
            Identity { issuer, token_endpoint, client_id, secret, method, reused, fallback };
        flow.discovered.identity = Some(Arc::new(identity));
        self.ask_for_token(flow, now)
    }

    // ------------------------------------------------------------------ registration

    pub(super) fn client_loaded(
        &mut self,
        flow: &mut Flow,
        kept: Option<&Credential>,
        now: Instant,
    ) -> StepResult {
        let kept = kept.and_then(StoredClient::read);
        let Some(metadata) = flow.discovered.metadata.clone() else {
            // The flow renews a token.
            let issuer = self.tokens.as_ref().map(|it| &it.stored.issuer);
            self.client =
                kept.filter(|it| issuer.is_some_and(|issuer| is_same_issuer(&it.issuer, issuer)));
            return self.renew_as_registered(flow, true, now);
        };
        self.client = kept.filter(|it| is_same_issuer(&it.issuer, &metadata.issuer));
        self.register(flow, now)
    }

    /// Registers the client, unless an existing registration still fits.
    // MCP 2025-11-25 basic/authorization#dynamic-client-registration [AUTHC-010]
    fn register(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        let Some(metadata) = flow.discovered.metadata.clone() else {
            return self.next_issuer(flow);
        };
        // A renewal needs no redirect URI. So the client of the tokens can renew them even if its
        // registration does not fit this process, or was replaced.
        if !flow.registered_again
            && self.renewable(flow, &metadata.issuer).is_some()
            && let Some(secret) = self.registered_secret()
        {
            return match flow.lock {
                TokenLock::NotNeeded => Ok(self.lock_tokens(flow)),
                _ => self.renew_with(flow, secret, true, now),
            };
        }
        self.unlock_tokens(flow);
        let method = self.method_to_register(&metadata)?;
        let Some(endpoint) = metadata.registration_endpoint().ok().flatten() else {
            return self.next_issuer(flow);
        };
        let kept = self.client.as_ref().filter(|_| !flow.registered_again);
        let or_fallback = self.options.grant.redirect_uri(true).is_some();
        for fallback in [false, true].into_iter().filter(|it| or_fallback || !it) {
            let request = self.registration_key(method, fallback)?;
            let unix_time = self.clock.unix_time(now);
            if let Some(kept) = kept.filter(|it| it.fits(&request, unix_time)) {
                let known = KnownClient::registered(kept, true, fallback);
                return self.identified(flow, &metadata, known, now);
            }
        }
        self.check_place(&endpoint)?;
        // Many authorization servers grant a client only the scopes that it has registered.
        let mut scopes = self.select_scopes(flow)?;
        let before = self.client.as_ref();
        if let Some(before) = before.filter(|it| is_same_issuer(&it.issuer, &metadata.issuer)) {
            scopes.extend(before.scope.split(' '), self.options.limits.scopes_max)?;
        }
        let silent = metadata.token_endpoint_auth_methods_supported.is_none();
        let grants = metadata.grant_types_supported.as_deref();
        let refresh = GrantType::RefreshToken.as_str();
        self.send_registration(PendingRegistration {
            endpoint,
            fallback: false,
            or_fallback,
            method,
            or_public: silent,
            refresh: true,
            or_no_refresh: grants.is_some_and(|it| it.iter().all(|grant| grant != refresh)),
            with_scopes: !scopes.is_empty(),
            scopes,
        })
    }

    /// Returns the method that the first attempt registers.
    fn method_to_register(
        &self,
        metadata: &AuthorizationServerMetadata,
    ) -> Result<AuthenticationMethod, AuthorizationFailure> {
        let supported = metadata.token_endpoint_auth_methods_supported.as_deref();
        let method = method_to_register(supported, false);
        method.map_err(|reason| no_authentication(&metadata.issuer, reason))
    }

    /// Returns the text that a stored registration is found by.
    fn registration_key(
        &self,
        method: AuthenticationMethod,
        fallback: bool,
    ) -> Result<String, AuthorizationFailure> {
        self.registration_body(method, fallback, &Scopes::new(), true)
    }

    fn registration_body(
        &self,
        method: AuthenticationMethod,
        fallback: bool,
        scopes: &Scopes,
        refresh: bool,
    ) -> Result<String, AuthorizationFailure> {
        let metadata = self.options.registration.as_ref().ok_or(AuthorizationFailure::Closed)?;
        let redirect_uri = self.options.grant.redirect_uri(fallback);
        let redirect_uris: Vec<String> = redirect_uri.map(String::from).into_iter().collect();
        let request = RegistrationRequest {
            metadata,
            redirect_uris: &redirect_uris,
            method,
            scopes,
            refresh,
        };
        request.to_json().map_err(AuthorizationFailure::RedirectUri)
    }

    fn send_registration(&mut self, pending: PendingRegistration) -> StepResult {
        let none = Scopes::new();
        let scopes = if pending.with_scopes { &pending.scopes } else { &none };
        let PendingRegistration { method, fallback, refresh, .. } = pending;
        let body = self.registration_body(method, fallback, scopes, refresh)?;
        let json = ("content-type".into(), ByteString::from_static("application/json"));
        self.post(pending.endpoint.clone(), [json], body);
        Ok(Next::Wait(Step::Registration(Box::new(pending))))
    }

    /// Whether another registration could help after the authorization server refused the scopes of
    /// a request: the client was registered in an earlier flow, for others.
    pub(super) fn needs_wider_registration(&self, flow: &Flow, identity: &Identity) -> bool {
        let registered = self.client.as_ref().filter(|_| self.is_registration(identity));
        let max = self.options.limits.scopes_max;
        !flow.registered_again
            && identity.reused
            && registered.is_some_and(|it| {
                let known = Scopes::parse(&it.scope, max);
                known.is_ok_and(|known| !known.contains_all(&flow.discovered.scopes))
            })
    }

    // MCP 2026-07-28 basic/authorization/client-registration#application-type-and-redirect-uri-constraints [AUTHC-035]:
    // a refusal is reported unchanged.
    pub(super) fn registered(
        &mut self,
        flow: &mut Flow,
        mut step: PendingRegistration,
        fetched: &Fetched,
        now: Instant,
    ) -> StepResult {
        let Some(metadata) = flow.discovered.metadata.clone() else {
            return self.next_issuer(flow);
        };
        let url = fetched.place();
        let answer = match Registration::parse(&fetched.body) {
            Err(fault) if (400..500).contains(&fetched.status) && step.relax(&fault) => {
                return self.send_registration(step);
            }
            Ok(_) | Err(AnswerFault::TooLong | AnswerFault::Malformed | AnswerFault::Client)
                if !fetched.is_success() =>
            {
                return Err(fetched.refusal());
            }
            Ok(answer) => answer,
            Err(fault) => return Err(AuthorizationFailure::Registration { url, fault }),
        };
        let supported = metadata.token_endpoint_auth_methods_supported.as_deref();
        let method = match answer.method.as_deref() {
            // Some servers name no method and issue no password: the client is public then.
            None if answer.client_secret.is_none() => AuthenticationMethod::None,
            // Others issue one to a client that asked for none: to be used.
            None => method_to_register(supported, true).unwrap_or(step.method),
            Some(name) => AuthenticationMethod::parse(name)
                .ok_or_else(|| no_authentication(&metadata.issuer, REGISTERED))?,
        };
        let redirect_uri = self.options.grant.redirect_uri(step.fallback).map(String::from);
        let first = self.method_to_register(&metadata)?;
        let kept = StoredClient {
            issuer: metadata.issuer.clone(),
            client_id: answer.client_id,
            client_secret: answer.client_secret,
            secret_expires_at: answer.secret_expires_at,
            method,
            redirect_uris: answer
                .redirect_uris
                .unwrap_or_else(|| redirect_uri.into_iter().collect()),
            request: self.registration_key(first, step.fallback)?,
            scope: step.scopes.to_string(),
        };
        let key = CredentialKey::Client(kept.issuer.clone());
        self.actions.push(AuthorizationAction::Save(key, kept.to_credential()));
        let known = KnownClient::registered(&kept, false, step.fallback);
        self.client = Some(kept);
        self.identified(flow, &metadata, known, now)
    }

    /// Drops the registration, which the authorization server no longer knows.
    pub(super) fn drop_registration(&mut self) {
        if let Some(client) = self.client.take() {
            self.actions.push(AuthorizationAction::Remove(CredentialKey::Client(client.issuer)));
        }
    }

    /// Drops the registration after the user did not return. An authorization server that no longer
    /// knows the client tells only the user.
    pub(super) fn doubt_registration(&mut self, flow: &Flow) {
        if flow.discovered.identity.as_ref().is_some_and(|it| it.reused) {
            self.drop_registration();
        }
    }
}

pub(super) fn no_authentication(issuer: &str, reason: &'static str) -> AuthorizationFailure {
    AuthorizationFailure::ClientAuthentication { issuer: issuer.into(), reason }
}

/// Returns the failure for invalid metadata of an issuer whose URL is no longer known.
pub(super) fn failure_from_metadata(issuer: &str, fault: MetadataFault) -> AuthorizationFailure {
    AuthorizationFailure::Metadata { url: issuer.into(), fault }
}

// ------------------------------------------------------------------ existing tokens: loaded from the store, or to be renewed

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
            Goal::Replace | Goal::Authorize { .. } | Goal::StepUp => match flow.lock {
                TokenLock::NotNeeded => self.find_resource(flow),
                _ => self.find_identity(flow, now),
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
        self.renew_with(flow, secret, false, now)
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
        // Also without a password: the answer may be that the registration is unknown.
        if self.client.is_none() && !looked {
            let action = self.actions.next_id();
            let key = CredentialKey::Client(tokens.stored.issuer.clone());
            self.actions.push(AuthorizationAction::Load(action, key));
            return Ok(Next::Wait(Step::LoadClient(action)));
        }
        match self.registered_secret() {
            Some(secret) => self.renew_with(flow, secret, true, now),
            None => self.cannot_renew(flow, now),
        }
    }

    /// Returns the credential of the dynamically registered client that the tokens belong to, if it
    /// is known.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
    fn registered_secret(&self) -> Option<ClientSecret> {
        let tokens = &self.tokens.as_ref()?.stored;
        if tokens.method == AuthenticationMethod::None {
            return Some(ClientSecret::None);
        }
        // Earlier versions stored it with the registration only.
        let client = self.client.as_ref().filter(|it| {
            is_same_issuer(&it.issuer, &tokens.issuer) && it.client_id == tokens.client_id
        });
        let stored = tokens.client_secret.clone().map(ClientSecret::Password);
        stored.or_else(|| client.map(StoredClient::secret))
    }

    /// `reused`: the client was registered dynamically.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
    fn renew_with(
        &mut self,
        flow: &mut Flow,
        secret: ClientSecret,
        reused: bool,
        now: Instant,
    ) -> StepResult {
        let Some(tokens) = &self.tokens else { return Ok(Next::Done(Outcome::Unchanged)) };
        let kept = &tokens.stored;
        let resource = ResourceUri::from_metadata(&kept.resource, &self.server);
        // The metadata may name another endpoint than before.
        let token_endpoint = match &flow.discovered.metadata {
            Some(metadata) => metadata.token_endpoint().ok(),
            None => endpoint(&kept.token_endpoint).ok(),
        };
        let (Some(token_endpoint), Ok(resource)) = (token_endpoint, resource) else {
            return self.cannot_renew(flow, now);
        };
        self.check_place(&token_endpoint)?;
        let identity = Identity {
            issuer: kept.issuer.clone(),
            token_endpoint,
            client_id: kept.client_id.clone(),
            secret,
            method: kept.method,
            reused,
            fallback: false,
        };
        flow.discovered.identity = Some(Arc::new(identity));
        flow.discovered.resource = Some(resource);
        self.request_token(flow, GrantSource::Renewal, now)
    }

    /// Drops the refresh token, which is no longer valid. An authorization continues without it. If
    /// the flow was to renew the token only, the next 401 starts an authorization; if the grant
    /// needs no user, this flow continues with one.
    pub(super) fn cannot_renew(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        self.drop_refresh_token();
        self.unlock_tokens(flow);
        if flow.discovered.metadata.is_some() {
            return self.find_identity(flow, now);
        }
        flow.goal = match (flow.goal, self.options.grant.needs_user()) {
            (Goal::Renew { then: true }, _) => Goal::Authorize { may_renew: false },
            (_, true) => return Ok(Next::Done(Outcome::Unchanged)),
            (_, false) => Goal::Replace,
        };
        self.find_resource(flow)
    }
}
