//! JSON strings and integers as their text.

use alloc::borrow::Cow;
use alloc::string::String;

/// The content of a JSON string, given with its quotes; `None` if it is no string. Borrowed unless
/// there are escapes to resolve.
pub(super) fn unquote(text: &str) -> Option<Cow<'_, str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(text).ok().map(Cow::Owned)
}

/// Whether a key, given as written between its quotes, is `name` once its escapes are resolved.
pub(super) fn key_is(key: &str, name: &str) -> bool {
    key == name || (key.contains('\\') && resolve_key(key) == name)
}

/// A key, given as written between its quotes, with its escapes resolved.
// Two spellings of one key are one key: were an escaped `method` overlooked here but understood by
// whoever decodes the text later, the two would disagree on what the message is.
pub(super) fn resolve_key(key: &str) -> Cow<'_, str> {
    if !key.contains('\\') {
        return Cow::Borrowed(key);
    }
    let mut quoted = String::with_capacity(key.len() + 2);
    quoted.push('"');
    quoted.push_str(key);
    quoted.push('"');
    serde_json::from_str::<String>(&quoted).map_or(Cow::Borrowed(key), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_string_is_borrowed_and_an_escaped_one_resolved() {
        assert!(matches!(unquote("\"é\""), Some(Cow::Borrowed("é"))));
        assert_eq!(unquote(r#""\u0061\n""#).as_deref(), Some("a\n"));
        assert_eq!(unquote("1"), None);
        assert_eq!(unquote("\""), None);
    }

    #[test]
    fn a_key_is_the_same_in_every_spelling() {
        assert!(key_is("id", "id"));
        assert!(key_is(r"\u0069d", "id"));
        assert!(!key_is(r"\u0069D", "id"));
        assert!(!key_is("", "id"));
    }
}
