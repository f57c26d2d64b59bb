//! The requests sent to the servers, and checks of their responses.

/// The number of notifications that a call of `progress` requests.
pub(crate) const STEPS: usize = 100;

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"peers","version":"1.0.0"}}}"#;

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What each request at 2026-07-28 has in `_meta`, in place of a handshake.
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"peers","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}"#;

/// Returns a call of `echo` with 64 bytes that are unique to the call, after a handshake.
pub(crate) fn echo(id: u64) -> String {
    call(id, &format!(r#""name":"echo","arguments":{{"text":"{id:064}"}}"#))
}

/// Returns the same call at 2026-07-28.
pub(crate) fn modern_echo(id: u64) -> String {
    call(id, &format!(r#""name":"echo","arguments":{{"text":"{id:064}"}},"_meta":{{{META}}}"#))
}

/// Returns a call of `progress`, after a handshake.
pub(crate) fn progress(id: u64) -> String {
    call(
        id,
        &format!(
            r#""name":"progress","arguments":{{"count":{STEPS}}},"_meta":{{"progressToken":{id}}}"#
        ),
    )
}

/// Returns the same call at 2026-07-28.
pub(crate) fn modern_progress(id: u64) -> String {
    call(
        id,
        &format!(
            r#""name":"progress","arguments":{{"count":{STEPS}}},"_meta":{{{META},"progressToken":{id}}}"#
        ),
    )
}

fn call(id: u64, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#)
}

/// Returns the id of the request that a message answers, if it is a response.
pub(crate) fn answered(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once(r#""id":"#)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// Checks that a message is the response to the call `id` of `echo`.
pub(crate) fn check_echo(message: &str, id: u64) {
    assert_eq!(answered(message), Some(id), "{message}");
    let text = message.split_once(r#""text":""#).and_then(|(_, rest)| rest.get(..64));
    assert_eq!(text.and_then(|text| text.parse().ok()), Some(id), "{message}");
}

/// Returns the number of progress notifications in `text`.
pub(crate) fn steps(text: &str) -> usize {
    text.matches(r#""notifications/progress""#).count()
}
