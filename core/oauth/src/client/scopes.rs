//! The selection of scopes for a token request.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::Revision;

use super::AuthorizationFailure;

/// The scope that requests a refresh token (OpenID Connect Core, section 11).
pub(crate) const OFFLINE_ACCESS: &str = "offline_access";

/// Scopes (RFC 6749, section 3.3), without duplicates, in their original order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scopes(Vec<String>);

/// The inputs for selecting scopes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeSelection<'a> {
    /// The assumed revision of the server.
    pub(crate) revision: Revision,
    /// `scope` of the challenge that started the authorization.
    pub(crate) challenged: Option<&'a str>,
    /// `scopes_supported` of the protected resource.
    pub(crate) resource: Option<&'a [String]>,
    /// `scopes_supported` of the authorization server.
    pub(crate) issuer: Option<&'a [String]>,
    /// The scopes that the application always wants.
    pub(crate) wanted: &'a [String],
    /// The scopes that were requested and granted before, to be kept. Empty the first time.
    pub(crate) held: &'a Scopes,
    /// Whether to request a refresh token.
    pub(crate) offline_access: bool,
    /// The most scopes to request.
    pub(crate) max: usize,
}

impl Scopes {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Parses scopes separated by spaces. Skips invalid ones.
    pub(crate) fn parse(text: &str, max: usize) -> Result<Self, AuthorizationFailure> {
        let mut scopes = Self::new();
        scopes.extend(text.split(' '), max)?;
        Ok(scopes)
    }

    /// Adds scopes that are not present yet. Skips invalid ones.
    pub(crate) fn extend<'a>(
        &mut self,
        scopes: impl IntoIterator<Item = &'a str>,
        max: usize,
    ) -> Result<(), AuthorizationFailure> {
        for scope in scopes {
            if !is_scope(scope) || self.contains(scope) {
                continue;
            }
            if self.0.len() >= max {
                return Err(AuthorizationFailure::Scopes { max });
            }
            self.0.push(scope.into());
        }
        Ok(())
    }

    /// Selects the scopes to request.
    pub(crate) fn select(from: &ScopeSelection<'_>) -> Result<Self, AuthorizationFailure> {
        let max = from.max;
        // MCP 2026-07-28 basic/authorization/index#step-up-authorization-flow [AUTHC-055]
        let mut scopes = from.held.clone();
        // MCP 2026-07-28 basic/authorization/index#scope-selection-strategy [AUTHC-049] [AUTHC-050]
        // [AUTHC-051]: one source or the other; the two are never compared.
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

    /// Whether a scope is included.
    pub(crate) fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|it| it == scope)
    }

    /// Whether all of the other scopes are included.
    pub(crate) fn contains_all(&self, others: &Self) -> bool {
        others.iter().all(|it| self.contains(it))
    }

    /// Returns the scopes in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|it| &**it)
    }

    /// Whether the set is empty: then requests omit `scope`.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Scopes {
    /// Writes the scopes separated by spaces: the value of `scope`.
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

/// Whether a text has at least one scope, and only characters of scopes (RFC 6750, section 3).
pub(crate) fn is_scope_list(text: &str) -> bool {
    let mut scopes = text.split(' ').filter(|it| !it.is_empty()).peekable();
    scopes.peek().is_some() && scopes.all(is_scope)
}

