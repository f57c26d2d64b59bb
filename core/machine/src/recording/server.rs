//! Recorded servers: their settings, and their commands as lines.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio_collections::KeyedHash;
use serde::{Deserialize, Serialize};

use super::catalog::{Kinds, Names, State};
use crate::catalog::Catalog;
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::peer::metadata::Places;

use crate::peer::server::{ServerRole, server_methods, stream_server_methods};
use crate::peer::{
    Applied, CommandError, InputResponseParams, Limits, MethodName, Policy, Request, RequestHandle,
    Server, ServerCommand, ServerMachine, ServerOptions, Timeouts,
};
use crate::protocol::{
    CacheHints, Capabilities, InputRequiredResult, JsonAtRevision, Method, Ttl, Verbatim,
};
use crate::{Caller, Instant, Principal, Revision, SessionKey};

use super::arguments::{MISPLACED, Options, Unperformable, decoded, level, method, number, text};
use super::call::Call;
use super::every_revision::{WholeInput, whole};
use super::handle::Handle;
use super::recorded::{Notes, Recordable, Recorded};
use super::replay;
use super::start::{Machine, Revisioned, Start};
use super::tape::Tape;

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
        let mut changes = crate::catalog::Changes::default();
        let caller = self.machine.caller().clone();
        let edited = self.machine.edit_catalog(|catalog| {
            let edited = edit(catalog);
            let announcement = catalog.take_announcement();
            changes = announcement.seen_by(&caller);
            catalog.set_announcement(announcement);
            edited
        });
        self.note_catalog();
        self.note(|| Call::Announce { at: None, changed: Kinds::from_changes(changes) });
        edited
    }

    fn note_catalog(&mut self) {
        if let Some(notes) = &mut self.notes {
            let own = self.machine.session_key();
            // A replay has no seed.
            let in_replay = SessionKey::from_hasher(&KeyedHash::with_seed(replay::SEED));
            let session = |it| if it == own { in_replay } else { it };
            let names = Names { principal: &unchanged, session: &session };
            let catalog = State::from_catalog(self.machine.catalog(), names);
            let changed_for = Vec::new();
            notes.tape.note(Call::Catalog { at: None, catalog, changed: None, changed_for });
        }
    }

    pub(super) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        if let Call::Catalog { catalog, changed: None, .. } = call {
            let state = catalog.to_catalog()?;
            // List changes for clients are recorded on their own line.
            self.machine.edit_catalog(|catalog| {
                *catalog = state;
                let _told = catalog.take_changes();
            });
            self.note_catalog();
            return Ok(());
        }
        match self.perform_on_stream(call)? {
            true => Ok(()),
            false => perform(self, call),
        }
    }
}

server_methods!(Recorded<Server>);
stream_server_methods!(Recorded<Server>);

impl Recordable for Server {
    const NOTES_ALL_TIMES: bool = false;

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
    if let ServerCommand::RequireInput { request, required } = command {
        let (handle, method) = (request.handle, request.method.as_str().to_string());
        let applied = machine.apply(ServerCommand::RequireInput { request, required }, now);
        let (now, request) = (now.as_nanos(), handle.into());
        notes.tape.note(match &applied {
            // The refusal may be due to the length of the request, which is not recorded. The
            // response is recorded instead.
            Err(CommandError::InputNotAllowed(what)) => Call::Reject {
                at: M::NOTES_ALL_TIMES.then_some(now),
                request,
                error: ErrorObject::internal(*what),
            },
            _ => {
                let (method, required) = (method.into(), whole(&WholeInput(required)));
                Call::RequireInput { at: now, request, method, required }
            }
        });
        return applied;
    }
    notes.tape.note(call_of(machine, &command, now, notes));
    machine.apply(command, now)
}

