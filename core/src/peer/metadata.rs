use alloc::borrow::Cow;

use crate::jsonrpc::{RawJson, RequestId};
use crate::protocol::{LoggingLevel, Method};

/// Prefix of the keys that the protocol keeps for itself in `_meta`.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";

/// What the machine itself needs of a message's parameters, found in one walk over their members.
#[derive(Debug, Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) progress_token: Option<RequestId>,
    pub(crate) protocol_version: Option<Cow<'a, str>>,
    pub(crate) client_capabilities: Option<RawJson<'a>>,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) subscription_id: Option<RequestId>,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) uri: Option<Cow<'a, str>>,
    pub(crate) input_responses: Option<RawJson<'a>>,
    pub(crate) request_state: Option<Cow<'a, str>>,
    /// What is wrong with a member that only a modern message has. To a legacy one such a member
    /// is any other that the protocol does not know.
    pub(crate) modern_fault: Option<&'static str>,
}

impl<'a> Metadata<'a> {
    /// Walks over the members of `params`, an object.
    ///
    /// The error says what is wrong with them.
    // MCP 2026-07-28 basic/index#_meta [META-001] [META-002]: unknown keys are ignored.
    pub(crate) fn read(params: &RawJson<'a>) -> Result<Self, &'static str> {
        let mut found = Self::default();
        for member in params.walk() {
            match &*member.name() {
                "_meta" => found.read_meta(&member.value)?,
                "name" => found.name = text(&member.value),
                "uri" => found.uri = text(&member.value),
                "inputResponses" => {
                    // MCP 2026-07-28 basic/patterns/mrtr#error-handling [MRTR-016]
                    if !answers_are_objects(&member.value) {
                        found.modern_fault =
                            Some("`inputResponses` is an object of result objects");
                    }
                    found.input_responses = Some(member.value);
                }
                "requestState" => {
                    found.request_state = text(&member.value);
                    if found.request_state.is_none() {
                        found.modern_fault = Some("`requestState` is a string");
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Whether parameters may have a `_meta`, going by their text alone: to look costs next to
    /// nothing, and most requests of the legacy era have none.
    #[cfg(feature = "http")]
    pub(crate) fn may_be_in(params: &RawJson<'_>) -> bool {
        let text = params.as_str().as_bytes();
        memchr::memchr2_iter(b'_', b'\\', text)
            // A key can be spelled with escapes.
            .any(|at| text[at] == b'\\' || text[at..].starts_with(b"_meta"))
    }

    /// What a request of `method` is about. The other member may be there too, and means nothing.
    pub(crate) fn subject(&self, method: Method) -> Option<&str> {
        match method {
            Method::ToolsCall | Method::PromptsGet => self.name.as_deref(),
            _ => self.uri.as_deref(),
        }
    }

    fn read_meta(&mut self, meta: &RawJson<'a>) -> Result<(), &'static str> {
        if !meta.is_object() {
            return Err("`_meta` is an object");
        }
        for member in meta.walk() {
            match &*member.name() {
                // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-001]
                // MCP 2026-07-28 basic/patterns/progress#progress-flow [PROG-002]
                PROGRESS_TOKEN => {
                    let token = member.value.to_id();
                    self.progress_token =
                        Some(token.ok_or("`progressToken` is a string or an integer")?);
                }
                PROTOCOL_VERSION => {
                    let version = text(&member.value);
                    if version.is_none() {
                        self.modern_fault = Some("the protocol version is a string");
                    }
                    self.protocol_version = Some(version.unwrap_or_default());
                }
                CLIENT_CAPABILITIES => self.client_capabilities = Some(member.value),
                // MCP 2026-07-28 server/utilities/logging#error-handling [LOG-005]
                LOG_LEVEL => {
                    self.log_level = member.value.decode().ok();
                    if self.log_level.is_none() {
                        self.modern_fault = Some("no such log level");
                    }
                }
                SUBSCRIPTION_ID => self.subscription_id = member.value.to_id(),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The string that `value` is.
pub(crate) fn text<'a>(value: &RawJson<'a>) -> Option<Cow<'a, str>> {
    value.to_text()
}

fn answers_are_objects(value: &RawJson<'_>) -> bool {
    value.is_object() && value.members().all(|member| member.value.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_walk_finds_what_the_machine_needs_and_ignores_the_rest() {
        // Rule: [META-001].
        let params = RawJson::trusted(
            r#"{"name":"echo","arguments":{"_meta":1},"_meta":{"progressToken":"t","x/y":[1],
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"},"requestState":"s\n"}"#,
        );
        let found = Metadata::read(&params).unwrap();
        assert_eq!(found.subject(Method::ToolsCall), Some("echo"));
        assert_eq!(found.progress_token, Some(RequestId::try_from("t").unwrap()));
        assert_eq!(found.protocol_version.as_deref(), Some("2026-07-28"));
        assert_eq!(found.request_state.as_deref(), Some("s\n"));
    }

    #[cfg(feature = "http")]
    #[test]
    fn no_metadata_is_overlooked_however_it_is_spelled() {
        for with in [r#"{"_meta":{}}"#, r#"{"a":"__","_meta":{}}"#, r#"{"\u005fmeta":{}}"#] {
            assert!(Metadata::may_be_in(&RawJson::trusted(with)), "{with}");
        }
        for without in ["{}", r#"{"meta":1}"#, r#"{"name":"a_b","arguments":{"_":"_met"}}"#] {
            assert!(!Metadata::may_be_in(&RawJson::trusted(without)), "{without}");
        }
    }

    #[test]
    fn the_subject_is_the_member_that_the_method_has() {
        let params = RawJson::trusted(r#"{"name":"a","uri":"b"}"#);
        let found = Metadata::read(&params).unwrap();
        assert_eq!(found.subject(Method::ToolsCall), Some("a"));
        assert_eq!(found.subject(Method::ResourcesRead), Some("b"));
    }

    #[test]
    fn input_responses_that_are_no_results_are_named() {
        // Rule: [MRTR-016].
        for responses in ["null", "[]", r#"{"user_name":12345}"#] {
            let text = alloc::format!(r#"{{"inputResponses":{responses}}}"#);
            let found = Metadata::read(&RawJson::trusted(&text)).unwrap();
            assert!(found.modern_fault.is_some(), "{responses}");
        }
    }
}
