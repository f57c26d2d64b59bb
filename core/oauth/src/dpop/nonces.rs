use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::http::{Location, Origin};

/// The longest nonce that is stored, in bytes.
const NONCE_LENGTH_MAX: usize = 1024;
/// The most origins whose nonce is stored: the MCP server, its authorization server, and room for a
/// change of either.
const NONCES_MAX: usize = 8;

/// The last nonce of each server.
#[derive(Default)]
pub(crate) struct Nonces(Vec<(Origin, String)>);

impl Nonces {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the nonce for a request to this URL.
    pub(crate) fn get(&self, url: &Location) -> Option<&str> {
        let mut nonces = self.0.iter();
        nonces.find(|(origin, _)| origin == url.origin()).map(|(_, nonce)| &**nonce)
    }

    /// Stores the `DPoP-Nonce` of a response from this URL. Returns whether it differs from the
    /// last one, because only then a retry is useful. Ignores an invalid nonce.
    pub(crate) fn insert(&mut self, url: &Location, nonce: &[u8]) -> bool {
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
    /// Prints only the origins.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(origin, _)| origin)).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn location(url: &str) -> Location {
        Location::parse(url).expect(url)
    }

    #[test]
    fn each_origin_has_its_last_nonce() {
        let mut nonces = Nonces::new();
        let (issuer, server) = (location("https://a.example/t"), location("https://r.example"));
        assert!(nonces.insert(&issuer, b"1"));
        assert!(nonces.insert(&server, b"2"));
        assert!(nonces.insert(&location("https://a.example/other"), b"3"));
        assert_eq!((nonces.get(&issuer), nonces.get(&server)), (Some("3"), Some("2")));
        assert_eq!(nonces.get(&location("http://a.example/t")), None);
    }

    #[test]
    fn a_known_nonce_does_not_cause_a_retry() {
        let mut nonces = Nonces::new();
        let url = location("https://a.example");
        assert!(nonces.insert(&url, b"1"));
        assert!(!nonces.insert(&url, b"1"));
    }

    #[test]
    fn an_invalid_nonce_is_ignored() {
        let mut nonces = Nonces::new();
        let url = location("https://a.example");
        let long = [b'x'; NONCE_LENGTH_MAX + 1];
        for nonce in [&b""[..], b"a b", b"\"", b"\\", b"a\r\n", b"\xff", &long] {
            assert!(!nonces.insert(&url, nonce), "{nonce:?}");
        }
        assert_eq!(nonces.get(&url), None);
        assert!(nonces.insert(&url, &long[1..]));
    }

    #[test]
    fn the_oldest_nonce_is_evicted() {
        let mut nonces = Nonces::new();
        let url = |port| location(&format!("https://a.example:{port}"));
        for port in 1..10 {
            assert!(nonces.insert(&url(port), b"n"));
        }
        assert_eq!((nonces.get(&url(1)), nonces.get(&url(2))), (None, Some("n")));
        assert_eq!(nonces.0.len(), NONCES_MAX);
    }
}
