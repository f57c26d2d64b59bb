//! Checks whether a text is an absolute URI.

use alloc::string::String;
use alloc::vec::Vec;

/// The reason why a text is not an absolute URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUri {
    /// It does not start with a scheme: a letter, then letters, digits, `+`, `-` and `.`, then `:`.
    #[error("it does not start with a scheme, such as `file:` or `https:`")]
    Scheme,
    /// It contains a character that must be percent-encoded.
    #[error("`{}` must be percent-encoded", .0.escape_debug())]
    Character(char),
    /// It contains a `%` without two hexadecimal digits after it.
    #[error("`%` is not followed by two hexadecimal digits")]
    Percent,
}

/// Checks that `uri` is absolute and has the syntax of RFC 3986: a scheme, followed by URI
/// characters. Rules of individual schemes are not checked. Linear in the length.
///
/// # Errors
///
/// The URI is invalid: see [`InvalidUri`].
// MCP 2026-07-28 server/resources#security-considerations [RSRC-014]
// MCP 2026-07-28 server/resources#custom-uri-schemes [RSRC-018]
pub fn check_uri(uri: &str) -> Result<(), InvalidUri> {
    let rest = after_scheme(uri).ok_or(InvalidUri::Scheme)?;
    let (before, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    // Brackets are allowed only for addresses in the authority.
    let authority = before
        .strip_prefix("//")
        .map_or("", |rest| rest.split(['/', '?']).next().unwrap_or_default());
    check_characters(authority, true)?;
    let path = before.strip_prefix("//").map_or(before, |rest| &rest[authority.len()..]);
    check_characters(path, false)?;
    check_characters(fragment, false)
}

/// Returns the text after the scheme and its colon.
pub(super) fn after_scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    (starts && scheme.chars().all(is_scheme_character)).then_some(rest)
}

pub(super) const fn is_scheme_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Returns whether the character is allowed unencoded in a path, a query or a fragment.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(
            c,
            '-' | '.'
                | '_'
                | '~'
                | ':'
                | '/'
                | '?'
                | '@'
                | '!'
                | '$'
                | '&'
                | '\''
                | '('
                | ')'
                | '*'
                | '+'
                | ','
                | ';'
                | '='
        )
}

fn check_characters(text: &str, brackets: bool) -> Result<(), InvalidUri> {
    for (at, c) in text.char_indices() {
        if c == '%' {
            let digits = text.as_bytes().get(at + 1..at + 3);
            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                return Err(InvalidUri::Percent);
            }
        } else if !(is_plain(c) || brackets && matches!(c, '[' | ']')) {
            return Err(InvalidUri::Character(c));
        }
    }
    Ok(())
}

/// Checks literal text of a URI template, which may contain the start of a fragment.
pub(super) fn check_literal(text: &str) -> Result<(), InvalidUri> {
    text.split('#').try_for_each(|part| check_characters(part, true))
}

/// Decodes the percent-encoding of a text. Returns `None` if it is malformed or the result is not
/// UTF-8.
pub(super) fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        bytes.push(encoded_byte(rest)?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Returns the byte that the two digits at the start of a text encode.
pub(super) fn encoded_byte(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    Some((digit(0)? << 4 | digit(1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_uris_of_any_scheme_pass() {
        // Rule: [RSRC-014] [RSRC-018].
        for uri in [
            "file:///a/b%20c.txt",
            "https://user@[::1]:80/p?q=1&r=a/b#frag?",
            "urn:isbn:0451450523",
            "git+ssh://host/path;v=1",
            "mem:",
            "test://static-text",
        ] {
            assert_eq!(check_uri(uri), Ok(()), "{uri}");
        }
    }

    #[test]
    fn relative_and_malformed_uris_are_rejected_with_a_reason() {
        // Rule: [RSRC-014] [RSRC-018].
        for (uri, reason) in [
            ("", InvalidUri::Scheme),
            ("readme.md", InvalidUri::Scheme),
            ("/a:b", InvalidUri::Scheme),
            (":x", InvalidUri::Scheme),
            ("1x:y", InvalidUri::Scheme),
            ("my_scheme:x", InvalidUri::Scheme),
            ("file:///a b", InvalidUri::Character(' ')),
            ("file:///é", InvalidUri::Character('é')),
            ("file:///{a}", InvalidUri::Character('{')),
            ("file:///a[1]", InvalidUri::Character('[')),
            ("file:///a#b#c", InvalidUri::Character('#')),
            ("file:///a%2", InvalidUri::Percent),
            ("file:///a%", InvalidUri::Percent),
            ("file:///a%é", InvalidUri::Percent),
        ] {
            assert_eq!(check_uri(uri), Err(reason), "{uri}");
        }
    }

    #[test]
    fn percent_encoding_is_resolved_once() {
        assert_eq!(decode_percent("a%2Fb%25+").as_deref(), Some("a/b%+"));
        assert_eq!(decode_percent("%C3%A9").as_deref(), Some("é"));
        for broken in ["%", "%4", "%zz", "%FF", "%é"] {
            assert_eq!(decode_percent(broken), None, "{broken}");
        }
    }
}
