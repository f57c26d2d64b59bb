use alloc::string::String;
use core::fmt;

use memchr::memchr2;
use serde::Serialize;

use super::error::ErrorObject;
use super::id::RequestId;
use super::json_error::JsonError;
use super::raw::{Json, RawJson};
use super::serializer::serialize;
use crate::envelope::{WriteId as _, write_error_head, write_head, write_string};

/// A message could not be written. The buffer is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A value has no JSON form. The caller's fault.
    #[error("the value cannot be JSON: {0}")]
    NotJson(#[from] JsonError),
    /// `params`, `result`, or a value to merge into an object is not an object. The caller's fault.
    #[error("the value is not an object")]
    NotAnObject,
}

/// A value that can write itself as JSON: JSON text, an [`AsJson`] value, or a closure.
pub trait WriteJson {
    /// Appends one JSON value without leading white space.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`], which is the caller's fault. The caller then truncates the partial
    /// output in `out`.
    fn write_json(&self, out: &mut String) -> Result<(), WriteError>;

    /// Returns the value if it already is JSON text.
    #[doc(hidden)]
    fn as_raw_json(&self) -> Option<&RawJson<'_>> {
        None
    }
}

impl fmt::Debug for dyn WriteJson + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteJson(..)")
    }
}

/// Converts the value to owned text. Text that is already shared is not copied.
///
/// # Errors
///
/// Returns the errors of [`WriteJson::write_json`].
pub fn to_shared_json(value: &dyn WriteJson) -> Result<RawJson<'static>, WriteError> {
    if let Some(json) = value.as_raw_json() {
        return Ok(json.clone().into_owned());
    }
    let mut out = String::new();
    value.write_json(&mut out)?;
    Ok(RawJson::trusted_string(out))
}

/// A value that is serialized directly into the buffer.
#[derive(Clone, Copy, Debug)]
pub struct AsJson<'a, T: ?Sized>(pub &'a T);

impl<T: Serialize + ?Sized> WriteJson for AsJson<'_, T> {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        Ok(serialize(out, self.0)?)
    }
}

impl WriteJson for RawJson<'_> {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        out.push_str(self.as_str());
        Ok(())
    }

    fn as_raw_json(&self) -> Option<&RawJson<'_>> {
        Some(self)
    }
}

impl WriteJson for Json {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        out.push_str(self.as_str());
        Ok(())
    }
}

impl<F: Fn(&mut String) -> Result<(), WriteError>> WriteJson for F {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        self(out)
    }
}

/// Appends a request on one line, without a line end.
///
/// # Errors
///
/// Returns [`WriteError`], which is the caller's fault.
pub(crate) fn write_request(
    out: &mut String,
    id: &RequestId,
    method: &str,
    params: Option<&(impl WriteJson + ?Sized)>,
) -> Result<(), WriteError> {
    match params {
        Some(params) => {
            write_call(out, Some(id), method, Some(&|out: &mut _| params.write_json(out)))
        }
        None => write_call(out, Some(id), method, None),
    }
}

/// Appends a notification on one line, without a line end.
///
/// # Errors
///
/// Returns [`WriteError`], which is the caller's fault.
pub(crate) fn write_notification(
    out: &mut String,
    method: &str,
    params: Option<&dyn WriteJson>,
) -> Result<(), WriteError> {
    // MCP 2026-07-28 basic/index#notifications [RPC-012]: no `id`.
    write_call(out, None, method, params)
}

/// Appends a response with a result on one line, without a line end.
///
/// # Errors
///
/// Returns [`WriteError`], which is the caller's fault.
pub(crate) fn write_result(
    out: &mut String,
    id: &RequestId,
    result: &(impl WriteJson + ?Sized),
) -> Result<(), WriteError> {
    write_response(out, id, &|out: &mut _| result.write_json(out))
}

/// Appends a response with an empty result on one line, without a line end.
pub(crate) fn write_empty_result(out: &mut String, id: &RequestId) {
    write_head(out, Some(id));
    out.push_str(",\"result\":{}}");
}

// Not generic, so that it is compiled once and not for each kind of result.
fn write_response(
    out: &mut String,
    id: &RequestId,
    result: &dyn WriteJson,
) -> Result<(), WriteError> {
    write_line(out, |out| {
        // MCP 2026-07-28 basic/index#responses [RPC-006]: the `id` of the request.
        write_head(out, Some(id));
        out.push_str(",\"result\":");
        // MCP 2026-07-28 schema.json#Result [RPC-010]: a `result` is an object.
        write_object(out, result)?;
        out.push('}');
        Ok(())
    })
}

/// Appends an error response on one line, without a line end. The `id` member is omitted if the id
/// of the offending message could not be read.
// MCP 2025-11-25 basic/index#error-responses [RPC-009]
pub(crate) fn write_error(out: &mut String, id: Option<&RequestId>, error: &ErrorObject<'_>) {
    let start = out.len();
    write_error_head(out, id, error.code);
    write_string(out, &error.message);
    if let Some(data) = &error.data {
        out.push_str(",\"data\":");
        out.push_str(data.as_str());
    }
    out.push_str("}}");
    join_lines(out, start);
}

