//! The capabilities that modern clients declare with each request.

use alloc::string::String;
use core::ops::Range;

use mcp_sansio_sync::Arc;

use crate::Revision;
use crate::jsonrpc::{JsonError, PREFIX_IS_CACHED};
use crate::jsonrpc::{Members, RawJson};
use crate::peer::event::Request;
use crate::peer::members::Seen;
use crate::peer::metadata::CLIENT_CAPABILITIES;
use crate::peer::metadata::{CachedPrefix, Metadata};
use crate::protocol::Capabilities;

use super::Server;

/// Maximum length of a cached declaration in bytes; those of real clients have some hundred.
pub(in crate::peer) const DECLARED_LENGTH_MAX: usize = 2048;

/// The last declaration of a modern client, and its capabilities at a revision.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The start of a `_meta` up to the end of the version and the capabilities, or only the
    /// capabilities.
    text: String,
    /// The position of the capabilities in the text.
    declared: Range<usize>,
    /// The members of that prefix.
    seen: Seen,
    pub(crate) revision: Revision,
    pub(super) capabilities: Capabilities,
}

impl Declared {
    /// See [`Metadata::prefix`](crate::peer::metadata::Metadata::prefix).
    pub(crate) fn cached_prefix(&self) -> CachedPrefix<'_> {
        // A `_meta` starts with a brace, so the offset is zero only for capabilities without a
        // prefix.
        if PREFIX_IS_CACHED && self.declared.start > 0 {
            CachedPrefix { text: &self.text, seen: self.seen }
        } else {
            CachedPrefix::default()
        }
    }
}

impl Server {
    /// Parses the capabilities that a client declares with a request. Clients repeat the same
    /// declaration, so the result for the last text is cached. The cache belongs to the text, not
    /// to a client.
    pub(super) fn declared_by_client(
        &mut self,
        declared: &str,
        metadata: &Metadata<'_>,
        revision: Revision,
    ) -> Result<Capabilities, JsonError> {
        let prefix =
            metadata.prefix.filter(|it| PREFIX_IS_CACHED && it.text.len() <= DECLARED_LENGTH_MAX);
        let capabilities = match &self.last_declared {
            Some(last)
                if last.revision == revision
                    && last.text.get(last.declared.clone()) == Some(declared) =>
            {
                if prefix.is_none() {
                    return Ok(last.capabilities);
                }
                last.capabilities
            }
            _ => Capabilities::from_checked_client_json(declared, revision)?,
        };
        let alone = CachedPrefix { text: declared, ..CachedPrefix::default() };
        let start = prefix.map_or(0, |_| metadata.capabilities_start);
        let CachedPrefix { text, seen } = prefix.unwrap_or(alone);
        if text.len() <= DECLARED_LENGTH_MAX {
            let (text, declared) = (text.into(), start..start + declared.len());
            let declared = Declared { text, declared, seen, revision, capabilities };
            self.last_declared = Some(Arc::new(declared));
        }
        Ok(capabilities)
    }
}

impl Request<'_> {
    /// Returns the capabilities that a modern client declared with this request, as received: a
    /// `ClientCapabilities` object. [`capabilities`](Self::capabilities) has been read from it.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<RawJson<'_>> {
        // The machine has refused a request that repeats one of these members.
        let member = |text, name| Members::new(text).find(|it| it.is_named(name));
        let meta = member(self.params.as_str(), "_meta")?.value;
        Some(member(meta.frame_text(), CLIENT_CAPABILITIES)?.value)
    }
}
