//! The requests sent to the servers, and checks of their responses.

/// The number of notifications that a call of `progress` requests.
pub(crate) const STEPS: usize = 100;

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"peers","version":"1.0.0"}}}"#;

pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Returns a call of `echo` with 64 bytes that are unique to the call.
pub(crate) fn echo(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{id:064}"}}}}}}"#
    )
}

/// Returns a call of `progress`.
pub(crate) fn progress(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"progress","arguments":{{"count":{STEPS}}},"_meta":{{"progressToken":{id}}}}}}}"#
    )
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
