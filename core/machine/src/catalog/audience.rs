use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio_sync::Arc;

use super::condition::{self, Conditions};
use super::{Catalog, Changes, ItemId, ItemKind};
use crate::protocol::Method;
use crate::{Caller, Principal, SessionKey};

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
#[derive(Clone, Default)]
pub struct Audience {
    scopes: Vec<String>,
    principals: Vec<Principal>,
    sessions: Vec<SessionKey>,
    conditions: Option<Conditions>,
}

impl Audience {
    /// Creates an audience of all callers.
    #[must_use]
    pub const fn new() -> Self {
        Self { scopes: Vec::new(), principals: Vec::new(), sessions: Vec::new(), conditions: None }
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

    /// Limits the audience to requests of this legacy session and those of earlier calls. Modern
    /// requests, which belong to no session, are not included.
    ///
    /// Servers of the handler layer remove the item when the last of its sessions ends: see
    /// [`Catalog::remove_session`].
    ///
    /// ```
    /// use mcp_sansio::catalog::Audience;
    /// use mcp_sansio::{Caller, SessionKey};
    ///
    /// // In a handler the key is that of the call.
    /// let session = SessionKey::from_number(7).expect("a valid number");
    /// let audience = Audience::new().session(session);
    /// assert!(audience.includes(&Caller::ANONYMOUS.with_session(Some(session))));
    /// assert!(!audience.includes(&Caller::ANONYMOUS));
    /// ```
    #[must_use]
    pub fn session(mut self, session: SessionKey) -> Self {
        self.sessions.push(session);
        self
    }

    /// Limits the audience to callers for which `holds` returns true, in addition to earlier
    /// conditions. It is called for each request that lists or names the item, and for each
    /// notification of a change, so it must be quick, and must not panic.
    ///
    /// `name` stands for the condition in recordings, so give different conditions different names.
    /// A recording says which conditions held for the principal of a request; in its replay they do
    /// not hold for callers without a principal over HTTP.
    ///
    /// ```
    /// use mcp_sansio::catalog::Audience;
    /// use mcp_sansio::{Caller, Principal};
    ///
    /// let staff = Audience::new().condition("staff", |caller| {
    ///     caller.principal().is_some_and(|it| it.as_str().ends_with("@example.com"))
    /// });
    /// assert!(staff.includes(&Caller::from_principal(Principal::new("ann@example.com"))));
    /// assert!(!staff.includes(&Caller::ANONYMOUS));
    /// ```
    #[must_use]
    pub fn condition(
        mut self,
        name: impl Into<String>,
        holds: impl Fn(&Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.conditions = Some(condition::and(self.conditions, name.into(), holds));
        self
    }

    /// Returns the scopes that a caller needs.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the principals; if empty, any principal has access.
    #[must_use]
    pub fn principals(&self) -> &[Principal] {
        &self.principals
    }

    /// Returns the sessions; if empty, requests of any session and modern requests have access.
    #[must_use]
    pub fn sessions(&self) -> &[SessionKey] {
        &self.sessions
    }

    /// Returns whether the audience includes a caller.
    #[must_use]
    pub fn includes(&self, caller: &Caller) -> bool {
        self.scopes.iter().all(|scope| caller.has_scope(scope)) && self.includes_with_scopes(caller)
    }

    /// Returns whether the audience includes a caller if it gets all scopes.
    #[must_use]
    pub fn includes_with_scopes(&self, caller: &Caller) -> bool {
        self.allows_principal(caller.principal())
            && self.allows_session(caller.session())
            && self.conditions.as_ref().is_none_or(|conditions| conditions.holds(caller))
    }

    /// Returns whether the audience includes a principal that has all scopes, sessions and
    /// conditions aside.
    #[must_use]
    pub fn allows_principal(&self, principal: Option<&Principal>) -> bool {
        self.principals.is_empty() || principal.is_some_and(|it| self.principals.contains(it))
    }

    fn allows_session(&self, session: Option<SessionKey>) -> bool {
        self.sessions.is_empty() || session.is_some_and(|it| self.sessions.contains(&it))
    }

    /// Returns the audience without a session; `None` if it has no other.
    fn without_session(&self, session: SessionKey) -> Option<Self> {
        let mut others = self.clone();
        others.sessions.retain(|it| *it != session);
        (!others.sessions.is_empty()).then_some(others)
    }
}

/// Two audiences are equal if they have the same scopes, principals and sessions, and share their
/// conditions.
impl PartialEq for Audience {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.conditions, &other.conditions) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let identities = (&self.principals, &self.sessions);
        same && self.scopes == other.scopes && identities == (&other.principals, &other.sessions)
    }
}

