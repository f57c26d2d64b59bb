//! Envelopes: the one-pass parser compared with parsing to a tree.

use serde_json::{Map, Value};

use mcp_sansio::envelope::{ParseLimits, Reason, write_string};
use mcp_sansio::jsonrpc::{Frame, Malformed, Message, RawJson, RequestId, parse};

use super::spellings::{tokens, usual_spelling};

/// Compares [`parse`] with parsing the same bytes to a tree.
///
/// These differences are intended: numbers too large for an `f64` are accepted as JSON here, a
/// duplicate key in an envelope or an error is refused here, a byte-order mark is ignored, and a
/// number whose fraction is zero is an integer.
pub fn envelope(bytes: &[u8]) {
    let parsed = parse(bytes, ParseLimits::default());
    let tree = tree(bytes.strip_prefix(b"\xef\xbb\xbf").filter(is_container).unwrap_or(bytes));
    match tree {
        Ok(tree) => match (parsed, tree) {
            (Ok(Frame::Single(message)), tree) => check_element(Ok(message), &tree),
            (Ok(Frame::Batch(batch)), Value::Array(trees)) => {
                assert_eq!(batch.len(), trees.len());
                batch.zip(&trees).for_each(|(element, tree)| check_element(element, tree));
            }
            (Ok(Frame::Batch(_)), tree) => panic!("a batch of {tree}"),
            (Err(malformed), Value::Array(trees)) => match malformed.reason {
                Reason::BatchEmpty => assert!(trees.is_empty()),
                Reason::BatchTooLong { limit } => assert!(trees.len() > limit),
                other => panic!("{other:?} for an array"),
            },
            (Err(malformed), tree) => check_element(Err(malformed), &tree),
        },
        Err(error) => {
            let error = error.to_string();
            if error.starts_with("number out of range") || error.starts_with("recursion limit") {
                return;
            }
            let reason = parsed.expect_err("not JSON").reason;
            assert!(
                matches!(reason, Reason::NotUtf8 { .. } | Reason::NotJson { .. }),
                "{reason:?}, but {error}"
            );
        }
    }
}

fn is_container(text: &&[u8]) -> bool {
    matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Parses a text to a tree, in which whole numbers are integers however they are written.
fn tree(bytes: &[u8]) -> serde_json::Result<Value> {
    let tree = serde_json::from_slice(bytes)?;
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(tree) };
    serde_json::from_str(&with_whole_numbers(text))
}

/// Writes the whole numbers of 64 bits in a JSON text without fraction and exponent, except for a
/// negative zero.
fn with_whole_numbers(text: &str) -> String {
    let usual = |token: &str| usual_spelling(token).unwrap_or_else(|| token.into());
    tokens(text).map(usual).collect()
}

fn check_element(element: Result<Message<'_>, Malformed>, tree: &Value) {
    match element {
        Ok(message) => {
            let Value::Object(object) = tree else { panic!("a message of {tree}") };
            check_message(&message, object);
            check_written(&message);
        }
        Err(Malformed { reason: Reason::DuplicateMember(_) | Reason::ErrorMalformed, .. }) => {}
        Err(Malformed { reason: Reason::IdTooLong { limit }, id: Some(id), .. }) => {
            // The tree does not preserve escapes, which take at most six bytes per byte.
            assert_eq!(tree["id"], serde_json::to_value(&id).expect("an id"));
            assert!(id.to_string().len() * 6 > limit, "{id} of {limit}");
        }
        Err(malformed) => {
            let reason = malformed.reason;
            assert!(
                !matches!(reason, Reason::NotUtf8 { .. } | Reason::NotJson { .. }),
                "{reason:?} for {tree}"
            );
            assert!(!is_message(tree), "{reason:?} for {tree}");
        }
    }
}

fn is_message(tree: &Value) -> bool {
    let Value::Object(object) = tree else { return false };
    if object.get("jsonrpc") != Some(&Value::from("2.0")) {
        return false;
    }
    let is_id = |id: &Value| match id {
        Value::Number(number) => number.is_i64(),
        Value::String(text) => text.len() <= ParseLimits::default().id_length,
        _ => false,
    };
    let id = object.get("id");
    // `null` next to another of these members counts as absent.
    let purposes = ["method", "result", "error"].map(|name| object.get(name));
    let is_one = purposes.iter().flatten().count() == 1;
    let [method, result, error] =
        purposes.map(|value| value.filter(|value| is_one || !value.is_null()));
    match (method, result, error) {
        (Some(method), None, None) => {
            method.is_string()
                && id.is_none_or(is_id)
                && object.get("params").is_none_or(|params| params.is_object() || params.is_null())
        }
        (None, Some(result), None) => result.is_object() && id.is_some_and(is_id),
        (None, None, Some(error)) => {
            error["code"].is_i64()
                && error["message"].is_string()
                && id.is_none_or(|id| id.is_null() || is_id(id))
        }
        _ => false,
    }
}

