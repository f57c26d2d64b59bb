use super::field_value::trim;

/// What the body of an HTTP message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// `application/json`.
    Json,
    /// `text/event-stream`.
    EventStream,
    /// Anything else.
    Other,
}

/// What a client takes for an answer, by its `Accept`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// `application/json`, or a range that takes it in.
    pub(crate) json: bool,
    /// `text/event-stream`, or a range that takes it in.
    pub(crate) event_stream: bool,
}

impl Media {
    /// By the value of `Content-Type`. JSON in another charset than UTF-8 is something else; an
    /// event stream is UTF-8 whatever its charset. Linear.
    pub(crate) fn from_content_type(content_type: &[u8]) -> Self {
        // What nearly all say, in so many words.
        match content_type {
            b"application/json" => return Self::Json,
            b"text/event-stream" => return Self::EventStream,
            _ => {}
        }
        let mut parts = split(content_type, b';');
        let name = trim(parts.next().unwrap_or_default());
        if name.eq_ignore_ascii_case(b"text/event-stream") {
            return Self::EventStream;
        }
        let is_utf8 = |(name, value): (&[u8], &[u8])| {
            let value = unquote(value);
            !name.eq_ignore_ascii_case(b"charset")
                || value.eq_ignore_ascii_case(b"utf-8")
                || value.eq_ignore_ascii_case(b"utf8")
        };
        if name.eq_ignore_ascii_case(b"application/json") && parts.map(parameter).all(is_utf8) {
            Self::Json
        } else {
            Self::Other
        }
    }
}

/// Whether the value of `Content-Type` says JSON in UTF-8. See [`Media::from_content_type`].
// What a web page can send without being asked first has another type than this one.
pub(crate) fn is_json(content_type: &[u8]) -> bool {
    Media::from_content_type(content_type) == Media::Json
}

impl Accepted {
    /// By the values of the field lines called `Accept`, in any order. Nothing is accepted where
    /// there is none: what that means is for the caller to say. Linear.
    pub(crate) fn from_values<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut values = values.into_iter().peekable();
        let (mut json, mut event_stream) = (Choice::default(), Choice::default());
        // What most clients send, in so many words.
        if values.next_if(|value| *value == b"application/json, text/event-stream").is_some() {
            json.consider(3, true);
            event_stream.consider(3, true);
        }
        for range in values.flat_map(|value| split(value, b',')) {
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

/// What the most specific range so far says of a type.
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

/// How closely a media range names a type; zero if it does not take it in.
fn specificity(range: &[u8], family: &[u8], name: &[u8]) -> u8 {
    if range.eq_ignore_ascii_case(name) {
        3
    } else if range.eq_ignore_ascii_case(family) {
        2
    } else {
        u8::from(range == b"*/*")
    }
}

/// Whether a weight is more than nothing; `None` if it is no weight.
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

/// A parameter's name and value; without a value, the value is empty.
fn parameter(text: &[u8]) -> (&[u8], &[u8]) {
    let equals = text.iter().position(|byte| *byte == b'=').unwrap_or(text.len());
    let (name, value) = text.split_at(equals);
    (trim(name), trim(value.get(1..).unwrap_or_default()))
}

/// The inside of a quoted string. Escapes stay: no value that is looked for has any.
fn unquote(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(value)
}

/// The parts between separators that stand outside of quoted strings.
fn split(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    core::iter::from_fn(move || {
        let text = rest?;
        let end = find_unquoted(text, separator);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// Where the first separator stands outside of quoted strings.
fn find_unquoted(text: &[u8], separator: u8) -> Option<usize> {
    // Hardly any value has a quoted string.
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
    fn a_weight_of_zero_refuses_and_the_closest_range_decides() {
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
    fn separators_in_quoted_strings_separate_nothing() {
        assert_eq!(accepted(&[r#"a/b;c=", application/json""#]), (false, false));
        assert_eq!(accepted(&[r#"a/b;c="\", ", application/json"#]), (true, false));
        assert_eq!(accepted(&[r#"application/json;a=";q=1";q=0"#]), (false, false));
        assert_eq!(accepted(&[r#"a/b;c=", application/json"#]), (false, false));
    }

    #[test]
    fn json_is_utf_8_or_something_else() {
        for value in [
            "application/json",
            " Application/JSON\t",
            "application/json;charset=utf-8",
            "application/json; Charset=\"UTF-8\"",
            "application/json;charset=utf8;",
            "application/json; profile=\"a;charset=latin1\"",
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
            "text/plain; application/json",
            "application/json;charset=iso-8859-1",
            "application/json;charset=utf-16",
            "application/json;charset",
            "application/json;charset=utf-8;charset=latin1",
        ] {
            assert!(!is_json(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn an_answer_is_json_or_an_event_stream_or_neither() {
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
