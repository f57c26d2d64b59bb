use core::fmt;
use core::ops::Range;

use crate::envelope::{
    Defect, Entries, Entry, Envelope, Envelopes, IdRef, JsonText, MemberIndex, PREFIX_IS_CACHED,
    ParseLimits, Written, parse_recording,
};

use super::members::{MetaKey, Param, Seen};
use super::method::{Method, SubjectKind};

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
pub struct Metadata<'a> {
    pub(crate) progress_token: Option<IdRef<'a>>,
    pub(crate) protocol_version: Option<Written<'a>>,
    pub(crate) client_capabilities: Option<JsonText<'a>>,
    pub(crate) log_level: Option<LoggingLevel>,
    /// Whether it names a subscription.
    names_subscription: bool,
    pub(crate) name: Option<Written<'a>>,
    pub(crate) uri: Option<Written<'a>>,
    pub(crate) arguments: Option<JsonText<'a>>,
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
    pub(crate) input_responses: Option<JsonText<'a>>,
    pub(crate) request_state: Option<Written<'a>>,
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
    pub(crate) fn subject<'p>(&self, params: JsonText<'p>) -> Option<JsonText<'p>> {
        at(params, self.subject)
    }

    /// Returns the value of the member `arguments`.
    pub(crate) fn arguments<'p>(&self, params: JsonText<'p>) -> Option<JsonText<'p>> {
        at(params, self.arguments)
    }
}

fn at<'p>(params: JsonText<'p>, (start, end): Span) -> Option<JsonText<'p>> {
    let text = params.as_str().get(start as usize..end as usize);
    text.filter(|text| !text.is_empty()).map(JsonText::trusted)
}

/// Converts a range in a text of less than 4 GiB.
const fn span(range: &Range<usize>) -> Span {
    (range.start as u32, range.end as u32)
}

impl<'a> Metadata<'a> {
    /// The key of the identity of the server in the `_meta` of results; since 2026-07-28.
    pub const SERVER_INFO: &'static str = SERVER_INFO;
    /// The key of the subscription in the `_meta` of notifications; since 2026-07-28.
    pub const SUBSCRIPTION_ID: &'static str = SUBSCRIPTION_ID;

