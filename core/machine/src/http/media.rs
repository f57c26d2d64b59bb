use super::field_value::trim;

/// The media type of an HTTP body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// `application/json`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Anything else.
    Other,
}

/// The media types that a client accepts, from its `Accept`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// `application/json`, or a range that includes it.
    pub(crate) json: bool,
    /// `text/event-stream`, or a range that includes it.
    pub(crate) event_stream: bool,
}

impl Media {
    /// Parses the value of `Content-Type`. Both types are UTF-8 regardless of a parameter
    /// `charset`, which has no effect on JSON (RFC 8259, section 11); the body is checked. Linear.
    ///
    /// Intermediaries join repeated fields: several values count if all mean the same type (RFC
    /// 9110, section 5.3).
    pub(crate) fn from_content_type(content_type: &[u8]) -> Self {
        // Fast path for the usual values.
        match content_type {
            b"application/json" => return Self::Json,
            b"text/event-stream" => return Self::EventStream,
            _ => {}
        }
        let mut values = split(content_type, b',').map(Self::from_single);
        let first = values.next().unwrap_or(Self::Other);
        if values.all(|other| other == first) { first } else { Self::Other }
    }

    fn from_single(value: &[u8]) -> Self {
        let name = trim(split(value, b';').next().unwrap_or_default());
        if name.eq_ignore_ascii_case(b"text/event-stream") {
            Self::EventStream
        } else if name.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else {
            Self::Other
        }
    }
}

/// Returns whether the value of `Content-Type` is JSON. See [`Media::from_content_type`].
// A web page cannot send this type without a preflight request.
pub(crate) fn is_json(content_type: &[u8]) -> bool {
    Media::from_content_type(content_type) == Media::Json
}

impl Accepted {
    /// Parses the values of the `Accept` field lines, in any order. Without any, nothing is
    /// accepted; the caller decides how to treat that. Linear.
    pub(crate) fn from_values<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let (mut json, mut event_stream) = (Choice::default(), Choice::default());
        for range in values.into_iter().flat_map(|value| split(value, b',')) {
            let mut parts = split(range, b';');
            let name = trim(parts.next().unwrap_or_default());
            let weight = parts.map(parameter).find(|(name, _)| name.eq_ignore_ascii_case(b"q"));
            let Some(wanted) = weight.map_or(Some(true), |(_, value)| is_above_zero(value)) else {
                continue;
            };
            json.consider(specificity(name, b"application/*", b"application/json"), wanted);
            event_stream.consider(specificity(name, b"text/*", b"text/event-stream"), wanted);
        }
        Self { json: json.wanted, event_stream: event_stream.wanted }
    }
}

/// The choice of the most specific range so far for a type.
#[derive(Default)]
struct Choice {
    specificity: u8,
    wanted: bool,
}

impl Choice {
    fn consider(&mut self, specificity: u8, wanted: bool) {
        if specificity > self.specificity {
            *self = Self { specificity, wanted };
        } else if specificity == self.specificity && specificity > 0 {
            self.wanted |= wanted;
        }
    }
}

/// Returns how closely a media range matches a type; zero if it does not include it.
fn specificity(range: &[u8], family: &[u8], name: &[u8]) -> u8 {
    if range.eq_ignore_ascii_case(name) {
        3
    } else if range.eq_ignore_ascii_case(family) {
        2
    } else {
        u8::from(range == b"*/*")
    }
}

/// Returns whether a weight is above zero; `None` if it is malformed.
fn is_above_zero(weight: &[u8]) -> Option<bool> {
    let (whole, fraction) = match weight {
        [whole] | [whole, b'.'] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] => (whole, fraction),
        _ => return None,
    };
    let digits = fraction.len() <= 3 && fraction.iter().all(u8::is_ascii_digit);
    let some = fraction.iter().any(|digit| *digit != b'0');
    match whole {
        b'0' if digits => Some(some),
        b'1' if digits && !some => Some(true),
        _ => None,
    }
}

/// Returns the name and the value of a parameter. A missing value is empty.
fn parameter(text: &[u8]) -> (&[u8], &[u8]) {
    let equals = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
    let (name, value) = text.split_at(equals);
    (trim(name), trim(value.get(1..).unwrap_or_default()))
}

