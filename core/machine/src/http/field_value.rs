use alloc::borrow::Cow;
use alloc::string::String;
use core::str;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::binding::is_allowed;

// MCP 2026-07-28 basic/transports/streamable-http#value-encoding [HDR-023]: case-sensitive, in
// lower case.
const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The reason why a field value cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidFieldValue {
    /// A byte that is not visible ASCII, a space or a tab.
    #[error("it contains a character that must be encoded")]
    Character,
    /// The text between the markers is not Base64 with padding.
    #[error("the text between its markers is not Base64")]
    Base64,
    /// The decoded bytes are not UTF-8.
    #[error("the decoded bytes are not UTF-8")]
    Utf8,
}

/// Encodes `text` as the value of `Mcp-Name` or `Mcp-Param-*`: unchanged if a header can carry it,
/// otherwise as Base64 between markers. Linear; borrowed if nothing is encoded.
// An empty text stays empty: RFC 9110 allows an empty value, it contains no character to protect,
// and the page does not list it among the values to encode.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    // MCP 2026-07-28 basic/transports/streamable-http#value-encoding [HDR-007] [HDR-021]: leading
    // and trailing white space would be stripped in transit; other characters would be refused or
    // split the header.
    let padded = [bytes.first(), bytes.last()].into_iter().flatten().any(|byte| is_space(*byte));
    let plain = !padded && bytes.iter().all(|byte| is_allowed(*byte));
    // MCP 2026-07-28 basic/transports/streamable-http#value-encoding [HDR-022]: it would be
    // decoded.
    let marked = text.starts_with(PREFIX) && text.ends_with(SUFFIX);
    if plain && !marked {
        return Cow::Borrowed(text);
    }
    let mut value = String::from(PREFIX);
    STANDARD.encode_string(text, &mut value);
    value.push_str(SUFFIX);
    Cow::Owned(value)
}

/// Decodes a field value, without surrounding white space. Linear; borrowed if nothing was encoded.
///
/// # Errors
///
/// See [`InvalidFieldValue`].
// MCP 2026-07-28 basic/transports/streamable-http#server-behavior-for-custom-headers [HDR-024]
// [HDR-027]: missing padding and non-zero trailing bits are errors too, so that each text has only
// one encoding.
pub(crate) fn decode(value: &[u8]) -> Result<Cow<'_, str>, InvalidFieldValue> {
    let value = trim(value);
    if !value.iter().all(|byte| is_allowed(*byte)) {
        return Err(InvalidFieldValue::Character);
    }
    let text = str::from_utf8(value).map_err(|_| InvalidFieldValue::Character)?;
    let encoded = text.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    let Some(encoded) = encoded else {
        return Ok(Cow::Borrowed(text));
    };
    let bytes = STANDARD.decode(encoded).map_err(|_| InvalidFieldValue::Base64)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| InvalidFieldValue::Utf8)
}

/// Returns the value without optional surrounding white space.
// MCP 2026-07-28 basic/transports/streamable-http#case-sensitivity [HDR-031]: it is not part of the
// value.
pub(super) const fn trim(mut value: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = value
        && is_space(*first)
    {
        value = rest;
    }
    while let [rest @ .., last] = value
        && is_space(*last)
    {
        value = rest;
    }
    value
}

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_reproduced() {
        // Rule: [HDR-007] [HDR-021] [HDR-022] [HDR-024].
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(text), value);
            assert_eq!(decode(value.as_bytes()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn plain_header_values_are_not_encoded() {
        // Rule: [HDR-021] [HDR-023].
        for text in ["", "a b\tc", "!~", "=?base64?a", "a?=", "=?BASE64?YQ==?=", "=?base64?YQ=="] {
            assert!(matches!(encode(text), Cow::Borrowed(same) if same == text), "{text}");
            assert_eq!(decode(text.as_bytes()).as_deref(), Ok(text));
        }
        for text in ["\t", " a", "a\t", "\u{7f}", "\0", "é", "a\r\nb", "=?base64??="] {
            assert!(matches!(encode(text), Cow::Owned(_)), "{text:?}");
        }
    }

    #[test]
    fn markers_that_share_a_character_are_encoded_but_read_as_text() {
        // Rule: [HDR-022] [HDR-023].
        assert_eq!(encode("=?base64?="), "=?base64?PT9iYXNlNjQ/PQ==?=");
        assert_eq!(decode(b"=?base64?=").as_deref(), Ok("=?base64?="));
        assert_eq!(decode(b"=?base64??=").as_deref(), Ok(""));
    }

    #[test]
    fn white_space_around_a_value_does_not_belong_to_it() {
        // Rule: [HDR-031].
        assert_eq!(decode(b" \t us west \t").as_deref(), Ok("us west"));
        assert_eq!(decode(b" =?base64?YQ==?= ").as_deref(), Ok("a"));
        assert_eq!(decode(b" \t ").as_deref(), Ok(""));
    }

    #[test]
    fn unreadable_input_is_rejected() {
        // Rule: [HDR-027].
        for (value, reason) in [
            (&b"a\0b"[..], InvalidFieldValue::Character),
            (b"a\nb", InvalidFieldValue::Character),
            (b"a\x7f", InvalidFieldValue::Character),
            ("é".as_bytes(), InvalidFieldValue::Character),
            (b"\xff", InvalidFieldValue::Character),
            (b"=?base64?SGVsbG8?=", InvalidFieldValue::Base64),
            (b"=?base64?SGVs!!!bG8=?=", InvalidFieldValue::Base64),
            (b"=?base64?YR==?=", InvalidFieldValue::Base64),
            (b"=?base64?YQ== ?=", InvalidFieldValue::Base64),
            (b"=?base64?_-8=?=", InvalidFieldValue::Base64),
            (b"=?base64?/w==?=", InvalidFieldValue::Utf8),
        ] {
            assert_eq!(decode(value), Err(reason), "{}", value.escape_ascii());
        }
    }

    proptest::proptest! {
        #[test]
        fn encoded_values_are_ascii_and_round_trip(text in "\\PC*|(=\\?base64\\?)?[ -~\t\r\n]*(\\?=)?") {
            let value = encode(&text);
            proptest::prop_assert!(value.bytes().all(is_allowed));
            let decoded = decode(value.as_bytes());
            proptest::prop_assert_eq!(decoded.as_deref(), Ok(text.as_str()));
        }

        #[test]
        fn no_value_panics_the_decoder(value: alloc::vec::Vec<u8>) {
            let _ = decode(&value);
        }
    }
}