/// Appends an id as JSON.
pub(crate) fn write_id(out: &mut String, id: &RequestId) {
    id.write_id(out);
}

/// Closes the object at the end of `out` after adding the members of the object `rest`: `{"a":1`
/// and `{"b":2}` become `{"a":1,"b":2}`. The caller must avoid duplicate names.
///
/// The members are written directly in place, and nothing is moved.
///
/// # Errors
///
/// Fails if `rest` is not an object or has no JSON form, which is the caller's fault. `out` is then
/// unchanged.
pub(crate) fn close_object_with(
    out: &mut String,
    rest: &(impl WriteJson + ?Sized),
) -> Result<(), WriteError> {
    close_with(out, &|out: &mut _| rest.write_json(out))
}

fn close_with(out: &mut String, rest: &dyn WriteJson) -> Result<(), WriteError> {
    // An empty object needs no comma: the rest replaces it completely.
    let empty = out.ends_with('{');
    if empty {
        out.pop();
    }
    let start = out.len();
    if let Err(error) = write_object(out, rest) {
        out.truncate(start);
        if empty {
            out.push('{');
        }
        return Err(error);
    }
    if empty {
        return Ok(());
    }
    let mut members = out.as_bytes()[start + 1..].iter();
    if members.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}') {
        out.truncate(start);
        out.push('}');
    } else {
        out.replace_range(start..=start, ",");
    }
    Ok(())
}

fn write_call(
    out: &mut String,
    id: Option<&RequestId>,
    method: &str,
    params: Option<&dyn WriteJson>,
) -> Result<(), WriteError> {
    write_line(out, |out| {
        write_head(out, id);
        out.push_str(",\"method\":");
        write_string(out, method);
        if let Some(params) = params {
            // MCP 2026-07-28 schema.json#JSONRPCRequest [RPC-011]: `params` is an object.
            out.push_str(",\"params\":");
            write_object(out, params)?;
        }
        out.push('}');
        Ok(())
    })
}

fn write_object(out: &mut String, value: &dyn WriteJson) -> Result<(), WriteError> {
    let start = out.len();
    value.write_json(out)?;
    if out.as_bytes().get(start) == Some(&b'{') { Ok(()) } else { Err(WriteError::NotAnObject) }
}

