//! Seals for the states of input rounds: what travels through the client comes back unchanged, in
//! time, from the same principal and with the same request, or it is refused.
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
//! A state is signed, **not encrypted**: the client can read it, so no secret belongs into it.
//! Until it expires it can come back any number of times: what must happen once only is for the
//! server to remember. And it says nothing of who sends it: a principal is bound, not proven.
//!
//! # Time
//!
//! Expiries are Unix times: a state may come back to another process or another computer, to which
//! an [`Instant`](crate::Instant) of this one means nothing. The clocks of the servers that share a
//! key have to agree as well as expiries are to be kept; one that is set back lets states live
//! longer.

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

/// The longest state that is sealed, in bytes.
pub const STATE_LENGTH_MAX: usize = 64 * 1024;

/// The first byte of what is sealed: another form has another one.
const VERSION: u8 = 1;
const EXPIRY_LENGTH: usize = 8;
const MAC_LENGTH: usize = 32;
const HEAD_LENGTH: usize = 1 + EXPIRY_LENGTH + MAC_LENGTH;
/// Longer text is no state of ours: it is not even decoded.
const SEALED_LENGTH_MAX: usize = (HEAD_LENGTH + STATE_LENGTH_MAX).div_ceil(3) * 4;
/// Keeps these codes apart from others under the same key.
const LABEL: &[u8] = b"mcp-sansio request state";

/// Seals states and opens them again, under a secret key: HMAC-SHA-256.
///
/// What is sealed has the form `base64url(version, expiry, code, state)` without padding.
// MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-006]
#[derive(Clone)]
pub struct Seal {
    /// Of the present key.
    mac: Hmac<Sha256>,
    /// Of keys that open only.
    previous: Vec<Hmac<Sha256>>,
}

impl Seal {
    /// A seal with this key: 32 random bytes, kept from everybody but the processes to which a
    /// state may come back.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self { mac: keyed(&key), previous: Vec::new() }
    }

    /// The same with a key for one purpose, by its `label`, out of a secret that has others:
    /// HKDF-Expand (RFC 5869, section 2.3) to the length of one hash. Who sees what else is made of
    /// the secret learns nothing of the key.
    #[must_use]
    pub fn derived(secret: &[u8; 32], label: &[u8]) -> Self {
        Self::new(
            keyed(secret).chain_update(label).chain_update([1]).finalize().into_bytes().into(),
        )
    }

    /// The same, that also opens what was sealed with older keys. A key can be forgotten once the
    /// last state sealed with it has expired.
    #[must_use]
    pub fn with_previous_keys(mut self, keys: impl IntoIterator<Item = [u8; 32]>) -> Self {
        self.previous.extend(keys.into_iter().map(|key| keyed(&key)));
        self
    }

    /// Seals `state` for the request and the principal of `binding`, to be opened before `expires`,
    /// in seconds since 1970. Expiries should be near: minutes, for a user who is there.
    ///
    /// # Errors
    ///
    /// The caller's: the state is longer than [`STATE_LENGTH_MAX`].
    pub fn close(
        &self,
        state: &str,
        binding: &Binding<'_>,
        expires: u64,
    ) -> Result<String, StateTooLong> {
        if state.len() > STATE_LENGTH_MAX {
            return Err(StateTooLong { length: state.len() });
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

    /// The state in `sealed`, if it was sealed for this `binding` and has not expired at `now`, in
    /// seconds since 1970.
    ///
    /// # Errors
    ///
    /// The client's fault, or the time it took. [`Unsealable::Expired`] is said only of what was
    /// sealed for this very binding.
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
        // Compared in constant time: how much of a guess is right is not to be measured.
        let genuine = keys.any(|mac| {
            authenticated(mac.clone(), *expiry, binding, state).verify_slice(code).is_ok()
        });
        if !genuine {
            return Err(Unsealable::Forged);
        }
        // MCP 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow [MRTR-007]: after
        // the code, as the expiry of a forgery means nothing.
        if now >= u64::from_be_bytes(*expiry) {
            return Err(Unsealable::Expired);
        }
        core::str::from_utf8(state).map(String::from).map_err(|_| Unsealable::Malformed)
    }
}

impl fmt::Debug for Seal {
    /// Leaves the keys out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("previous", &self.previous.len()).finish_non_exhaustive()
    }
}

fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// Puts all that is bound into a code. Each part has a fixed length or says how long it is, so no
/// two bindings come to the same input.
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

/// Why a sealed state is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Unsealable {
    /// It does not have the form of a sealed state.
    #[error("the request state is malformed")]
    Malformed,
    /// It was changed, sealed with another key, for another principal or for another request:
    /// which of these is not told.
    #[error("the request state is not one of this request")]
    Forged,
    /// It came back too late.
    #[error("the request state has expired")]
    Expired,
}

/// A state is too long to be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a request state of {length} bytes: at most {STATE_LENGTH_MAX} are sealed")]
pub struct StateTooLong {
    length: usize,
}

#[cfg(test)]
mod tests;
