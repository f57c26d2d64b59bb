use alloc::borrow::Cow;
use core::ops::Range;

use crate::jsonrpc::{Member, Members, RawJson, RequestId, STANDING_IS_KEPT};
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
    pub(crate) arguments: Option<RawJson<'a>>,
    pub(crate) places: Places,
    /// The start of `_meta` that says what a client says with every request: up to the end of the
    /// capabilities, if the version is before them and nothing of the request's own is.
    pub(crate) standing: Option<&'a str>,
    /// `_meta` starts as it did before: what is in that part is not repeated here.
    pub(crate) stands: bool,
    pub(crate) input_responses: Option<RawJson<'a>>,
    pub(crate) request_state: Option<Cow<'a, str>>,
    /// What is wrong with a member that only a modern message has. To a legacy one such a member
    /// is any other that the protocol does not know.
    pub(crate) modern_fault: Option<&'static str>,
}

/// Where members of the parameters are that handlers are found by or work on, so that nobody looks
/// for them twice. What is nowhere was not looked for, or is not there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    name: Place,
    arguments: Place,
}

/// From where to where, in bytes; nowhere, if both are zero.
type Place = (u32, u32);

impl Places {
    /// The member of `params` called `key`, which was found or is looked for now.
    pub(crate) fn get<'p>(&self, params: &'p RawJson<'_>, key: &str) -> Option<RawJson<'p>> {
        let (start, end) = match key {
            "name" => self.name,
            "arguments" => self.arguments,
            _ => (0, 0),
        };
        match params.as_str().get(start as usize..end as usize) {
            Some(text) if !text.is_empty() => Some(RawJson::trusted(text)),
            _ => params.get(key),
        }
    }
}

/// The place, or nowhere in a text that is far too long.
fn place(range: &Range<usize>) -> Place {
    match (u32::try_from(range.start), u32::try_from(range.end)) {
        (Ok(start), Ok(end)) => (start, end),
        _ => (0, 0),
    }
}