impl Eq for Audience {}

impl fmt::Debug for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Vec::new();
        if let Some(conditions) = &self.conditions {
            conditions.for_each(None, &mut |name, _| names.push(String::from(name)));
        }
        f.debug_struct("Audience")
            .field("scopes", &self.scopes)
            .field("principals", &self.principals)
            .field("sessions", &self.sessions)
            .field("conditions", &names)
            .finish()
    }
}

/// The changes of the lists that were not announced yet, and the callers that can see them.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    pub(crate) to_everyone: Changes,
    pub(crate) to_some: Vec<(ItemKind, Arc<Audience>)>,
    /// That of [`Restrictions`].
    includes: fn(&Audience, &Caller) -> bool,
}

impl Default for Announcement {
    fn default() -> Self {
        Self { to_everyone: Changes::default(), to_some: Vec::new(), includes: |_, _| false }
    }
}

impl Announcement {
    pub(crate) fn new(to_everyone: Changes, to_some: Vec<(ItemKind, Arc<Audience>)>) -> Self {
        Self { to_everyone, to_some, includes: Audience::includes }
    }

    /// Returns the changes that concern a caller.
    pub(crate) fn seen_by(&self, caller: &Caller) -> Changes {
        let mut changes = self.to_everyone;
        for (kind, _) in self.to_some.iter().filter(|(_, it)| (self.includes)(it, caller)) {
            changes = changes.with(*kind);
        }
        changes
    }
}

impl Audience {
    /// Returns the names of the conditions as scopes, which stand for them in a recording.
    pub(crate) fn condition_scopes(&self, caller: Option<&Caller>) -> Vec<String> {
        let mut scopes = Vec::new();
        if let Some(conditions) = &self.conditions {
            conditions.for_each(caller, &mut |name, holds| {
                if holds || caller.is_none() {
                    scopes.push(alloc::format!("condition:{name}"));
                }
            });
        }
        scopes
    }
}

/// The restricted items of a catalog. The lists have the audience of each.
#[derive(Clone, Debug)]
pub(super) struct Restrictions {
    /// [`Audience::includes`], so that its code is linked only into programs that restrict an item,
    /// like that of the next field.
    includes: fn(&Audience, &Caller) -> bool,
    /// [`Catalog::remove_known_session`].
    remove_session: fn(&mut Catalog, SessionKey) -> bool,
    /// The number of restricted items of each kind.
    items: [u32; 4],
    /// How many of the unannounced additions are restricted.
    added: [u32; 4],
    /// The unannounced changes, with those who can see them.
    changes: Vec<(ItemKind, Arc<Audience>)>,
    /// The sessions in the audiences of items. Those of items that were removed stay until
    /// [`Catalog::remove_session`]. Sorted; not a tree, which takes more code than its copies and
    /// searches save.
    sessions: Vec<SessionKey>,
}

impl Restrictions {
    pub(super) fn new() -> Self {
        Self {
            includes: Audience::includes,
            remove_session: Catalog::remove_known_session,
            items: [0; 4],
            added: [0; 4],
            changes: Vec::new(),
            sessions: Vec::new(),
        }
    }

    pub(super) const fn count(&mut self, kind: ItemKind, items: u32) {
        self.items[kind as usize] = items;
    }

    pub(super) fn add_sessions<'a>(&mut self, audiences: impl Iterator<Item = &'a Arc<Audience>>) {
        for audience in audiences {
            self.insert_sessions(audience);
        }
    }

    fn insert_sessions(&mut self, audience: &Audience) {
        for session in &audience.sessions {
            if let Err(place) = self.sessions.binary_search(session) {
                self.sessions.insert(place, *session);
            }
        }
    }
}

