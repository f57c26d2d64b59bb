//! Recorded servers: their settings, and their commands as lines.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcp_sansio_collections::KeyedHash;
use serde::{Deserialize, Serialize};

use super::catalog::{Names, State};
use crate::catalog::{Announcement, Catalog, Changes};
use crate::jsonrpc::{ErrorObject, RawJson};

use crate::peer::server::ServerRole;
use crate::peer::{
    Applied, CommandError, Limits, Policy, Server, ServerCommand, ServerMachine, ServerOptions,
    Timeouts,
};
use crate::protocol::{CacheHints, Ttl};
use crate::{Instant, Principal, Revision, SessionKey};

use super::arguments::{Unperformable, decoded};
use super::call::Call;
use super::recorded::{Notes, Recordable, Recorded};
use super::replay;
use super::start::{Machine, Revisioned, Start};
use super::tape::Tape;
use crate::protocol::whole;

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

impl Recorded<Server> {
    /// Creates a server that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on. See [`Server::new`].
    #[must_use]
    pub fn new(options: ServerOptions, seed: u64, tape: impl Into<Option<Tape>>) -> Self {
        let notes = tape.into().map(|mut tape| {
            let names = Names { principal: &unchanged, session: &|it| it };
            let settings = Box::new(ServerSettings::from_options(&options, names));
            tape.write(&Start::new(Machine::Server(settings)));
            Notes::new(tape)
        });
        Self::with(Server::new(options, seed), notes)
    }

    /// See [`Server::catch_panics`].
    pub fn catch_panics(&mut self, guard: crate::PanicGuard) {
        self.machine.catch_panics(guard);
    }

    /// See [`Server::edit_catalog`].
    pub fn edit_catalog<T>(&mut self, edit: impl FnOnce(&mut Catalog) -> T) -> T {
        if self.notes.is_none() {
            return self.machine.edit_catalog(edit);
        }
        let mut changed = Changes::default();
        let caller = self.machine.caller().clone();
        let edited = self.machine.edit_catalog(|catalog| {
            let edited = edit(catalog);
            let announcement = catalog.take_announcement();
            changed = announcement.seen_by(&caller);
            catalog.set_announcement(announcement);
            edited
        });
        self.note_catalog(changed);
        edited
    }

    fn note_catalog(&mut self, changed: Changes) {
        if let Some(notes) = &mut self.notes {
            let own = self.machine.session_key();
            // A replay has no seed.
            let in_replay = SessionKey::from_hasher(&KeyedHash::with_seed(replay::SEED));
            let session = |it| if it == own { in_replay } else { it };
            let names = Names { principal: &unchanged, session: &session };
            let catalog = State::from_catalog(self.machine.catalog(), names);
            let changed_for = Vec::new();
            notes.tape.note(Call::Catalog { at: None, catalog, changed, changed_for });
        }
    }

    pub(super) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        if let Call::Catalog { catalog, changed, .. } = call {
            let state = catalog.to_catalog()?;
            self.edit_catalog(|catalog| {
                *catalog = state;
                catalog.set_announcement(Announcement::new(*changed, Vec::new()));
            });
            return Ok(());
        }
        if let Call::ServerCommand { at, command } = call {
            drop(self.apply(command.clone(), Instant::from_nanos(*at)));
            return Ok(());
        }
        self.perform_on_stream(call)
    }
}

impl Recordable for Server {
    fn apply_noted(
        &mut self,
        command: ServerCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        apply_noted(self, command, now, notes)
    }
}

/// Executes a command and records it.
pub(super) fn apply_noted<M: ServerMachine + Recordable>(
    machine: &mut M,
    command: ServerCommand<'_>,
    now: Instant,
    notes: &mut Notes,
) -> Result<Applied, CommandError> {
    let at = now.as_nanos();
    if let ServerCommand::RequireInput { request, .. } = &command {
        let (noted, request) = (command.clone(), request.handle);
        let applied = machine.apply(command, now);
        let command = match &applied {
            // The refusal may be due to the length of the request, which is not recorded. The
            // response is recorded instead.
            Err(CommandError::InputNotAllowed(what)) => {
                ServerCommand::Reject { request, error: ErrorObject::internal(*what) }
            }
            _ => noted,
        };
        notes.tape.note(Call::ServerCommand { at, command });
        return applied;
    }
    let mut noted = command.clone();
    // Nothing is written for a request that is not pending, at any revision.
    let revision = command.request().and_then(|request| machine.revision_of(request));
    if let Some(body) = noted.body_mut() {
        *body = body.clone().to_text(revision.unwrap_or(Revision::LATEST));
    }
    if let ServerCommand::TaskChanged { principal: Some(principal), .. } = &mut noted {
        *principal = Cow::Owned(Principal::new(notes.principal(principal)));
    }
    notes.tape.note(Call::ServerCommand { at, command: noted });
    machine.apply(command, now)
}

impl Notes {
    pub(super) fn principal(&self, principal: &Principal) -> String {
        #[cfg(feature = "http")]
        return self.stand_ins.principal(principal);
        #[cfg(not(feature = "http"))]
        principal.as_str().into()
    }
}

/// Returns the name of a principal in recordings of byte streams, whose sender it never is.
fn unchanged(principal: &Principal) -> String {
    principal.as_str().into()
}