    /// Returns the arguments of the request: any JSON value but `null`.
    #[must_use]
    pub const fn arguments(&self) -> Option<JsonText<'a>> {
        self.arguments
    }

    /// Returns the token for progress notifications.
    #[must_use]
    pub const fn progress_token(&self) -> Option<IdRef<'a>> {
        self.progress_token
    }

    /// Returns the defect of a member that only modern requests have.
    #[must_use]
    pub const fn fault(&self) -> Option<&'static str> {
        self.modern_fault
    }

    /// Reads the members of `params`, an object.
    ///
    /// # Errors
    ///
    /// Describes the first defect.
    pub fn read(params: impl Into<JsonText<'a>>) -> Result<Self, &'static str> {
        let mut found = Self::read_after(params, CachedPrefix::default())?;
        found.prefix = None;
        Ok(found)
    }

    /// Like [`read`](Self::read), on a connection that caches the prefix of the peer's last
    /// `_meta`: see [`Metadata::prefix`]. An equal prefix is compared and not parsed.
    // MCP 2026-07-28 schema.json#MetaObject [META-001], MCP 2026-07-28 basic/index#_meta
    // [META-002]: unknown keys are ignored.
    pub(crate) fn read_after(
        params: impl Into<JsonText<'a>>,
        prefix: CachedPrefix<'_>,
    ) -> Result<Self, &'static str> {
        let mut found = Self::default();
        found.fill(params.into(), &MemberIndex::default(), prefix)?;
        Ok(found)
    }

    /// Like [`read_after`](Self::read_after), for `params` whose members may be indexed, and
    /// without moving the result, which is large.
    fn fill(
        &mut self,
        params: JsonText<'a>,
        index: &MemberIndex,
        prefix: CachedPrefix<'_>,
    ) -> Result<(), &'static str> {
        if u32::try_from(params.as_str().len()).is_err() {
            return Err("the parameters are too long");
        }
        match index.members(params.as_str()) {
            Some(members) => {
                for member in members {
                    self.take(member, prefix)?;
                }
            }
            None => {
                let mut members = params.members();
                while let Some(member) = members.next_after(prefix.text) {
                    self.take(member, prefix)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, member: Entry<'a>, prefix: CachedPrefix<'_>) -> Result<(), &'static str> {
        let Some(param) = Param::parse(member.key) else { return Ok(()) };
        param.once(&mut self.seen)?;
        // `null` is absence: all of these members are optional, or required by a method that
        // refuses a request without them.
        if member.value == JsonText::NULL {
            return Ok(());
        }
        match param {
            Param::Meta => self.read_meta(member.value, prefix)?,
            Param::Name => {
                self.name = member.value.to_written();
                self.found.name = span(&member.range);
            }
            Param::Uri => {
                self.uri = member.value.to_written();
                self.found.uri = span(&member.range);
            }
            // Languages with one type for lists and maps write an empty map so.
            Param::Arguments if member.value.is_empty_array() => {}
            Param::Arguments => {
                self.found.arguments = span(&member.range);
                self.arguments = Some(member.value);
            }
            Param::TaskId => self.found.task_id = span(&member.range),
            Param::Ref => {
                self.found.reference = span(&member.range);
                param.check_nested(member.value)?;
            }
            Param::Task => {
                self.asks_for_task = true;
                param.check_nested(member.value)?;
            }
            Param::InputResponses if member.value.is_empty_array() => {}
            Param::InputResponses => {
                // MCP 2026-07-28 basic/patterns/mrtr#error-handling [MRTR-016]
                if !answers_are_objects(member.value) {
                    self.modern_fault = Some("`inputResponses` must be an object of results");
                }
                self.input_responses = Some(member.value);
            }
            Param::RequestState => {
                self.request_state = member.value.to_written();
                if self.request_state.is_none() {
                    self.modern_fault = Some("`requestState` must be a string");
                }
            }
            other => other.check_nested(member.value)?,
        }
        Ok(())
    }

    /// Returns the subject of a request for `method`: the string in `name` or `uri`. The other
    /// member may be present, but has no meaning.
    #[must_use]
    pub fn subject(&self, method: Method) -> Option<Written<'a>> {
        match method.subject() {
            Some(SubjectKind::Tool | SubjectKind::Prompt) => self.name,
            _ => self.uri,
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
    #[must_use]
    pub fn fault_of_arguments(&self, method: Method) -> Option<&'static str> {
        let takes_some = matches!(method, Method::ToolsCall | Method::PromptsGet);
        let wrong = self.arguments.as_ref().is_some_and(|arguments| !arguments.is_object());
        (takes_some && wrong).then_some("`arguments` must be an object")
    }

    fn read_meta(
        &mut self,
        meta: JsonText<'a>,
        prefix: CachedPrefix<'_>,
    ) -> Result<(), &'static str> {
        if meta.is_empty_array() {
            return Ok(());
        }
        if !meta.is_object() {
            return Err("`_meta` must be an object");
        }
        let text = meta.as_str();
        let known = PREFIX_IS_CACHED && !prefix.text.is_empty();
        let rest = text.strip_prefix(prefix.text).filter(|_| known);
        self.prefix_matched = rest.is_some();
        let mut seen = if self.prefix_matched { prefix.seen } else { Seen::default() };
        for member in rest.map_or_else(|| meta.members(), Entries::after) {
            let Some(key) = MetaKey::parse(member.key) else { continue };
            key.once(&mut seen)?;
            if member.value == JsonText::NULL {
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
                    let version = member.value.to_written();
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
                    self.log_level = member.value.to_written().and_then(LoggingLevel::read);
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
/// Returns the errors of [`parse_envelope`](crate::envelope::parse_envelope).
// Inlined, because a frame is large to pass by value.
#[inline(always)]
pub(crate) fn parse<'f>(
    frame: &'f [u8],
    limits: ParseLimits,
    prefix: CachedPrefix<'_>,
    read: &mut Option<Read<'f>>,
) -> Result<Envelopes<'f>, Defect<'f>> {
    let mut index = MemberIndex::default();
    let parsed = parse_recording(frame, limits, prefix.text, Some(&mut index));
    if let Ok(Envelopes::Single(Envelope::Request { params: Some(params), .. })) = &parsed
        && *params != JsonText::EMPTY_OBJECT
    {
        let read = read.insert(Ok(Metadata::default()));
        if let Ok(found) = read
            && let Err(defect) = found.fill(*params, &index, prefix)
        {
            *read = Err(defect);
        }
    }
    parsed
}

fn answers_are_objects(value: JsonText<'_>) -> bool {
    value.is_object() && value.members().all(|member| member.value.is_object())
}

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

    /// Returns the level with this spelling.
    // MCP 2026-07-28 server/utilities/logging#error-handling [LOG-005]: any other is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// Returns the level that a string names.
    pub(crate) fn read(text: Written<'_>) -> Option<Self> {
        Self::ALL.into_iter().find(|level| text.is(level.as_str()))
    }
}

impl fmt::Display for LoggingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::jsonrpc::{RawJson, RequestId, resolved};

    #[test]
    fn one_pass_reads_the_known_members_and_ignores_the_rest() {
        // Rule: [META-001].
        let params = RawJson::trusted(
            r#"{"name":"echo","arguments":{"_meta":1},"_meta":{"progressToken":"t","x/y":[1],
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"},"requestState":"s\n"}"#,
        );
        let found = Metadata::read(&params).unwrap();
        assert_eq!(found.subject(Method::ToolsCall).map(resolved).as_deref(), Some("echo"));
        assert_eq!(found.progress_token.map(RequestId::from), Some(RequestId::from("t")));
        assert_eq!(found.protocol_version.map(resolved).as_deref(), Some("2026-07-28"));
        assert_eq!(found.request_state.map(resolved).as_deref(), Some("s\n"));
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
        assert_eq!(found.subject(Method::ToolsCall).map(resolved).as_deref(), Some("a"));
        assert_eq!(found.subject(Method::ResourcesRead).map(resolved).as_deref(), Some("b"));
    }

    #[test]
    fn input_responses_that_are_not_results_are_refused() {
        // Rule: [MRTR-016].
        for responses in ["7", "[7]", r#"{"user_name":12345}"#] {
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
            assert_eq!(found.progress_token.map(RequestId::from), Some(RequestId::Number(7)));
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
            assert_eq!(found.subject(Method::ToolsCall).map(resolved).as_deref(), Some("a\"}"));
            assert_eq!(found.arguments, Some(JsonText::trusted(r#"{"b":1}"#)));
            (
                found.prefix_matched,
                found.progress_token.map(RequestId::from),
                found.protocol_version.is_some(),
            )
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
        let params = JsonText::trusted(text);
        let found = Metadata::read(params).unwrap();
        for method in Method::ALL.iter().copied() {
            let value = match method.subject() {
                Some(SubjectKind::Tool | SubjectKind::Prompt) => r#""n""#,
                Some(SubjectKind::Resource) | None => r#""u""#,
                Some(SubjectKind::Task) => r#""t""#,
                Some(SubjectKind::Reference) => r#"{"name":"r"}"#,
            };
            let spans = found.spans(method);
            assert_eq!(spans.subject(params), Some(JsonText::trusted(value)), "{method}");
            let arguments = spans.arguments(params);
            assert_eq!(arguments, Some(JsonText::trusted(r#"{"name":1}"#)), "{method}");
        }
        // Absent members have no position, regardless of other members.
        let spans = Metadata::read(&RawJson::trusted("{}")).unwrap().spans(Method::ToolsCall);
        assert_eq!((spans.subject(params), spans.arguments(params)), (None, None));
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
            ("[]", false),
            ("[1]", true),
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
