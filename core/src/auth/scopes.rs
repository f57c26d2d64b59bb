//! Which scopes a token is asked for.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::Revision;

/// The scope that asks for a refresh token (OpenID Connect Core, section 11).
pub(super) const OFFLINE_ACCESS: &str = "offline_access";

/// Scopes (RFC 6749, section 3.3), each once, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scopes(Vec<String>);

/// There are more scopes than [`ClientLimits::scopes_max`](super::client::ClientLimits::scopes_max).
/// The fault of whoever named them; to ask for some of them would be a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {max} scopes")]
pub struct TooManyScopes {
    /// How many there may be.
    pub max: usize,
}

/// What decides which scopes to ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeSelection<'a> {
    /// The revision that the server is taken to speak.
    pub(super) revision: Revision,
    /// `scope` of the challenge that started this.
    pub(super) challenged: Option<&'a str>,
    /// `scopes_supported` of the protected resource.
    pub(super) resource: Option<&'a [String]>,
    /// `scopes_supported` of the authorization server.
    pub(super) issuer: Option<&'a [String]>,
    /// What the application wants in any case.
    pub(super) wanted: &'a [String],
    /// What was asked for and granted before, to be kept. Empty the first time.
    pub(super) held: &'a Scopes,
    /// Whether a refresh token is wanted.
    pub(super) offline_access: bool,
    /// How many scopes there may be.
    pub(super) max: usize,
}

impl Scopes {
    /// No scope.
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The scopes in a text, separated by spaces. What cannot be one is left out.
    pub(super) fn parse(text: &str, max: usize) -> Result<Self, TooManyScopes> {
        let mut scopes = Self::new();
        scopes.extend(text.split(' '), max)?;
        Ok(scopes)
    }

    /// Adds scopes that are not there yet. What cannot be one is left out.
    pub(super) fn extend<'a>(
        &mut self,
        scopes: impl IntoIterator<Item = &'a str>,
        max: usize,
    ) -> Result<(), TooManyScopes> {
        for scope in scopes {
            if !is_scope(scope) || self.contains(scope) {
                continue;
            }
            if self.0.len() >= max {
                return Err(TooManyScopes { max });
            }
            self.0.push(scope.into());
        }
        Ok(())
    }

    /// These and the others.
    pub(super) fn union(&self, other: &Self, max: usize) -> Result<Self, TooManyScopes> {
        let mut scopes = self.clone();
        scopes.extend(other.iter(), max)?;
        Ok(scopes)
    }

    /// The scopes to ask for.
    pub(super) fn select(from: &ScopeSelection<'_>) -> Result<Self, TooManyScopes> {
        let max = from.max;
        // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-055]
        let mut scopes = from.held.clone();
        // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHC-049] [AUTHC-050] [AUTHC-051]:
        // the one or the other, never compared with each other.
        match (from.challenged, from.resource) {
            (Some(challenged), _) => scopes.extend(challenged.split(' '), max)?,
            (None, Some(supported)) if from.revision >= Revision::V2025_11_25 => {
                scopes.extend(supported.iter().map(|it| &**it), max)?;
            }
            _ => {}
        }
        scopes.extend(from.wanted.iter().map(|it| &**it), max)?;
        // MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHC-064]
        let supported = from.issuer.unwrap_or_default().iter().any(|it| it == OFFLINE_ACCESS);
        if from.offline_access && supported {
            scopes.extend([OFFLINE_ACCESS], max)?;
        }
        Ok(scopes)
    }

    /// Whether a scope is among these.
    pub(super) fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|it| it == scope)
    }

    /// Whether all of the others are among these.
    pub(super) fn contains_all(&self, others: &Self) -> bool {
        others.iter().all(|it| self.contains(it))
    }

    /// The scopes in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|it| &**it)
    }

    /// Whether there is none: then `scope` is left out of requests.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Scopes {
    /// Separated by spaces: the value of `scope`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

/// Whether a text has at least one scope, and only what scopes are made of (RFC 6750, section 3).
pub(super) fn is_scope_list(text: &str) -> bool {
    let mut scopes = text.split(' ').filter(|it| !it.is_empty()).peekable();
    scopes.peek().is_some() && scopes.all(is_scope)
}

/// Whether a text is one scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'))
}
