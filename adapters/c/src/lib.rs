//! MCP servers and clients in C, over byte streams.
//!
//! The functions are documented for C; `include/mcp_sansio.h` is generated from this file and its
//! modules. Rules that hold for all of them are in `cbindgen.toml`, which puts them at the head of
//! that header.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod client;
mod connection;
#[cfg(target_os = "none")]
pub mod memory;
pub mod server;

use alloc::boxed::Box;
use alloc::string::String;
use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::ptr;

use mcp_sansio::catalog::CatalogError;
use mcp_sansio::envelope::write_string;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::CommandError;

/// Why a function failed. `mcp_error_text` describes each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpError {
    /// Success.
    None = 0,
    /// A pointer that is required is null.
    Null = 1,
    /// A text is not UTF-8.
    Utf8 = 2,
    /// A text is not JSON, or not of the kind that is required, such as an object.
    Json = 3,
    /// The object has no such member, or the member is null.
    Missing = 4,
    /// The member has another type, or a number does not fit.
    Type = 5,
    /// The buffer is too small. The length that is needed was stored.
    Space = 6,
    /// The function was called in a callback that does not allow it.
    Busy = 7,
    /// The connection or the library is not in a state that allows this call.
    State = 8,
    /// No answer is due: the request was answered or cancelled, or the handle is unknown.
    NotDue = 9,
    /// A name, a URI or a schema is invalid or already in use.
    Name = 10,
    /// The other side did not declare the capability, or the revision does not have the method.
    Forbidden = 11,
    /// A limit was reached.
    Limit = 12,
    /// The connection is closed.
    Closed = 13,
    /// The other side answered with an error. Its code and message are in the event.
    Refused = 14,
    /// The answer did not arrive in time.
    TimedOut = 15,
    /// This side cancelled the call.
    Cancelled = 16,
    /// The answer of the other side is not valid.
    Invalid = 17,
}

/// Returns a description of an error in English: a static text that is always valid, also for
/// numbers that are no error of this library.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_error_text(error: i32) -> *const c_char {
    const TEXTS: [&CStr; 18] = [
        c"no error",
        c"a required pointer is null",
        c"the text is not UTF-8",
        c"the text is not JSON of the required kind",
        c"there is no such member",
        c"the member has another type, or the number does not fit",
        c"the buffer is too small",
        c"not allowed in this callback",
        c"not allowed in this state",
        c"no answer is due: the request was answered or cancelled",
        c"a name, URI or schema is invalid or in use",
        c"the revision or a missing capability forbids it",
        c"a limit was reached",
        c"the connection is closed",
        c"the other side answered with an error",
        c"no answer in time",
        c"cancelled",
        c"the answer is not valid",
    ];
    let text = usize::try_from(error).ok().and_then(|error| TEXTS.get(error));
    text.copied().unwrap_or(c"unknown error").as_ptr()
}

/// Text that belongs to the library: UTF-8 of `length` bytes, **without** a zero at its end. `data`
/// may be null if `length` is 0. What it is an argument or a member of says how long it lives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct McpText {
    /// The first byte.
    pub data: *const c_char,
    /// The number of bytes.
    pub length: usize,
}

impl McpText {
    const EMPTY: Self = Self { data: ptr::null(), length: 0 };

    const fn new(text: &str) -> Self {
        Self { data: text.as_ptr().cast(), length: text.len() }
    }

    /// Returns the text, checked.
    fn get<'a>(self) -> Result<&'a str, McpError> {
        checked(bytes(self.data.cast(), self.length)?)
    }
}

/// The kind of an event.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpEventKind {
    /// The connection is open. `text` is the revision.
    Opened = 0,
    /// The other side cancelled request or input request `id`. No answer is due.
    Cancelled = 1,
    /// The other side broke a rule of the protocol, for logs. `text` says which.
    Violation = 2,
    /// The connection is closed. `text` says why.
    Closed = 3,
    /// A notification of method `name` with the parameters `text`, an object.
    Notification = 4,
    /// To a client: progress of call `id`. `text` is a message for people, or empty.
    Progress = 5,
    /// To a client: call `id` ended with the result `text`, an object.
    Result = 6,
    /// To a client: call `id` ended without a result. `error` and `text` say why.
    Failed = 7,
    /// To a client: input request `id` of method `name` with the parameters `text`, to answer with
    /// `mcp_client_answer` or `mcp_client_refuse`.
    Input = 8,
}