impl Catalog {
    /// Returns the changes since the last announcement, and counts them as announced.
    pub(crate) fn take_announcement(&mut self) -> Announcement {
        let mut announcement = Announcement::default();
        if let Some(Restrictions { changes, includes, .. }) = self.restrictions.as_deref() {
            (announcement.to_some, announcement.includes) = (changes.clone(), *includes);
        }
        announcement.to_everyone = self.changes_for_everyone();
        self.take_changes();
        announcement
    }

    /// Returns the lists that were edited since the last call, or since the catalog was created.
    pub fn take_changes(&mut self) -> Changes {
        let changes = self.pending_changes();
        self.managed = self.managed.and(changes);
        (self.changes, self.added) = (Changes::default(), [0; 4]);
        if let Some(restrictions) = &mut self.restrictions {
            restrictions.added = [0; 4];
            restrictions.changes.clear();
        }
        changes
    }

    /// Sets the unannounced changes.
    pub(crate) fn set_announcement(&mut self, announcement: Announcement) {
        let Announcement { to_everyone, to_some, .. } = announcement;
        (self.changes, self.added) = (to_everyone, [0; 4]);
        if !to_some.is_empty() {
            // The last restricted item may have been removed.
            self.restrictions.get_or_insert_with(|| Restrictions::new().into());
        }
        if let Some(restrictions) = &mut self.restrictions {
            (restrictions.changes, restrictions.added) = (to_some, [0; 4]);
        }
    }

    fn changes_for_everyone(&self) -> Changes {
        let restricted = self.restrictions.as_ref().map_or([0; 4], |it| it.added);
        let added = |kind: ItemKind| self.added[kind as usize] > restricted[kind as usize];
        Changes {
            tools: self.changes.tools || added(ItemKind::Tool),
            prompts: self.changes.prompts || added(ItemKind::Prompt),
            resources: self.changes.resources
                || added(ItemKind::Resource)
                || added(ItemKind::ResourceTemplate),
        }
    }

    /// Returns all unannounced changes.
    pub(super) fn pending_changes(&self) -> Changes {
        let to_everyone = self.changes_for_everyone();
        let Some(restrictions) = &self.restrictions else { return to_everyone };
        restrictions.changes.iter().fold(to_everyone, |changes, (kind, _)| changes.with(*kind))
    }

    /// Restricts an item to an audience, in place of any earlier one. The default cache hints of
    /// lists with a restricted item, and of its contents, become private.
    ///
    /// Only clients in the audience are notified of an item that is added and restricted in one
    /// edit.
    ///
    /// Returns whether the item exists.
    // MCP 2026-07-28 server/tools#capabilities [TOOL-028]: an audience varies the set
    // by the authorization alone.
    pub fn restrict(&mut self, id: ItemId, audience: Audience) -> bool {
        let (kind, audience) = (id.kind(), Arc::new(audience));
        let added = u64::from(self.added[kind as usize]);
        let list = self.listing_mut(kind);
        let announced = list.next() - added;
        let Some(before) = list.set_audience(id.number(), Arc::clone(&audience)) else {
            return false;
        };
        let restrictions = self.restrictions.get_or_insert_with(|| Restrictions::new().into());
        restrictions.insert_sessions(&audience);
        restrictions.changes.push((kind, audience));
        if let Some(before) = before {
            restrictions.changes.push((kind, before));
            return true;
        }
        restrictions.items[kind as usize] += 1;
        if id.number() < announced {
            // All callers saw it.
            self.changes = self.changes.with(kind);
        } else {
            restrictions.added[kind as usize] += 1;
        }
        true
    }

    /// Removes a session that has ended from the audiences of all items, and the items that no
    /// other session can see. Returns whether an item was removed.
    ///
    /// Servers of the handler layer call it; see
    /// [`poll_ended_session`](crate::http::Server::poll_ended_session) for others.
    pub fn remove_session(&mut self, session: SessionKey) -> bool {
        let Some(restrictions) = &mut self.restrictions else { return false };
        let Ok(place) = restrictions.sessions.binary_search(&session) else { return false };
        restrictions.sessions.remove(place);
        (restrictions.remove_session)(self, session)
    }

