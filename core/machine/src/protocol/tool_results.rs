//! The rules for tool calls and results in a conversation with a model.

use alloc::string::String;
use alloc::vec::Vec;

use super::annotations::Role;
use super::sampling::{CreateMessageParams, SamplingContent, SamplingMessage};

/// The tool calls and results of a conversation do not match. The requesting server is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolResultsError {
    /// A tool call has no result in the next message.
    #[error("the tool use `{id}` has no result in the next message")]
    Missing {
        /// The id of the call.
        id: String,
    },
    /// A message contains both tool results and other content.
    #[error("message {message} mixes tool results with other content")]
    Mixed {
        /// The index of the message, starting at 0.
        message: usize,
    },
}

impl CreateMessageParams {
    /// Checks that the next message contains the results of all tool calls, and that a message with
    /// results contains nothing else. The handler layer checks this on both sides.
    ///
    /// # Errors
    ///
    /// Returns the first mismatch. A client responds with `-32602`.
    // MCP 2025-11-25 client/sampling#message-content-constraints [SAMP-008] [SAMP-009] [SAMP-011]
    pub fn check_tool_results(&self) -> Result<(), ToolResultsError> {
        let mut owed: Vec<&str> = Vec::new();
        for (place, message) in self.messages.iter().enumerate() {
            let content = message.content.as_slice();
            let results = content.iter().filter_map(answered);
            let count = results.clone().count();
            if count > 0 && count < content.len() {
                return Err(ToolResultsError::Mixed { message: place });
            }
            pay(&mut owed, results)?;
            if message.role == Role::Assistant {
                owed.extend(calls(message));
            }
        }
        pay(&mut owed, core::iter::empty())
    }
}

/// Returns the id of the tool call that a block answers.
fn answered(content: &SamplingContent) -> Option<&str> {
    match content {
        SamplingContent::ToolResult(result) => Some(result.tool_use_id.as_str()),
        _ => None,
    }
}

fn calls(message: &SamplingMessage) -> impl Iterator<Item = &str> {
    message.content.as_slice().iter().filter_map(|content| match content {
        SamplingContent::ToolUse(call) => Some(call.id.as_str()),
        _ => None,
    })
}

/// Checks that `results` contains all pending calls, and clears them.
fn pay<'a>(
    owed: &mut Vec<&'a str>,
    results: impl Iterator<Item = &'a str>,
) -> Result<(), ToolResultsError> {
    if owed.is_empty() {
        return Ok(());
    }
    // Sorted for binary search, because the peer chooses their number.
    let mut results: Vec<&str> = results.collect();
    results.sort_unstable();
    let missing = owed.drain(..).find(|id| results.binary_search(id).is_err());
    missing.map_or(Ok(()), |id| Err(ToolResultsError::Missing { id: id.into() }))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::jsonrpc::Json;
    use crate::protocol::{ToolResultContent, ToolUseContent};

    fn call(id: &str) -> SamplingContent {
        let input = Json::from_serialize(&serde_json::json!({})).unwrap();
        ToolUseContent::new(id, "weather", input).into()
    }

    fn result(id: &str) -> SamplingContent {
        ToolResultContent::new(id, []).into()
    }

    fn check(messages: Vec<SamplingMessage>) -> Result<(), ToolResultsError> {
        CreateMessageParams::new(messages, 10).check_tool_results()
    }

    fn missing(id: &str) -> Result<(), ToolResultsError> {
        Err(ToolResultsError::Missing { id: id.into() })
    }

    #[test]
    fn each_tool_use_is_answered_by_the_next_message() {
        // Rule: [SAMP-009] [SAMP-011].
        let asked = || SamplingMessage::assistant(vec![call("1"), call("2")]);
        let both = || SamplingMessage::user(vec![result("2"), result("1")]);
        let text = || SamplingMessage::user("well?");
        assert_eq!(check(vec![text(), asked(), both(), text()]), Ok(()));
        assert_eq!(check(vec![asked(), SamplingMessage::user(result("1"))]), missing("2"));
        assert_eq!(check(vec![asked(), text(), both()]), missing("1"));
        assert_eq!(check(vec![asked()]), missing("1"));
    }

    #[test]
    fn results_are_not_mixed_with_other_content() {
        // Rule: [SAMP-008] [SAMP-011].
        let mixed = vec![result("1"), SamplingContent::text("and?")];
        let messages = vec![SamplingMessage::assistant(call("1")), SamplingMessage::user(mixed)];
        assert_eq!(check(messages), Err(ToolResultsError::Mixed { message: 1 }));
    }
}