/// An event. It and its texts live until the callback that receives it returns.
#[repr(C)]
#[derive(Debug)]
pub struct McpEvent {
    /// The kind, which says which members are used. Others are 0 or empty.
    pub kind: McpEventKind,
    /// A request, a call or an input request.
    pub id: u64,
    /// The method.
    pub name: McpText,
    /// JSON, or text for people.
    pub text: McpText,
    /// Why a call failed.
    pub error: McpError,
    /// The error code of the other side, if `error` is `MCP_ERROR_REFUSED`.
    pub code: i64,
    /// Progress so far.
    pub progress: f64,
    /// The last value of `progress`, or less than 0 if it is not known.
    pub total: f64,
    /// The time of the call that caused the event, in milliseconds.
    pub now: u64,
}

impl McpEvent {
    const fn new(kind: McpEventKind, text: &str, now: u64) -> Self {
        let (name, text) = (McpText::EMPTY, McpText::new(text));
        let (error, code, progress, total) = (McpError::None, 0, 0.0, -1.0);
        Self { kind, id: 0, name, text, error, code, progress, total, now }
    }
}

// ------------------------------------------------------------------ JSON

/// Finds the member `name` of the object `json`. `*value` is its text as written (strings with their
/// quotes and escapes), a part of `json`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_json_member(
    json: McpText,
    name: *const c_char,
    value: Option<&mut MaybeUninit<McpText>>,
) -> McpError {
    member(json, name, value, |found| Ok(McpText::new(found)))
}

/// Reads the member `name` of the object `json`, an integer; `3.0` is one.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_json_integer(
    json: McpText,
    name: *const c_char,
    value: Option<&mut MaybeUninit<i64>>,
) -> McpError {
    member(json, name, value, |found| RawJson::trusted(found).decode().map_err(|_| McpError::Type))
}

/// Reads the member `name` of the object `json`, a number.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_json_number(
    json: McpText,
    name: *const c_char,
    value: Option<&mut MaybeUninit<f64>>,
) -> McpError {
    member(json, name, value, |found| RawJson::trusted(found).decode().map_err(|_| McpError::Type))
}

/// Reads the member `name` of the object `json`, `true` or `false`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_json_boolean(
    json: McpText,
    name: *const c_char,
    value: Option<&mut MaybeUninit<bool>>,
) -> McpError {
    member(json, name, value, |found| RawJson::trusted(found).decode().map_err(|_| McpError::Type))
}

/// Copies the member `name` of the object `json`, a string, into `buffer` of `size` bytes, without
/// quotes and escapes and with a zero at its end. A string that contains a zero is of another type.
///
/// `length` may be null. Otherwise `*length` is the number of bytes of the string without the zero,
/// also after `MCP_ERROR_SPACE`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_json_string(
    json: McpText,
    name: *const c_char,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> McpError {
    result((|| {
        let found = find(json, name)?;
        let text = RawJson::trusted(found).to_text().ok_or(McpError::Type)?;
        if text.contains('\0') {
            return Err(McpError::Type);
        }
        copy_terminated(&text, buffer, size, length)
    })())
}

/// Writes `text` as a JSON string with quotes and escapes into `buffer` of `size` bytes, with a zero
/// at its end. For `length` see `mcp_json_string`.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_json_quote(
    text: *const c_char,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> McpError {
    result((|| {
        let mut quoted = String::new();
        write_string(&mut quoted, string(text)?);
        copy_terminated(&quoted, buffer, size, length)
    })())
}

/// Returns a text of the program for the functions above, which lives as long as `text`. The result
/// is empty if `text` is null or not UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_text_of(text: *const c_char) -> McpText {
    string(text).map_or(McpText::EMPTY, McpText::new)
}

/// Returns whether `text` equals `other`. `false` if `other` is null.
#[unsafe(no_mangle)]
pub extern "C" fn mcp_text_equals(text: McpText, other: *const c_char) -> bool {
    text.get().is_ok_and(|text| string(other).is_ok_and(|other| text == other))
}