    fn remove_known_session(&mut self, session: SessionKey) -> bool {
        let mut removed = false;
        for kind in ItemKind::ALL {
            let list = self.listing(kind);
            let numbers = (0..).map_while(|place| list.number(place));
            let concerned = numbers.filter_map(|number| {
                let audience = list.audience(number).filter(|it| it.sessions.contains(&session))?;
                Some((ItemId::new(kind, number), audience.without_session(session)))
            });
            for (id, others) in concerned.collect::<Vec<_>>() {
                match others {
                    Some(others) => drop(self.restrict(id, others)),
                    None => removed |= self.remove_item(id),
                }
            }
        }
        removed
    }

    /// Returns the sessions in the [audiences](Audience::session) of items, also of items that were
    /// removed since.
    pub fn sessions(&self) -> impl Iterator<Item = SessionKey> {
        self.restrictions.as_ref().map_or(&[][..], |it| &it.sessions).iter().copied()
    }

    /// Returns whether an item is for a session.
    #[cfg(feature = "http")]
    pub(crate) fn restricts_session(&self, session: SessionKey) -> bool {
        self.restrictions.as_ref().is_some_and(|it| it.sessions.binary_search(&session).is_ok())
    }

    fn remove_item(&mut self, id: ItemId) -> bool {
        let Some(Some(key)) =
            self.listing(id.kind()).issued(id.number()).map(|key| key.map(String::from))
        else {
            return false;
        };
        match id.kind() {
            ItemKind::Tool => self.remove_tool(&key).is_some(),
            ItemKind::Resource => self.remove_resource(&key).is_some(),
            ItemKind::ResourceTemplate => self.remove_resource_template(&key).is_some(),
            ItemKind::Prompt => self.remove_prompt(&key).is_some(),
        }
    }

    /// Returns the audience of an item, if it is restricted.
    #[must_use]
    pub fn audience(&self, id: ItemId) -> Option<&Audience> {
        self.restrictions.as_ref()?;
        self.listing(id.kind()).audience(id.number()).map(|audience| &**audience)
    }

    /// Returns the audience of the item that a request uses, if it is restricted. `subject` is the
    /// `name` or `uri` in its parameters.
    #[must_use]
    pub fn audience_of(&self, method: Method, subject: &str) -> Option<&Audience> {
        self.restrictions.as_ref()?;
        let id = match method {
            Method::ToolsCall => self.tools.resolve(subject)?.0,
            Method::PromptsGet => self.prompts.resolve(subject)?.0,
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::SubscriptionsListen => {
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
        let Some(restrictions) = &self.restrictions else { return true };
        let audience = self.listing(id.kind()).audience(id.number());
        audience.is_none_or(|audience| (restrictions.includes)(audience, caller))
    }

    /// Returns whether an item of a kind is restricted.
    pub(crate) fn restricts(&self, kind: ItemKind) -> bool {
        self.restrictions.as_ref().is_some_and(|it| it.items[kind as usize] > 0)
    }

    pub(super) const fn note_added(&mut self, kind: ItemKind) {
        let added = &mut self.added[kind as usize];
        *added = added.saturating_add(1);
    }

    pub(super) fn note_removed(&mut self, kind: ItemKind, audience: Option<&Arc<Audience>>) {
        self.note_change(kind, audience);
        if let (Some(restrictions), Some(_)) = (&mut self.restrictions, audience) {
            restrictions.items[kind as usize] -= 1;
        }
    }

    /// Notes a change of an item with this audience.
    pub(super) fn note_change(&mut self, kind: ItemKind, audience: Option<&Arc<Audience>>) {
        match (&mut self.restrictions, audience) {
            (Some(restrictions), Some(audience)) => {
                restrictions.changes.push((kind, Arc::clone(audience)));
            }
            _ => self.changes = self.changes.with(kind),
        }
    }
}
