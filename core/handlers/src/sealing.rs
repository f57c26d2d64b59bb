//! Sealing of request states, which clients hold between rounds.

use alloc::string::ToString;
use alloc::sync::Arc;
use core::time::Duration;

use mcp_sansio::jsonrpc::ErrorObject;
use mcp_sansio::peer::Request;
use mcp_sansio::seal::{Binding, Seal};
use mcp_sansio::{Era, Instant};

use super::dispatch::StateSeal;
use super::reply::Outcome;
use super::server::{Server, UnixTime};
use super::threading::Threading;

/// The key and settings for sealing states.
struct SealSettings {
    seal: Seal,
    /// How long a sealed state is valid, in seconds.
    lifetime: u64,
    /// Whether states expire by the clock of the machine, which like the key is valid in this
    /// process only.
    is_local: bool,
}

/// The default lifetime of a sealed state. An hour, for a user who needs time to look something up.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Separates the key for states from other keys derived from the server's secret.
const LABEL: &[u8] = b"mcp-sansio request state key";

impl<K: Threading> Server<K> {
    /// Seals the state that handlers give to
    /// [`InputRequired::state`](super::InputRequired::state) before it is sent.
    /// [`call.state()`](super::Context::state) then returns it unchanged, with the same request,
    /// from the same principal, and at most `lifetime` later, in whole seconds. Any other state is
    /// refused with `-32602` before a handler is called.
    ///
    /// States expire by the clock of the adapter, or by [`unix_time`](Self::unix_time); without
    /// either, requests with a state fail. If another process may receive the state, it needs the
    /// same key.
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
    pub fn seal(mut self, seal: Seal, lifetime: Duration) -> Self {
        let (lifetime, is_local) = (lifetime.as_secs(), false);
        self.functions().sealing = Some(Arc::new(SealSettings { seal, lifetime, is_local }));
        self
    }

    /// Sends states unsealed, on HTTP as well: for handlers that protect a state themselves, or
    /// that only display it. Handlers then receive any state that a client sends.
    // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
    #[must_use]
    pub fn unsealed_states(mut self) -> Self {
        self.functions().sealing = Some(Arc::new(Unsealed));
        self
    }
}

/// Returns the default sealing of a server on HTTP, where any client may forge a state, with a key
/// derived from the server's `secret`.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006] [MRTR-007]
pub(super) fn derived_from(secret: &[u8; 32]) -> Arc<dyn StateSeal> {
    let seal = Seal::derived(secret, LABEL);
    Arc::new(SealSettings { seal, lifetime: LIFETIME.as_secs(), is_local: true })
}

impl StateSeal for SealSettings {
    fn binds_parameters(&self) -> bool {
        true
    }

    fn needs_unix_time(&self) -> bool {
        !self.is_local
    }

    fn open(
        &self,
        request: &mut Request<'_>,
        now: Instant,
        unix_time: Option<&UnixTime>,
    ) -> Result<(), ErrorObject<'static>> {
        // A legacy session stores the state on the server.
        let Some(sealed) = request.inputs.state() else { return Ok(()) };
        if request.revision.era() == Era::Legacy {
            return Ok(());
        }
        let seconds = self.seconds(now, unix_time)?;
        let opened = self.seal.open(sealed, &binding(request), seconds);
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
        let state = opened.map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        request.inputs.set_state(Some(state));
        Ok(())
    }

    fn close(
        &self,
        request: &Request<'_>,
        outcome: Outcome,
        now: Instant,
        unix_time: Option<&UnixTime>,
    ) -> Outcome {
        let Outcome::InputRequired(mut required) = outcome else { return outcome };
        if request.revision.era() == Era::Modern
            && let Some(state) = &required.request_state
        {
            let expires = match self.seconds(now, unix_time) {
                Ok(seconds) => seconds.saturating_add(self.lifetime),
                Err(error) => return Outcome::Error(error),
            };
            match self.seal.close(state, &binding(request), expires) {
                Ok(sealed) => required.request_state = Some(sealed),
                Err(error) => return Outcome::Error(ErrorObject::internal(error.to_string())),
            }
        }
        Outcome::InputRequired(required)
    }
}

/// Leaves states as they are, where they would be sealed by default.
#[derive(Debug)]
struct Unsealed;

impl StateSeal for Unsealed {
    fn binds_parameters(&self) -> bool {
        false
    }

    fn needs_unix_time(&self) -> bool {
        false
    }

    fn open(
        &self,
        _: &mut Request<'_>,
        _: Instant,
        _: Option<&UnixTime>,
    ) -> Result<(), ErrorObject<'static>> {
        Ok(())
    }

    fn close(
        &self,
        _: &Request<'_>,
        outcome: Outcome,
        _: Instant,
        _: Option<&UnixTime>,
    ) -> Outcome {
        outcome
    }
}

impl SealSettings {
    /// Returns the current time by the clock for expiries.
    fn seconds(
        &self,
        now: Instant,
        unix_time: Option<&UnixTime>,
    ) -> Result<u64, ErrorObject<'static>> {
        match unix_time {
            _ if self.is_local => Ok(now.as_nanos() / 1_000_000_000),
            Some(unix_time) => Ok(unix_time()),
            None => Err(ErrorObject::internal("the server has no clock: set `Server::unix_time`")),
        }
    }
}

fn binding<'a>(request: &'a Request<'_>) -> Binding<'a> {
    let principal = request.caller.principal();
    Binding::new(request.method.as_str(), &request.params).principal(principal)
}

mcp_sansio::partial_debug! { impl Debug for SealSettings { lifetime, .. } }