fn check_message(message: &Message<'_>, object: &Map<String, Value>) {
    match message {
        Message::Request(request) => {
            check_id(Some(&request.id), object);
            assert_eq!(object["method"], *request.method);
            check_text(request.params.as_ref(), present(object, "params"));
        }
        Message::Notification(notification) => {
            assert_eq!(object.get("id"), None);
            assert_eq!(object["method"], *notification.method);
            check_text(notification.params.as_ref(), present(object, "params"));
        }
        Message::Response(response) => {
            check_id(response.id.as_ref(), object);
            match &response.outcome {
                Ok(result) => {
                    let empty = Value::Object(Map::new());
                    let tree = present(object, "result").unwrap_or(&empty);
                    check_text(Some(result), Some(tree));
                }
                Err(error) => {
                    let tree = &object["error"];
                    assert_eq!(tree["message"], *error.message);
                    // The tree reads `-0` as a floating-point number.
                    assert!(tree["code"] == error.code.0 || error.code.0 == 0);
                    check_text(error.data.as_ref(), tree.get("data"));
                }
            }
        }
    }
}

/// Returns a member, unless it is `null` or an empty array, which some peers write for an empty
/// object.
fn present<'t>(object: &'t Map<String, Value>, name: &str) -> Option<&'t Value> {
    object.get(name).filter(|value| !value.is_null() && **value != Value::Array(Vec::new()))
}

fn check_id(id: Option<&RequestId>, object: &Map<String, Value>) {
    match (id, object.get("id")) {
        (None, None | Some(Value::Null)) => {}
        (Some(RequestId::Text(text)), Some(id)) => assert_eq!(id, text.as_str()),
        // The tree reads `-0` as a floating-point number.
        (Some(RequestId::Number(number)), Some(id)) => assert!(id == number || *number == 0),
        (id, tree) => panic!("{id:?} for {tree:?}"),
    }
}

fn check_text(text: Option<&RawJson<'_>>, tree: Option<&Value>) {
    assert_eq!(text.is_some(), tree.is_some());
    let (Some(text), Some(tree)) = (text, tree) else { return };
    assert_eq!(&text.decode::<Value>().expect("checked"), tree);
    // The tree keeps the last of duplicate members.
    let members: Map<String, Value> = text
        .members()
        .map(|member| (member.name().into(), member.value.decode().expect("checked")))
        .collect();
    assert_eq!(members, tree.as_object().cloned().unwrap_or_default());
}

/// The parts of a message, written as JSON text, parse to the same message.
fn check_written(message: &Message<'_>) {
    let mut out = String::from(r#"{"jsonrpc":"2.0""#);
    let raw = |out: &mut String, name: &str, text: &RawJson<'_>| {
        out.extend([",\"", name, "\":", text.as_str()]);
    };
    let named = |out: &mut String, name: &str, text: &str| {
        out.extend([",\"", name, "\":"]);
        write_string(out, text);
    };
    let id = |out: &mut String, id: &RequestId| match id {
        RequestId::Number(number) => out.extend([",\"id\":", &number.to_string()]),
        RequestId::Text(text) => named(out, "id", text),
    };
    match message {
        Message::Request(request) => {
            id(&mut out, &request.id);
            named(&mut out, "method", &request.method);
            request.params.iter().for_each(|params| raw(&mut out, "params", params));
        }
        Message::Notification(notification) => {
            named(&mut out, "method", &notification.method);
            notification.params.iter().for_each(|params| raw(&mut out, "params", params));
        }
        Message::Response(response) => {
            response.id.iter().for_each(|known| id(&mut out, known));
            match &response.outcome {
                Ok(result) => raw(&mut out, "result", result),
                Err(error) => {
                    out.push_str(&format!(r#","error":{{"code":{}"#, error.code.0));
                    named(&mut out, "message", &error.message);
                    error.data.iter().for_each(|data| raw(&mut out, "data", data));
                    out.push('}');
                }
            }
        }
    }
    out.push('}');
    match parse(out.as_bytes(), ParseLimits::default()) {
        Ok(Frame::Single(again)) => assert_eq!(&again, message),
        other => panic!("{other:?} from {message:?}"),
    }
}
