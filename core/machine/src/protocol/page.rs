//! Parameters and results that many methods share: none at all, or one page of a list.

use alloc::string::String;

use super::message::message;
use super::meta::Meta;

message! {
    /// The parameters of a method that takes none.
    #[derive(Default)]
    pub struct EmptyParams {
        required {}
        defaulted {}
        optional {
            /// Metadata.
            meta: Meta = "_meta" in ALL;
        }
    }
}

message! {
    /// A result that says no more than that it is done.
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
    /// The parameters of the list methods: which page.
    #[derive(Default)]
    pub struct ListParams {
        required {}
        defaulted {}
        optional {
            /// Where the page before ended; `None` asks for the first. An empty string is a
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
