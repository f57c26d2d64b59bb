//! The first line of a recording: the kind of the machine and its settings.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use mcp_sansio_sync::Arc;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::call::{Unperformable, decoded};
use super::exchange::StandIns;
use crate::binding::HeaderFields;
use crate::catalog::snapshot::{self, NUMBER_MAX, Snapshot};
use crate::catalog::{Announcement, Audience, Catalog, Changes, ItemKind};
use crate::http::origin::HostTexts;
use crate::http::{
    AllowedHosts, ClientLimits, EventStore, HttpClientOptions, HttpServerOptions, Location,
    LostSession, ResponseMode, ServerLimits, ServerTimeouts,
};
use crate::jsonrpc::RawJson;
use crate::peer::client::ClientRole;
use crate::peer::server::ServerRole;
use crate::peer::{ClientOptions, Limits, Policy, ServerOptions, Timeouts};
use crate::protocol::{CacheHints, SerializeAt, Ttl, whole};
use crate::{Backoff, Era, Principal, Revision, Revisions, SessionKey};

/// The version of the format: see `docs/guide/recording.md`.
pub const FORMAT: u32 = 2;

/// The first line, before all calls.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start<'a> {
    recording: u32,
    /// The version of the crate that wrote it.
    pub(crate) version: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) machine: Machine<'a>,
}

/// A machine: its role, its transport and its settings.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Machine<'a> {
    Server(#[serde(borrow)] Box<ServerSettings<'a>>),
    Client {
        at: u64,
        #[serde(borrow)]
        options: Box<ClientSettings<'a>>,
    },
    HttpServer {
        #[serde(borrow)]
        options: Box<ServerSettings<'a>>,
        #[serde(borrow)]
        http: Box<HttpServerSettings<'a>>,
    },
    HttpClient {
        at: u64,
        /// Seeds the jitter of retries.
        seed: u64,
        #[serde(borrow)]
        options: Box<ClientSettings<'a>>,
        #[serde(borrow)]
        http: Box<HttpClientSettings<'a>>,
    },
}

impl<'a> Start<'a> {
    pub(crate) const fn new(machine: Machine<'a>) -> Self {
        Self { recording: FORMAT, version: Cow::Borrowed(env!("CARGO_PKG_VERSION")), machine }
    }
}

/// Revisions by name, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revisioned(pub(crate) Revisions);

impl Serialize for Revisioned {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Revision::as_str))
    }
}

impl<'de> Deserialize<'de> for Revisioned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut revisions = Revisions::NONE;
        for name in Vec::<Cow<'de, str>>::deserialize(deserializer)? {
            let unknown = || D::Error::custom("the revision is unknown");
            let revision = Revision::parse(&name).ok_or_else(unknown)?;
            revisions = revisions.union(Revisions::only(revision));
        }
        Ok(Self(revisions))
    }
}

pub(crate) const fn era_name(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

pub(crate) fn era(name: &str) -> Result<Era, Unperformable> {
    let mut eras = [Era::Legacy, Era::Modern].into_iter();
    eras.find(|era| era_name(*era) == name).ok_or(Unperformable("the era is unknown"))
}

/// The settings of a client, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientSettings<'a> {
    #[serde(borrow)]
    identity: RawJson<'a>,
    revisions: Revisioned,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known_era: Option<Cow<'a, str>>,
    #[serde(borrow)]
    capabilities: RawJson<'a>,
    anonymous: bool,
    limits: Limits,
    timeouts: Timeouts,
    policy: Policy,
}

impl ClientSettings<'_> {
    pub(super) fn from_options(options: &ClientOptions) -> Self {
        let ClientOptions { role: ClientRole { identity, known_era, .. }, config, revisions } =
            options;
        Self {
            identity: whole(&identity.implementation),
            revisions: Revisioned(*revisions),
            known_era: known_era.map(|era| era_name(era).into()),
            capabilities: whole(&identity.capabilities),
            anonymous: identity.anonymous,
            limits: config.limits.clone(),
            timeouts: config.timeouts.clone(),
            policy: config.policy.clone(),
        }
    }

    pub(super) fn to_options(&self) -> Result<ClientOptions, Unperformable> {
        let mut options = ClientOptions::new(decoded(&self.identity)?)
            .revisions(self.revisions.0)
            .capabilities(decoded(&self.capabilities)?)
            .limits(self.limits.clone())
            .timeouts(self.timeouts.clone())
            .policy(self.policy.clone());
        if let Some(name) = &self.known_era {
            options = options.known_era(era(name)?);
        }
        Ok(if self.anonymous { options.anonymous() } else { options })
    }
}

