//! Recorded clients: their settings, and their commands as lines.

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::jsonrpc::RawJson;
use crate::peer::client::ClientRole;
use crate::peer::{
    Applied, Client, ClientCommand, ClientMachine, ClientOptions, CommandError, Limits, Policy,
    Timeouts,
};
use crate::{Instant, Revision};

use super::arguments::{Unperformable, decoded};
use super::call::Call;
use super::recorded::{Notes, Recordable, Recorded};
use super::start::{Machine, Revisioned, Start, era, era_name};
use super::tape::Tape;
use crate::protocol::whole;

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

impl Recordable for Client {
    fn apply_noted(
        &mut self,
        command: ClientCommand<'_>,
        now: Instant,
        notes: &mut Notes,
    ) -> Result<Applied, CommandError> {
        notes.tape.note(command_line(self, command.clone(), now));
        self.apply(command, now)
    }
}

/// Returns the line for a command.
pub(super) fn command_line<'c>(
    machine: &impl ClientMachine,
    command: ClientCommand<'c>,
    now: Instant,
) -> Call<'c> {
    // Nothing is written before a session exists, at any revision.
    let revision = machine.session().map_or(Revision::LATEST, |session| session.revision());
    // The fields may be secrets.
    let (mut command, _) = command.split_fields();
    if let Some(body) = command.body_mut() {
        *body = body.clone().to_text(revision);
    }
    Call::ClientCommand { at: now.as_nanos(), command }
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
            Call::ClientCommand { at, command } => {
                drop(self.apply(command.clone(), Instant::from_nanos(*at)));
                Ok(())
            }
            call => self.perform_on_stream(call),
        }
    }
}
