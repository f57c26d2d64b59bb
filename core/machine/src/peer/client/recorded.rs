//! A client on tape: what it is made of, and what its calls are when they are read back.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Instant;
use crate::jsonrpc::RawJson;
use crate::peer::{Limits, Policy, Timeouts};
use crate::recording::{
    Call, MISPLACED, Machine, Revisioned, Start, Tape, Unperformable, decoded, era, era_name,
    level, method, whole,
};

use super::{Client, ClientOptions};

/// What a client is made of, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings<'a> {
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

impl Settings<'_> {
    pub(crate) fn of(options: &ClientOptions) -> Self {
        let ClientOptions { profile, terms, revisions, known_era } = options;
        Self {
            identity: whole(&profile.identity),
            revisions: Revisioned(*revisions),
            known_era: known_era.map(|era| era_name(era).into()),
            capabilities: whole(&profile.capabilities),
            anonymous: profile.anonymous,
            limits: terms.limits.clone(),
            timeouts: terms.timeouts.clone(),
            policy: terms.policy.clone(),
        }
    }

    pub(crate) fn to_options(&self) -> Result<ClientOptions, Unperformable> {
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

impl Client {
    /// A client like that of [`new`](Self::new) whose calls are noted on `tape`, from the first one
    /// on.
    #[must_use]
    pub fn recorded(options: ClientOptions, seed: u64, now: Instant, mut tape: Tape) -> Self {
        let settings = Box::new(Settings::of(&options));
        tape.write(&Start::of(Machine::Client { at: now.as_nanos(), options: settings }));
        Self { tape: Some(Box::new(tape)), ..Self::new(options, seed, now) }
    }

    pub(crate) fn take_notes(&mut self) -> Vec<u8> {
        self.tape.as_mut().map_or_else(Vec::new, |tape| tape.take())
    }

    /// Makes the call that a line tells of.
    pub(crate) fn perform(&mut self, call: &Call<'_>) -> Result<(), Unperformable> {
        let at = Instant::from_nanos;
        // What comes of a call is compared when it is noted again.
        match call {
            Call::Message { at: now, frame, .. } => {
                let _ = self.handle_message(&frame.bytes()?, at(*now));
            }
            Call::FrameError { error, .. } => {
                let _ = self.handle_frame_error((*error).into());
            }
            Call::EndOfInput {} => self.handle_eof(),
            Call::Restart { at: now } => {
                let _ = self.restart(at(*now));
            }
            Call::Timeout { at: now } => self.handle_timeout(at(*now)),
            Call::Started { at: now, method: name, params, options, other } => {
                let (options, now) = (options.to_options()?, at(*now));
                let _ = if *other {
                    self.call_other(name, params, &options, now)
                } else {
                    self.call(method(name)?, params, &options, now)
                };
            }
            Call::Cancel { at: now, call, reason } => {
                self.cancel(call.to_call(), reason, at(*now));
            }
            Call::Notify { method: name, params, .. } => {
                let _ = self.notify(method(name)?, params);
            }
            Call::SetLogLevel { at: now, level: name } => {
                let _ = self.set_log_level(level(name)?, at(*now));
            }
            Call::Subscribe { at: now, filter } => {
                let _ = self.subscribe(&decoded(filter)?, at(*now));
            }
            Call::AnswerInput { at: now, input, result } => {
                let _ = self.answer_input_with(input.to_handle(), result, at(*now));
            }
            Call::RefuseInput { input, error, .. } => {
                let _ = self.refuse_input(input.to_handle(), error.clone());
            }
            Call::Respond { request, result, .. } => {
                let _ = self.respond_with(request.to_request(), result);
            }
            Call::Reject { request, error, .. } => {
                let _ = self.reject(request.to_request(), error.clone());
            }
            Call::Close { .. } => self.close(),
            Call::Transmit { .. } => {
                let _ = self.poll_transmit();
            }
            Call::Peek {} => {
                let _ = self.peek_transmit();
                note!(self, peek());
            }
            Call::Sent { bytes } => {
                let length = bytes.bytes()?.len();
                let _ = self.peek_transmit();
                self.consume_transmit(length);
            }
            Call::Event { .. } => {
                let _ = self.poll_event();
            }
            _ => return Err(MISPLACED),
        }
        Ok(())
    }
}