/// Reads a member with `read` and stores it.
fn member<T>(
    json: McpText,
    name: *const c_char,
    value: Option<&mut MaybeUninit<T>>,
    read: impl FnOnce(&'static str) -> Result<T, McpError>,
) -> McpError {
    result((|| store(value, read(find(json, name)?)?))())
}

/// Returns the text of a member. Its lifetime is that of `json`, which the caller knows.
fn find(json: McpText, name: *const c_char) -> Result<&'static str, McpError> {
    let object = RawJson::parse(json.get::<'static>()?).map_err(|_| McpError::Json)?;
    if !object.is_object() {
        return Err(McpError::Json);
    }
    let name = string(name)?;
    let found = object.get_present(name).ok_or(McpError::Missing)?;
    McpText::new(found.as_str()).get()
}

/// Copies a text and a zero into a buffer of the caller.
fn copy_terminated(
    text: &str,
    buffer: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Result<(), McpError> {
    if let Some(length) = length {
        length.write(text.len());
    }
    if size <= text.len() {
        return Err(McpError::Space);
    }
    if buffer.is_null() {
        return Err(McpError::Null);
    }
    let buffer = buffer.cast::<u8>();
    // SAFETY: by the contract of the header `buffer` has `size` bytes, more than the text, and is
    // not memory of the library.
    unsafe {
        buffer.copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
    }
    Ok(())
}

// ------------------------------------------------------------------ arguments of C

/// Returns the text at a pointer of the caller, which ends with a zero.
fn string<'a>(text: *const c_char) -> Result<&'a str, McpError> {
    if text.is_null() {
        return Err(McpError::Null);
    }
    // SAFETY: by the contract of the header, a text ends with a zero and does not change during the
    // call. No result outlives the call, except a `McpText`, whose lifetime the header states.
    checked(unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Like [`string`], but null is `None`.
fn optional_string<'a>(text: *const c_char) -> Result<Option<&'a str>, McpError> {
    if text.is_null() { Ok(None) } else { string(text).map(Some) }
}

/// Returns JSON text at a pointer of the caller.
fn json<'a>(text: *const c_char) -> Result<RawJson<'a>, McpError> {
    RawJson::parse(string(text)?).map_err(|_| McpError::Json)
}

/// Like [`json`], but other values than objects are refused.
fn json_object<'a>(text: *const c_char) -> Result<RawJson<'a>, McpError> {
    json(text).and_then(|value| if value.is_object() { Ok(value) } else { Err(McpError::Json) })
}

/// Returns the bytes at a pointer of the caller.
fn bytes<'a>(data: *const u8, length: usize) -> Result<&'a [u8], McpError> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() || isize::try_from(length).is_err() {
        return Err(McpError::Null);
    }
    // SAFETY: by the contract of the header `data` has `length` bytes, which do not change during
    // the call. For results that outlive it see `string`.
    Ok(unsafe { core::slice::from_raw_parts(data, length) })
}

fn checked(bytes: &[u8]) -> Result<&str, McpError> {
    core::str::from_utf8(bytes).map_err(|_| McpError::Utf8)
}

/// Returns the object at a pointer that a function of this library returned.
fn object<'a, T>(pointer: *const T) -> Result<&'a T, McpError> {
    // SAFETY: by the contract of the header the pointer is null, or it came from the function that
    // makes a `T` and was not freed. Objects have interior mutability, so there is never an
    // exclusive reference to one.
    unsafe { pointer.as_ref() }.ok_or(McpError::Null)
}

/// Frees an object that a function of this library returned, unless the pointer is null.
fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: by the contract of the header it came from the function that makes a `T`, which
        // used a `Box`, and it is freed once. The callers know that no callback is running.
        drop(unsafe { Box::from_raw(pointer) });
    }
}

/// Stores a result.
fn store<T>(place: Option<&mut MaybeUninit<T>>, value: T) -> Result<(), McpError> {
    place.ok_or(McpError::Null)?.write(value);
    Ok(())
}

fn result(result: Result<(), McpError>) -> McpError {
    result.err().unwrap_or(McpError::None)
}

impl From<CommandError> for McpError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Forbidden(_) | CommandError::NotDeclared(_) => Self::Forbidden,
            CommandError::NotWritable(_) | CommandError::InvalidOutput(_) => Self::Json,
            CommandError::TooManyCalls { .. } => Self::Limit,
            CommandError::Closed(_) => Self::Closed,
            CommandError::NotDue => Self::NotDue,
            _ => Self::State,
        }
    }
}

impl From<CatalogError> for McpError {
    fn from(_: CatalogError) -> Self {
        Self::Name
    }
}