/// The settings of a server, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSettings<'a> {
    #[serde(borrow)]
    identity: RawJson<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<Cow<'a, str>>,
    revisions: Revisioned,
    #[serde(borrow)]
    capabilities: RawJson<'a>,
    #[serde(borrow)]
    catalog: State<'a>,
    cache: (u64, Cow<'a, str>),
    anonymous: bool,
    limits: Limits,
    timeouts: Timeouts,
    policy: Policy,
}

impl<'a> ServerSettings<'a> {
    pub(super) fn from_options(options: &'a ServerOptions, names: Names<'_>) -> Self {
        let ServerOptions { role: ServerRole { identity, catalog }, config, revisions } = options;
        let cache = (identity.cache.ttl.0, Cow::Owned(alloc::format!("{}", identity.cache.scope)));
        Self {
            identity: whole(&identity.implementation),
            instructions: identity.instructions.as_deref().map(Cow::Borrowed),
            revisions: Revisioned(*revisions),
            capabilities: whole(&identity.capabilities),
            catalog: State::from_catalog(catalog, names),
            cache,
            anonymous: identity.identity_meta.is_empty(),
            limits: config.limits.clone(),
            timeouts: config.timeouts.clone(),
            policy: config.policy.clone(),
        }
    }

    pub(super) fn to_options(&self) -> Result<ServerOptions, Unperformable> {
        let (ttl, scope) = &self.cache;
        let scope = alloc::format!("\"{scope}\"");
        let scope = decoded(&RawJson::trusted(&scope))?;
        let mut options = ServerOptions::new(decoded(&self.identity)?)
            .revisions(self.revisions.0)
            .capabilities(decoded(&self.capabilities)?)
            .catalog(self.catalog.to_catalog()?)
            .cache(CacheHints { ttl: Ttl(*ttl), scope })
            .limits(self.limits.clone())
            .timeouts(self.timeouts.clone())
            .policy(self.policy.clone());
        if let Some(instructions) = &self.instructions {
            options = options.instructions(&**instructions);
        }
        Ok(if self.anonymous { options.anonymous() } else { options })
    }
}

/// The server URL and the HTTP settings of the client, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpClientSettings<'a> {
    url: Cow<'a, str>,
    limits: ClientLimits,
    backoff: Backoff,
    lost_session: LostSession,
    listen: bool,
    old_transport: bool,
}

impl<'a> HttpClientSettings<'a> {
    pub(super) fn from_options(options: &'a HttpClientOptions, stand_ins: StandIns) -> Self {
        Self {
            url: stand_ins.url(options.url.as_str()).into(),
            limits: options.limits.clone(),
            backoff: options.backoff,
            lost_session: options.lost_session,
            listen: options.listen,
            old_transport: options.old_transport,
        }
    }

    pub(super) fn to_options(&self) -> Result<HttpClientOptions, Unperformable> {
        let url = Location::parse(&self.url);
        Ok(HttpClientOptions {
            url: url.map_err(|_| Unperformable("the server URL is malformed"))?,
            // They may be secrets, so recordings do not contain them.
            headers: HeaderFields::new(),
            limits: self.limits.clone(),
            backoff: self.backoff,
            lost_session: self.lost_session,
            listen: self.listen,
            old_transport: self.old_transport,
        })
    }
}

/// The HTTP settings of a server, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpServerSettings<'a> {
    path: Option<Cow<'a, str>>,
    event_path: Option<Cow<'a, str>>,
    message_path: Option<Cow<'a, str>>,
    hosts: HostTexts,
    answers: ResponseMode,
    event_store: EventStore,
    limits: ServerLimits,
    timeouts: ServerTimeouts,
}

