//! States that the layer seals when they leave and opens when they come back.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use crate::jsonrpc::ErrorObject;
use crate::peer::Request;
use crate::seal::{Binding, Seal};
use crate::{Era, Principal};

use super::kind::Kind;
use super::reply::Outcome;
use super::server::Server;

/// What states are sealed with, if they are.
#[derive(Clone, Default)]
pub(super) struct Sealing {
    with: Option<With>,
}

#[derive(Clone)]
struct With {
    seal: Seal,
    /// How long a state may take to come back, in seconds.
    lifetime: u64,
    unix_time: Arc<dyn Fn() -> u64 + Send + Sync>,
}

impl<K: Kind> Server<K> {
    /// Seals what handlers give to [`Ask::state`](super::Ask::state) on its way out, so that
    /// [`call.state()`](super::Context::state) is what it was: with the same request, from the same
    /// principal, and at most `lifetime` later, in whole seconds. Any other state is refused with
    /// `-32602` before a handler is called.
    ///
    /// `unix_time` says how many seconds have gone by since 1970; it is asked when a state leaves
    /// or comes back. Where a state may come back to another process, that one needs the same key.
    /// Sessions of the older revisions and tasks keep the state on this side, and seal nothing.
    ///
    /// The client can still read the state, and send it more than once until it expires: see
    /// [`seal`](crate::seal).
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006] [MRTR-007]
    #[must_use]
    pub fn seal(
        mut self,
        seal: Seal,
        lifetime: Duration,
        unix_time: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let (lifetime, unix_time) = (lifetime.as_secs(), Arc::new(unix_time) as _);
        self.functions().sealing.with = Some(With { seal, lifetime, unix_time });
        self
    }
}

impl Sealing {
    /// Whether the text of a request is needed when it is answered.
    pub(super) const fn is_on(&self) -> bool {
        self.with.is_some()
    }

    /// Opens the state that came with a request.
    pub(super) fn open(
        &self,
        request: &mut Request<'_>,
        principal: Option<&Principal>,
    ) -> Result<(), ErrorObject<'static>> {
        let Some(With { seal, unix_time, .. }) = &self.with else { return Ok(()) };
        // A legacy session has it from this side.
        let Some(sealed) = &request.inputs.state else { return Ok(()) };
        if request.revision.era() == Era::Legacy {
            return Ok(());
        }
        let opened = seal.open(sealed, &binding(request, principal), unix_time());
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
        let state = opened.map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        request.inputs.state = Some(Cow::Owned(state));
        Ok(())
    }

    /// Seals the state that an answer to a request has.
    pub(super) fn close(
        &self,
        request: &Request<'_>,
        principal: Option<&Principal>,
        outcome: Outcome,
    ) -> Outcome {
        let Some(With { seal, lifetime, unix_time }) = &self.with else { return outcome };
        let Outcome::InputRequired(mut required) = outcome else { return outcome };
        if request.revision.era() == Era::Modern
            && let Some(state) = &required.request_state
        {
            let expires = unix_time().saturating_add(*lifetime);
            match seal.close(state, &binding(request, principal), expires) {
                Ok(sealed) => required.request_state = Some(sealed),
                Err(error) => return Outcome::Error(ErrorObject::internal(error.to_string())),
            }
        }
        Outcome::InputRequired(required)
    }
}

fn binding<'a>(request: &'a Request<'_>, principal: Option<&'a Principal>) -> Binding<'a> {
    Binding::new(request.method.as_str(), &request.params).principal(principal)
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealing").field("on", &self.is_on()).finish_non_exhaustive()
    }
}
