//! What modern clients declare with each request.

use alloc::string::String;

use crate::Revision;
use crate::jsonrpc::STANDING_IS_KEPT;
use crate::peer::members::Seen;
use crate::peer::metadata::Standing;
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
    /// See [`Metadata::standing`](crate::peer::metadata::Metadata::standing).
    pub(crate) fn standing(&self) -> Standing<'_> {
        // A `_meta` begins with a brace.
        if STANDING_IS_KEPT && self.start > 0 {
            Standing { text: &self.text, seen: self.seen }
        } else {
            Standing::default()
        }
    }
}

impl Server {
    /// Reads what a client declares with a request. Clients declare the same with each one, so the
    /// reading of the last text is kept: it stands for that text, not for the client.
    pub(super) fn declared_by_client(
        &mut self,
        declared: &str,
        standing: Option<Standing<'_>>,
        revision: Revision,
    ) -> Result<Capabilities, serde_json::Error> {
        let standing =
            standing.filter(|it| STANDING_IS_KEPT && it.text.len() <= DECLARED_LENGTH_MAX);
        let capabilities = match &self.last_declared {
            Some(last)
                if last.revision == revision && last.text.get(last.start..) == Some(declared) =>
            {
                if standing.is_none() {
                    return Ok(last.capabilities);
                }
                last.capabilities
            }
            _ => Capabilities::from_checked_client_json(declared, revision)?,
        };
        let alone = || Standing { text: declared, ..Standing::default() };
        let Standing { text, seen } = standing.unwrap_or_else(alone);
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
