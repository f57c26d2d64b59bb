//! An outgoing request: its options and its `_meta`.

use alloc::string::String;
use core::cell::Cell;
use core::time::Duration;

use crate::Revision;
use crate::jsonrpc::{
    RawJson, RequestId, WriteError, WriteJson, close_object_with, write_integer, write_on_one_line,
    write_request, write_string,
};
use crate::protocol::LoggingLevel;

use super::augmentation::Augmentation;
use super::calls::Purpose;
use super::method_name::MethodName;
use super::outbox::{Channel, Lane, Outbox, Part, SentRequest};
use super::queue::Tag;
use crate::gate::metadata;

/// Parses a number, if the value is one.
pub(super) type ReadNumber = fn(&RawJson<'_>) -> Option<f64>;

/// Options of one call: timeouts, progress and metadata.
///
/// `CallOptions::default()` uses the connection's [`Timeouts`](crate::peer::Timeouts) and asks for
/// no progress.
///
/// ```
/// use core::time::Duration;
/// use mcp_sansio::peer::CallOptions;
///
/// let options = CallOptions::default().timeout(Duration::from_secs(30)).progress();
/// assert!(options.wants_progress());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions<'a> {
    // MCP 2026-07-28 basic/patterns/cancellation#timeouts [TIME-004]
    /// Time without a response or progress after which the call is cancelled. `None` uses
    /// [`Timeouts::call`](crate::peer::Timeouts::call).
    pub timeout: Option<Duration>,
    /// Maximum total time of the call. `None` uses
    /// [`Timeouts::call_hard`](crate::peer::Timeouts::call_hard).
    pub timeout_hard: Option<Duration>,
    /// Whether progress does not extend the deadline.
    pub progress_keeps_deadline: bool,
    /// How to parse the numbers in progress notifications, if the call asks for progress. Only
    /// [`progress`](Self::progress) references that code, so that it is linked only if used.
    pub(super) progress: Option<ReadNumber>,
    /// Minimum level of log messages for this call, at revisions that set it per request; ignored
    /// at others. `None` uses the level of the connection.
    pub log_level: Option<LoggingLevel>,
    /// Members for `_meta`, an object. Keys that the machine writes itself are skipped.
    pub meta: Option<RawJson<'a>>,
    /// Whether the call asks for a task. Only [`task`](Self::task) references that code. Ignored
    /// for methods that the protocol does not define.
    pub(super) task: Option<Augmentation>,
    /// The context of the caller, for the observer of the connection.
    pub context: Option<super::CallContext>,
}

impl<'a> CallOptions<'a> {
    /// Sets `timeout`.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets `timeout_hard`.
    #[must_use]
    pub const fn timeout_hard(mut self, timeout: Duration) -> Self {
        self.timeout_hard = Some(timeout);
        self
    }

    /// Asks for progress.
    #[must_use]
    pub const fn progress(mut self) -> Self {
        self.progress = Some(|number| number.decode().ok());
        self
    }

    /// Returns whether the call asks for progress.
    #[must_use]
    pub const fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Sets `log_level`.
    ///
    /// Deprecated by the specification in 2026-07-28, and removed in 2027-07-28 at the earliest:
    /// servers log to standard error, or with OpenTelemetry.
    #[must_use]
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Asks for a task that is kept for `ttl`, or for a time that the peer chooses. Supported at
    /// 2025-11-25 for `tools/call` and for requests from a server to a client, if the peer declared
    /// it. The response is a [`CreateTaskResult`](crate::protocol::CreateTaskResult); the caller
    /// requests everything else itself.
    ///
    /// If the call times out or is cancelled, the task is not: use the task id from the response.
    /// If the call asks for progress, progress events follow after the response until `cancel` is
    /// called with the handle of the ended call; that call has no other effect.
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
    #[must_use]
    pub const fn task(mut self, ttl: Option<Duration>) -> Self {
        self.task = Some(Augmentation::new(ttl));
        self
    }

    /// Returns whether the call asks for a task.
    #[must_use]
    pub const fn wants_task(&self) -> bool {
        self.task.is_some()
    }

