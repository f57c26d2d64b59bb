use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::InvalidResource;

/// The implications between scopes.
#[derive(Clone, Debug, Default)]
pub(super) struct Hierarchy(BTreeMap<String, BTreeSet<String>>);

impl Hierarchy {
    pub(super) fn add(&mut self, broad: String, narrow: Vec<String>) {
        self.0.entry(broad).or_default().extend(narrow);
    }

    /// Whether the granted scopes include the needed one, or imply it in any number of steps. The
    /// work is bounded by the application's implications, not by the token.
    // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHS-019]
    pub(super) fn satisfies(&self, granted: &[String], needed: &str) -> bool {
        if granted.iter().any(|it| it == needed) {
            return true;
        }
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = Vec::new();
        for scope in granted {
            open.push(scope);
            while let Some(scope) = open.pop() {
                if scope == needed {
                    return true;
                }
                if let Some(narrow) = self.0.get(scope)
                    && seen.insert(scope)
                {
                    open.extend(narrow.iter().map(String::as_str));
                }
            }
        }
        false
    }

    /// Whether the scope is part of the hierarchy.
    pub(super) fn knows(&self, scope: &str) -> bool {
        self.0.contains_key(scope) || self.0.values().any(|narrow| narrow.contains(scope))
    }
}

/// Checks the syntax of a scope (RFC 6749, section 3.3), and that a resource may require it.
// MCP 2026-07-28 basic/authorization/index#refresh-tokens [AUTHS-020]
pub(super) fn check_scope(scope: &str) -> Result<(), InvalidResource> {
    let allowed = |byte| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\');
    if scope.is_empty() || !scope.bytes().all(allowed) {
        return Err(InvalidResource::Scope(scope.into()));
    }
    if scope == "offline_access" {
        return Err(InvalidResource::OfflineAccess);
    }
    Ok(())
}

/// Checks and collects scopes.
pub(super) fn checked(
    scopes: impl IntoIterator<Item = impl Into<String>>,
) -> Result<Vec<String>, InvalidResource> {
    let mut checked = Vec::new();
    for scope in scopes {
        let scope = scope.into();
        check_scope(&scope)?;
        add(&mut checked, &scope);
    }
    Ok(checked)
}

/// Adds a scope unless it is present.
pub(super) fn add(scopes: &mut Vec<String>, scope: &str) {
    if !scopes.iter().any(|it| it == scope) {
        scopes.push(scope.into());
    }
}
