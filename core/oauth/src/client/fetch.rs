//! The exchanges of the authorization, one at a time.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use mcp_sansio::Instant;
use mcp_sansio::http::{
    ClientTransmit, ExchangeFailure, ExchangeId, Field, IncomingResponse, LOCATION_LENGTH_MAX,
    Location, OutgoingRequest,
};
use mcp_sansio_sync::Arc;

use super::exchanges::Exchange;
use super::{AuthorizationClient, AuthorizationFailure};

/// The exchange in progress.
pub(super) struct Fetch {
    exchange: ExchangeId,
    url: Arc<Location>,
    method: &'static str,
    redirects: u32,
    /// The status, once the head was received.
    status: Option<u16>,
    body: Vec<u8>,
}

impl fmt::Debug for Fetch {
    /// Omits the body, which may contain a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("exchange", &self.exchange)
            .field("method", &self.method)
            .field("url", &self.url)
            .field("redirects", &self.redirects)
            .field("status", &self.status)
            .field("body_length", &self.body.len())
            .finish()
    }
}

/// A complete response.
pub(super) struct Fetched {
    pub(super) url: Arc<Location>,
    pub(super) status: u16,
    /// The body. Empty for a failed request of a document.
    pub(super) body: Vec<u8>,
}

impl Fetched {
    /// Returns the URL of the response, for messages.
    pub(super) fn place(&self) -> String {
        place(&self.url)
    }

    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

impl AuthorizationClient {
    /// Requests a document.
    ///
    /// # Errors
    ///
    /// See [`AuthorizationClient::check_place`].
    // MCP 2026-07-28 basic/authorization/index#token-handling [AUTHC-045]: the authorization's own
    // requests never carry the token.
    pub(super) fn get(&mut self, url: Location) -> Result<(), AuthorizationFailure> {
        self.get_with(url, [])
    }

    /// Requests a document with these fields in addition to `Accept`.
    ///
    /// # Errors
    ///
    /// See [`AuthorizationClient::check_place`].
    pub(super) fn get_with(
        &mut self,
        url: Location,
        besides: impl IntoIterator<Item = Field>,
    ) -> Result<(), AuthorizationFailure> {
        self.check_place(&url)?;
        self.fetch(Arc::new(url), "GET", besides, Bytes::new(), 0);
        Ok(())
    }

    /// Checks that the server may make the client request this URL.
    ///
    /// # Errors
    ///
    /// [`AuthorizationFailure::Internal`].
    // MCP 2026-07-28 security-best-practices#server-side-request-forgery-ssrf [SEC-006]
    pub(super) fn check_place(&self, url: &Location) -> Result<(), AuthorizationFailure> {
        let open = !self.server.origin().is_internal() && !self.options.internal_addresses;
        if open && url.origin().is_internal() {
            return Err(AuthorizationFailure::Internal { url: place(url) });
        }
        Ok(())
    }

    /// Sends a form or a document. `besides` contains fields other than `Accept`.
    pub(super) fn post(
        &mut self,
        url: Location,
        besides: impl IntoIterator<Item = Field>,
        body: String,
    ) {
        self.fetch(Arc::new(url), "POST", besides, body.into(), 0);
    }

    fn fetch(
        &mut self,
        url: Arc<Location>,
        method: &'static str,
        besides: impl IntoIterator<Item = Field>,
        body: Bytes,
        redirects: u32,
    ) {
        let accept = ("accept".into(), ByteString::from_static("application/json"));
        let fields = [accept].into_iter().chain(besides).collect();
        let exchange = self.exchanges.insert(Exchange::Fetch);
        let to = Arc::clone(&url);
        let request = OutgoingRequest::new(exchange, method, to, fields, body);
        self.transmits.push_back(ClientTransmit::Send(request));
        let body = Vec::new();
        self.fetch = Some(Fetch { exchange, url, method, redirects, status: None, body });
    }

    /// Aborts the exchange in progress.
    pub(super) fn stop_fetching(&mut self) {
        if let Some(fetch) = self.fetch.take() {
            self.abort_exchange(fetch.exchange);
        }
    }

