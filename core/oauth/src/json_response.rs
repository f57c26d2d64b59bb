//! Common parts of the responses from an authorization server's endpoints.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcp_sansio::http::DOCUMENT_LENGTH_MAX;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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

/// A value of the expected type, or any other.
#[derive(Deserialize)]
#[serde(untagged)]
enum Either<T> {
    Expected(T),
    Other(IgnoredAny),
}

impl<T> Either<T> {
    fn expected(self) -> Option<T> {
        match self {
            Self::Expected(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

/// Reads an optional member. One of another type counts as absent: a member that the client can do
/// without must not make an answer useless.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Either::deserialize(deserializer).map(Either::expected)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<Either<String>>),
}

/// Reads a list of texts, without elements of another type. A single text has its elements between
/// spaces.
pub(super) fn texts<'de, D>(deserializer: D) -> Result<Option<Vec<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(lenient(deserializer)?.map(|texts| match texts {
        OneOrMany::One(text) => {
            text.split(' ').filter(|it| !it.is_empty()).map(Into::into).collect()
        }
        OneOrMany::Many(list) => list.into_iter().filter_map(Either::expected).collect(),
    }))
}

/// Reads an error code. An object or another value that says that there is an error is kept as
/// JSON; an empty text, zero and `false` are not errors.
pub(super) fn error_code<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(match Value::deserialize(deserializer)? {
        Value::Null | Value::Bool(false) => None,
        Value::String(code) => Some(code).filter(|it| !it.is_empty()),
        Value::Number(number) if number.as_f64() == Some(0.0) => None,
        other => Some(other.to_string()),
    })
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Whole(u64),
    Number(f64),
    Text(String),
}

/// Parses a time in seconds, which some servers write as a string or with a fraction. A negative
/// time is zero. A value of another type counts as absent.
pub(super) fn seconds<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(lenient(deserializer)?.and_then(|seconds| match seconds {
        Seconds::Whole(seconds) => Some(seconds),
        // The casts saturate.
        Seconds::Number(seconds) => Some(seconds as u64),
        Seconds::Text(seconds) => seconds.parse().ok().map(|it: f64| it as u64),
    }))
}

#[cfg(test)]
mod tests {
    use alloc::format;

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
            (r#""soon""#, None),
            ("[]", None),
            (r#"{"x":{}}"#, None),
            ("true", None),
        ] {
            let body = format!(r#"{{"time":{text}}}"#);
            assert_eq!(read_object(body.as_bytes()), Ok(Time { time }), "{text}");
        }
        assert_eq!(read_object(b"{}"), Ok(Time { time: None }));
    }

    #[test]
    fn an_object_with_wrong_members_is_refused() {
        for body in ["", "null", "[1]", r#"{"time":1,"time":1}"#, "{}x"] {
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
    fn an_error_is_what_says_so() {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default, deserialize_with = "error_code")]
            error: Option<String>,
        }
        for (text, error) in [
            (r#""invalid_grant""#, Some("invalid_grant")),
            (r#"{"code":400}"#, Some(r#"{"code":400}"#)),
            ("true", Some("true")),
            ("7", Some("7")),
            ("null", None),
            ("false", None),
            ("0", None),
            ("\"\"", None),
        ] {
            let body = format!(r#"{{"error":{text}}}"#);
            let answer: Answer = read_object(body.as_bytes()).expect(text);
            assert_eq!(answer.error.as_deref(), error, "{text}");
        }
    }

    #[test]
    fn a_list_is_read_without_its_odd_elements() {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default, deserialize_with = "texts")]
            list: Option<Vec<String>>,
        }
        for (text, list) in [
            (r#"["a","b"]"#, Some("a,b")),
            (r#"["a",null,["c"],5,"b"]"#, Some("a,b")),
            (r#"" a  b ""#, Some("a,b")),
            ("[]", Some("")),
            ("null", None),
            ("{}", None),
            ("5", None),
        ] {
            let body = format!(r#"{{"list":{text}}}"#);
            let answer: Answer = read_object(body.as_bytes()).expect(text);
            assert_eq!(answer.list.map(|it| it.join(",")).as_deref(), list, "{text}");
        }
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