    /// Returns how long the task is to be kept, if the call asks for one.
    pub(crate) fn task_ttl(&self) -> Option<Option<Duration>> {
        self.task.map(|task| task.ttl)
    }

    /// Sets the context of the caller, which the observer of the connection has captured.
    #[must_use]
    pub fn context(mut self, context: Option<super::CallContext>) -> Self {
        self.context = context;
        self
    }

    /// Sets additional members for `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: RawJson<'a>) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// The `_meta` of an outgoing request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MetaParts<'a> {
    /// The members that all requests of the session share.
    pub(super) fixed: Option<&'a FixedMeta>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) progress_token: Option<i64>,
    pub(super) own: Option<&'a RawJson<'a>>,
}

/// The `_meta` members of all modern requests.
#[derive(Debug)]
pub(super) struct FixedMeta {
    /// The revision that they contain.
    pub(super) revision: Revision,
    /// The members as text, without braces.
    pub(super) text: String,
}

/// Request fields set by the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) method: &'a MethodName<'a>,
    pub(super) purpose: Purpose,
    pub(super) parts: MetaParts<'a>,
    /// Whether a further round may send the request again.
    pub(super) repeatable: bool,
    pub(super) channel: Channel,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(method: &'a MethodName<'a>, purpose: Purpose) -> Self {
        Self {
            method,
            purpose,
            parts: MetaParts::default(),
            repeatable: false,
            channel: Channel::UNSOLICITED,
        }
    }
}

/// Writes a request: `_meta` first, if it is not empty, then the parameters.
pub(super) fn write_call(
    outbox: &mut Outbox,
    channel: Channel,
    id: i64,
    method: &MethodName<'_>,
    params: &dyn WriteJson,
    parts: MetaParts<'_>,
) -> Result<(), WriteError> {
    outbox.try_push_as(Lane::Bulk, channel, Tag::own(id), |out| {
        let start = out.len();
        let members = Cell::new(0);
        let params = |out: &mut String| {
            if parts.is_empty() {
                members.set(out.len() + 1 - start);
                return params.write_json(out);
            }
            out.push_str(r#"{"_meta":{"#);
            parts.write(out)?;
            out.push('}');
            members.set(out.len() - start);
            close_object_with(out, params)
        };
        write_request(out, &RequestId::Number(id), method.as_str(), Some(&params))?;
        Ok(Part::Request(SentRequest {
            id,
            method: method.known(),
            revision: parts.fixed.map(|fixed| fixed.revision),
            members: u32::try_from(members.get()).unwrap_or(u32::MAX),
        }))
    })
}

impl MetaParts<'_> {
    const fn is_empty(&self) -> bool {
        self.fixed.is_none()
            && self.log_level.is_none()
            && self.progress_token.is_none()
            && self.own.is_none()
    }

    /// Writes the members without braces.
    fn write(&self, out: &mut String) -> Result<(), WriteError> {
        let start = out.len();
        let comma = |out: &mut String| {
            if out.len() > start {
                out.push(',');
            }
        };
        if let Some(fixed) = self.fixed {
            out.push_str(&fixed.text);
        }
        if let Some(level) = self.log_level {
            comma(out);
            write_string(out, metadata::LOG_LEVEL);
            out.push(':');
            write_string(out, level.as_str());
        }
        if let Some(token) = self.progress_token {
            comma(out);
            write_string(out, metadata::PROGRESS_TOKEN);
            out.push(':');
            write_integer(out, token);
        }
        // MCP 2026-07-28 extensions:SEP-414#why-document-this [TRACE-003]
        for member in self.own.iter().flat_map(|own| own.members()) {
            let name = member.name();
            if !is_written_by_the_machine(&name) {
                comma(out);
                write_string(out, &name);
                out.push(':');
                write_on_one_line(out, member.value.as_str());
            }
        }
        Ok(())
    }
}

fn is_written_by_the_machine(key: &str) -> bool {
    matches!(
        key,
        metadata::PROTOCOL_VERSION
            | metadata::CLIENT_INFO
            | metadata::CLIENT_CAPABILITIES
            | metadata::LOG_LEVEL
            | metadata::PROGRESS_TOKEN
    )
}
