//! Sealing of request states, which clients hold between rounds.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::Request;
use mcp_sansio::seal::{Binding, Seal};
use mcp_sansio::{Era, Instant};

use super::reply::Outcome;
use super::server::Server;
use super::threading::Threading;

/// The key and settings for sealing states, if it is on.
#[derive(Clone, Default)]
pub(super) struct Sealing {
    with: Option<SealSettings>,
    /// Whether the application has turned sealing off.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "a byte stream seals on demand"))]
    is_off: bool,
}

#[derive(Clone)]
struct SealSettings {
    seal: Seal,
    /// How long a sealed state is valid, in seconds.
    lifetime: u64,
    /// `None` uses the clock of the machine, which like the key is valid in this process only.
    unix_time: Option<Arc<dyn Fn() -> u64 + Send + Sync>>,
}

/// The default lifetime of a sealed state. An hour, for a user who needs time to look something up.
#[cfg(feature = "http")]
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Separates the key for states from other keys derived from the server's secret.
#[cfg(feature = "http")]
const LABEL: &[u8] = b"mcp-sansio request state key";

impl<K: Threading> Server<K> {
    /// Seals the state that handlers give to
    /// [`InputRequiredBuilder::state`](super::InputRequiredBuilder::state) before it is sent.
    /// [`call.state()`](super::Context::state) then returns it unchanged, with the same request,
    /// from the same principal, and at most `lifetime` later, in whole seconds. Any other state is
    /// refused with `-32602` before a handler is called.
    ///
    /// `unix_time` returns the seconds since 1970; it is called when a state is sealed or opened.
    /// If another process may receive the state, it needs the same key.
    ///
    /// On HTTP states are sealed by default, for an hour and with a key that this process derives
    /// from its secret at startup: call this method if there are several processes, or if a state
    /// should outlive this one. On a byte stream they are sealed only after this call.
    ///
    /// Sessions of the legacy revisions and tasks keep the state on the server, and seal nothing.
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

    /// Sends states unsealed, on HTTP as well: for handlers that protect a state themselves, or
    /// that only display it. Handlers then receive any state that a client sends.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
    #[must_use]
    pub fn unsealed_states(mut self) -> Self {
        self.functions().sealing = Sealing { with: None, is_off: true };
        self
    }
}

impl Sealing {
    /// Returns the default sealing of a server on HTTP, where any client may forge a state, with a
    /// key derived from the server's `secret`. `None` if the application has configured sealing.
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

    /// Whether the parameters of a request are needed when it is answered.
    pub(super) const fn is_on(&self) -> bool {
        self.with.is_some()
    }

    /// Opens the state of a request.
    pub(super) fn open(
        &self,
        request: &mut Request<'_>,
        now: Instant,
    ) -> Result<(), ErrorObject<'static>> {
        let Some(with) = &self.with else { return Ok(()) };
        // A legacy session stores the state on the server.
        let Some(sealed) = request.inputs.state() else { return Ok(()) };
        if request.revision.era() == Era::Legacy {
            return Ok(());
        }
        let opened = with.seal.open(sealed, &binding(request), with.seconds(now));
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
        let state = opened.map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        request.inputs.set_state(Some(state));
        Ok(())
    }

    /// Seals the state of an answer.
    pub(super) fn close(&self, request: &Request<'_>, outcome: Outcome, now: Instant) -> Outcome {
        let Some(with) = &self.with else { return outcome };
        let Outcome::InputRequired(mut required) = outcome else { return outcome };
        if request.revision.era() == Era::Modern
            && let Some(state) = &required.request_state
        {
            let expires = with.seconds(now).saturating_add(with.lifetime);
            match with.seal.close(state, &binding(request), expires) {
                Ok(sealed) => required.request_state = Some(sealed),
                Err(error) => return Outcome::Error(ErrorObject::internal(error.to_string())),
            }
        }
        Outcome::InputRequired(required)
    }
}

impl SealSettings {
    /// Returns the current time by the clock for expiries.
    fn seconds(&self, now: Instant) -> u64 {
        match &self.unix_time {
            Some(unix_time) => unix_time(),
            None => now.as_nanos() / 1_000_000_000,
        }
    }
}

fn binding<'a>(request: &'a Request<'_>) -> Binding<'a> {
    let principal = request.caller.principal();
    Binding::new(request.method.as_str(), &request.params).principal(principal)
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealing").field("on", &self.is_on()).finish_non_exhaustive()
    }
}
