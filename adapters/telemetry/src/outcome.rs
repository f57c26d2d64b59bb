//! Outcomes that are failures, and their names.

use std::borrow::Cow;

use mcp_sansio::jsonrpc::{ErrorCode, ErrorObject};
use mcp_sansio::peer::{CloseReason, Direction, Failure, OperationOutcome, TransportFailure};

use crate::attribute::OTHER;

/// The outcome of an operation, as spans and metrics report it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The code of a JSON-RPC error.
    pub(crate) code: Option<i64>,
    /// The class of a failure, if it is one.
    pub(crate) error_type: Option<Cow<'static, str>>,
    /// The message of a JSON-RPC error.
    pub(crate) message: Option<String>,
    /// Whether the sender of a received request does not want the response any more.
    pub(crate) is_cancelled: bool,
}

/// Errors with which a receiver tells a sender that the request cannot be served.
// MCP 2026-07-28 otel:common.yaml#mcp.server.status.attributes [TRACE-026]
const FAULTS_OF_THE_SENDER: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];

/// Returns whether a code says that the receiver cannot serve the request, and does not count as its
/// failure.
pub(crate) fn is_fault_of_the_sender(code: i64) -> bool {
    FAULTS_OF_THE_SENDER.contains(&code)
}

impl Verdict {
    pub(crate) fn new(outcome: &OperationOutcome<'_>, direction: Direction) -> Self {
        match outcome {
            // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-023]
            OperationOutcome::ToolFailed => Self::failure("tool_error"),
            OperationOutcome::Error(error) => Self::error(error, direction),
            OperationOutcome::Failed(failure) => Self::failed(failure, direction),
            OperationOutcome::Refused { status, error } => {
                let mut verdict = match error {
                    Some(error) => Self::error(error, direction),
                    None => Self::default(),
                };
                // The receiver could not handle it, whatever the error in the body says.
                if *status >= 500 && verdict.error_type.is_none() {
                    verdict.error_type = Some(status.to_string().into());
                }
                verdict
            }
            // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-024]
            OperationOutcome::Closed(reason) => Self::failure(match reason {
                CloseReason::Violation(_) => "protocol_violation",
                CloseReason::Unresponsive => "unresponsive",
                CloseReason::OpeningFailed(_) => "opening_failed",
                CloseReason::Transport(failure) => return Self::failed_transport(failure),
                _ => OTHER,
            }),
            // The receiver has not failed.
            OperationOutcome::Cancelled => Self { is_cancelled: true, ..Self::default() },
            // The sender has violated the protocol.
            OperationOutcome::Done | OperationOutcome::Violation => Self::default(),
            _ => Self::failure(OTHER),
        }
    }

    fn failure(class: &'static str) -> Self {
        Self { error_type: Some(class.into()), ..Self::default() }
    }

    // MCP 2026-07-28 otel:common.yaml#mcp.client.status.attributes [TRACE-020] [TRACE-025]
    // MCP 2026-07-28 otel:common.yaml#mcp.server.status.attributes [TRACE-027]
    fn error(error: &ErrorObject<'_>, direction: Direction) -> Self {
        let ErrorCode(code) = error.code;
        let fails = direction == Direction::Sent || !is_fault_of_the_sender(code);
        Self {
            code: Some(code),
            // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-022]
            error_type: fails.then(|| code.to_string().into()),
            message: Some(error.message.clone().into_owned()),
            is_cancelled: false,
        }
    }

    // MCP 2026-07-28 otel:common.yaml#mcp.common.attributes [TRACE-024]
    fn failed(failure: &Failure<'_>, direction: Direction) -> Self {
        Self::failure(match failure {
            Failure::Refused(error) => return Self::error(error, direction),
            Failure::Transport(failure) => return Self::failed_transport(failure),
            Failure::InvalidAnswer(_) => "invalid_response",
            Failure::TimedOut { .. } => "timeout",
            Failure::Cancelled => "cancelled",
            Failure::TooManyRounds { .. } => "too_many_rounds",
            Failure::TooMuchInput { .. } => "too_much_input",
            Failure::InputRefused { .. } => "input_refused",
            Failure::ConnectionLost => "connection_lost",
            _ => OTHER,
        })
    }

    fn failed_transport(failure: &TransportFailure) -> Self {
        Self::failure(match failure {
            TransportFailure::Status { status, .. }
            | TransportFailure::Unauthorized { status, .. }
            | TransportFailure::NotResumed { status, .. } => {
                return Self { error_type: Some(status.to_string().into()), ..Self::default() };
            }
            TransportFailure::NotSent => "unreachable",
            TransportFailure::Broken
            | TransportFailure::StreamEnded
            | TransportFailure::StreamLost { .. } => "connection_lost",
            TransportFailure::SessionLost => "session_lost",
            TransportFailure::AuthorizationFailed { .. } => "authorization_failed",
            TransportFailure::Redirected { .. } => "redirected",
            TransportFailure::InvalidResponse(_) | TransportFailure::TooLong { .. } => {
                "invalid_response"
            }
            _ => OTHER,
        })
    }
}
