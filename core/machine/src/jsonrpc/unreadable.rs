//! Finds the id of a message whose text is not JSON.
//!
//! Its sender waits for an answer, or its receiver for a result, and no other message will name the
//! id again. Only the members of the message itself are looked at, never nested ones.

use super::envelope::read_id;
use super::id::RequestId;
use super::malformed::{Malformed, Reason, Shape};

/// Describes a message that is not valid JSON or UTF-8, or is nested too deeply. Linear.
#[cold]
pub(super) fn unreadable(bytes: &[u8], reason: Reason) -> Malformed {
    let mut members = Members::default();
    members.find(bytes);
    let id = members.id.filter(|_| !members.ambiguous).and_then(read);
    let shape = match (&id, members.method, members.outcome) {
        (Some(_), true, _) => Shape::Request,
        (_, false, true) => Shape::Response,
        _ => Shape::Unknown,
    };
    Malformed { reason, id, shape }
}

/// The members that determine the kind of a message.
#[derive(Default)]
struct Members<'a> {
    id: Option<&'a [u8]>,
    ambiguous: bool,
    method: bool,
    outcome: bool,
}

impl<'a> Members<'a> {
    fn find(&mut self, bytes: &'a [u8]) {
        let (mut depth, mut at) = (0_usize, 0);
        // The last string that may be a key.
        let mut key = None;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    let end = string_end(bytes, at);
                    if depth == 1 {
                        key = bytes.get(at + 1..end - 1);
                    }
                    at = end;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth <= 1 => return,
                b'}' | b']' => depth -= 1,
                b':' if depth == 1 => {
                    let value = at + 1;
                    self.take(key.take(), bytes.get(value..).unwrap_or_default());
                }
                // A message is an object: nothing of other text is a member.
                _ if depth == 0 && !byte.is_ascii_whitespace() => return,
                _ => {}
            }
            at += 1;
        }
    }

    fn take(&mut self, key: Option<&[u8]>, rest: &'a [u8]) {
        match key {
            Some(b"id") => {
                let id = scalar(rest.trim_ascii_start());
                self.ambiguous |= self.id.is_some_and(|before| before != id);
                self.id = Some(id);
            }
            Some(b"method") => self.method = true,
            Some(b"result" | b"error") => self.outcome = true,
            _ => {}
        }
    }
}

/// Returns the position after the string that starts at `start`, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    // After the quote that is missing.
    bytes.len() + 1
}

/// Returns the number or string at the start of `text`, or other text.
fn scalar(text: &[u8]) -> &[u8] {
    let end = match text.first() {
        Some(b'"') => string_end(text, 0),
        _ => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']');
            text.iter().position(ends).unwrap_or(text.len())
        }
    };
    text.get(..end).unwrap_or_default()
}

fn read(id: &[u8]) -> Option<RequestId> {
    read_id(core::str::from_utf8(id).ok()?, usize::MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(bytes: &[u8]) -> (Shape, Option<RequestId>) {
        let malformed = unreadable(bytes, Reason::NotAnObject);
        (malformed.shape, malformed.id)
    }

    #[test]
    fn the_id_is_found_before_and_after_the_defect() {
        let seven = Some(RequestId::Number(7));
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}"#,
            r#"{"jsonrpc":"2.0","result":{"a":[1,]}, "id" : 7 }"#,
            r#"{"result":{"id":8,"a":"\"}"},"id":7.0,}"#,
            r#"{"id":7,"result":{"a":"#,
            "{\"id\":7,\"error\":{\"message\":\"a\tb\"}}",
            r#"{"id":7,"id":7,"error":}"#,
        ] {
            assert_eq!(found(text.as_bytes()), (Shape::Response, seven.clone()), "{text}");
        }
        let text = b"{\"id\":\"a\",\"method\":\"m\",\"params\":{\"x\":\"\xff\"}}";
        assert_eq!(found(text), (Shape::Request, Some(RequestId::from("a"))));
        assert_eq!(found(br#"{"id":7,"x":NaN}"#), (Shape::Unknown, seven));
    }

    #[test]
    fn an_id_that_cannot_be_read_is_none() {
        for text in [
            r#"{"id":1,"id":2,"result":NaN}"#,
            r#"{"id":1.5,"result":NaN}"#,
            r#"{"id":null,"result":NaN}"#,
            r#"{"id":{"id":1},"result":NaN}"#,
            r#"{"x":{"id":1},"result":NaN}"#,
            r#"{"result":NaN}"#,
        ] {
            assert_eq!(found(text.as_bytes()).1, None, "{text}");
        }
        for text in [
            "",
            "x",
            r#"x{"id":1,"result":1}"#,
            r#""id":1"#,
            "{\"",
            "{\"id\"",
            "{\"id\":",
            "{\"id\":\"\\",
        ] {
            assert_eq!(found(text.as_bytes()), (Shape::Unknown, None), "{text}");
        }
        assert_eq!(found(br#"{"method":"m","params":NaN}"#), (Shape::Unknown, None));
    }
}
