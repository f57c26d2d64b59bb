//! A server on tape: what it is made of, and what its calls are when they are read back.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use mcp_sansio_sync::Arc;
use serde::{Deserialize, Serialize};

use crate::catalog::recorded::State;
use crate::jsonrpc::RawJson;
use crate::peer::Attachment;
use crate::peer::event::{Inputs, Request};
use crate::peer::metadata::Places;
use crate::peer::method_name::MethodName;
use crate::peer::{Limits, Policy, RequestHandle, Timeouts};
use crate::protocol::{CacheHints, Capabilities, InputRequiredResult, Method, Ttl};
use crate::recording::{
    Call, Handle, MISPLACED, Machine, Revisioned, Start, Tape, Unperformable, decoded, level,
    method, number, whole,
};
use crate::{Instant, Revision};

use super::{Server, ServerOptions};

/// What a server is made of, on the first line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings<'a> {
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

impl<'a> Settings<'a> {
    pub(crate) fn of(options: &'a ServerOptions) -> Self {
        let ServerOptions { profile, catalog, terms, revisions } = options;
        let cache = (profile.cache.ttl.0, Cow::Owned(alloc::format!("{}", profile.cache.scope)));
        Self {
            identity: whole(&profile.identity),
            instructions: profile.instructions.as_deref().map(Cow::Borrowed),
            revisions: Revisioned(*revisions),
            capabilities: whole(&profile.capabilities),
            catalog: State::of(catalog),
            cache,
            anonymous: profile.identity_meta.is_empty(),
            limits: terms.limits.clone(),
            timeouts: terms.timeouts.clone(),
            policy: terms.policy.clone(),
        }
    }

    pub(crate) fn to_options(&self) -> Result<ServerOptions, Unperformable> {
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

impl Server {
    /// A server like that of [`new`](Self::new) whose calls are noted on `tape`, from the first one
    /// on.
    #[must_use]
    pub fn recorded(options: ServerOptions, seed: u64, mut tape: Tape) -> Self {
        tape.write(&Start::of(Machine::Server(Box::new(Settings::of(&options)))));
        Self { tape: Some(Box::new(tape)), ..Self::new(options, seed) }
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
            Call::Timeout { at: now } => self.handle_timeout(at(*now)),
            Call::Started { at: now, method: name, params, options, other: false } => {
                let _ = self.call(method(name)?, params, &options.to_options()?, at(*now));
            }
            Call::Cancel { at: now, call, reason } => {
                self.cancel(call.to_call(), reason, at(*now));
            }
            Call::Notify { method: name, params, .. } => {
                let _ = self.notify(method(name)?, params);
            }
            Call::Respond { request, result, .. } => {
                let _ = self.respond_with(request.to_request(), result);
            }
            Call::Reject { request, error, .. } => {
                let _ = self.reject(request.to_request(), error.clone());
            }
            Call::RequireInput { at: now, request, method, required } => {
                let required = decoded::<InputRequiredResult>(required)?;
                let request = bare_request(request.to_request(), method);
                let _ = self.require_input(request, &required, at(*now));
            }
            Call::WithdrawInput { at: now, request } => {
                self.withdraw_input(request.to_request(), at(*now));
            }
            Call::TaskProgress { request, params, .. } => {
                let _ = self.task_progress(request.to_request(), params);
            }
            Call::Progress { at: now, request, progress, total, message } => {
                let total = total.as_deref().map(number).transpose()?;
                let (request, message) = (request.to_request(), message.as_deref());
                self.progress(request, number(progress)?, total, message, at(*now));
            }
            Call::Log { request, level: name, logger, data, .. } => {
                let request = request.map(Handle::to_request);
                let _ = self.log(request, level(name)?, logger.as_deref(), data);
            }
            Call::ResourceUpdated { uri, .. } => self.resource_updated(uri),
            Call::TaskChanged { status, .. } => self.task_changed(&decoded(status)?),
            Call::Announce { changed, .. } => self.announce(changed.to_changes()),
            Call::Catalog { catalog, changed: None, .. } => {
                self.catalog = Arc::new(catalog.to_catalog()?);
                note!(self, catalog(&self.catalog, None, None));
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

/// The request that an application answers with questions. What is in it matters to applications
/// alone.
pub(crate) fn bare_request<'a>(handle: RequestHandle, method: &'a str) -> Request<'a> {
    let other = || MethodName::Other(method.into());
    Request {
        handle,
        method: Method::parse(method).map_or_else(other, MethodName::Known),
        params: RawJson::EMPTY_OBJECT,
        revision: Revision::LATEST,
        capabilities: Capabilities::NONE,
        wants_progress: false,
        inputs: Inputs::default(),
        places: Places::default(),
        attachment: Attachment::default(),
    }
}
