//! Common parts of the responses from an authorization server's endpoints.

use alloc::string::String;
use core::fmt;

use mcp_sansio::http::DOCUMENT_LENGTH_MAX;
use serde::Deserializer;
use serde::de::{self, DeserializeOwned, Visitor};

/// The most characters of a server's error text that are kept.
const TEXT_LENGTH_MAX: usize = 1024;

/// Why the response of an endpoint cannot be parsed. The authorization server's error.
// Contains no details: the text around the fault may be secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResponse {
    /// The response is longer than 256 KiB.
    #[error("the answer is longer than {DOCUMENT_LENGTH_MAX} bytes")]
    TooLong,
    /// The response is not a JSON object, has a duplicate member, or a member of the wrong type.
    #[error("the answer is malformed")]
    Malformed,
}

/// Parses the known members of a JSON object. Linear in its length.
pub(super) fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, InvalidResponse> {
    if body.len() > DOCUMENT_LENGTH_MAX {
        return Err(InvalidResponse::TooLong);
    }
    // The derived deserializers also accept an array for an object.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(InvalidResponse::Malformed);
    }
    // The parser does not check the encoding of unknown members, so it is checked here.
    let body = core::str::from_utf8(body).map_err(|_| InvalidResponse::Malformed)?;
    serde_json::from_str(body).map_err(|_| InvalidResponse::Malformed)
}

/// Returns the printable characters of a server's error text, which should be ASCII (RFC 6749,
/// section 5.2). Linear.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|it| matches!(it, ' '..='~')).take(TEXT_LENGTH_MAX).collect()
}

/// Parses a time in seconds, which some servers write as a string or with a fraction. A negative
/// time is zero.
pub(super) fn seconds<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(Seconds)
}

struct Seconds;

impl Visitor<'_> for Seconds {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of seconds")
    }

    fn visit_u64<E>(self, seconds: u64) -> Result<Option<u64>, E> {
        Ok(Some(seconds))
    }

    fn visit_i64<E>(self, seconds: i64) -> Result<Option<u64>, E> {
        Ok(Some(seconds.try_into().unwrap_or(0)))
    }

    fn visit_f64<E>(self, seconds: f64) -> Result<Option<u64>, E> {
        // The cast saturates.
        Ok(Some(seconds as u64))
    }

    fn visit_str<E: de::Error>(self, seconds: &str) -> Result<Option<u64>, E> {
        match seconds.parse() {
            Ok(seconds) => self.visit_f64(seconds),
            Err(_) => Err(E::invalid_value(de::Unexpected::Other("text"), &self)),
        }
    }

    fn visit_unit<E>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Time {
        #[serde(default, deserialize_with = "seconds")]
        time: Option<u64>,
    }

    #[test]
    fn every_form_of_a_time_is_parsed() {
        for (text, time) in [
            ("3600", Some(3600)),
            (r#""3600""#, Some(3600)),
            ("3599.9", Some(3599)),
            ("0", Some(0)),
            ("-1", Some(0)),
            ("-0.5", Some(0)),
            (r#""-7""#, Some(0)),
            ("1e300", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            ("null", None),
        ] {
            let body = format!(r#"{{"time":{text}}}"#);
            assert_eq!(read_object(body.as_bytes()), Ok(Time { time }), "{text}");
        }
        assert_eq!(read_object(b"{}"), Ok(Time { time: None }));
    }

    #[test]
    fn an_object_with_wrong_members_is_refused() {
        for body in [
            "",
            "null",
            "[1]",
            r#"{"time":[]}"#,
            r#"{"time":"soon"}"#,
            r#"{"time":1,"time":1}"#,
            "{}x",
        ] {
            assert_eq!(
                read_object::<Time>(body.as_bytes()),
                Err(InvalidResponse::Malformed),
                "{body}"
            );
        }
        let deep = format!(r#"{{"x":{}"#, "[".repeat(100_000));
        assert_eq!(read_object::<Time>(deep.as_bytes()), Err(InvalidResponse::Malformed));
        let long = alloc::vec![b' '; DOCUMENT_LENGTH_MAX + 1];
        assert_eq!(read_object::<Time>(&long), Err(InvalidResponse::TooLong));
    }

    #[test]
    fn invalid_utf8_is_refused_even_in_ignored_members() {
        let body = b"{\"time\":1,\"x\":\"\xff\"}";
        assert_eq!(read_object::<Time>(body), Err(InvalidResponse::Malformed));
    }

    #[test]
    fn an_error_shows_only_printable_characters() {
        assert_eq!(printable("No.\r\n\u{1b}[31m\u{202e}\u{e9}!"), "No.[31m!");
        assert_eq!(printable(&"x".repeat(TEXT_LENGTH_MAX + 1)).len(), TEXT_LENGTH_MAX);
    }
}
