//! Seals for the state of input rounds. A state that travels through the client must come back
//! unchanged, before it expires, from the same principal and with the same request; otherwise it is
//! refused.
//!
//! ```
//! use mcp_sansio::jsonrpc::RawJson;
//! use mcp_sansio::seal::{Binding, Seal, Unsealable};
//!
//! let seal = Seal::new([7; 32]); // 32 random bytes, the same in every process that serves.
//! let params = RawJson::parse(r#"{"name":"book","arguments":{"table":4}}"#)?;
//! let binding = Binding::new("tools/call", &params);
//!
//! let now = 1_785_000_000; // Seconds since 1970.
//! let sealed = seal.close("step 2", &binding, now + 600)?;
//! assert_eq!(seal.open(&sealed, &binding, now + 60), Ok("step 2".into()));
//! assert_eq!(seal.open(&sealed, &binding, now + 600), Err(Unsealable::Expired));
//!
//! let params = RawJson::parse(r#"{"name":"book","arguments":{"table":5}}"#)?;
//! let other = Binding::new("tools/call", &params);
//! assert_eq!(seal.open(&sealed, &other, now + 60), Err(Unsealable::Forged));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A state is signed, **not encrypted**: the client can read it, so it must not contain secrets. A
//! client can send it back any number of times until it expires; a server that must act only once
//! has to remember which states it has seen. A state is bound to a principal, but does not
//! authenticate the sender.
//!
//! # Time
//!
//! Expiries are Unix times, because a state may come back to another process or computer, where an
//! [`Instant`](crate::Instant) of this process has no meaning. The clocks of all servers that share
//! a key must agree to within the precision that expiries need. Setting a clock back extends the
//! life of the states.

mod binding;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use thiserror::Error;

pub use binding::Binding;

/// The maximum length of a state that can be sealed, in bytes.
pub const STATE_LENGTH_MAX: usize = 64 * 1024;

/// The first byte of a sealed state: the version of its format.
const VERSION: u8 = 1;
const EXPIRY_LENGTH: usize = 8;
const MAC_LENGTH: usize = 32;
const HEAD_LENGTH: usize = 1 + EXPIRY_LENGTH + MAC_LENGTH;
/// Text longer than this cannot be a sealed state and is not decoded.
const SEALED_LENGTH_MAX: usize = (HEAD_LENGTH + STATE_LENGTH_MAX).div_ceil(3) * 4;
/// Separates these MACs from others made with the same key.
const LABEL: &[u8] = b"mcp-sansio request state";

/// Seals states and opens them again with a secret key, using HMAC-SHA-256.
///
/// A sealed state has the form `base64url(version, expiry, code, state)` without padding.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
#[derive(Clone)]
pub struct Seal {
    /// Keyed with the current key.
    mac: Hmac<Sha256>,
    /// Keyed with older keys, which only open.
    previous: Vec<Hmac<Sha256>>,
}