fn write_line(
    out: &mut String,
    write: impl FnOnce(&mut String) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let start = out.len();
    match write(out) {
        Ok(()) => {
            join_lines(out, start);
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Appends JSON text.
pub(crate) fn write_on_one_line(out: &mut String, text: &str) {
    let start = out.len();
    out.push_str(text);
    join_lines(out, start);
}

/// Replaces line ends with spaces. In JSON they occur only between tokens; in strings they are
/// escaped.
// MCP 2026-07-28 basic/transports/stdio#sending-messages [STDIO-001]: messages contain no newlines.
// Some readers treat a carriage return as one.
#[inline]
fn join_lines(out: &mut String, start: usize) {
    if memchr2(b'\n', b'\r', &out.as_bytes()[start..]).is_some() {
        replace_line_ends(out, start);
    }
}

#[cold]
#[inline(never)]
fn replace_line_ends(out: &mut String, start: usize) {
    let lines = out.split_off(start);
    out.extend(lines.chars().map(|it| if matches!(it, '\n' | '\r') { ' ' } else { it }));
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::collection::btree_map;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::jsonrpc::{ErrorCode, Frame, Message, ParseLimits, parse};

    fn written(write: impl FnOnce(&mut String) -> Result<(), WriteError>) -> String {
        let mut out = String::from("<");
        write(&mut out).expect("it can be written");
        out
    }

    #[test]
    fn messages_have_the_members_of_their_kind() {
        // Rule: [RPC-001] [RPC-006] [RPC-012].
        let id = RequestId::from("a\"1");
        let typed = json!({"x": [1]});
        let text = written(|out| write_request(out, &id, "m/\u{1}", Some(&AsJson(&typed))));
        assert_eq!(
            text,
            r#"<{"jsonrpc":"2.0","id":"a\"1","method":"m/\u0001","params":{"x":[1]}}"#
        );
        let text = written(|out| write_notification(out, "n", None));
        assert_eq!(text, r#"<{"jsonrpc":"2.0","method":"n"}"#);
        let text = written(|out| write_result(out, &(-5).into(), &RawJson::EMPTY_OBJECT));
        assert_eq!(text, r#"<{"jsonrpc":"2.0","id":-5,"result":{}}"#);
    }

    #[test]
    fn an_error_for_an_unreadable_id_omits_the_id() {
        // Rule: [RPC-008] [RPC-009].
        let error = ErrorObject::new(ErrorCode::PARSE_ERROR, "bad \"x\"");
        let mut out = String::new();
        write_error(&mut out, None, &error);
        assert_eq!(out, r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad \"x\""}}"#);
        let mut out = String::new();
        write_error(&mut out, Some(&1.into()), &error.with_data(RawJson::trusted("[\n1]")));
        assert!(out.starts_with(r#"{"jsonrpc":"2.0","id":1,"#), "{out}");
        assert!(out.ends_with(r#","data":[ 1]}}"#), "{out}");
    }

    #[test]
    fn output_is_on_one_line_whatever_the_text_looks_like() {
        // Rule: [STDIO-001].
        let pretty = RawJson::trusted("{\r\n  \"a\": \"x\\n\"\n}");
        let text = written(|out| write_notification(out, "n", Some(&pretty)));
        assert_eq!(
            text,
            "<{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{    \"a\": \"x\\n\" }}"
        );
        let nested = BTreeMap::from([("k", pretty)]);
        let text = written(|out| write_result(out, &1.into(), &AsJson(&nested)));
        assert!(!text.contains(['\n', '\r']), "{text}");
    }

    #[test]
    fn params_and_results_that_are_not_objects_leave_no_output() {
        // Rule: [RPC-010] [RPC-011].
        let mut out = String::from("kept");
        let failed = write_request(&mut out, &1.into(), "m", Some(&AsJson(&[1])));
        assert!(matches!(failed, Err(WriteError::NotAnObject)));
        let failed = write_result(&mut out, &1.into(), &RawJson::NULL);
        assert!(matches!(failed, Err(WriteError::NotAnObject)));
        let keys = BTreeMap::from([(vec![1], 1)]);
        let failed = write_result(&mut out, &1.into(), &AsJson(&keys));
        assert!(matches!(failed, Err(WriteError::NotJson(_))));
        assert_eq!(out, "kept");
    }

    #[test]
    fn objects_are_merged_with_one_comma() {
        for (open, rest, joined) in [
            ("{\"a\":1", "{\"b\":2}", "{\"a\":1,\"b\":2}"),
            ("{\"a\":1", "{}", "{\"a\":1}"),
            ("{\"a\":1", "{ \n }", "{\"a\":1}"),
            ("{", "{\"b\":2}", "{\"b\":2}"),
            ("{", "{}", "{}"),
            ("{\"a\":{}", "{ \"b\":{}}", "{\"a\":{}, \"b\":{}}"),
        ] {
            let mut out = String::from(open);
            close_object_with(&mut out, &RawJson::trusted(rest)).expect("an object");
            assert_eq!(out, joined);
        }
        let mut out = String::from("{\"a\":1");
        assert!(close_object_with(&mut out, &AsJson(&[1])).is_err());
        assert_eq!(out, "{\"a\":1");
        let mut out = String::from("{");
        assert!(close_object_with(&mut out, &AsJson(&[1])).is_err());
        assert_eq!(out, "{");
    }

    #[test]
    fn a_closure_writes_the_leading_members() {
        let arguments = json!({"b": 2});
        let params = |out: &mut String| {
            out.push_str("{\"_meta\":{}");
            close_object_with(out, &AsJson(&arguments))
        };
        let text = written(|out| write_notification(out, "n", Some(&params)));
        assert!(text.ends_with(r#""params":{"_meta":{},"b":2}}"#), "{text}");
    }

    fn members() -> impl Strategy<Value = BTreeMap<String, String>> {
        btree_map(any::<String>(), any::<String>(), 0..6)
    }

    proptest! {
        // Rule: [STDIO-001].
        #[test]
        fn a_written_message_reads_back(
            number: i64, text in "\\PC{0,16}", method: String, params in members(), pretty: bool,
        ) {
            let params = match pretty {
                true => serde_json::to_string_pretty(&params),
                false => serde_json::to_string(&params),
            };
            let params = params.expect("strings are JSON");
            for id in [RequestId::from(number), RequestId::from(text.as_str())] {
                let mut out = String::new();
                write_request(&mut out, &id, &method, Some(&RawJson::trusted(&params)))
                    .expect("an object");
                prop_assert!(!out.contains(['\n', '\r']));
                let read = parse(out.as_bytes(), ParseLimits::default());
                let Ok(Frame::Single(Message::Request(request))) = read else { panic!("{read:?}") };
                let read = request.params.expect("written");
                prop_assert_eq!((&request.id, &*request.method), (&id, &*method));
                prop_assert_eq!(
                    read.decode::<serde_json::Value>().expect("JSON"),
                    serde_json::from_str::<serde_json::Value>(&params).expect("JSON")
                );

                let mut response = String::new();
                write_result(&mut response, &id, &read).expect("an object");
                let again = parse(response.as_bytes(), ParseLimits::default());
                let Ok(Frame::Single(Message::Response(response))) = again else { panic!("{again:?}") };
                prop_assert_eq!(response.id, Some(id));
                prop_assert_eq!(response.outcome, Ok(read));
            }
        }

        #[test]
        fn a_merged_object_has_the_members_of_both(front in members(), back in members()) {
            let mut out = serde_json::to_string(&front).expect("strings are JSON");
            out.pop();
            close_object_with(&mut out, &AsJson(&back)).expect("an object");
            let merged = RawJson::parse(&out).expect("JSON");
            let names: Vec<_> = merged.members().map(|it| it.name().into_owned()).collect();
            let expected: Vec<_> = front.into_keys().chain(back.into_keys()).collect();
            prop_assert_eq!(names, expected);
        }
    }
}
