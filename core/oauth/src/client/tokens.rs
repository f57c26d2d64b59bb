use core::time::Duration;

use crate::credential::StoredTokens;
use crate::scopes::Scopes;

/// The current tokens. They are sent only to their servers and to the store of the application;
/// debug output omits them.
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-062]
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) stored: StoredTokens,
    /// The number of this token, counted from 1.
    pub(super) number: u64,
    /// When the token should be renewed, in seconds since 1970.
    renew_at: Option<u64>,
}

impl Tokens {
    /// `expires_in` is the lifetime of new tokens in seconds.
    pub(super) fn new(
        stored: StoredTokens,
        number: u64,
        expires_in: Option<u64>,
        renew_before: Duration,
    ) -> Self {
        let half = expires_in.map_or(u64::MAX, |seconds| seconds / 2);
        let ahead = renew_before.as_secs().min(half);
        let renew_at = stored.expires_at.map(|at| at.saturating_sub(ahead));
        Self { stored, number, renew_at }
    }

    /// Whether the token should be renewed at `now`, in seconds since 1970.
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.renew_at.is_some_and(|at| at <= now)
    }

    /// Whether all of these scopes, separated by spaces, were granted.
    pub(super) fn has_scopes(&self, wanted: &str, max: usize) -> bool {
        let granted = Scopes::parse(&self.stored.granted, max);
        match (granted, Scopes::parse(wanted, max)) {
            (Ok(granted), Ok(wanted)) => granted.contains_all(&wanted),
            _ => false,
        }
    }
}
