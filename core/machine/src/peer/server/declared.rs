//! What modern clients declare with each request.

use alloc::string::String;

use crate::Revision;
use crate::jsonrpc::PREFIX_IS_CACHED;
use crate::peer::members::Seen;
use crate::peer::metadata::CachedPrefix;
use crate::protocol::Capabilities;

use super::Server;

/// The longest declaration that is kept, in bytes: those of real clients have some hundred.
pub(in crate::peer) const DECLARED_LENGTH_MAX: usize = 2048;

/// What a modern client declared last, and how it reads at a revision.
#[derive(Debug)]
pub(crate) struct Declared {
    /// The start of a `_meta` that ends in the capabilities, or these alone.
    text: String,
    /// Where in there they begin.
    start: usize,
    /// The members before their end.
    seen: Seen,
    pub(crate) revision: Revision,
    pub(super) capabilities: Capabilities,
}

impl Declared {
    /// See [`Metadata::prefix`](crate::peer::metadata::Metadata::prefix).
    pub(crate) fn cached_prefix(&self) -> CachedPrefix<'_> {
        // A `_meta` begins with a brace.
        if PREFIX_IS_CACHED && self.start > 0 {
            CachedPrefix { text: &self.text, seen: self.seen }
        } else {
            CachedPrefix::default()
        }
    }
}

impl Server {
    /// Reads what a client declares with a request. Clients declare the same with each one, so the
    /// reading of the last text is kept: it stands for that text, not for the client.
    pub(super) fn declared_by_client(
        &mut self,
        declared: &str,
        prefix: Option<CachedPrefix<'_>>,
        revision: Revision,
    ) -> Result<Capabilities, serde_json::Error> {
        let prefix = prefix.filter(|it| PREFIX_IS_CACHED && it.text.len() <= DECLARED_LENGTH_MAX);
        let capabilities = match &self.last_declared {
            Some(last)
                if last.revision == revision && last.text.get(last.start..) == Some(declared) =>
            {
                if prefix.is_none() {
                    return Ok(last.capabilities);
                }
                last.capabilities
            }
            _ => Capabilities::from_checked_client_json(declared, revision)?,
        };
        let alone = || CachedPrefix { text: declared, ..CachedPrefix::default() };
        let CachedPrefix { text, seen } = prefix.unwrap_or_else(alone);
        if text.len() <= DECLARED_LENGTH_MAX {
            let start = text.len() - declared.len();
            // Many clients of one server take turns, and one buffer.
            let mut kept = self.last_declared.take().map(|last| last.text).unwrap_or_default();
            kept.clear();
            kept.push_str(text);
            self.last_declared = Some(Declared { text: kept, start, seen, revision, capabilities });
        }
        Ok(capabilities)
    }
}
