use alloc::borrow::Cow;
use core::ops::Range;

use crate::jsonrpc::{
    Frame, Malformed, Member, MemberIndex, Members, Message, PREFIX_IS_CACHED, ParseLimits,
    RawJson, RequestId, parse_noting,
};
use crate::protocol::{LoggingLevel, Method, SubjectKind};

use super::members::{MetaKey, Param, Seen};

/// `_meta` keys that the protocol reserves.
pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const PROGRESS_TOKEN: &str = "progressToken";

/// The data that the machine needs from a message's parameters, collected in one pass over their
/// members.
///
/// All checks, routing and handling take a member from here, so that they cannot interpret it
/// differently. The pass refuses repeated members that the protocol defines.
#[derive(Debug, Default)]
pub(crate) struct Metadata<'a> {
    pub(crate) progress_token: Option<RequestId>,
    pub(crate) protocol_version: Option<Cow<'a, str>>,
    pub(crate) client_capabilities: Option<RawJson<'a>>,
    pub(crate) log_level: Option<LoggingLevel>,
    /// Whether it names a subscription.
    names_subscription: bool,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) uri: Option<Cow<'a, str>>,
    pub(crate) arguments: Option<RawJson<'a>>,
    /// Whether the request asks for a task.
    pub(crate) asks_for_task: bool,
    found: Found,
    seen: Seen,
    /// The cacheable prefix of `_meta`, with the members that a client repeats in every request: up
    /// to the end of the version and the capabilities, in either order, if no member specific to
    /// this request precedes it.
    pub(crate) prefix: Option<CachedPrefix<'a>>,
    /// The offset of the capabilities in `_meta`.
    pub(crate) capabilities_start: usize,
    /// Whether `_meta` starts with the cached prefix, whose members are then not repeated here.
    pub(crate) prefix_matched: bool,
    pub(crate) input_responses: Option<RawJson<'a>>,
    pub(crate) request_state: Option<Cow<'a, str>>,
    /// The defect of a member that only modern messages have. In a legacy message such a member is
    /// unknown and ignored.
    pub(crate) modern_fault: Option<&'static str>,
}

/// The start of a parsed `_meta`, and the members it contains. Equal text has equal members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CachedPrefix<'a> {
    pub(crate) text: &'a str,
    pub(crate) seen: Seen,
}

/// The metadata of a request, or the defect of its parameters.
pub(crate) type Read<'f> = Result<Metadata<'f>, &'static str>;

/// Positions of the members that identify the handler.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    name: Span,
    uri: Span,
    task_id: Span,
    reference: Span,
    arguments: Span,
}

/// Positions of the subject and the arguments in the parameters of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spans {
    subject: Span,
    arguments: Span,
}

/// Start and end offset in bytes; both are zero if absent.
type Span = (u32, u32);

impl Spans {
    /// Returns the value of the member that names the subject, if there is one.
    pub(crate) fn subject<'p>(&self, params: &'p RawJson<'_>) -> Option<RawJson<'p>> {
        at(params, self.subject)
    }

    /// Returns the value of the member `arguments`.
    pub(crate) fn arguments<'p>(&self, params: &'p RawJson<'_>) -> Option<RawJson<'p>> {
        at(params, self.arguments)
    }
}

fn at<'p>(params: &'p RawJson<'_>, (start, end): Span) -> Option<RawJson<'p>> {
    let text = params.as_str().get(start as usize..end as usize);
    text.filter(|text| !text.is_empty()).map(RawJson::trusted)
}

/// Converts a range in a text of less than 4 GiB.
const fn span(range: &Range<usize>) -> Span {
    (range.start as u32, range.end as u32)
}

impl<'a> Metadata<'a> {
    /// Reads the members of `params`, an object.
    ///
    /// Returns a description of the first defect.
    pub(crate) fn read(params: &RawJson<'a>) -> Result<Self, &'static str> {
        let mut found = Self::read_after(params, CachedPrefix::default())?;
        found.prefix = None;
        Ok(found)
    }

    /// Like [`read`](Self::read), on a connection that caches the prefix of the peer's last
    /// `_meta`: see [`Metadata::prefix`]. An equal prefix is compared and not parsed.
    // MCP 2026-07-28 schema.json#MetaObject [META-001], MCP 2026-07-28 basic/index#_meta
    // [META-002]: unknown keys are ignored.
    pub(crate) fn read_after(
        params: &RawJson<'a>,
        prefix: CachedPrefix<'_>,
    ) -> Result<Self, &'static str> {
        let mut found = Self::default();
        found.fill(params, &MemberIndex::default(), prefix)?;
        Ok(found)
    }

