use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::http::{Location, Origin};

/// The longest nonce that is kept, in bytes.
const NONCE_LENGTH_MAX: usize = 1024;
/// The most origins whose nonce is kept: the MCP server, its authorization server, and room for a
/// change of either.
const NONCES_MAX: usize = 8;

/// The last nonce of each server.
#[derive(Default)]
pub(in crate::auth) struct Nonces(Vec<(Origin, String)>);

impl Nonces {
    /// No nonce yet.
    pub(in crate::auth) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The nonce for a request to this URL.
    pub(in crate::auth) fn get(&self, url: &Location) -> Option<&str> {
        let mut nonces = self.0.iter();
        nonces.find(|(origin, _)| origin == url.origin()).map(|(_, nonce)| &**nonce)
    }

    /// Takes the `DPoP-Nonce` of a response from this URL. Whether it is another than the last: only
    /// then is there any use in asking again. What cannot be a nonce is passed over.
    pub(in crate::auth) fn insert(&mut self, url: &Location, nonce: &[u8]) -> bool {
        // RFC 9449, section 8.1: `NQCHAR`.
        let allowed = |byte: &u8| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~');
        if nonce.is_empty() || nonce.len() > NONCE_LENGTH_MAX || !nonce.iter().all(allowed) {
            return false;
        }
        let nonce = String::from_utf8_lossy(nonce).into_owned();
        if self.get(url) == Some(&*nonce) {
            return false;
        }
        self.0.retain(|(origin, _)| origin != url.origin());
        if self.0.len() == NONCES_MAX {
            self.0.remove(0);
        }
        self.0.push((url.origin().clone(), nonce));
        true
    }
}

impl fmt::Debug for Nonces {
    /// Says for whom there are some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(origin, _)| origin)).finish()
    }
}
