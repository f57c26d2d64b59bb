//! The parameter members that the protocol defines. None may be repeated: JSON does not say which
//! of two values counts, so two readers could interpret a message differently.

use crate::envelope::{JsonText, Written};

/// The names in a set of members, as the error messages for repeated ones. The names are parsed
/// from the messages, so that a program contains each name once.
struct Names {
    /// The messages, one after the other.
    messages: &'static str,
    /// The length of each name.
    lengths: &'static [u8],
    /// The length of a message before the name.
    before: usize,
}

impl Names {
    /// The text before the name of a repeated member.
    const BEFORE: &str = "`";
    const AFTER: &str = "` is repeated";
    /// The length of the longest name.
    const LENGTH_MAX: usize = 64;

    /// Returns the index of `name` in the set.
    #[inline]
    fn find(&self, name: &str) -> Option<usize> {
        let (messages, mut start) = (self.messages.as_bytes(), self.before);
        self.lengths.iter().position(|length| {
            let length = usize::from(*length);
            let found = length == name.len()
                && messages.get(start..start + length) == Some(name.as_bytes());
            start += length + Self::AFTER.len() + self.before;
            found
        })
    }

    /// Returns the index of a key in the set.
    #[inline]
    fn find_written(&self, key: Written<'_>) -> Option<usize> {
        // Keys that do not fit are longer than every name.
        self.find(key.resolve_in(&mut [0; Self::LENGTH_MAX])?)
    }

    /// Returns the error message for the name at `index`.
    #[cold]
    fn message(&self, index: usize) -> &'static str {
        let around = self.before + Self::AFTER.len();
        let mut rest = self.messages;
        for length in self.lengths.iter().take(index) {
            rest = rest.get(usize::from(*length) + around..).unwrap_or_default();
        }
        let length = self.lengths.get(index).map_or(0, |length| usize::from(*length) + around);
        rest.get(..length).unwrap_or_default()
    }
}

/// Defines an enum of member names.
macro_rules! names {
    ($(#[$doc:meta])* $set:ident { $($variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $set { $($variant),+ }

        // Each variant has a bit in [`Seen`].
        const _: () = assert!([$($name),+].len() <= u64::BITS as usize);
        $(const _: () = assert!($name.len() <= Names::LENGTH_MAX);)+

        impl $set {
            const ALL: &[Self] = &[$(Self::$variant),+];
            const NAMES: Names = Names {
                messages: concat!($("`", $name, "` is repeated"),+),
                lengths: &[$($name.len() as u8),+],
                before: Names::BEFORE.len(),
            };

            /// Returns the names of all members.
            #[cfg(test)]
            pub(crate) fn names() -> impl Iterator<Item = &'static str> {
                [$($name),+].into_iter()
            }

            /// Returns the member with this key.
            #[inline]
            pub(crate) fn parse(key: Written<'_>) -> Option<Self> {
                Self::ALL.get(Self::NAMES.find_written(key)?).copied()
            }

            /// Records that the object has the member.
            ///
            /// Returns an error if the member was recorded before.
            #[inline]
            pub(crate) fn once(self, seen: &mut Seen) -> Result<(), &'static str> {
                if seen.insert(self as usize) {
                    Ok(())
                } else {
                    Err(Self::NAMES.message(self as usize))
                }
            }
        }
    };
}

names! {
    /// A parameter member in a request or notification: of any method, revision and
    /// direction, including the tasks extension.
    ///
    /// One list serves all methods. An intermediary may look for a `name` without knowing the
    /// method, and no peer has a reason to repeat a member that its method does not define.
    // Names are compared in order, so the most frequent ones come first.
    Param {
        Meta = "_meta",
        Name = "name",
        Arguments = "arguments",
        Uri = "uri",
        ProgressToken = "progressToken",
        Progress = "progress",
        Total = "total",
        Message = "message",
        Cursor = "cursor",
        TaskId = "taskId",
        Task = "task",
        InputResponses = "inputResponses",
        RequestState = "requestState",
        Ref = "ref",
        Argument = "argument",
        Context = "context",
        Level = "level",
        Notifications = "notifications",
        RequestId = "requestId",
        Reason = "reason",
        ProtocolVersion = "protocolVersion",
        Capabilities = "capabilities",
        ClientInfo = "clientInfo",
        Logger = "logger",
        Data = "data",
        Messages = "messages",
        ModelPreferences = "modelPreferences",
        SystemPrompt = "systemPrompt",
        IncludeContext = "includeContext",
        Temperature = "temperature",
        MaxTokens = "maxTokens",
        StopSequences = "stopSequences",
        Metadata = "metadata",
        Tools = "tools",
        ToolChoice = "toolChoice",
        Mode = "mode",
        RequestedSchema = "requestedSchema",
        ElicitationId = "elicitationId",
        Url = "url",
        Status = "status",
        StatusMessage = "statusMessage",
        CreatedAt = "createdAt",
        LastUpdatedAt = "lastUpdatedAt",
        Ttl = "ttl",
        PollInterval = "pollInterval",
        TtlMs = "ttlMs",
        PollIntervalMs = "pollIntervalMs",
        InputRequests = "inputRequests",
        Result = "result",
        Error = "error",
    }
}