    /// Like [`read_after`](Self::read_after), for `params` whose members may be indexed, and
    /// without moving the result, which is large.
    fn fill(
        &mut self,
        params: &RawJson<'a>,
        index: &MemberIndex,
        prefix: CachedPrefix<'_>,
    ) -> Result<(), &'static str> {
        if u32::try_from(params.as_str().len()).is_err() {
            return Err("the parameters are too long");
        }
        match index.members(params.frame_text()) {
            Some(members) => {
                for member in members {
                    self.take(member, prefix)?;
                }
            }
            None => {
                let mut members = params.walk();
                while let Some(member) = members.next_after(prefix.text) {
                    self.take(member, prefix)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, member: Member<'a>, prefix: CachedPrefix<'_>) -> Result<(), &'static str> {
        let Some(param) = Param::parse(&member.name()) else { return Ok(()) };
        param.once(&mut self.seen)?;
        // `null` is absence: all of these members are optional, or required by a method that
        // refuses a request without them.
        if member.value == RawJson::NULL {
            return Ok(());
        }
        match param {
            Param::Meta => self.read_meta(&member.value, prefix)?,
            Param::Name => {
                self.name = text(&member.value);
                self.found.name = span(&member.range);
            }
            Param::Uri => {
                self.uri = text(&member.value);
                self.found.uri = span(&member.range);
            }
            Param::Arguments => {
                self.found.arguments = span(&member.range);
                self.arguments = Some(member.value);
            }
            Param::TaskId => self.found.task_id = span(&member.range),
            Param::Ref => {
                self.found.reference = span(&member.range);
                param.check_nested(&member.value)?;
            }
            Param::Task => {
                self.asks_for_task = true;
                param.check_nested(&member.value)?;
            }
            Param::InputResponses => {
                // MCP 2026-07-28 basic/patterns/mrtr#error-handling [MRTR-016]
                if !answers_are_objects(&member.value) {
                    self.modern_fault =
                        Some("`inputResponses` must be an object of result objects");
                }
                self.input_responses = Some(member.value);
            }
            Param::RequestState => {
                self.request_state = text(&member.value);
                if self.request_state.is_none() {
                    self.modern_fault = Some("`requestState` must be a string");
                }
            }
            other => other.check_nested(&member.value)?,
        }
        Ok(())
    }

    /// Returns the subject of a request for `method`. The other member may be present, but has no
    /// meaning.
    pub(crate) fn subject(&self, method: Method) -> Option<&str> {
        match method.subject() {
            Some(SubjectKind::Tool | SubjectKind::Prompt) => self.name.as_deref(),
            _ => self.uri.as_deref(),
        }
    }

    /// Returns the positions of the subject and the arguments in a request for `method`.
    pub(crate) const fn spans(&self, method: Method) -> Spans {
        let subject = match method.subject() {
            Some(SubjectKind::Tool | SubjectKind::Prompt) => self.found.name,
            Some(SubjectKind::Task) => self.found.task_id,
            Some(SubjectKind::Reference) => self.found.reference,
            Some(SubjectKind::Resource) | None => self.found.uri,
        };
        Spans { subject, arguments: self.found.arguments }
    }

    /// Returns the defect in the arguments of a tool or prompt, if any.
    // MCP 2026-07-28 server/tools#calling-tools [TOOL-004]
    pub(crate) fn fault_of_arguments(&self, method: Method) -> Option<&'static str> {
        let takes_some = matches!(method, Method::ToolsCall | Method::PromptsGet);
        let wrong = self.arguments.as_ref().is_some_and(|arguments| !arguments.is_object());
        (takes_some && wrong).then_some("`arguments` must be an object")
    }