impl Seal {
    /// Creates a seal with `key`: 32 random bytes, known only to the processes that may receive the
    /// states back.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self { mac: keyed(&key), previous: Vec::new() }
    }

    /// Creates a seal with a key derived from a secret that also has other uses. The key is bound
    /// to its purpose by `label` with HKDF-Expand (RFC 5869, section 2.3) to the length of one
    /// hash, so keys derived under other labels reveal nothing about it.
    #[must_use]
    pub fn derived(secret: &[u8; 32], label: &[u8]) -> Self {
        Self::new(
            keyed(secret).chain_update(label).chain_update([1]).finalize().into_bytes().into(),
        )
    }

    /// Adds older keys that still open states. A key can be dropped once the last state sealed with
    /// it has expired.
    #[must_use]
    pub fn with_previous_keys(mut self, keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        self.previous.extend(keys.into_iter().map(|key| keyed(&key)));
        self
    }

    /// Seals `state` for the request and the principal of `binding`. It can be opened before
    /// `expires`, in seconds since 1970. Keep expiries short: minutes, if a user is waiting.
    ///
    /// # Errors
    ///
    /// The state is longer than [`STATE_LENGTH_MAX`].
    pub fn close(
        &self,
        state: &str,
        binding: &Binding<'_>,
        expires: u64,
    ) -> Result<String, Unsealable> {
        if state.len() > STATE_LENGTH_MAX {
            return Err(Unsealable::TooLong { length: state.len() });
        }
        let expiry = expires.to_be_bytes();
        let code = authenticated(self.mac.clone(), expiry, binding, state.as_bytes());
        let mut sealed = Vec::with_capacity(HEAD_LENGTH + state.len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&expiry);
        sealed.extend_from_slice(&code.finalize().into_bytes());
        sealed.extend_from_slice(state.as_bytes());
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Returns the state in `sealed`, if it was sealed for this `binding` and has not expired at
    /// `now`, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The text is not a state sealed for this `binding`, or it has expired.
    /// [`Unsealable::Expired`] is returned only for states that were sealed for this `binding`.
    pub fn open(
        &self,
        sealed: &str,
        binding: &Binding<'_>,
        now: u64,
    ) -> Result<String, Unsealable> {
        if sealed.len() > SEALED_LENGTH_MAX {
            return Err(Unsealable::Malformed);
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Unsealable::Malformed)?;
        let (&version, rest) = bytes.split_first().ok_or(Unsealable::Malformed)?;
        let (expiry, rest) = rest.split_first_chunk().ok_or(Unsealable::Malformed)?;
        let (code, state) = rest.split_at_checked(MAC_LENGTH).ok_or(Unsealable::Malformed)?;
        if version != VERSION || state.len() > STATE_LENGTH_MAX {
            return Err(Unsealable::Malformed);
        }
        let mut keys = core::iter::once(&self.mac).chain(&self.previous);
        // Compared in constant time, so that timing does not reveal how much of a guess is right.
        let genuine = keys.any(|mac| {
            authenticated(mac.clone(), *expiry, binding, state).verify_slice(code).is_ok()
        });
        if !genuine {
            return Err(Unsealable::Forged);
        }
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-007]: checked
        // after the code, because the expiry of a forged state is meaningless.
        if now >= u64::from_be_bytes(*expiry) {
            return Err(Unsealable::Expired);
        }
        core::str::from_utf8(state).map(String::from).map_err(|_| Unsealable::Malformed)
    }
}

impl fmt::Debug for Seal {
    /// Omits the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("previous", &self.previous.len()).finish_non_exhaustive()
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// Adds all bound values to a MAC. Each part has a fixed length or is prefixed with its length, so
/// two different bindings never produce the same input.
fn authenticated(
    mac: Hmac<Sha256>,
    expiry: [u8; EXPIRY_LENGTH],
    binding: &Binding<'_>,
    state: &[u8],
) -> Hmac<Sha256> {
    let mac = mac.chain_update(LABEL).chain_update([VERSION]).chain_update(expiry);
    let mac = match binding.principal {
        // MCP 2026-07-28 security-best-practices#state-handle-hijacking [SEC-009] [SEC-010]
        // MCP 2026-07-28 client/elicitation#statefulness [ELIC-026]
        Some(principal) => framed(mac.chain_update([1]), principal.as_str().as_bytes()),
        None => mac.chain_update([0]),
    };
    let mac = framed(mac, binding.method.as_bytes()).chain_update(binding.params);
    framed(mac, state)
}

fn framed(mac: Hmac<Sha256>, part: &[u8]) -> Hmac<Sha256> {
    mac.chain_update((part.len() as u64).to_be_bytes()).chain_update(part)
}

/// The reason why a state cannot be sealed, or a sealed one not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Unsealable {
    /// The text does not have the form of a sealed state.
    #[error("the request state is malformed")]
    Malformed,
    /// The state was changed, or sealed with another key, for another principal or for another
    /// request. The error does not distinguish these cases.
    #[error("the request state was not issued for this request")]
    Forged,
    /// The state came back after its expiry.
    #[error("the request state has expired")]
    Expired,
    /// The state is too long to be sealed.
    #[error("the request state has {length} bytes; at most {STATE_LENGTH_MAX} can be sealed")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
}

#[cfg(test)]
mod tests;
