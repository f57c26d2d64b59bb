//! The first steps: the discovery of the authorization server.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use bytestring::ByteString;
use mcp_sansio::http::Location;
use mcp_sansio::{Instant, Revision};
use mcp_sansio_sync::Arc;

use crate::discovery::base_issuer;
use crate::metadata::is_same_issuer;
use crate::{
    AuthorizationServerMetadata, DefaultEndpoints, MetadataUrls, ProtectedResourceMetadata,
    ResourceUri,
};

use super::super::fetch::Fetched;
use super::super::{AuthorizationClient, AuthorizationFailure};
use super::{Flow, Next, Step, StepResult};

impl AuthorizationClient {
    /// Requests the metadata of the server, each time again: it may name another authorization
    /// server than before.
    // MCP 2026-07-28 basic/authorization/index#overview [AUTHC-014]
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-037]
    pub(super) fn find_resource(&mut self, flow: &Flow) -> StepResult {
        let named = flow.challenge.as_ref().and_then(|it| it.resource_metadata.as_deref());
        // An invalid or forbidden URL is skipped: there are other URLs to try.
        let named =
            named.filter(|it| Location::parse(it).is_ok_and(|it| self.check_place(&it).is_ok()));
        let urls = MetadataUrls::for_resource(self.options.revision, &self.server, named);
        self.ask_for_resource(urls)
    }

    fn ask_for_resource(&mut self, mut urls: MetadataUrls) -> StepResult {
        if let Some(url) = urls.next() {
            self.get(url)?;
            return Ok(Next::Wait(Step::Resource(urls)));
        }
        // MCP 2025-03-26 basic/authorization#server-metadata-discovery [AUTHC-007]: a server
        // without protected resource metadata follows that revision.
        match MetadataUrls::for_base(&self.server).next() {
            Some(url) => {
                // MCP 2025-03-26 basic/authorization#server-metadata-discovery-headers [HDR-037]
                let revision = ByteString::from_static(Revision::V2025_03_26.as_str());
                self.get_with(url, [("mcp-protocol-version".into(), revision)])?;
                Ok(Next::Wait(Step::Base))
            }
            None => Err(self.no_base_metadata()),
        }
    }

    pub(super) fn resource_answered(
        &mut self,
        flow: &mut Flow,
        urls: MetadataUrls,
        fetched: &Fetched,
    ) -> StepResult {
        if !is_metadata(fetched) {
            return self.ask_for_resource(urls);
        }
        let of = |fault| AuthorizationFailure::Metadata { url: fetched.place(), fault };
        let metadata = ProtectedResourceMetadata::parse(&fetched.body).map_err(of)?;
        flow.discovered.resource = Some(metadata.resource_for(&self.server).map_err(of)?);
        let mut issuers: Vec<String> = metadata.issuers().map_err(of)?.to_vec();
        // The issuer of the current tokens comes first, if the server still names it.
        let known = self.tokens.as_ref().and_then(|tokens| {
            issuers.iter().position(|it| is_same_issuer(it, &tokens.stored.issuer))
        });
        match known {
            Some(at) => issuers[..=at].rotate_right(1),
            None => self.leave_issuer(),
        }
        issuers.truncate(self.options.limits.issuers_max.max(1));
        flow.discovered.issuers = issuers.into_iter();
        flow.discovered.resource_scopes = metadata.scopes_supported;
        self.next_issuer(flow)
    }

    /// Drops the tokens of another authorization server than the current one, which must not get
    /// them. They stay in the store until they are replaced: from them the next process learns
    /// which authorization server a client without a configured issuer belongs to.
    // MCP 2026-07-28 basic/authorization/client-registration#authorization-server-binding [AUTHC-037]
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHC-045]
    pub(super) fn leave_issuer(&mut self) {
        self.tokens = None;
    }

    /// Continues with the next authorization server that the server names.
    // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location [AUTHC-019]
    pub(super) fn next_issuer(&mut self, flow: &mut Flow) -> StepResult {
        while let Some(issuer) = flow.discovered.issuers.next() {
            match self.places_of(&issuer) {
                Ok(urls) => return self.ask_for_issuer(flow, issuer, urls),
                Err(failure) => drop(flow.discovered.last_failure.get_or_insert(failure)),
            }
        }
        let last_failure = flow.discovered.last_failure.take();
        Err(last_failure.unwrap_or_else(|| self.no_base_metadata()))
    }

    /// Returns the metadata URLs of an issuer if they may be requested.
    fn places_of(&self, issuer: &str) -> Result<MetadataUrls, AuthorizationFailure> {
        let urls = MetadataUrls::for_issuer(self.options.revision, issuer)?;
        if let Some(url) = urls.clone().next() {
            self.check_place(&url)?;
        }
        Ok(urls)
    }

    fn ask_for_issuer(
        &mut self,
        flow: &mut Flow,
        issuer: String,
        mut urls: MetadataUrls,
    ) -> StepResult {
        if let Some(url) = urls.next() {
            self.get(url)?;
            return Ok(Next::Wait(Step::Issuer(issuer, urls)));
        }
        flow.discovered.last_failure.get_or_insert(AuthorizationFailure::NoMetadata { issuer });
        self.next_issuer(flow)
    }

    pub(super) fn issuer_answered(
        &mut self,
        flow: &mut Flow,
        issuer: String,
        urls: MetadataUrls,
        fetched: &Fetched,
        now: Instant,
    ) -> StepResult {
        if !is_metadata(fetched) {
            return self.ask_for_issuer(flow, issuer, urls);
        }
        self.issuer_described(flow, &issuer, fetched, now)
    }

    pub(super) fn base_answered(
        &mut self,
        flow: &mut Flow,
        fetched: &Fetched,
        now: Instant,
    ) -> StepResult {
        let issuer = base_issuer(&self.server);
        if self.tokens.as_ref().is_some_and(|it| !is_same_issuer(&it.stored.issuer, &issuer)) {
            self.leave_issuer();
        }
        flow.discovered.resource = Some(ResourceUri::from_server(&self.server));
        if is_metadata(fetched) {
            return self.issuer_described(flow, &issuer, fetched, now);
        }
        // MCP 2025-03-26 basic/authorization#fallbacks-for-servers-without-metadata-discovery [AUTHC-008]
        let endpoints = DefaultEndpoints::for_base(&self.server);
        let endpoints = endpoints.ok_or_else(|| self.no_base_metadata())?;
        self.found_issuer(flow, metadata_from_endpoints(issuer, &endpoints), now)
    }

    fn issuer_described(
        &mut self,
        flow: &mut Flow,
        issuer: &str,
        fetched: &Fetched,
        now: Instant,
    ) -> StepResult {
        let of = |fault| AuthorizationFailure::Metadata { url: fetched.place(), fault };
        let metadata = AuthorizationServerMetadata::parse(&fetched.body).map_err(of)?;
        // MCP 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery [AUTHC-025]
        metadata.check_issuer(issuer).map_err(of)?;
        metadata.token_endpoint().map_err(of)?;
        if self.options.grant.needs_user() {
            // MCP 2026-07-28 basic/authorization/security-considerations#authorization-code-protection [AUTHC-013]
            metadata.check_pkce().map_err(of)?;
            metadata.authorization_endpoint().map_err(of)?;
        }
        self.found_issuer(flow, metadata, now)
    }

    /// Continues with the authorization server that was found.
    fn found_issuer(
        &mut self,
        flow: &mut Flow,
        metadata: AuthorizationServerMetadata,
        now: Instant,
    ) -> StepResult {
        flow.discovered.metadata = Some(Arc::new(metadata));
        self.find_identity(flow, now)
    }

    fn no_base_metadata(&self) -> AuthorizationFailure {
        AuthorizationFailure::NoMetadata { issuer: base_issuer(&self.server) }
    }
}

/// Whether the response is metadata, valid or not. Servers without metadata may respond with an
/// HTML page and status 200.
fn is_metadata(fetched: &Fetched) -> bool {
    fetched.is_success() && fetched.body.trim_ascii_start().first() == Some(&b'{')
}

/// Returns the implied metadata of a 2025-03-26 server that publishes none.
fn metadata_from_endpoints(
    issuer: String,
    endpoints: &DefaultEndpoints,
) -> AuthorizationServerMetadata {
    AuthorizationServerMetadata {
        issuer,
        authorization_endpoint: Some(endpoints.authorization.to_string()),
        token_endpoint: Some(endpoints.token.to_string()),
        registration_endpoint: Some(endpoints.registration.to_string()),
        scopes_supported: None,
        grant_types_supported: None,
        token_endpoint_auth_methods_supported: None,
        // That revision requires PKCE of every server, and defines no metadata to declare it.
        code_challenge_methods_supported: Some(vec!["S256".into()]),
        client_id_metadata_document_supported: false,
        authorization_response_iss_parameter_supported: false,
    }
}
