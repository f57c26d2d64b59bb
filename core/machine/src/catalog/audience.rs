use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_sync::Arc;

use super::{Catalog, Changes, ItemId, ItemKind};
use crate::protocol::Method;
use crate::{Caller, Principal};

/// The callers that see an item of a [`Catalog`]. For any other caller the item does not exist: it
/// is not listed, and requests for it fail like those for an unknown item.
///
/// ```
/// use mcp_sansio::catalog::{Audience, Catalog};
/// use mcp_sansio::jsonrpc::RawJson;
/// use mcp_sansio::protocol::Tool;
/// use mcp_sansio::{Caller, Principal};
///
/// let mut catalog = Catalog::new();
/// let tool = Tool::new("delete", RawJson::parse(r#"{"type":"object"}"#)?);
/// let id = catalog.add_tool(tool)?;
/// catalog.restrict(id, Audience::new().scope("files:write"));
/// assert!(catalog.is_visible(id, &Caller::OWNER));
/// assert!(!catalog.is_visible(id, &Caller::from_principal(Principal::new("ann"))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audience {
    scopes: Vec<String>,
    principals: Vec<Principal>,
}

/// Has the signature of [`Audience::includes`].
pub(super) type Includes = fn(&Audience, &Caller) -> bool;

impl Audience {
    /// Creates an audience of all callers.
    #[must_use]
    pub const fn new() -> Self {
        Self { scopes: Vec::new(), principals: Vec::new() }
    }

    /// Requires a scope, in addition to earlier ones.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Limits the audience to this principal and those of earlier calls.
    #[must_use]
    pub fn principal(mut self, principal: Principal) -> Self {
        self.principals.push(principal);
        self
    }

    /// Returns the scopes that a caller needs.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the principals; if there are none, any principal has access.
    #[must_use]
    pub fn principals(&self) -> &[Principal] {
        &self.principals
    }

    /// Returns whether the audience includes a caller.
    #[must_use]
    pub fn includes(&self, caller: &Caller) -> bool {
        self.scopes.iter().all(|scope| caller.has_scope(scope))
            && self.allows_principal(caller.principal())
    }

    /// Returns whether the audience includes a principal that has all scopes.
    #[must_use]
    pub fn allows_principal(&self, principal: Option<&Principal>) -> bool {
        self.principals.is_empty() || principal.is_some_and(|it| self.principals.contains(it))
    }
}

/// The changes of the lists that were not announced yet, and the callers that can see them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Announcement {
    pub(crate) to_everyone: Changes,
    pub(crate) to_some: Vec<(ItemKind, Arc<Audience>)>,
}

impl Announcement {
    /// Returns the changes that concern a caller.
    pub(crate) fn seen_by(&self, caller: &Caller) -> Changes {
        self.changes(|audience| audience.includes(caller))
    }

    /// Returns all changes.
    pub(crate) fn all(&self) -> Changes {
        self.changes(|_| true)
    }

    fn changes(&self, includes: impl Fn(&Audience) -> bool) -> Changes {
        let mut changes = self.to_everyone;
        for (kind, _) in self.to_some.iter().filter(|(_, audience)| includes(audience)) {
            changes = changes.with(*kind);
        }
        changes
    }
}

/// The number of unannounced changes of each list that all callers can see.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangeCounts {
    tools: u32,
    prompts: u32,
    resources: u32,
}

impl ChangeCounts {
    pub(super) const fn of(&mut self, kind: ItemKind) -> &mut u32 {
        match kind {
            ItemKind::Tool => &mut self.tools,
            ItemKind::Prompt => &mut self.prompts,
            ItemKind::Resource | ItemKind::ResourceTemplate => &mut self.resources,
        }
    }

    pub(super) const fn changes(self) -> Changes {
        Changes { tools: self.tools > 0, prompts: self.prompts > 0, resources: self.resources > 0 }
    }

    #[cfg(feature = "recording")]
    pub(super) fn from_changes(changes: Changes) -> Self {
        let Changes { tools, prompts, resources } = changes;
        Self { tools: tools.into(), prompts: prompts.into(), resources: resources.into() }
    }
}

impl Catalog {
    /// Returns the changes since the last announcement, and counts them as announced.
    pub(crate) fn take_announcement(&mut self) -> Announcement {
        let to_everyone = core::mem::take(&mut self.changes).changes();
        let to_some = core::mem::take(&mut self.restricted_changes);
        let announcement = Announcement { to_everyone, to_some };
        self.managed = self.managed.and(announcement.all());
        self.tools.mark_announced();
        self.resources.mark_announced();
        self.templates.mark_announced();
        self.prompts.mark_announced();
        announcement
    }

    /// Restricts an item to an audience, in place of any earlier one. The default cache hints of
    /// lists with a restricted item, and of its contents, become private.
    ///
    /// Only clients in the audience are notified of an item that is added and restricted in one
    /// edit.
    ///
    /// Returns whether the item exists.
    // MCP 2026-07-28 server/tools#capabilities [TOOL-028]: a set varies by the authorization only.
    pub fn restrict(&mut self, id: ItemId, audience: Audience) -> bool {
        let audience = Arc::new(audience);
        let list = self.listing_mut(id.kind());
        let Some(before) = list.set_audience(id.number(), Arc::clone(&audience)) else {
            return false;
        };
        let was_announced = list.was_announced(id.number());
        self.includes = Some(Audience::includes);
        let changes = self.changes.of(id.kind());
        if before.is_none() && !was_announced {
            // Counted when the item was added.
            *changes = changes.saturating_sub(1);
        } else {
            self.note_change(id.kind(), before.as_ref());
        }
        self.note_change(id.kind(), Some(&audience));
        true
    }

    /// Returns the audience of an item, if it is restricted.
    #[must_use]
    pub fn audience(&self, id: ItemId) -> Option<&Audience> {
        self.includes?;
        self.listing(id.kind()).audience(id.number()).map(|audience| &**audience)
    }

    /// Returns the audience of the item that a request uses, if it is restricted. `subject` is the
    /// `name` or `uri` in its parameters.
    #[must_use]
    pub fn audience_of(&self, method: Method, subject: &str) -> Option<&Audience> {
        self.includes?;
        let id = match method {
            Method::ToolsCall => self.tools.resolve(subject)?.0,
            Method::PromptsGet => self.prompts.resolve(subject)?.0,
            Method::ResourcesRead | Method::ResourcesSubscribe => {
                let listed = self.resources.resolve(subject).map(|(id, _)| id);
                listed.or_else(|| Some(self.find_template(subject)?.template()))?
            }
            _ => return None,
        };
        self.audience(id)
    }

    /// Returns whether a caller can see an item.
    #[must_use]
    pub fn is_visible(&self, id: ItemId, caller: &Caller) -> bool {
        let Some(includes) = self.includes else { return true };
        let audience = self.listing(id.kind()).audience(id.number());
        audience.is_none_or(|audience| includes(audience, caller))
    }

    /// Notes a change of an item with this audience.
    pub(super) fn note_change(&mut self, kind: ItemKind, audience: Option<&Arc<Audience>>) {
        match audience {
            None => *self.changes.of(kind) += 1,
            Some(audience) => self.restricted_changes.push((kind, Arc::clone(audience))),
        }
    }
}