    pub(super) fn fetch_answered(
        &mut self,
        exchange: ExchangeId,
        head: &IncomingResponse<'_>,
        now: Instant,
    ) {
        let Some(mut fetch) = self.fetch.take_if(|it| it.exchange == exchange) else { return };
        let status = head.status().0;
        if status < 200 || fetch.status.is_some() {
            self.fetch = Some(fetch);
            return;
        }
        if let Some(nonce) = head.dpop_nonce() {
            self.nonces.insert(&fetch.url, nonce);
        }
        if (300..400).contains(&status) {
            self.drain(exchange, now);
            return match self.redirect_target(&fetch, head) {
                Some(url) => {
                    self.fetch(Arc::new(url), "GET", [], Bytes::new(), fetch.redirects + 1);
                    self.fetch_moved(now);
                }
                None => self.fetch_failed(failure_from_status(&fetch.url, status), now),
            };
        }
        if status >= 500 {
            self.drain(exchange, now);
            return self.fetch_failed(failure_from_status(&fetch.url, status), now);
        }
        // The body of a missing document is not needed; that of a refused form contains the reason.
        if fetch.method == "GET" && !head.status().is_success() {
            self.drain(exchange, now);
            let Fetch { url, body, .. } = fetch;
            return self.fetched(Fetched { url, status, body }, now);
        }
        fetch.status = Some(status);
        self.fetch = Some(fetch);
    }

    /// Returns the target of a redirect that is followed: only for documents, within the same
    /// origin. A form contains secrets for its target and is never sent elsewhere.
    // MCP 2026-07-28 basic/authorization/security-considerations#open-redirection [AUTHC-067]
    fn redirect_target(&self, fetch: &Fetch, head: &IncomingResponse<'_>) -> Option<Location> {
        let target = head.location().filter(|it| it.len() <= LOCATION_LENGTH_MAX)?;
        let url = fetch.url.resolve(core::str::from_utf8(target).ok()?).ok()?;
        let followed = fetch.method == "GET"
            && matches!(head.status().0, 301 | 302 | 303 | 307 | 308)
            && fetch.redirects < self.options.limits.redirects_max
            && url.same_origin(&fetch.url);
        followed.then_some(url)
    }

    pub(super) fn fetch_body(&mut self, exchange: ExchangeId, bytes: &[u8], now: Instant) {
        let max = self.options.limits.document_bytes_max;
        let Some(fetch) = self.fetch.as_mut().filter(|it| it.exchange == exchange) else { return };
        if bytes.len() > max.saturating_sub(fetch.body.len()) {
            let url = place(&fetch.url);
            self.stop_fetching();
            return self.fetch_failed(AuthorizationFailure::TooLong { url }, now);
        }
        fetch.body.extend_from_slice(bytes);
    }

    pub(super) fn fetch_ended(&mut self, exchange: ExchangeId, now: Instant) {
        let Some(fetch) = self.fetch.take_if(|it| it.exchange == exchange) else { return };
        let Fetch { url, status, body, .. } = fetch;
        match status {
            Some(status) => self.fetched(Fetched { url, status, body }, now),
            None => {
                let url = place(&url);
                let failure = ExchangeFailure::Broken;
                self.fetch_failed(AuthorizationFailure::Unreachable { url, failure }, now);
            }
        }
    }

    pub(super) fn fetch_broken(
        &mut self,
        exchange: ExchangeId,
        failure: ExchangeFailure,
        now: Instant,
    ) {
        let Some(fetch) = self.fetch.take_if(|it| it.exchange == exchange) else { return };
        let url = place(&fetch.url);
        self.fetch_failed(AuthorizationFailure::Unreachable { url, failure }, now);
    }

    /// Returns the URL of the expected response, for messages.
    pub(super) fn fetching(&self) -> Option<String> {
        self.fetch.as_ref().map(|it| place(&it.url))
    }
}

/// Returns a URL without its query, which may contain secrets.
pub(super) fn place(url: &Location) -> String {
    url.as_str().split('?').next().unwrap_or_default().to_string()
}

fn failure_from_status(url: &Location, status: u16) -> AuthorizationFailure {
    AuthorizationFailure::Status { url: place(url), status }
}