impl<'a> HttpServerSettings<'a> {
    pub(super) fn from_options(options: &'a HttpServerOptions) -> Self {
        Self {
            path: options.path.as_deref().map(Cow::Borrowed),
            event_path: options.event_path.as_deref().map(Cow::Borrowed),
            message_path: options.message_path.as_deref().map(Cow::Borrowed),
            hosts: options.hosts.texts(),
            answers: options.answers,
            event_store: options.event_store,
            limits: options.limits.clone(),
            timeouts: options.timeouts.clone(),
        }
    }

    pub(super) fn to_options(&self) -> Result<HttpServerOptions, Unperformable> {
        let owned = |path: &Option<Cow<'_, str>>| path.as_deref().map(String::from);
        let hosts = AllowedHosts::from_texts(&self.hosts);
        Ok(HttpServerOptions {
            path: owned(&self.path),
            event_path: owned(&self.event_path),
            message_path: owned(&self.message_path),
            hosts: hosts.map_err(|_| Unperformable("a host is malformed"))?,
            kept_headers: Vec::new(),
            answers: self.answers,
            event_store: self.event_store,
            shared: None,
            limits: self.limits.clone(),
            timeouts: self.timeouts.clone(),
        })
    }
}

/// The contents of a catalog [`Snapshot`].
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct State<'a> {
    #[serde(borrow)]
    tools: Entries<'a>,
    #[serde(borrow)]
    resources: Entries<'a>,
    #[serde(borrow)]
    resource_templates: Entries<'a>,
    #[serde(borrow)]
    prompts: Entries<'a>,
    managed: Changes,
    legacy_tasks: bool,
    page_size: Option<NonZeroUsize>,
    list_changed: bool,
    subscribe: bool,
}

/// A list: its entries with their numbers, and the audiences of some of them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entries<'a> {
    next: u64,
    #[serde(borrow)]
    entries: Vec<(u64, RawJson<'a>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    audiences: Vec<(u64, RecordedAudience)>,
}

/// An [`Audience`], with stand-ins for its principals.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedAudience {
    scopes: Vec<String>,
    principals: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sessions: Vec<u64>,
}

/// Returns the stand-ins for the names in an [`Audience`].
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) principal: &'a dyn Fn(&Principal) -> String,
    /// The key that the session has in a replay.
    pub(crate) session: &'a dyn Fn(SessionKey) -> SessionKey,
}

impl RecordedAudience {
    fn from_audience(audience: &Audience, names: Names<'_>) -> Self {
        let conditions = audience.condition_scopes(None);
        let sessions = audience.sessions().iter().copied().map(names.session);
        Self {
            scopes: audience.scopes().iter().cloned().chain(conditions).collect(),
            principals: audience.principals().iter().map(names.principal).collect(),
            sessions: sessions.map(SessionKey::to_number).collect(),
        }
    }

    fn to_audience(&self) -> Audience {
        let with_scopes = self.scopes.iter().fold(Audience::new(), Audience::scope);
        let principals = self.principals.iter().map(|name| Principal::new(name.as_str()));
        let sessions = self.sessions.iter().copied().filter_map(SessionKey::from_number);
        sessions.fold(principals.fold(with_scopes, Audience::principal), Audience::session)
    }
}

/// A change of restricted items: its list, and those who can see it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RestrictedChange(Changes, RecordedAudience);

impl RestrictedChange {
    pub(crate) fn from_announcement(announcement: &Announcement, names: Names<'_>) -> Vec<Self> {
        let changes = announcement.to_some.iter().map(|(kind, audience)| {
            let kinds = Changes::default().with(*kind);
            Self(kinds, RecordedAudience::from_audience(audience, names))
        });
        changes.collect()
    }

    pub(crate) fn to_announcement(changes: &[Self], to_everyone: Changes) -> Announcement {
        let to_some = changes.iter().map(|Self(kinds, audience)| {
            let kind = match kinds {
                Changes { tools: true, .. } => ItemKind::Tool,
                Changes { prompts: true, .. } => ItemKind::Prompt,
                _ => ItemKind::Resource,
            };
            (kind, Arc::new(audience.to_audience()))
        });
        Announcement::new(to_everyone, to_some.collect())
    }
}

