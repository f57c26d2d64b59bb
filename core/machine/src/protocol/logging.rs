//! Log messages of a server, and their severity.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::Serializer;

use super::message::message;
use super::meta::Meta;
use super::revision::Revision;
use super::wire::{SerializeAt, Text};
use crate::jsonrpc::Json;

/// The severity of a log message, least severe first.
///
/// The set is closed: an unknown level has no place in the order and is refused.
// MCP 2026-07-28 server/utilities/logging#log-levels [LOG-001]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoggingLevel {
    /// Details for debugging.
    Debug,
    /// Progress information.
    Info,
    /// Normal but significant events.
    Notice,
    /// Conditions that may lead to an error.
    Warning,
    /// A failed operation.
    Error,
    /// A failed component.
    Critical,
    /// A condition that requires immediate action.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl LoggingLevel {
    /// Every level, the least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Returns the spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a known level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a logging level; they are debug, info, notice, warning, error, critical, alert, emergency"
)]
pub struct UnknownLoggingLevel;

impl FromStr for LoggingLevel {
    type Err = UnknownLoggingLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLoggingLevel> {
        // MCP 2026-07-28 server/utilities/logging#error-handling [LOG-005]: the reader detects an
        // invalid level.
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or(UnknownLoggingLevel)
    }
}

impl<'de> Deserialize<'de> for LoggingLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer)?.0.parse().map_err(D::Error::custom)
    }
}

impl SerializeAt for LoggingLevel {
    fn serialize_at<S: Serializer>(&self, _: Revision, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

message! {
    /// The parameters of `notifications/message`.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// log to standard error, or with OpenTelemetry, and report what the client needs in results.
    // MCP 2026-07-28 server/utilities/logging#log-message-notifications [LOG-002]
    pub struct LoggingMessageParams {
        required {
            /// The severity.
            level: LoggingLevel = "level" in ALL;
            /// The logged data: any JSON value.
            data: Json = "data" in ALL;
        }
        defaulted {}
        optional {
            /// The component that logged the message.
            logger: String = "logger" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The parameters of `logging/setLevel`; until 2025-11-25.
    // MCP 2025-11-25 server/utilities/logging#setting-log-level [LOG-003]
    pub struct SetLevelParams {
        required {
            /// The least severe level to send.
            level: LoggingLevel = "level" in ALL;
        }
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn levels_are_ordered_by_severity_and_parse_back() {
        // Rule: [LOG-001].
        assert!(LoggingLevel::ALL.is_sorted());
        assert!(LoggingLevel::Warning < LoggingLevel::Error);
        for level in LoggingLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
    }

    #[test]
    fn an_invalid_level_is_refused() {
        // Rule: [LOG-005].
        assert!(serde_json::from_str::<SetLevelParams>(r#"{"level":"loud"}"#).is_err());
        assert_eq!("Debug".parse::<LoggingLevel>(), Err(UnknownLoggingLevel));
    }

    #[test]
    fn data_may_be_null() {
        // Rule: [LOG-002].
        let read: LoggingMessageParams =
            serde_json::from_str(r#"{"level":"info","data":null}"#).unwrap();
        assert_eq!(read.data.as_str(), "null");
    }
}
