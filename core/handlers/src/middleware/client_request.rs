use alloc::borrow::Cow;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use mcp_sansio::jsonrpc::{AsJson, RawJson, WriteError, to_shared_json};
use mcp_sansio::peer::{CallOptions, HeaderFields, InvalidHeader, MethodName};
use mcp_sansio::protocol::Method;
use mcp_sansio::{Instant, Revision};
use serde::Serialize;

use crate::client::{Client, Session};
use crate::json_object::{has_members, with_member};
use crate::response_cache::CacheMode;

/// A call of a client before it is sent, as the host's middleware sees it. Changes reach the inner
/// middleware and the server.
///
/// The method cannot be changed, because the caller expects its result.
#[derive(Clone)]
pub struct ClientRequest {
    pub(crate) client: Client,
    pub(crate) method: MethodName<'static>,
    pub(crate) params: RawJson<'static>,
    pub(crate) options: CallOptions<'static>,
    pub(crate) fields: HeaderFields,
    pub(crate) cache_mode: CacheMode,
}

impl ClientRequest {
    /// Returns the method.
    #[must_use]
    pub const fn method(&self) -> &MethodName<'static> {
        &self.method
    }

    /// Returns the name of the tool or prompt, or the URI of the resource.
    #[must_use]
    pub fn target(&self) -> Option<Cow<'_, str>> {
        let member = match self.method {
            MethodName::Known(Method::ToolsCall | Method::PromptsGet) => "name",
            MethodName::Known(Method::ResourcesRead) => "uri",
            _ => return None,
        };
        Some(self.params.get(member)?.to_text()?.into_owned().into())
    }

    /// Whether the method only reads: a list, a resource, a prompt, a completion or a ping. Of a
    /// tool, only its definition says so.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(
            self.method,
            MethodName::Known(
                Method::ToolsList
                    | Method::PromptsList
                    | Method::PromptsGet
                    | Method::ResourcesList
                    | Method::ResourcesTemplatesList
                    | Method::ResourcesRead
                    | Method::CompletionComplete
                    | Method::Discover
                    | Method::Ping
            )
        )
    }

    /// Returns the parameters without `_meta`: a JSON object.
    #[must_use]
    pub const fn params(&self) -> &RawJson<'_> {
        &self.params
    }

    /// Replaces the parameters, which remain those of the method: a JSON object without `_meta`.
    /// Anything that is no object is not sent, and the call fails.
    pub fn set_params(&mut self, params: RawJson<'_>) {
        self.params = params.into_owned();
    }

    /// Returns the metadata that the caller and outer middleware set: a JSON object, `{}` if they
    /// set none. Entries that the client adds itself, such as its name and a progress token, are not
    /// included.
    #[must_use]
    pub fn meta(&self) -> &RawJson<'_> {
        self.options.meta.as_ref().unwrap_or(&RawJson::EMPTY_OBJECT)
    }

    /// Adds an entry to `_meta`, or replaces it.
    ///
    /// # Errors
    ///
    /// The value cannot be serialized. The caller's fault.
    pub fn insert_meta<T: Serialize + ?Sized>(
        &mut self,
        key: &str,
        value: &T,
    ) -> Result<(), WriteError> {
        let value = to_shared_json(&AsJson(value))?;
        self.options.meta = Some(with_member(self.meta(), key, Some(&value)));
        Ok(())
    }

    /// Removes an entry of `_meta`.
    pub fn remove_meta(&mut self, key: &str) {
        let rest = with_member(self.meta(), key, None);
        self.options.meta = has_members(&rest).then_some(rest);
    }

    /// Returns how long to wait for an answer or for progress, if the caller or outer middleware set
    /// it; otherwise the [`Timeouts`](mcp_sansio::peer::Timeouts) of the host apply.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        self.options.timeout
    }

    /// Sets how long to wait for an answer or for progress.
    pub const fn set_timeout(&mut self, timeout: Duration) {
        self.options.timeout = Some(timeout);
    }

    /// Returns how long to wait in total, if the caller or outer middleware set it.
    #[must_use]
    pub const fn timeout_hard(&self) -> Option<Duration> {
        self.options.timeout_hard
    }

    /// Sets how long to wait in total, from the time at which the call is sent.
    pub const fn set_timeout_hard(&mut self, timeout: Duration) {
        self.options.timeout_hard = Some(timeout);
    }

    /// Adds a header field on HTTP: see [`ClientCall::header`](crate::ClientCall::header). On a byte
    /// stream the call then fails: find out with [`Client::is_http`].
    ///
    /// # Errors
    ///
    /// The field is not allowed. The caller's fault.
    pub fn insert_header(&mut self, name: &str, value: &str) -> Result<(), InvalidHeader> {
        self.fields.insert(name, value)
    }

    /// Whether the call is answered without the [cache](crate::Host::cache).
    #[must_use]
    pub fn is_reload(&self) -> bool {
        self.cache_mode == CacheMode::Reload
    }

    /// Returns the client that makes the call, for other calls: for example to list the tools. They
    /// pass the middleware as well, so guard against recursion.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the negotiated properties, once the connection is open.
    #[must_use]
    pub fn session(&self) -> Option<Arc<Session>> {
        self.client.session()
    }

    /// Returns the revision that governs the call.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.session().map_or(Revision::LATEST, |session| session.revision)
    }

    /// Returns the number of the connection among those of its host, from zero.
    #[must_use]
    pub fn connection(&self) -> usize {
        self.client.layers().map_or(0, |layers| layers.number)
    }

    /// Returns the time at which the adapter last drove the connection: this crate has no clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.client.layers().map_or(Instant::ZERO, |layers| layers.now())
    }

    /// Waits for `pause`, by the clock of the connection; no longer than the connection is open.
    pub async fn sleep(&self, pause: Duration) {
        // If the connection is closed, so will be the call.
        let _waited = self.client.sleep(pause).await;
    }
}

impl fmt::Debug for ClientRequest {
    /// Omits the parameters and the metadata, because logs have many readers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequest").field("method", &self.method).finish_non_exhaustive()
    }
}
