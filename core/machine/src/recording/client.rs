//! Recorded clients: their settings, and their commands as lines.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::jsonrpc::RawJson;
use crate::peer::client::ClientRole;
use crate::peer::client::client_methods;
use crate::peer::{
    Applied, Client, ClientCommand, ClientMachine, ClientOptions, CommandError, Limits, MethodName,
    Policy, Timeouts,
};
use crate::protocol::{JsonAtRevision, Verbatim};
use crate::{Instant, Revision};

use super::arguments::{MISPLACED, Options, Unperformable, decoded, level, method, text};
use super::call::Call;
use super::every_revision::whole;
use super::recorded::{Notes, Recordable, Recorded};
use super::start::{Machine, Revisioned, Start, era, era_name};
use super::tape::Tape;

/// The settings of a client, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientSettings<'a> {
    #[serde(borrow)]
    identity: RawJson<'a>,
    revisions: Revisioned,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known_era: Option<alloc::borrow::Cow<'a, str>>,
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

impl Recorded<Client> {
    /// Creates a client that records its commands, inputs and outputs on `tape`, if there is one,
    /// from the first one on. See [`Client::new`].
    #[must_use]
    pub fn new(
        options: ClientOptions,
        seed: u64,
        now: Instant,
        tape: impl Into<Option<Tape>>,
    ) -> Self {
        let notes = tape.into().map(|mut tape| {
            let settings = Box::new(ClientSettings::from_options(&options));
            tape.write(&Start::new(Machine::Client { at: now.as_nanos(), options: settings }));
            Notes::new(tape)
        });
        Self::with(Client::new(options, seed, now), notes)
    }

    /// See [`Client::restart`].
    pub fn restart(&mut self, now: Instant) -> bool {
        self.note(|| Call::Restart { at: now.as_nanos() });
        self.machine.restart(now)
    }

    /// See [`Client::suspend`].
    pub fn suspend(&mut self) -> bool {
        self.note(|| Call::Suspend {});
        self.machine.suspend()
    }

    /// See [`Client::resume`].
    pub fn resume(&mut self, now: Instant) {
        self.note(|| Call::Reopen { at: now.as_nanos() });
        self.machine.resume(now);
    }
}

client_methods!(Recorded<Client>);

impl Recordable for Client {
    const NOTES_ALL_TIMES: bool = false;

    fn apply_noted(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.tape.note(call_of(self, &command, now));
        self.apply(command, now)
    }
}

/// Returns the line for a command.
pub(super) fn call_of<'c, M: ClientMachine + Recordable>(
    machine: &M,
    command: &'c ClientCommand<'_>,
    now: Instant,
) -> Call<'c> {
    // Nothing is written before a session exists, at any revision.
    let revision = machine.session().map_or(Revision::LATEST, |session| session.revision());
    let now = now.as_nanos();
    let at = M::NOTES_ALL_TIMES.then_some(now);
    match command {
        ClientCommand::Call { method, params, options } => Call::Started {
            at: now,
            method: method.as_str().into(),
            params: text(&JsonAtRevision(*params, revision)),
            options: Options::from_options(options),
            other: matches!(method, MethodName::Other(_)),
        },
        // The fields may be secrets.
        #[cfg(feature = "http")]
        ClientCommand::CallWithFields { method, params, options, .. } => Call::Started {
            at: now,
            method: method.as_str().into(),
            params: text(&JsonAtRevision(*params, revision)),
            options: Options::from_options(options),
            other: matches!(method, MethodName::Other(_)),
        },
        ClientCommand::Cancel { call, reason } => {
            Call::Cancel { at: now, call: (*call).into(), reason: (*reason).into() }
        }
        ClientCommand::Notify { method, params } => {
            Call::Notify { at, method: method.as_str().into(), params: text(*params) }
        }
        ClientCommand::NotifyOther { method, params } => {
            let method = (*method).into();
            Call::NotifyOther { at, request: None, method, params: text(*params) }
        }
        ClientCommand::Subscribe(filter) => Call::Subscribe { at: now, filter: whole(*filter) },
        #[cfg(feature = "http")]
        ClientCommand::SubscribeWithFields { filter, .. } => {
            Call::Subscribe { at: now, filter: whole(*filter) }
        }
        ClientCommand::SetLogLevel(level) => {
            Call::SetLogLevel { at: now, level: level.as_str().into() }
        }
        ClientCommand::AnswerInput { input, result } => {
            let result = text(&JsonAtRevision(*result, revision));
            Call::AnswerInput { at: now, input: (*input).into(), result }
        }
        ClientCommand::RefuseInput { input, error } => {
            Call::RefuseInput { at, input: (*input).into(), error: error.clone() }
        }
        ClientCommand::Respond { request, result } => {
            Call::Respond { at, request: (*request).into(), result: text(*result) }
        }
        ClientCommand::Reject { request, error } => {
            Call::Reject { at, request: (*request).into(), error: error.clone() }
        }
        ClientCommand::Close => Call::Close { at },
    }
}

/// Executes the command on a line. Its outcome is compared when it is recorded again.
pub(super) fn perform<M>(machine: &mut Recorded<M>, call: &Call<'_>) -> Result<(), Unperformable>
where
    M: ClientMachine + Recordable,
{
    let now = machine.time_of(call)?;
    let mut apply = |command: ClientCommand<'_>| drop(machine.apply(command, now));
    match call {
        Call::Started { method: name, params, options, other, .. } => {
            let (params, options) = (&Verbatim(params), &options.to_options()?);
            let method = match other {
                true => MethodName::Other((&**name).into()),
                false => MethodName::Known(method(name)?),
            };
            apply(ClientCommand::Call { method, params, options });
        }
        Call::Cancel { call, reason, .. } => {
            apply(ClientCommand::Cancel { call: call.to_call(), reason });
        }
        Call::Notify { method: name, params, .. } => {
            apply(ClientCommand::Notify { method: method(name)?, params });
        }
        Call::NotifyOther { method, params, .. } => {
            apply(ClientCommand::NotifyOther { method, params });
        }
        Call::SetLogLevel { level: name, .. } => apply(ClientCommand::SetLogLevel(level(name)?)),
        Call::Subscribe { filter, .. } => apply(ClientCommand::Subscribe(&decoded(filter)?)),
        Call::AnswerInput { input, result, .. } => {
            let (input, result) = (input.to_handle(), &Verbatim(result));
            apply(ClientCommand::AnswerInput { input, result });
        }
        Call::RefuseInput { input, error, .. } => {
            let (input, error) = (input.to_handle(), error.clone());
            apply(ClientCommand::RefuseInput { input, error });
        }
        Call::Respond { request, result, .. } => {
            apply(ClientCommand::Respond { request: request.to_request(), result });
        }
        Call::Reject { request, error, .. } => {
            let (request, error) = (request.to_request(), error.clone());
            apply(ClientCommand::Reject { request, error });
        }
        Call::Close { .. } => apply(ClientCommand::Close),
        _ => return Err(MISPLACED),
    }
    Ok(())
}

impl Recorded<Client> {
    pub(super) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        match call {
            Call::Restart { at } => {
                let _ = self.restart(Instant::from_nanos(*at));
                Ok(())
            }
            Call::Suspend {} => {
                let _ = self.suspend();
                Ok(())
            }
            Call::Reopen { at } => {
                self.resume(Instant::from_nanos(*at));
                Ok(())
            }
            call => match self.perform_on_stream(call)? {
                true => Ok(()),
                false => perform(self, call),
            },
        }
    }
}
