//! Parameters and results shared by several methods: empty results, and pages of lists.

use alloc::string::String;

use super::message::message;
use super::meta::Meta;

message! {
    /// A result without content.
    #[derive(Default)]
    pub struct EmptyResult {
        tag "resultType" = "complete" in MODERN;
        required {}
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// The parameters of the list methods.
    #[derive(Default)]
    pub struct ListParams {
        required {}
        defaulted {}
        optional {
            /// The end of the previous page; `None` requests the first page. An empty string is a
            /// cursor like any other.
            // MCP 2026-07-28 server/utilities/pagination#implementation-guidelines [PAGE-004]
            cursor: String = "cursor" in ALL;
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Revision, SerializeAt};

    #[test]
    fn an_empty_cursor_is_not_the_first_page() {
        // Rule: [PAGE-004].
        let params: ListParams = serde_json::from_str(r#"{"cursor":""}"#).unwrap();
        assert_eq!(params.cursor.as_deref(), Some(""));
        assert_eq!(params.to_json_at(Revision::LATEST).unwrap().as_str(), r#"{"cursor":""}"#);
    }
}
