//! The capabilities that modern clients declare with each request.

use alloc::boxed::Box;
use alloc::string::String;
use core::ops::Range;

use crate::Revision;
use crate::gate::Refusal;
use crate::gate::members::Seen;
use crate::gate::metadata::CLIENT_CAPABILITIES;
use crate::gate::metadata::{CachedPrefix, Metadata};
use crate::jsonrpc::{ErrorObject, Members, PREFIX_IS_CACHED, RawJson};
use crate::peer::event::Request;
use crate::protocol::Capabilities;

use super::ServerConfig;
use super::receive::Found;

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
    /// See [`Metadata::prefix`](crate::gate::metadata::Metadata::prefix).
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

/// The revision of a modern request, and the capabilities of its client at that revision.
pub(crate) type Declaration = Result<(Revision, Capabilities), Undeclared>;

/// Why a request does not declare its client.
#[derive(Debug)]
pub(crate) enum Undeclared {
    /// The server does not speak the revision.
    Revision(Box<ErrorObject<'static>>),
    /// The declaration is missing or malformed.
    Malformed(Refusal<'static>),
}

/// Returns what is wrong with the parameters of a refused request, without details.
pub(super) const fn fault_of(refusal: &Refusal<'_>) -> &'static str {
    match refusal {
        Refusal::InvalidParams(what) => what,
        _ => "the declared capabilities are not valid",
    }
}

/// What a modern request and its sender alone decide. It needs neither a session nor another
/// request.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) declared: Declaration,
    /// The item that the request names; `None` if it was not looked up.
    pub(crate) found: Option<Found>,
}

impl ServerConfig {
    /// Reads what a client declares with a modern request. Clients repeat the same declaration, so
    /// its capabilities are taken from `last` if the text is the same. If it is another one, it is
    /// returned as well, to be cached. The cache belongs to the text, not to a client.
    // MCP 2026-07-28 basic/index#_meta [META-008] [META-009],
    // MCP 2026-07-28 schema.json#RequestMetaObject [CAP-019]
    pub(crate) fn declared_in(
        &self,
        metadata: &Metadata<'_>,
        last: Option<&Declared>,
    ) -> (Declaration, Option<Declared>) {
        if let Some(last) = last.filter(|_| metadata.prefix_matched) {
            return (Ok((last.revision, last.capabilities)), None);
        }
        let (revision, client) = match metadata.declaration(self.revisions) {
            Ok(declaration) => declaration,
            Err(Refusal::InvalidParams(what)) => {
                return (Err(Undeclared::Malformed(Refusal::InvalidParams(what))), None);
            }
            Err(refusal) => {
                return (Err(Undeclared::Revision(Box::new(refusal.into()))), None);
            }
        };
        let declared = client.as_str();
        let prefix =
            metadata.prefix.filter(|it| PREFIX_IS_CACHED && it.text.len() <= DECLARED_LENGTH_MAX);
        let same = last.filter(|last| {
            last.revision == revision && last.text.get(last.declared.clone()) == Some(declared)
        });
        let capabilities = match same {
            Some(last) => last.capabilities,
            None => match Metadata::declared_capabilities(client, revision) {
                Ok(capabilities) => capabilities,
                Err(refusal) => return (Err(Undeclared::Malformed(refusal)), None),
            },
        };
        let alone = CachedPrefix { text: declared, ..CachedPrefix::default() };
        let start = prefix.map_or(0, |_| metadata.capabilities_start);
        let is_known = same.is_some() && prefix.is_none();
        let CachedPrefix { text, seen } = prefix.unwrap_or(alone);
        let is_kept = text.len() <= DECLARED_LENGTH_MAX && !is_known;
        let kept = is_kept.then(|| {
            let (text, declared) = (text.into(), start..start + declared.len());
            Declared { text, declared, seen, revision, capabilities }
        });
        (Ok((revision, capabilities)), kept)
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
