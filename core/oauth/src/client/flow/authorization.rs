//! The choice of grant and scopes for a token request.

use alloc::boxed::Box;
use alloc::string::ToString;

use mcp_sansio::Instant;

use crate::form::Form;
use crate::metadata::is_same_issuer;
use crate::scopes::{ScopeSelection, Scopes};
use crate::{AuthorizationResponse, CodeVerifier, ExpectedResponse, ResponseFault, State};

use super::super::fetch::place;
use super::super::{
    ActionFailure, ActionId, AssertionRequest, AuthorizationAction, AuthorizationClient,
    AuthorizationFailure, AuthorizationRequest, GrantFlow,
};
use super::identity::failure_from_metadata;
use super::token::GrantSource;
use super::{Flow, Goal, Next, Step, StepResult, TokenLock};

/// A pending sign-in of the user, with the values to check the response against.
// MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-056]
#[derive(Debug)]
pub(super) struct SignIn {
    pub(super) action: ActionId,
    state: State,
    verifier: CodeVerifier,
    issuer: alloc::string::String,
    iss_supported: bool,
}

impl AuthorizationClient {
    pub(super) fn ask_for_token(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        let identity = flow.discovered.identity.as_ref();
        let same = |issuer: &str, client_id: &str| {
            identity
                .is_some_and(|it| is_same_issuer(&it.issuer, issuer) && it.client_id == client_id)
        };
        let may_renew = matches!(flow.goal, Goal::Authorize { may_renew: true });
        // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-036]
        let renewable = self.tokens.as_ref().is_some_and(|tokens| {
            let kept = &tokens.stored;
            kept.refresh_token.is_some() && same(&kept.issuer, &kept.client_id)
        });
        if may_renew && renewable {
            return match flow.lock {
                TokenLock::NotNeeded => Ok(self.lock_tokens(flow)),
                _ => self.request_token(flow, GrantSource::Renewal, now),
            };
        }
        self.ask_by_grant(flow, now)
    }

    /// Requests a token with the configured grant.
    pub(super) fn ask_by_grant(&mut self, flow: &mut Flow, now: Instant) -> StepResult {
        self.unlock_tokens(flow);
        flow.discovered.scopes = self.select_scopes(flow)?;
        match &self.options.grant {
            GrantFlow::AuthorizationCode { .. } => self.send_user(flow),
            GrantFlow::ClientCredentials => {
                self.request_token(flow, GrantSource::ClientCredentials, now)
            }
            GrantFlow::Assertion => {
                let issuer = flow.discovered.identity.as_ref().map(|it| it.issuer.clone());
                self.ask_for_assertion(flow, issuer.unwrap_or_default())
            }
            GrantFlow::Enterprise(provider) => {
                let audience = provider.client_id.clone();
                self.ask_for_assertion(flow, audience)
            }
        }
    }

    // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHC-049] [AUTHC-050] [AUTHC-051]
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-055]
    pub(super) fn select_scopes(&self, flow: &Flow) -> Result<Scopes, AuthorizationFailure> {
        let max = self.options.limits.scopes_max;
        let mut held = Scopes::new();
        let metadata = flow.discovered.metadata.as_ref();
        // Before the client is identified, there may be tokens of another authorization server.
        if let (Some(tokens), Some(metadata)) = (&self.tokens, metadata)
            && is_same_issuer(&tokens.stored.issuer, &metadata.issuer)
        {
            let texts = [&tokens.stored.requested, &tokens.stored.granted];
            held.extend(texts.into_iter().flat_map(|it| it.split(' ')), max)?;
        }
        Ok(Scopes::select(&ScopeSelection {
            revision: self.options.revision,
            challenged: flow.challenge.as_ref().and_then(|it| it.scope.as_deref()),
            resource: flow.discovered.resource_scopes.as_deref(),
            issuer: metadata.and_then(|it| it.scopes_supported.as_deref()),
            wanted: &self.options.scopes,
            held: &held,
            // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-064]
            offline_access: self.options.offline_access && self.options.grant.needs_user(),
            max,
        })?)
    }

    // ------------------------------------------------------------------ a user

    fn send_user(&mut self, flow: &Flow) -> StepResult {
        let found = &flow.discovered;
        let (Some(metadata), Some(identity), Some(resource), Some(redirect_uri)) =
            (&found.metadata, &found.identity, &found.resource, self.options.grant.redirect_uri())
        else {
            return Err(AuthorizationFailure::Closed);
        };
        let redirect_uri = redirect_uri.to_string();
        let issuer = metadata.issuer.clone();
        let endpoint = metadata
            .authorization_endpoint()
            .map_err(|fault| failure_from_metadata(&issuer, fault))?;
        self.check_place(&endpoint)?;
        let verifier = CodeVerifier::new(self.entropy.secret());
        let state = State::new(self.entropy.secret());
        let mut form = Form::new();
        form.push("response_type", "code");
        form.push("client_id", &identity.client_id);
        form.push("redirect_uri", &redirect_uri);
        if !found.scopes.is_empty() {
            form.push("scope", &found.scopes.to_string());
        }
        // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
        form.push("state", state.as_str());
        // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-011] [AUTHC-012]
        form.push("code_challenge", &verifier.challenge());
        form.push("code_challenge_method", "S256");
        // MCP 2026-07-28 basic/authorization/index#resource-parameter-implementation [AUTHC-040]
        form.push("resource", resource.as_str());
        let url = form
            .appended_to(&endpoint)
            .map_err(|fault| AuthorizationFailure::Endpoint { url: place(&endpoint), fault })?;
        let id = self.actions.next_id();
        let request = AuthorizationRequest { id, url, redirect_uri, issuer: issuer.clone() };
        self.actions.push(AuthorizationAction::Authorize(request));
        let iss_supported = metadata.authorization_response_iss_parameter_supported;
        let sign_in = SignIn { action: id, state, verifier, issuer, iss_supported };
        Ok(Next::Wait(Step::SignIn(Box::new(sign_in))))
    }

    /// Handles the redirect of the user. Returns `false` if it does not answer this request.
    pub(in super::super) fn user_came_back(
        &mut self,
        action: ActionId,
        redirect: Result<&str, ActionFailure>,
        now: Instant,
    ) -> bool {
        // A malformed redirect does not come from the authorization server.
        let response = match redirect.map(AuthorizationResponse::parse) {
            Ok(Err(_)) => return false,
            Ok(Ok(response)) => Ok(response),
            Err(failure) => Err(failure),
        };
        let Some((mut flow, step)) = self.take_flow_of(action) else { return false };
        let Step::SignIn(sign_in) = step else {
            flow.step = step;
            self.flow = Some(flow);
            return false;
        };
        // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-048]
        if response.as_ref().is_ok_and(|it| !it.answers(&sign_in.state)) {
            flow.step = Step::SignIn(sign_in);
            self.flow = Some(flow);
            return false;
        }
        self.advance(flow, now, |client, flow| {
            let SignIn { state, verifier, issuer, iss_supported, .. } = *sign_in;
            let expected = ExpectedResponse::new(&state, &issuer, iss_supported);
            // MCP 2026-07-28 basic/authorization/index#authorization-response-validation [AUTHC-057]
            let code = match response?.check(&expected) {
                Err(ResponseFault::Refused(error))
                    if error.error == "invalid_scope"
                        && flow.discovered.identity.as_deref().is_some_and(|identity| {
                            client.needs_wider_registration(flow, identity)
                        }) =>
                {
                    flow.registered_again = true;
                    return client.find_identity(flow, now);
                }
                code => code?,
            };
            client.request_token(flow, GrantSource::Code { code, verifier }, now)
        });
        true
    }

    // ------------------------------------------------------------------ an assertion

    fn ask_for_assertion(&mut self, flow: &Flow, audience: alloc::string::String) -> StepResult {
        let resource =
            flow.discovered.resource.as_ref().map(ToString::to_string).unwrap_or_default();
        let id = self.actions.next_id();
        self.actions.push(AuthorizationAction::Assert(AssertionRequest { id, audience, resource }));
        Ok(Next::Wait(Step::Assertion(id)))
    }

    pub(in super::super) fn asserted(
        &mut self,
        action: ActionId,
        assertion: Result<&str, ActionFailure>,
        now: Instant,
    ) {
        let Some((flow, step)) = self.take_flow_of(action) else { return };
        self.advance(flow, now, |client, flow| {
            if !matches!(step, Step::Assertion(_)) {
                return Ok(Next::Wait(step));
            }
            let assertion = assertion?.to_string();
            let source = match client.options.grant {
                GrantFlow::Enterprise(_) => GrantSource::Exchange { id_token: assertion },
                _ => GrantSource::Assertion { assertion },
            };
            client.request_token(flow, source, now)
        });
    }
}
