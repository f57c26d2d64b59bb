//! `application/x-www-form-urlencoded`, the format of queries and token requests.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcp_sansio::http::Location;

/// The media type of a [`Form`].
pub(crate) const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The parameters of a request, in their order.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Form {
    names: Vec<&'static str>,
    text: String,
}

impl Form {
    /// Creates a form without parameters.
    pub(crate) const fn new() -> Self {
        Self { names: Vec::new(), text: String::new() }
    }

    /// Adds a parameter, which must not be present yet.
    pub(crate) fn push(&mut self, name: &'static str, value: &str) {
        debug_assert!(!self.names.contains(&name), "duplicate parameter: {name}");
        self.names.push(name);
        if !self.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(name);
        self.text.push('=');
        encode(value, &mut self.text);
    }

    /// Returns the parameters as a body.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends these parameters to the URL of an endpoint, whose other parameters stay unchanged (RFC
    /// 6749, section 3.1). Its own values of these parameters are left out, as duplicates are not
    /// allowed. Linear.
    pub(crate) fn appended_to(&self, endpoint: &Location) -> String {
        let (url, query) = endpoint.as_str().split_once('?').unwrap_or((endpoint.as_str(), ""));
        let is_own = |parameter: &str| {
            let name = parameters(parameter).next().and_then(|(name, _)| decode(name));
            self.names.iter().any(|own| name.as_deref() == Some(*own))
        };
        let mut text = [url, "?"].concat();
        for other in query.split('&').filter(|it| !it.is_empty() && !is_own(it)) {
            text.extend([other, "&"]);
        }
        text + &self.text
    }
}

impl fmt::Debug for Form {
    /// Omits the values, some of which are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Form").field(&self.names).finish()
    }
}

/// Returns the names and values of a query, still encoded.
pub(crate) fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
}

/// Returns the value as a form has it: see [`encode`].
pub(crate) fn encoded(value: &str) -> String {
    let mut text = String::new();
    encode(value, &mut text);
    text
}

/// Encodes a value so that every form parser decodes the same bytes: escapes everything except
/// unreserved characters (RFC 3986, section 2.3) and writes a space as `+`.
pub(crate) fn encode(value: &str, text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            b' ' => text.push('+'),
            byte => text.extend([
                '%',
                char::from(DIGITS[usize::from(byte >> 4)]),
                char::from(DIGITS[usize::from(byte & 0xf)]),
            ]),
        }
    }
}

/// Decodes a name or a value of a form; `None` if its encoding is invalid. Linear.
pub(crate) fn decode(text: &str) -> Option<String> {
    let (decoded, valid) = decode_bytes(text);
    String::from_utf8(decoded).ok().filter(|_| valid)
}

/// Decodes a text for people. Invalid escapes stay, and what is not UTF-8 is replaced. Linear.
pub(crate) fn decode_lossy(text: &str) -> String {
    String::from_utf8_lossy(&decode_bytes(text).0).into_owned()
}

/// Decodes a name or a value, and returns whether all of its escapes are valid.
fn decode_bytes(text: &str) -> (Vec<u8>, bool) {
    let (mut decoded, mut valid) = (Vec::with_capacity(text.len()), true);
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match escaped(after) {
                Some(byte) => {
                    rest = &after[2..];
                    byte
                }
                None => {
                    valid = false;
                    b'%'
                }
            },
            byte => *byte,
        });
    }
    (decoded, valid)
}

/// Returns the byte that the two digits after a `%` stand for.
fn escaped(after: &[u8]) -> Option<u8> {
    let [high, low, ..] = after else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn appended(endpoint: &str, names: &[&'static str]) -> String {
        let mut form = Form::new();
        for name in names {
            form.push(name, "1");
        }
        form.appended_to(&Location::parse(endpoint).expect(endpoint))
    }

    #[test]
    fn the_example_of_rfc_6749_is_reproduced() {
        let mut form = Form::new();
        form.push("a", " %&+£€");
        form.push("b", "");
        form.push("c", "x=y");
        assert_eq!(form.as_str(), "a=+%25%26%2B%C2%A3%E2%82%AC&b=&c=x%3Dy");
    }

    #[test]
    fn parameters_follow_those_of_the_endpoint() {
        for (endpoint, url) in [
            ("https://a.example", "https://a.example/?c=1&d=1"),
            ("https://a.example/x?", "https://a.example/x?c=1&d=1"),
            ("https://a.example/x?a=%41&b", "https://a.example/x?a=%41&b&c=1&d=1"),
            ("https://a.example/x?a&", "https://a.example/x?a&c=1&d=1"),
            ("https://a.example/x?%ff=1", "https://a.example/x?%ff=1&c=1&d=1"),
        ] {
            assert_eq!(appended(endpoint, &["c", "d"]), url, "{endpoint}");
        }
    }

    #[test]
    fn an_endpoint_cannot_set_a_parameter_of_the_client() {
        for (query, others) in
            [("state=x", ""), ("a&state", "a&"), ("a=b&st%61te=x&c&state=y", "a=b&c&")]
        {
            let url = appended(&format!("https://a.example/?{query}"), &["scope", "state"]);
            assert_eq!(url, format!("https://a.example/?{others}scope=1&state=1"), "{query}");
        }
    }

    #[test]
    fn debug_output_hides_secrets() {
        let mut form = Form::new();
        form.push("code", "secret");
        assert_eq!(format!("{form:?}"), r#"Form(["code"])"#);
    }

    #[test]
    fn an_invalid_encoding_is_refused() {
        for text in ["%", "%4", "%+1", "%g0", "a%ff"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_for_people_is_decoded_as_far_as_possible() {
        for (text, decoded) in [
            ("a+b%21", "a b!"),
            ("Schl%FCssel", "Schl\u{fffd}ssel"),
            ("100%", "100%"),
            ("%4", "%4"),
        ] {
            assert_eq!(decode_lossy(text), decoded, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_form_round_trips(values in proptest::array::uniform3("\\PC{0,8}")) {
            let mut form = Form::new();
            for (name, value) in ["a", "b", "c"].into_iter().zip(&values) {
                form.push(name, value);
            }
            let endpoint = Location::parse("https://a.example").expect("a URL");
            let url = form.appended_to(&endpoint);
            let location = Location::parse(&url).expect("a URL");
            proptest::prop_assert_eq!(location.as_str(), &*url);
            let query = location.path_and_query().split_once('?').map_or("", |(_, query)| query);
            let read: Option<Vec<_>> = parameters(query).map(|(_, value)| decode(value)).collect();
            proptest::prop_assert_eq!(read.as_deref(), Some(&values[..]));
        }

        #[test]
        fn any_text_is_decoded_or_refused(text in "\\PC{0,20}|(%[0-9a-f]{0,2}|[+&=]){0,8}") {
            if let Some(value) = decode(&text) {
                let mut again = String::new();
                encode(&value, &mut again);
                proptest::prop_assert_eq!(decode(&again), Some(value));
            }
        }
    }
}