    fn read_meta(
        &mut self,
        meta: &RawJson<'a>,
        prefix: CachedPrefix<'_>,
    ) -> Result<(), &'static str> {
        if !meta.is_object() {
            return Err("`_meta` must be an object");
        }
        let text = meta.frame_text();
        let known = PREFIX_IS_CACHED && !prefix.text.is_empty();
        let rest = text.strip_prefix(prefix.text).filter(|_| known);
        self.prefix_matched = rest.is_some();
        let mut seen = if self.prefix_matched { prefix.seen } else { Seen::default() };
        for member in rest.map_or_else(|| meta.walk(), Members::after) {
            let Some(key) = MetaKey::parse(&member.name()) else { continue };
            key.once(&mut seen)?;
            if member.value == RawJson::NULL {
                continue;
            }
            match key {
                // MCP 2025-11-25 basic/utilities/progress#progress-flow [PROG-001]
                // MCP 2026-07-28 basic/patterns/progress#progress-flow [PROG-002]
                MetaKey::ProgressToken => {
                    let token = member.value.to_id();
                    self.progress_token =
                        Some(token.ok_or("`progressToken` must be a string or an integer")?);
                }
                MetaKey::ProtocolVersion => {
                    let version = self::text(&member.value);
                    if version.is_none() {
                        self.modern_fault = Some("the protocol version must be a string");
                    }
                    self.protocol_version = Some(version.unwrap_or_default());
                    self.end_prefix(text, member.range.end, seen);
                }
                MetaKey::ClientCapabilities => {
                    self.client_capabilities = Some(member.value);
                    self.capabilities_start = member.range.start;
                    self.end_prefix(text, member.range.end, seen);
                }
                // MCP 2026-07-28 server/utilities/logging#error-handling [LOG-005]
                MetaKey::LogLevel => {
                    self.log_level = member.value.decode().ok();
                    if self.log_level.is_none() {
                        self.modern_fault = Some("unknown log level");
                    }
                }
                MetaKey::SubscriptionId => self.names_subscription = member.value.to_id().is_some(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends the cacheable prefix of a `_meta` with the member that ends at `end`, if it is complete
    /// and contains only what every request repeats.
    fn end_prefix(&mut self, meta: &'a str, end: usize, seen: Seen) {
        let complete = self.protocol_version.is_some() && self.client_capabilities.is_some();
        let kept = PREFIX_IS_CACHED && complete && !self.has_own();
        let prefix = meta.get(..end).filter(|_| kept);
        self.prefix = prefix.map(|text| CachedPrefix { text, seen });
    }

    /// Returns whether members specific to this request, or defects, were found.
    const fn has_own(&self) -> bool {
        self.progress_token.is_some()
            || self.log_level.is_some()
            || self.names_subscription
            || self.modern_fault.is_some()
    }
}

/// Parses a frame and reads the parameters of a single request, if present, into `read`, in one
/// pass over the bytes. `prefix` is the cached prefix of the peer.
///
/// Returns the errors of [`parse`](crate::jsonrpc::parse).
pub(crate) fn parse<'f>(
    frame: &'f [u8],
    limits: ParseLimits,
    prefix: CachedPrefix<'_>,
    read: &mut Option<Read<'f>>,
) -> Result<Frame<'f>, Malformed> {
    let mut index = MemberIndex::default();
    let parsed = parse_noting(frame, limits, prefix.text, Some(&mut index));
    if let Ok(Frame::Single(Message::Request(request))) = &parsed
        && let Some(params) = &request.params
        && params.as_str() != RawJson::EMPTY_OBJECT.as_str()
    {
        let read = read.insert(Ok(Metadata::default()));
        if let Ok(found) = read
            && let Err(defect) = found.fill(params, &index, prefix)
        {
            *read = Err(defect);
        }
    }
    parsed
}

/// Returns the content of `value` if it is a string.
pub(crate) fn text<'a>(value: &RawJson<'a>) -> Option<Cow<'a, str>> {
    value.to_text()
}