impl<'a> Metadata<'a> {
    /// Walks over the members of `params`, an object.
    ///
    /// The error says what is wrong with them.
    pub(crate) fn read(params: &RawJson<'a>) -> Result<Self, &'static str> {
        Self::read_after(params, "")
    }

    /// The same where the start of an earlier `_meta` is known: see [`Metadata::standing`]. The same
    /// start says the same, so it is compared and not read.
    // MCP 2026-07-28 schema.json#MetaObject [META-001], MCP 2026-07-28 basic/index#_meta
    // [META-002]: unknown keys are ignored.
    pub(crate) fn read_after(params: &RawJson<'a>, standing: &str) -> Result<Self, &'static str> {
        let mut standing = standing;
        loop {
            let mut found = Self::default();
            let mut members = params.walk();
            while let Some(member) = members.next_after(standing) {
                found.take(member, standing)?;
            }
            let again = found.protocol_version.is_some() || found.client_capabilities.is_some();
            if !(found.stands && again) {
                return Ok(found);
            }
            // Said again, a member counts as it is said last.
            standing = "";
        }
    }

    fn take(&mut self, member: Member<'a>, standing: &str) -> Result<(), &'static str> {
        match &*member.name() {
            "_meta" => self.read_meta(&member.value, standing)?,
            "name" => {
                self.name = text(&member.value);
                self.places.name = place(&member.range);
            }
            "uri" => self.uri = text(&member.value),
            "arguments" if self.arguments.is_none() => {
                self.places.arguments = place(&member.range);
                self.arguments = Some(member.value);
            }
            "inputResponses" => {
                // MCP 2026-07-28 basic/patterns/mrtr#error-handling [MRTR-016]
                if !answers_are_objects(&member.value) {
                    self.modern_fault = Some("`inputResponses` is an object of result objects");
                }
                self.input_responses = Some(member.value);
            }
            "requestState" => {
                self.request_state = text(&member.value);
                if self.request_state.is_none() {
                    self.modern_fault = Some("`requestState` is a string");
                }
            }
            _ => {}
        }
        Ok(())
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

    fn read_meta(&mut self, meta: &RawJson<'a>, standing: &str) -> Result<(), &'static str> {
        if !meta.is_object() {
            return Err("`_meta` is an object");
        }
        let text = meta.frame_text();
        let known = STANDING_IS_KEPT && !standing.is_empty();
        let rest = text.strip_prefix(standing).filter(|_| known);
        self.stands |= rest.is_some();
        let mut named = false;
        for member in rest.map_or_else(|| meta.walk(), Members::after) {
            match &*member.name() {
                // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-001]
                // MCP 2026-07-28 basic/patterns/progress#progress-flow [PROG-002]
                PROGRESS_TOKEN => {
                    let token = member.value.to_id();
                    self.progress_token =
                        Some(token.ok_or("`progressToken` is a string or an integer")?);
                }
                PROTOCOL_VERSION => {
                    let version = self::text(&member.value);
                    if version.is_none() {
                        self.modern_fault = Some("the protocol version is a string");
                    }
                    self.protocol_version = Some(version.unwrap_or_default());
                    (named, self.standing) = (true, None);
                }
                CLIENT_CAPABILITIES => {
                    self.client_capabilities = Some(member.value);
                    let kept = STANDING_IS_KEPT && named && !self.has_own();
                    self.standing = text.get(..member.range.end).filter(|_| kept);
                }
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

    /// Whether something was found that is said of this request only, or is wrong.
    const fn has_own(&self) -> bool {
        self.progress_token.is_some()
            || self.log_level.is_some()
            || self.subscription_id.is_some()
            || self.modern_fault.is_some()
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

    const BOTH: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;

    #[test]
    fn what_stands_is_what_comes_before_anything_of_the_requests_own() {
        let stands = |before: &str, after: &str| {
            let text = alloc::format!(r#"{{"_meta":{{{before}{BOTH}{after}}}}}"#);
            let found = Metadata::read(&RawJson::trusted(&text)).unwrap();
            found.standing.map(alloc::string::String::from)
        };
        let expected = alloc::format!(r#"{{"x":1,{BOTH}"#);
        assert_eq!(stands(r#""x":1,"#, r#","progressToken":7"#), Some(expected));
        assert_eq!(stands(r#""progressToken":7,"#, ""), None);
        assert_eq!(stands(r#""io.modelcontextprotocol/logLevel":"none","#, ""), None);
        assert_eq!(stands("", r#","io.modelcontextprotocol/protocolVersion":"2""#), None);
        let again = r#","progressToken":7,"io.modelcontextprotocol/clientCapabilities":{}"#;
        assert_eq!(stands("", again), None);
        let parted = r#"},"_meta":{"io.modelcontextprotocol/clientCapabilities":{}"#;
        assert_eq!(stands("", parted), None);
    }

    #[test]
    fn what_stands_already_is_not_repeated_unless_it_is_said_again() {
        let standing = alloc::format!("{{{BOTH}");
        let read = |meta: &str| {
            let text = alloc::format!(r#"{{"_meta":{meta},"name":"a\"}}","arguments":{{"b":1}}}}"#);
            let params = RawJson::trusted(&text);
            let found = Metadata::read_after(&params, &standing).unwrap();
            assert_eq!(found.subject(Method::ToolsCall), Some("a\"}"));
            assert_eq!(found.arguments, Some(RawJson::trusted(r#"{"b":1}"#)));
            (found.stands, found.progress_token, found.protocol_version.is_some())
        };
        let token = Some(RequestId::Number(7));
        assert_eq!(read(&alloc::format!("{{{BOTH}}}")), (true, None, false));
        assert_eq!(read(&alloc::format!(r#"{{{BOTH},"progressToken":7}}"#)), (true, token, false));
        assert_eq!(read(&alloc::format!(r#"{{"x":1,{BOTH}}}"#)), (false, None, true));
        let again = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
        assert_eq!(read(&alloc::format!("{{{BOTH},{again}}}")), (false, None, true));
    }

    #[test]
    fn of_two_of_it_each_member_counts_as_it_is_said_last() {
        let standing = alloc::format!("{{{BOTH}");
        let read = |first: &str, second: &str| {
            let text = alloc::format!(r#"{{"_meta":{{{first}}},"_meta":{{{second}}}}}"#);
            let found = Metadata::read_after(&RawJson::trusted(&text), &standing).unwrap();
            (found.stands, found.progress_token, found.protocol_version.map(Cow::into_owned))
        };
        let token = || Some(RequestId::Number(7));
        let version = |version| Some(alloc::string::String::from(version));
        let other = r#""io.modelcontextprotocol/protocolVersion":"2""#;
        assert_eq!(read(BOTH, r#""progressToken":7"#), (true, token(), None));
        assert_eq!(read(BOTH, other), (false, None, version("2")));
        assert_eq!(read(other, BOTH), (false, None, version("2026-07-28")));
    }

    #[test]
    fn places_are_those_of_the_members_that_were_read() {
        let text = r#"{"uri":"u","arguments":{"name":1},"name":"n","arguments":[],"name":"last"}"#;
        let params = RawJson::trusted(text);
        let places = Metadata::read(&params).unwrap().places;
        for (key, value) in
            [("name", r#""last""#), ("uri", r#""u""#), ("arguments", r#"{"name":1}"#)]
        {
            assert_eq!(places.get(&params, key), Some(RawJson::trusted(value)), "{key}");
        }
        assert_eq!(places.get(&params, "other"), None);
    }
}
