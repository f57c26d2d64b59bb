//! The rules for the keys of `_meta`.

use serde::ser::Error as _;

use super::Meta;
use crate::jsonrpc::JsonError;
use crate::{InvalidValue, Revision};

const PREFIX: &str = "a key prefix is labels joined by dots, each starting with a letter and ending \
                      with a letter or digit, with hyphens only inside";
const NAME: &str = "a key name starts and ends with a letter or digit, with hyphens, underscores and \
                    dots only inside";
const RESERVED: &str = "prefixes whose second label is `modelcontextprotocol` or `mcp` are reserved \
                        for the protocol";
const NO_PREFIX: &str = "an extension identifier must have a prefix";

/// Returns the error of writing an invalid key.
pub(crate) fn unwritable(key: &str, reason: &InvalidValue) -> JsonError {
    JsonError::custom(format_args!("the key `{key}` of `_meta`: {reason}"))
}

/// Checks the form of a `_meta` key: an optional prefix that ends in `/`, and a name, which may be
/// empty after a prefix.
///
/// # Errors
///
/// The key violates the grammar for keys of `_meta`: the fault of its author.
pub fn check_key(key: &str) -> Result<(), InvalidValue> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    // MCP 2026-07-28 basic/index#_meta [META-003]: labels joined by dots.
    if prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
        return Err(InvalidValue::new(PREFIX));
    }
    // MCP 2026-07-28 basic/index#_meta [META-004]: unless empty, alphanumeric at both ends.
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    if ends.into_iter().flatten().all(u8::is_ascii_alphanumeric) && bytes.iter().all(inside) {
        Ok(())
    } else {
        Err(InvalidValue::new(NAME))
    }
}

/// Checks a key that the application writes: its form, and that it has no reserved prefix other
/// than `io.modelcontextprotocol`, whose keys the protocol and its extensions define.
pub(crate) fn check_own_key(key: &str) -> Result<(), InvalidValue> {
    check_key(key)?;
    // MCP 2026-07-28 basic/index#_meta [META-006]
    let is_defined = key.strip_prefix("io.modelcontextprotocol");
    if is_defined.is_some_and(|rest| rest.starts_with(['/', '.'])) || !key.contains('/') {
        return Ok(());
    }
    if is_reserved_key(key, Revision::LATEST) { Err(InvalidValue::new(RESERVED)) } else { Ok(()) }
}

/// Checks the form of an extension identifier: a key with a prefix.
///
/// # Errors
///
/// Those of [`check_key`], or the prefix is missing: the fault of its author.
// MCP 2026-07-28 basic/versioning#extension-negotiation [CAP-024]: the prefix is mandatory.
pub fn check_extension_id(id: &str) -> Result<(), InvalidValue> {
    if id.contains('/') { check_key(id) } else { Err(InvalidValue::new(NO_PREFIX)) }
}

/// Returns whether the protocol reserves `key` at `revision`, so that others must not define it.
#[must_use]
pub fn is_reserved_key(key: &str, revision: Revision) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        // MCP 2026-07-28 basic/index#_meta [META-013]: the bare keys of the protocol.
        return key == Meta::PROGRESS_TOKEN
            || revision >= Revision::V2026_07_28
                && [Meta::TRACEPARENT, Meta::TRACESTATE, Meta::BAGGAGE].contains(&key);
    };
    let label = match revision {
        // The first revisions have no rules for keys.
        Revision::V2024_11_05 | Revision::V2025_03_26 => None,
        // MCP 2025-06-18 basic/index#_meta [META-005]: the second label from the right.
        Revision::V2025_06_18 => prefix.rsplit('.').nth(1),
        // MCP 2025-11-25 basic/index#_meta [META-006]: the second label from the left.
        Revision::V2025_11_25 | Revision::V2026_07_28 => prefix.split('.').nth(1),
    };
    matches!(label, Some("modelcontextprotocol" | "mcp"))
}

fn is_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::jsonrpc::RawJson;

    #[test]
    fn keys_follow_the_grammar_of_prefix_and_name() {
        // Rule: [META-003] [META-004].
        for key in ["a", "progressToken", "com.example/", "com.ex-ample.v2/my_key.x-1", "x/9", ""] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        for key in ["/a", "1com/a", "com./a", "com..x/a", "com-/a", "-com/a", "c_m/a"] {
            assert_eq!(check_key(key), Err(InvalidValue::new(PREFIX)), "{key}");
        }
        for key in ["_a", "a-", "a/b/c", "com.example/.a", "ä", "a b"] {
            assert_eq!(check_key(key), Err(InvalidValue::new(NAME)), "{key}");
        }
    }

    #[test]
    fn an_application_writes_valid_keys_only() {
        // Rule: [META-003] [META-004] [META-006].
        let mut meta = Meta::new();
        for (key, reason) in [
            ("1com/a", PREFIX),
            ("a/b/c", NAME),
            ("dev.mcp/x", RESERVED),
            ("com.modelcontextprotocol.tools/x", RESERVED),
        ] {
            let error = meta.set(key, &1).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains(reason), "{error}");
            meta.insert(key, RawJson::EMPTY_OBJECT.into());
            assert_eq!(meta.check(), Err(InvalidValue::new(reason)));
            meta.remove(key);
        }
        for key in ["progressToken", Meta::CLIENT_INFO, "io.modelcontextprotocol.skills/x", "a.b/c"]
        {
            assert_eq!(meta.set(key, &1), Ok(None), "{key}");
        }
        assert_eq!(meta.check(), Ok(()));
    }

    #[test]
    fn an_extension_identifier_needs_a_prefix() {
        // Rule: [CAP-024].
        assert_eq!(check_extension_id("io.modelcontextprotocol/tasks"), Ok(()));
        assert_eq!(check_extension_id("tasks"), Err(InvalidValue::new(NO_PREFIX)));
        assert_eq!(check_extension_id("1/tasks"), Err(InvalidValue::new(PREFIX)));
    }

    #[test]
    fn the_reserved_label_is_counted_from_the_right_and_later_from_the_left() {
        // Rule: [META-005].
        let june = Revision::V2025_06_18;
        for key in ["modelcontextprotocol.io/x", "mcp.dev/x", "tools.mcp.com/x"] {
            assert!(is_reserved_key(key, june), "{key}");
        }
        assert!(!is_reserved_key("io.modelcontextprotocol/x", june));
        // Rule: [META-006].
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            for key in ["io.modelcontextprotocol/x", "dev.mcp/x", "com.mcp.tools/x"] {
                assert!(is_reserved_key(key, revision), "{key}");
            }
            for key in ["com.example.mcp/x", "mcp.dev/x", "mcp/x"] {
                assert!(!is_reserved_key(key, revision), "{key}");
            }
        }
    }

    #[test]
    fn bare_trace_keys_are_reserved_in_the_newest_revision_only() {
        // Rule: [META-013].
        for key in ["traceparent", "tracestate", "baggage"] {
            assert!(is_reserved_key(key, Revision::V2026_07_28), "{key}");
            assert!(!is_reserved_key(key, Revision::V2025_11_25), "{key}");
        }
        assert!(!is_reserved_key("mine", Revision::V2026_07_28));
    }
}