fn answers_are_objects(value: &RawJson<'_>) -> bool {
    value.is_object() && value.members().all(|member| member.value.is_object())
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn one_pass_reads_the_known_members_and_ignores_the_rest() {
        // Rule: [META-001].
        let params = RawJson::trusted(
            r#"{"name":"echo","arguments":{"_meta":1},"_meta":{"progressToken":"t","x/y":[1],
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"},"requestState":"s\n"}"#,
        );
        let found = Metadata::read(&params).unwrap();
        assert_eq!(found.subject(Method::ToolsCall), Some("echo"));
        assert_eq!(found.progress_token, Some(RequestId::from("t")));
        assert_eq!(found.protocol_version.as_deref(), Some("2026-07-28"));
        assert_eq!(found.request_state.as_deref(), Some("s\n"));
    }

    #[test]
    fn indexed_and_unindexed_requests_read_the_same() {
        let (prefix, seen) = prefix_of(BOTH).unwrap();
        let prefix = CachedPrefix { text: &prefix, seen };
        let meta = alloc::format!(r#""_meta":{{{BOTH}, "progressToken":7}}"#);
        let mut two = alloc::vec![String::from(r#""name":"a""#); 2];
        two.push(meta.clone());
        let many = (0..9).map(|number| alloc::format!(r#""x{number}":[{{"name":1}}]"#));
        for members in [
            alloc::vec![],
            alloc::vec![meta.clone()],
            alloc::vec![
                r#" "na\u006de" : "a\"}" "#.into(),
                meta.clone(),
                r#""arguments":{}"#.into()
            ],
            many.clone().take(5).chain([meta.clone()]).collect(),
            many.chain([meta, r#""uri":"u""#.into()]).collect(),
            two,
        ] {
            let params = alloc::format!("{{{}}}", members.join(","));
            for (head, tail) in [(r#""id":1,"#, ""), ("", r#","id":1"#)] {
                let start = r#"{"jsonrpc":"2.0","method":"m","#;
                let frame = alloc::format!(r#"{start}{head} "params" : {params} {tail}}}"#);
                let mut noted = None;
                parse(frame.as_bytes(), ParseLimits::default(), prefix, &mut noted).unwrap();
                let read = Metadata::read_after(&RawJson::trusted(&params), prefix);
                let read = (!members.is_empty()).then_some(read);
                assert_eq!(alloc::format!("{noted:?}"), alloc::format!("{read:?}"), "{frame}");
            }
        }
    }

    #[test]
    fn the_subject_is_the_member_that_the_method_defines() {
        let params = RawJson::trusted(r#"{"name":"a","uri":"b"}"#);
        let found = Metadata::read(&params).unwrap();
        assert_eq!(found.subject(Method::ToolsCall), Some("a"));
        assert_eq!(found.subject(Method::ResourcesRead), Some("b"));
    }

    #[test]
    fn input_responses_that_are_not_results_are_refused() {
        // Rule: [MRTR-016].
        for responses in ["7", "[]", r#"{"user_name":12345}"#] {
            let text = alloc::format!(r#"{{"inputResponses":{responses}}}"#);
            let found = Metadata::read(&RawJson::trusted(&text)).unwrap();
            assert!(found.modern_fault.is_some(), "{responses}");
        }
    }

    const BOTH: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;

    fn after<'a>(text: &'a str, prefix: &str, seen: Seen) -> Result<Metadata<'a>, &'static str> {
        Metadata::read_after(&RawJson::trusted(text), CachedPrefix { text: prefix, seen })
    }

    /// Returns the prefix that a first request leaves in the cache.
    fn prefix_of(meta: &str) -> Option<(String, Seen)> {
        let text = alloc::format!(r#"{{"_meta":{{{meta}}}}}"#);
        let found = after(&text, "", Seen::default()).unwrap();
        found.prefix.map(|it| (it.text.into(), it.seen))
    }

    #[test]
    fn the_cached_prefix_ends_before_the_first_own_member() {
        let prefix_between = |before: &str, after: &str| {
            let found = prefix_of(&alloc::format!("{before}{BOTH}{after}"));
            found.map(|(text, _)| text)
        };
        let expected = alloc::format!(r#"{{"x":1,{BOTH}"#);
        assert_eq!(prefix_between(r#""x":1,"#, r#","progressToken":7"#), Some(expected));
        assert_eq!(prefix_between(r#""progressToken":7,"#, ""), None);
        assert_eq!(prefix_between(r#""io.modelcontextprotocol/logLevel":"none","#, ""), None);
    }

    #[test]
    fn the_cached_prefix_has_the_version_and_the_capabilities_in_either_order() {
        const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
        const CAPABILITIES: &str = r#""io.modelcontextprotocol/clientCapabilities":{"roots":{}}"#;
        for (one, other) in [(VERSION, CAPABILITIES), (CAPABILITIES, VERSION)] {
            let expected = alloc::format!(r#"{{{one},"x":1,{other}"#);
            let meta = alloc::format!(r#"{one},"x":1,{other},"y":2"#);
            let (prefix, seen) = prefix_of(&meta).unwrap();
            assert_eq!(prefix, expected);
            let text = alloc::format!(r#"{{"_meta":{{{meta},"progressToken":7}}}}"#);
            let found = after(&text, &prefix, seen).unwrap();
            assert_eq!(found.progress_token, Some(RequestId::Number(7)));
            assert!(found.prefix_matched && found.client_capabilities.is_none());
            let between = alloc::format!(r#"{one},"progressToken":7,{other}"#);
            assert_eq!(prefix_of(&between), None);
        }
    }

    #[test]
    fn the_cached_prefix_is_not_parsed_again() {
        let (prefix, seen) = prefix_of(BOTH).unwrap();
        let read = |meta: &str| {
            let text = alloc::format!(r#"{{"_meta":{meta},"name":"a\"}}","arguments":{{"b":1}}}}"#);
            let found = after(&text, &prefix, seen).unwrap();
            assert_eq!(found.subject(Method::ToolsCall), Some("a\"}"));
            assert_eq!(found.arguments, Some(RawJson::trusted(r#"{"b":1}"#)));
            (found.prefix_matched, found.progress_token, found.protocol_version.is_some())
        };
        let token = Some(RequestId::Number(7));
        assert_eq!(read(&alloc::format!("{{{BOTH}}}")), (true, None, false));
        assert_eq!(read(&alloc::format!(r#"{{{BOTH},"progressToken":7}}"#)), (true, token, false));
        assert_eq!(read(&alloc::format!(r#"{{"x":1,{BOTH}}}"#)), (false, None, true));
    }

    #[test]
    fn a_duplicate_is_found_after_the_cached_prefix() {
        const KEYS: [&str; 4] = ["protocolVersion", "clientInfo", "clientCapabilities", "logLevel"];
        let first = alloc::format!(r#""io.modelcontextprotocol/clientInfo":{{}},{BOTH}"#);
        let (prefix, seen) = prefix_of(&first).unwrap();
        let read = |meta: &str| {
            let text = alloc::format!(r#"{{"_meta":{{{meta}}}}}"#);
            let fault = after(&text, &prefix, seen).err();
            assert_eq!(fault, after(&text, "", Seen::default()).err(), "{meta}");
            fault
        };
        for key in KEYS {
            let meta = alloc::format!(r#"{first},"io.modelcontextprotocol/{key}":"debug""#);
            assert_eq!(read(&meta).is_some(), key != "logLevel", "{key}");
        }
        let other = r#""io.modelcontextprotocol/protocolVersion":"2""#;
        for (one, two) in [(&*first, "\"progressToken\":7"), (&first, other), (other, &first)] {
            assert_eq!(
                read(&alloc::format!(r#"{one}}},"_meta":{{{two}"#)),
                Some("`_meta` is repeated")
            );
        }
    }

    #[test]
    fn places_are_those_of_the_members_that_were_read() {
        let text =
            r#"{"uri":"u","arguments":{"name":1},"taskId":"t","na\u006de":"n","ref":{"name":"r"}}"#;
        let params = RawJson::trusted(text);
        let found = Metadata::read(&params).unwrap();
        for method in Method::ALL.iter().copied() {
            let value = match method.subject() {
                Some(SubjectKind::Tool | SubjectKind::Prompt) => r#""n""#,
                Some(SubjectKind::Resource) | None => r#""u""#,
                Some(SubjectKind::Task) => r#""t""#,
                Some(SubjectKind::Reference) => r#"{"name":"r"}"#,
            };
            let spans = found.spans(method);
            assert_eq!(spans.subject(&params), Some(RawJson::trusted(value)), "{method}");
            let arguments = spans.arguments(&params);
            assert_eq!(arguments, Some(RawJson::trusted(r#"{"name":1}"#)), "{method}");
        }
        // Absent members have no position, regardless of other members.
        let spans = Metadata::read(&RawJson::trusted("{}")).unwrap().spans(Method::ToolsCall);
        assert_eq!((spans.subject(&params), spans.arguments(&params)), (None, None));
    }

    #[test]
    fn null_is_absence_in_every_member() {
        let absent = Metadata::read(&RawJson::EMPTY_OBJECT).unwrap();
        let read = |text: &str| {
            let found = Metadata::read(&RawJson::trusted(text)).unwrap();
            // The set of seen members is for repeats alone.
            let found = Metadata { seen: Seen::default(), ..found };
            assert_eq!(alloc::format!("{found:?}"), alloc::format!("{absent:?}"), "{text}");
        };
        for name in Param::names() {
            read(&alloc::format!(r#"{{"{name}":null}}"#));
        }
        for name in MetaKey::names() {
            read(&alloc::format!(r#"{{"_meta":{{"{name}":null}}}}"#));
        }
    }

    #[test]
    fn arguments_of_tools_and_prompts_are_an_object_or_absent() {
        for (arguments, wrong) in [
            ("{}", false),
            (r#"{"a":null}"#, false),
            ("null", false),
            ("[]", true),
            ("1", true),
            (r#""{}""#, true),
        ] {
            let text = alloc::format!(r#"{{"arguments":{arguments}}}"#);
            let found = Metadata::read(&RawJson::trusted(&text)).unwrap();
            for method in [Method::ToolsCall, Method::PromptsGet] {
                assert_eq!(found.fault_of_arguments(method).is_some(), wrong, "{arguments}");
            }
            assert_eq!(found.fault_of_arguments(Method::ToolsList), None);
        }
        assert_eq!(Metadata::default().fault_of_arguments(Method::ToolsCall), None);
    }
}