impl Entries<'_> {
    fn from_list<M: SerializeAt + Clone>(
        list: &snapshot::Entries<'_, M>,
        names: Names<'_>,
    ) -> Self {
        let entries = list.entries.iter();
        let audiences = entries.clone().filter_map(|(number, _, audience)| {
            Some((*number, RecordedAudience::from_audience(audience.as_ref()?, names)))
        });
        let audiences = audiences.collect();
        let entries = entries.map(|(number, item, _)| (*number, whole(&**item))).collect();
        Self { next: list.next, entries, audiences }
    }

    fn to_list<M: DeserializeOwned + Clone>(
        &self,
    ) -> Result<snapshot::Entries<'static, M>, Unperformable> {
        let numbers = self.entries.iter().map(|(number, _)| *number).chain([self.next]);
        if numbers.max() > Some(NUMBER_MAX) {
            return Err(Unperformable("the number of an entry is too large"));
        }
        let entries = self.entries.iter();
        let entries = entries
            .map(|(number, json)| {
                let audience = self.audiences.iter().find(|(restricted, _)| restricted == number);
                let audience = audience.map(|(_, audience)| audience.to_audience());
                Ok((*number, Cow::Owned(decoded(json)?), audience))
            })
            .collect::<Result<_, Unperformable>>()?;
        Ok(snapshot::Entries { next: self.next, entries })
    }
}

impl State<'_> {
    pub(crate) fn from_catalog(catalog: &Catalog, names: Names<'_>) -> Self {
        let snapshot = Snapshot::new(catalog);
        Self {
            tools: Entries::from_list(&snapshot.tools, names),
            resources: Entries::from_list(&snapshot.resources, names),
            resource_templates: Entries::from_list(&snapshot.templates, names),
            prompts: Entries::from_list(&snapshot.prompts, names),
            managed: snapshot.managed,
            legacy_tasks: snapshot.legacy_tasks,
            page_size: snapshot.page_size,
            list_changed: snapshot.list_changed,
            subscribe: snapshot.subscribe,
        }
    }

    pub(crate) fn to_catalog(&self) -> Result<Catalog, Unperformable> {
        let snapshot = Snapshot {
            tools: self.tools.to_list()?,
            resources: self.resources.to_list()?,
            templates: self.resource_templates.to_list()?,
            prompts: self.prompts.to_list()?,
            managed: self.managed,
            legacy_tasks: self.legacy_tasks,
            page_size: self.page_size,
            list_changed: self.list_changed,
            subscribe: self.subscribe,
        };
        Ok(snapshot.into_catalog())
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::protocol::{Method, Prompt, Revision};

    #[test]
    fn a_recorded_catalog_keeps_its_entry_numbers() {
        let mut catalog = Catalog::new();
        catalog.page_size(NonZeroUsize::new(1)).list_changed(false);
        for name in ["a", "b", "c", "d"] {
            catalog.add_prompt(Prompt::new(name)).unwrap();
        }
        catalog.remove_prompt("a");
        catalog.remove_prompt("d");
        let _taken = catalog.take_changes();
        let names = Names { principal: &|it| it.as_str().into(), session: &|it| it };
        let text = serde_json::to_string(&State::from_catalog(&catalog, names)).unwrap();
        let state: State<'_> = serde_json::from_str(&text).unwrap();
        let mut again = state.to_catalog().unwrap();
        assert_eq!(serde_json::to_string(&State::from_catalog(&again, names)).unwrap(), text);
        assert!(again.manages(Method::PromptsGet) && !again.manages(Method::ToolsCall));
        for catalog in [&mut catalog, &mut again] {
            catalog.add_prompt(Prompt::new("e")).unwrap();
        }
        // Cursors contain these numbers.
        let mut cursor = RawJson::EMPTY_OBJECT;
        for _ in 0..3 {
            let page = |catalog: &Catalog, params: &RawJson<'_>| {
                let page = catalog.list(
                    Method::PromptsList,
                    params,
                    Revision::LATEST,
                    &CacheHints::default(),
                    &crate::Caller::OWNER,
                );
                let mut out = String::new();
                crate::jsonrpc::WriteJson::write_json(&page.unwrap(), &mut out).unwrap();
                out
            };
            let text = page(&catalog, &cursor);
            assert_eq!(page(&again, &cursor), text);
            let next = RawJson::parse(&text).unwrap().get("nextCursor").map(|it| format!("{it}"));
            let Some(next) = next else { break };
            cursor = RawJson::parse(&format!(r#"{{"cursor":{next}}}"#)).unwrap().into_owned();
        }
    }
}