names! {
    /// A member of `_meta` that the protocol defines.
    MetaKey {
        ProgressToken = "progressToken",
        ProtocolVersion = "io.modelcontextprotocol/protocolVersion",
        ClientInfo = "io.modelcontextprotocol/clientInfo",
        ClientCapabilities = "io.modelcontextprotocol/clientCapabilities",
        LogLevel = "io.modelcontextprotocol/logLevel",
        SubscriptionId = "io.modelcontextprotocol/subscriptionId",
        ServerInfo = "io.modelcontextprotocol/serverInfo",
        RelatedTask = "io.modelcontextprotocol/related-task",
        ModelImmediateResponse = "io.modelcontextprotocol/model-immediate-response",
        Traceparent = "traceparent",
        Tracestate = "tracestate",
        Baggage = "baggage",
    }
}

/// The set of members seen in one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen(u64);

impl Seen {
    /// Adds a member and returns whether it is new.
    #[inline]
    const fn insert(&mut self, index: usize) -> bool {
        let bit = 1 << index;
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new
    }
}

macro_rules! nested {
    ($object:literal: $($name:literal),+) => {{
        const NAMES: &Names = &Names {
            messages: concat!($("`", $object, ".", $name, "` is repeated"),+),
            lengths: &[$($name.len() as u8),+],
            before: concat!("`", $object, ".").len(),
        };
        Some(NAMES)
    }};
}

impl Param {
    /// Returns the names in the object of this member. Decoders also refuse repeats, but not every
    /// reader decodes the whole object, and members with a single valid value are not always
    /// decoded.
    const fn nested(self) -> Option<&'static Names> {
        match self {
            Self::Ref => nested!("ref": "type", "name", "uri", "title"),
            Self::Argument => nested!("argument": "name", "value"),
            Self::Context => nested!("context": "arguments"),
            Self::Task => nested!("task": "ttl"),
            Self::Capabilities => nested!(
                "capabilities": "experimental", "roots", "sampling", "elicitation", "tasks",
                "extensions"
            ),
            Self::ClientInfo => nested!(
                "clientInfo": "name", "version", "title", "description", "websiteUrl", "icons"
            ),
            Self::RequestedSchema => {
                nested!("requestedSchema": "type", "properties", "required", "$schema")
            }
            Self::ModelPreferences => nested!(
                "modelPreferences": "hints", "costPriority", "speedPriority", "intelligencePriority"
            ),
            Self::ToolChoice => nested!("toolChoice": "mode"),
            Self::Notifications => nested!(
                "notifications": "toolsListChanged", "promptsListChanged", "resourcesListChanged",
                "resourceSubscriptions", "taskIds"
            ),
            _ => None,
        }
    }

    /// Checks for repeated members in the object value of this member.
    pub(crate) fn check_nested(self, value: JsonText<'_>) -> Result<(), &'static str> {
        let Some(names) = self.nested() else { return Ok(()) };
        let mut seen = Seen::default();
        for member in value.members() {
            if let Some(index) = names.find_written(member.key)
                && !seen.insert(index)
            {
                return Err(names.message(index));
            }
        }
        Ok(())
    }
}

/// Checks for repeated members in the parameters of a message, an object.
///
/// # Errors
///
/// Names the first member that is repeated and that the protocol defines.
pub fn check_repeats(params: JsonText<'_>) -> Result<(), &'static str> {
    let mut seen = Seen::default();
    for member in params.members() {
        let Some(param) = Param::parse(member.key) else { continue };
        param.once(&mut seen)?;
        if param == Param::Meta {
            check_meta(member.value)?;
        } else {
            param.check_nested(member.value)?;
        }
    }
    Ok(())
}

/// Like [`check_repeats`], for a `_meta` object.
pub(crate) fn check_meta(meta: JsonText<'_>) -> Result<(), &'static str> {
    let mut seen = Seen::default();
    for member in meta.members() {
        if let Some(key) = MetaKey::parse(member.key) {
            key.once(&mut seen)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(params: &str) -> Option<&'static str> {
        check_repeats(JsonText::trusted(params)).err()
    }

    #[test]
    fn a_repeat_is_found_at_each_level_and_in_each_spelling() {
        for (params, found) in [
            (r#"{"name":"a","name":"a"}"#, "`name` is repeated"),
            (r#"{"uri":1,"x":{},"u\u0072i":null}"#, "`uri` is repeated"),
            (r#"{"_meta":{},"_meta":1}"#, "`_meta` is repeated"),
            (r#"{"_meta":{"progressToken":1,"progressToken":1}}"#, "`progressToken` is repeated"),
            (r#"{"ref":{"type":"a","name":"b","typ\u0065":1}}"#, "`ref.type` is repeated"),
            (r#"{"task":{"ttl":1,"ttl":1}}"#, "`task.ttl` is repeated"),
        ] {
            assert_eq!(fault(params), Some(found), "{params}");
        }
    }

    #[test]
    fn each_message_is_for_the_name_at_its_place() {
        let nested = Param::ALL.iter().filter_map(|param| param.nested());
        for names in nested.chain([&Param::NAMES, &MetaKey::NAMES]) {
            for index in 0..names.lengths.len() {
                let message = names.message(index);
                let name = message.get(names.before..).and_then(|it| it.strip_suffix(Names::AFTER));
                assert_eq!(name.and_then(|name| names.find(name)), Some(index), "{message}");
            }
            assert_eq!(names.find("other"), None);
        }
    }

    #[test]
    fn unknown_members_may_be_repeated() {
        for params in [
            r#"{"x":1,"x":2,"name":"a"}"#,
            r#"{"name":"a","arguments":{"name":1,"name":2}}"#,
            r#"{"_meta":{"a/b":1,"a/b":2}}"#,
            r#"{"ref":{"x":1,"x":1}}"#,
            r#"{"ref":[1,1],"argument":"name"}"#,
            "{}",
        ] {
            assert_eq!(fault(params), None, "{params}");
        }
    }
}
