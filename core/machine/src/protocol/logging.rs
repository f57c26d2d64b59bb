//! Log messages of a server, and their severity.

use alloc::string::String;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::Serializer;

use super::LoggingLevel;
use super::Revision;
use super::message::message;
use super::meta::Meta;
use super::wire::{SerializeAt, Text};
use crate::jsonrpc::Json;

const UNKNOWN_LEVEL: &str =
    "not a logging level; they are debug, info, notice, warning, error, critical, alert, emergency";

impl<'de> Deserialize<'de> for LoggingLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(text) = Text::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(UNKNOWN_LEVEL))
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
            assert_eq!(LoggingLevel::parse(&level.to_string()), Some(level));
        }
    }

    #[test]
    fn an_invalid_level_is_refused() {
        // Rule: [LOG-005].
        assert!(serde_json::from_str::<LoggingLevel>(r#""loud""#).is_err());
        assert_eq!(LoggingLevel::parse("Debug"), None);
    }

    #[test]
    fn data_may_be_null() {
        // Rule: [LOG-002].
        let read: LoggingMessageParams =
            serde_json::from_str(r#"{"level":"info","data":null}"#).unwrap();
        assert_eq!(read.data.as_str(), "null");
    }
}