/// Splits a value at the separators outside of quoted strings.
fn split(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    core::iter::from_fn(move || {
        let text = rest?;
        let end = find_unquoted(text, separator);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// Returns the position of the first separator outside of quoted strings.
fn find_unquoted(text: &[u8], separator: u8) -> Option<usize> {
    // Hardly any value contains a quoted string.
    let start = text.iter().position(|byte| *byte == separator || *byte == b'"')?;
    let (mut quoted, mut escaped) = (false, false);
    let found = text[start..].iter().position(|byte| {
        if escaped {
            escaped = false;
        } else if *byte == b'"' {
            quoted = !quoted;
        } else if quoted {
            escaped = *byte == b'\\';
        } else {
            return *byte == separator;
        }
        false
    });
    found.map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(values: &[&str]) -> (bool, bool) {
        let Accepted { json, event_stream } =
            Accepted::from_values(values.iter().map(|it| it.as_bytes()));
        (json, event_stream)
    }

    #[test]
    fn both_types_are_found_in_one_field_line_or_in_several() {
        for values in [
            &["application/json, text/event-stream"][..],
            &["text/event-stream", "application/json"],
            &["text/html,,application/json ;q=0.5", " TEXT/Event-Stream;Q=0.001;x"],
            &["Application/JSON;charset=\"utf-8\", text/*"],
            &["*/*"],
            &["application/*;q=1.000, text/*; q=1."],
        ] {
            assert_eq!(accepted(values), (true, true), "{values:?}");
        }
        assert_eq!(accepted(&["application/json"]), (true, false));
        assert_eq!(accepted(&["text/event-stream"]), (false, true));
        for values in [&[][..], &[""], &["text/html"], &["application/jsonl"], &["*"], &["json"]] {
            assert_eq!(accepted(values), (false, false), "{values:?}");
        }
    }

    #[test]
    fn a_zero_weight_refuses_and_the_most_specific_range_wins() {
        assert_eq!(accepted(&["application/json;q=0, */*"]), (false, true));
        assert_eq!(accepted(&["*/*, application/json;q=0.000"]), (false, true));
        assert_eq!(accepted(&["*/*;q=0", "application/*"]), (true, false));
        assert_eq!(accepted(&["text/*;q=0.1, text/event-stream;q=0"]), (false, false));
        assert_eq!(accepted(&["application/json;q=0, application/json"]), (true, false));
        for weight in ["", "2", "-1", "1.001", "0.0000", "a", "0,5", "01"] {
            let value = alloc::format!("application/json;q={weight}");
            assert_eq!(accepted(&[&value]), (false, false), "{value}");
        }
    }

    #[test]
    fn separators_in_quoted_strings_are_ignored() {
        assert_eq!(accepted(&[r#"a/b;c=", application/json""#]), (false, false));
        assert_eq!(accepted(&[r#"a/b;c="\", ", application/json"#]), (true, false));
        assert_eq!(accepted(&[r#"application/json;a=";q=1";q=0"#]), (false, false));
        assert_eq!(accepted(&[r#"a/b;c=", application/json"#]), (false, false));
    }

    #[test]
    fn parameters_do_not_matter_to_json() {
        for value in [
            "application/json",
            " Application/JSON\t",
            "application/json;charset=utf-8",
            "application/json; Charset=\"UTF-8\"",
            "application/json;charset=utf8;",
            "application/json; profile=\"a;charset=latin1\"",
            "application/json, application/json",
            "application/json;charset=utf-8,Application/JSON; a=\",\"",
            "application/json;charset=iso-8859-1",
            "application/json;charset=us-ascii",
            "application/json;charset",
            "application/json, application/json;charset=latin1",
        ] {
            assert!(is_json(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "json",
            "text/json",
            "text/plain",
            "application/json-rpc",
            "application/vnd.api+json",
            "application/json, text/plain",
            "text/plain, application/json",
            "application/json,",
            "text/plain; application/json",
        ] {
            assert!(!is_json(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn content_types_are_classified() {
        assert_eq!(Media::from_content_type(b"application/json; charset=utf-8"), Media::Json);
        assert_eq!(Media::from_content_type(b"Text/Event-Stream"), Media::EventStream);
        assert_eq!(
            Media::from_content_type(b"text/event-stream;charset=UTF-8"),
            Media::EventStream
        );
        assert_eq!(Media::from_content_type(b"text/html"), Media::Other);
        assert_eq!(Media::from_content_type(b"\xff\"\\;;=;\"="), Media::Other);
    }
}
