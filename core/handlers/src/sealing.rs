//! States that the layer seals when they leave and opens when they come back.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::Request;
use mcp_sansio::seal::{Binding, Seal};
use mcp_sansio::{Era, Instant, Principal};

use super::reply::Outcome;
use super::server::Server;
use super::threading::Threading;

/// What states are sealed with, if they are.
#[derive(Clone, Default)]
pub(super) struct Sealing {
    with: Option<SealSettings>,
    /// The application wants states to be as handlers give them.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "a byte stream seals on demand"))]
    is_off: bool,
}

#[derive(Clone)]
struct SealSettings {
    seal: Seal,
    /// How long a state may take to come back, in seconds.
    lifetime: u64,
    /// `None`: the clock is that of the machine, and of this process alone as the key is.
    unix_time: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
}

/// How long a state may take to come back where nobody says. An hour: for a user who is asked
/// something and goes to look it up.
#[cfg(feature = "http")]
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Keeps the key of states apart from what else comes of a server's secret.
#[cfg(feature = "http")]
const LABEL: &[u8] = b"mcp-sansio request state key";

impl<K: Threading> Server<K> {
    /// Seals what handlers give to [`InputRequiredBuilder::state`](super::InputRequiredBuilder::state) on its way out, so that
    /// [`call.state()`](super::Context::state) is what it was: with the same request, from the same
    /// principal, and at most `lifetime` later, in whole seconds. Any other state is refused with
    /// `-32602` before a handler is called.
    ///
    /// `unix_time` says how many seconds have gone by since 1970; it is asked when a state leaves
    /// or comes back. Where a state may come back to another process, that one needs the same key.
    ///
    /// On HTTP states are sealed without this as well, for an hour and with a key that this process
    /// draws when it starts: say this where there are several processes, or where a state should
    /// outlive this one. On a byte stream they are sealed only with this.
    ///
    /// Sessions of the older revisions and tasks keep the state on this side, and seal nothing.
    ///
    /// The client can still read the state, and send it more than once until it expires: see
    /// [`seal`](mcp_sansio::seal).
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006] [MRTR-007]
    #[must_use]
    pub fn seal(
        mut self,
        seal: Seal,
        lifetime: Duration,
        unix_time: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let (lifetime, unix_time) = (lifetime.as_secs(), Some(Arc::new(unix_time) as _));
        let with = Some(SealSettings { seal, lifetime, unix_time });
        self.functions().sealing = Sealing { with, is_off: false };
        self
    }

    /// Leaves states as handlers give them, on HTTP as well: for handlers that protect a state
    /// themselves, or that do nothing with it but show it. Whatever a client sends as a state then
    /// reaches the handler.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
    #[must_use]
    pub fn unsealed_states(mut self) -> Self {
        self.functions().sealing = Sealing { with: None, is_off: true };
        self
    }
}

impl Sealing {
    /// The sealing of a server on HTTP, where any client may make up a state: with a key that comes
    /// of the server's `secret`, unless the application has said something else. `None`: it has.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006] [MRTR-007]
    #[cfg(feature = "http")]
    pub(super) fn or_default(&self, secret: &[u8; 32]) -> Option<Self> {
        if self.with.is_some() || self.is_off {
            return None;
        }
        let seal = Seal::derived(secret, LABEL);
        let with = Some(SealSettings { seal, lifetime: LIFETIME.as_secs(), unix_time: None });
        Some(Self { with, is_off: false })
    }

    /// Whether the text of a request is needed when it is answered.
    pub(super) const fn is_on(&self) -> bool {
        self.with.is_some()
    }

    /// Opens the state that came with a request.
    pub(super) fn open(
        &self,
        request: &mut Request<'_>,
        principal: Option<&Principal>,
        now: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        let Some(with) = &self.with else { return Ok(()) };
        // A legacy session has it from this side.
        let Some(sealed) = request.inputs.state() else { return Ok(()) };
        if request.revision.era() == Era::Legacy {
            return Ok(());
        }
        let opened = with.seal.open(sealed, &binding(request, principal), with.seconds(now));
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
        let state = opened.map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        request.inputs.set_state(Some(state));
        Ok(())
    }

    /// Seals the state that an answer to a request has.
    pub(super) fn close(
        &self,
        request: &Request<'_>,
        principal: Option<&Principal>,
        outcome: Outcome,
        now: Instant,
    ) -> Outcome {
        let Some(with) = &self.with else { return outcome };
        let Outcome::InputRequired(mut required) = outcome else { return outcome };
        if request.revision.era() == Era::Modern
            && let Some(state) = &required.request_state
        {
            let expires = with.seconds(now).saturating_add(with.lifetime);
            match with.seal.close(state, &binding(request, principal), expires) {
                Ok(sealed) => required.request_state = Some(sealed),
                Err(error) => return Outcome::Error(ErrorObject::internal(error.to_string())),
            }
        }
        Outcome::InputRequired(required)
    }
}

impl SealSettings {
    /// The time it is, by the clock that expiries are of.
    fn seconds(&self, now: Instant) -> u64 {
        match &self.unix_time {
            Some(unix_time) => unix_time(),
            None => now.as_nanos() / 1_000_000_000,
        }
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