/// Whether a text is one scope (RFC 6749, section 3.3).
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text, 16).expect(text)
    }

    fn texts(text: &str) -> Vec<String> {
        text.split(' ').map(String::from).collect()
    }

    /// Returns the inputs of a first selection, without scopes of the application.
    fn selection<'a>(
        challenged: Option<&'a str>,
        resource: Option<&'a [String]>,
        held: &'a Scopes,
    ) -> ScopeSelection<'a> {
        ScopeSelection {
            revision: Revision::V2026_07_28,
            challenged,
            resource,
            issuer: None,
            wanted: &[],
            held,
            offline_access: true,
            max: 4,
        }
    }

    fn selected(from: &ScopeSelection<'_>) -> String {
        Scopes::select(from).expect("few scopes").to_string()
    }

    #[test]
    fn scopes_are_unique_and_keep_their_order() {
        assert_eq!(scopes("b a  b\u{e9} b A a\"").to_string(), "b a A");
        assert!(scopes(" \\ \t").is_empty());
        let mut more = scopes("b a");
        assert_eq!(more.extend(["c", "a", "", "d e"], 3), Ok(()));
        assert_eq!(more, scopes("b a c"));
        assert!(scopes("b a").contains_all(&scopes("a")));
        assert!(!scopes("b a").contains_all(&scopes("a c")));
    }

    #[test]
    fn too_many_scopes_are_refused() {
        let few = Err(AuthorizationFailure::Scopes { max: 2 });
        assert_eq!(Scopes::parse("a b a b", 2), Ok(scopes("a b")));
        assert_eq!(Scopes::parse("a b c", 2), few);
        assert_eq!(
            scopes("a b").extend(["b", "c"], 2),
            Err(AuthorizationFailure::Scopes { max: 2 })
        );
    }

    #[test]
    fn scopes_come_from_the_challenge_before_the_resource_metadata() {
        // Rule: [AUTHC-049] [AUTHC-050] [AUTHC-051].
        let (none, supported) = (Scopes::new(), texts("a b"));
        assert_eq!(selected(&selection(Some("x a"), Some(&supported), &none)), "x a");
        assert_eq!(selected(&selection(None, Some(&supported), &none)), "a b");
        assert_eq!(selected(&selection(None, None, &none)), "");
        let wanted = texts("y");
        let from = ScopeSelection { wanted: &wanted, ..selection(Some("x"), None, &none) };
        assert_eq!(selected(&from), "x y");
    }

    #[test]
    fn older_revisions_do_not_request_all_supported_scopes() {
        // Rule: [AUTHC-049].
        let (none, supported) = (Scopes::new(), texts("a b"));
        let from = |challenged| ScopeSelection {
            revision: Revision::V2025_06_18,
            ..selection(challenged, Some(&supported), &none)
        };
        assert_eq!(selected(&from(None)), "");
        assert_eq!(selected(&from(Some("a"))), "a");
    }

    #[test]
    fn a_step_up_keeps_the_granted_scopes() {
        // Rule: [AUTHC-055].
        let held = scopes("a b");
        assert_eq!(selected(&selection(Some("c b"), None, &held)), "a b c");
        let many = selection(Some("c d e"), None, &held);
        assert_eq!(Scopes::select(&many), Err(AuthorizationFailure::Scopes { max: 4 }));
    }

    #[test]
    fn offline_access_is_requested_if_supported_and_wanted() {
        // Rule: [AUTHC-064].
        let (none, issuer) = (Scopes::new(), texts("openid offline_access"));
        let other = texts("openid");
        for (offline_access, issuer, scope) in [
            (true, Some(&*issuer), "a offline_access"),
            (false, Some(&*issuer), "a"),
            (true, Some(&*other), "a"),
            (true, None, "a"),
        ] {
            let from =
                ScopeSelection { offline_access, issuer, ..selection(Some("a"), None, &none) };
            assert_eq!(selected(&from), scope);
        }
    }

    #[test]
    fn a_scope_list_contains_only_scopes() {
        for list in ["a", " a  b:c/d ", "!#[]~"] {
            assert!(is_scope_list(list), "{list}");
        }
        for list in ["", "  ", "a \"", "a\\", "a\tb", "\u{e9}"] {
            assert!(!is_scope_list(list), "{list}");
        }
    }

    proptest::proptest! {
        #[test]
        fn parsed_scopes_round_trip(text in "\\PC{0,20}|([a-c]{0,2} ){0,9}") {
            if let Ok(scopes) = Scopes::parse(&text, 4) {
                let list = scopes.to_string();
                proptest::prop_assert_eq!(is_scope_list(&list), !scopes.is_empty());
                proptest::prop_assert_eq!(Scopes::parse(&format!(" {list}"), 4), Ok(scopes));
            }
        }
    }
}