/// Returns the line for a command, or `None` if it cannot be written and therefore has no effect.
fn call_of<'c, M: ServerMachine + Recordable>(
    machine: &M,
    command: &'c ServerCommand<'_>,
    now: Instant,
    notes: &Notes,
) -> Option<Call<'c>> {
    let now = now.as_nanos();
    let at = M::NOTES_ALL_TIMES.then_some(now);
    Some(match command {
        ServerCommand::Call { method, params, options } => Call::Started {
            at: now,
            method: method.as_str().into(),
            params: text(*params),
            options: Options::from_options(options),
            other: false,
        },
        ServerCommand::Cancel { call, reason } => {
            Call::Cancel { at: now, call: (*call).into(), reason: (*reason).into() }
        }
        ServerCommand::Notify { method, params } => {
            Call::Notify { at, method: method.as_str().into(), params: text(*params) }
        }
        ServerCommand::NotifyOther { request, method, params } => {
            let (request, method) = (Some((*request).into()), (*method).into());
            Call::NotifyOther { at, request, method, params: text(*params) }
        }
        ServerCommand::Respond { request, result } => {
            // Nothing is written for a request that is not pending, at any revision.
            let revision = machine.revision_of(*request).unwrap_or(Revision::LATEST);
            let result = text(&JsonAtRevision(*result, revision));
            Call::Respond { at, request: (*request).into(), result }
        }
        ServerCommand::Reject { request, error } => {
            Call::Reject { at, request: (*request).into(), error: error.clone() }
        }
        ServerCommand::RequireInput { request, required } => Call::RequireInput {
            at: now,
            request: request.handle.into(),
            method: request.method.as_str().into(),
            required: whole(&WholeInput(required)),
        },
        ServerCommand::WithdrawInput(request) => {
            Call::WithdrawInput { at: now, request: (*request).into() }
        }
        ServerCommand::Progress { request, progress, total, message } => Call::Progress {
            at: now,
            request: (*request).into(),
            progress: progress.to_string().into(),
            total: total.map(|total| total.to_string().into()),
            message: message.map(Cow::Borrowed),
        },
        ServerCommand::TaskProgress { request, params } => {
            Call::TaskProgress { at, request: (*request).into(), params: text(*params) }
        }
        ServerCommand::Log { request, level, logger, data } => Call::Log {
            at,
            request: request.map(Handle::from),
            level: level.as_str().into(),
            logger: logger.map(Cow::Borrowed),
            data: text(*data)?,
        },
        ServerCommand::ResourceUpdated { uri } => Call::ResourceUpdated { at, uri: (*uri).into() },
        ServerCommand::TaskChanged { status, principal } => Call::TaskChanged {
            at,
            status: whole(*status),
            principal: principal.map(|principal| notes.principal(principal).into()),
        },
        ServerCommand::Announce(changes) => {
            Call::Announce { at, changed: Kinds::from_changes(*changes) }
        }
        ServerCommand::Close => Call::Close { at },
    })
}

/// Executes the command on a line. Its outcome is compared when it is recorded again.
pub(super) fn perform<M>(machine: &mut Recorded<M>, call: &Call<'_>) -> Result<(), Unperformable>
where
    M: ServerMachine + Recordable,
{
    let now = machine.time_of(call)?;
    let mut apply = |command: ServerCommand<'_>| drop(machine.apply(command, now));
    match call {
        Call::Started { method: name, params, options, other: false, .. } => {
            let (method, options) = (method(name)?, &options.to_options()?);
            apply(ServerCommand::Call { method, params, options });
        }
        Call::Cancel { call, reason, .. } => {
            apply(ServerCommand::Cancel { call: call.to_call(), reason });
        }
        Call::Notify { method: name, params, .. } => {
            apply(ServerCommand::Notify { method: method(name)?, params });
        }
        Call::NotifyOther { request: Some(request), method, params, .. } => {
            let request = request.to_request();
            apply(ServerCommand::NotifyOther { request, method, params });
        }
        Call::Respond { request, result, .. } => {
            let (request, result) = (request.to_request(), &Verbatim(result));
            apply(ServerCommand::Respond { request, result });
        }
        Call::Reject { request, error, .. } => {
            let (request, error) = (request.to_request(), error.clone());
            apply(ServerCommand::Reject { request, error });
        }
        Call::RequireInput { request, method, required, .. } => {
            let required = &decoded::<InputRequiredResult>(required)?;
            let request = bare_request(request.to_request(), method);
            apply(ServerCommand::RequireInput { request: &request, required });
        }
        Call::WithdrawInput { request, .. } => {
            apply(ServerCommand::WithdrawInput(request.to_request()));
        }
        Call::TaskProgress { request, params, .. } => {
            apply(ServerCommand::TaskProgress { request: request.to_request(), params });
        }
        Call::Progress { request, progress, total, message, .. } => {
            let (progress, total) = (number(progress)?, total.as_deref().map(number).transpose()?);
            let (request, message) = (request.to_request(), message.as_deref());
            apply(ServerCommand::Progress { request, progress, total, message });
        }
        Call::Log { request, level: name, logger, data, .. } => {
            let (request, level) = (request.map(Handle::to_request), level(name)?);
            apply(ServerCommand::Log { request, level, logger: logger.as_deref(), data });
        }
        Call::ResourceUpdated { uri, .. } => apply(ServerCommand::ResourceUpdated { uri }),
        Call::TaskChanged { status, principal, .. } => {
            let principal = principal.as_deref().map(Principal::new);
            let (status, principal) = (&decoded(status)?, principal.as_ref());
            apply(ServerCommand::TaskChanged { status, principal });
        }
        Call::Announce { changed, .. } => apply(ServerCommand::Announce(changed.to_changes())),
        Call::Close { .. } => apply(ServerCommand::Close),
        _ => return Err(MISPLACED),
    }
    Ok(())
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

/// Returns a request without content for an input request. Only applications use the content.
fn bare_request<'a>(handle: RequestHandle, method: &'a str) -> Request<'a> {
    let other = || MethodName::Other(method.into());
    Request {
        handle,
        method: Method::parse(method).map_or_else(other, MethodName::Known),
        params: RawJson::EMPTY_OBJECT,
        revision: Revision::LATEST,
        capabilities: Capabilities::NONE,
        wants_progress: false,
        inputs: InputResponseParams::default(),
        target: crate::catalog::Target::None,
        places: Places::default(),
        caller: Caller::ANONYMOUS,
    }
}
