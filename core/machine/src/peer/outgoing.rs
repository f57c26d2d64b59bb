//! A request on its way out: how the caller wants it, and what goes into its `_meta`.

use alloc::string::String;
use core::cell::Cell;
use core::time::Duration;

use crate::Revision;
use crate::jsonrpc::{
    RawJson, RequestId, WriteError, WriteJson, close_object_with, write_integer, write_request,
    write_string,
};
use crate::protocol::LoggingLevel;

use super::augmentation::Augmentation;
use super::calls::Purpose;
use super::metadata;
use super::method_name::MethodName;
use super::outbox::{Channel, Lane, Outbox, Part, SentRequest};
use super::queue::Tag;

/// Reads a number, if it is one.
pub(super) type ReadNumber = fn(&RawJson<'_>) -> Option<f64>;

/// How one call is made: its time, its progress, its metadata.
///
/// `CallOptions::default()` takes the connection's [`Timeouts`](crate::peer::Timeouts) and asks for no progress.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions<'a> {
    // MCP 2026-07-28 basic/patterns/cancellation#timeouts [TIME-004]
    /// Without an answer and without progress for this long, the call is given up and cancelled.
    /// `None`: [`Timeouts::call`](crate::peer::Timeouts::call).
    pub timeout: Option<Duration>,
    /// The longest that the call may take altogether. `None`: [`Timeouts::call_hard`](crate::peer::Timeouts::call_hard).
    pub timeout_hard: Option<Duration>,
    /// Progress does not push the deadline back.
    pub progress_keeps_deadline: bool,
    /// How the numbers of progress notifications are read, if any are asked for: only
    /// [`progress`](Self::progress) leads to that code, so that an image has it only then.
    pub(super) progress: Option<ReadNumber>,
    /// The least level of log messages for this call, at revisions that have it per request; at
    /// others it has no effect. `None`: that of the connection.
    pub log_level: Option<LoggingLevel>,
    /// Members for `_meta`, an object. Keys that the machine writes itself are left out.
    pub meta: Option<RawJson<'a>>,
    /// Whether the call asks to be a task; only [`task`](Self::task) leads to that code. Methods
    /// outside the protocol are none.
    pub(super) task: Option<Augmentation>,
}

impl<'a> CallOptions<'a> {
    /// The same with another `timeout`.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same with another `timeout_hard`.
    #[must_use]
    pub const fn timeout_hard(mut self, timeout: Duration) -> Self {
        self.timeout_hard = Some(timeout);
        self
    }

    /// The same, asking for progress.
    #[must_use]
    pub const fn progress(mut self) -> Self {
        self.progress = Some(|number| number.decode().ok());
        self
    }

    /// Whether progress is asked for.
    #[must_use]
    pub const fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// The same with another `log_level`.
    #[must_use]
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// The same, asking for a task that is kept for `ttl`, or for as long as the other side likes:
    /// at 2025-11-25, for `tools/call` and what a server may ask a client, and where the other side
    /// declared that it runs them so. The answer is a
    /// [`CreateTaskResult`](crate::protocol::CreateTaskResult), and all else for the caller to ask
    /// for.
    ///
    /// A call that is given up is not cancelled: the task has a name for that, which its answer
    /// has. Progress, if the call asks for any, comes after the answer, until `cancel` is called
    /// with the handle of the call, which ended with its answer: then nothing else happens.
    // MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]
    // MCP 2025-11-25 basic/utilities/cancellation#behavior-requirements [CANC-009]
    #[must_use]
    pub const fn task(mut self, ttl: Option<Duration>) -> Self {
        self.task = Some(Augmentation::new(ttl));
        self
    }

    /// Whether a task is asked for.
    #[must_use]
    pub const fn wants_task(&self) -> bool {
        self.task.is_some()
    }

    /// For how long the task is to be kept, if one is asked for.
    #[cfg(feature = "recording")]
    pub(crate) fn task_ttl(&self) -> Option<Option<Duration>> {
        self.task.map(|task| task.ttl)
    }

    /// The same with members for `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: RawJson<'a>) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// The `_meta` of an outgoing request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MetaParts<'a> {
    /// What every request of the session has.
    pub(super) fixed: Option<&'a FixedMeta>,
    pub(super) log_level: Option<LoggingLevel>,
    pub(super) progress_token: Option<i64>,
    pub(super) own: Option<&'a RawJson<'a>>,
}

/// Members of the `_meta` of every modern request.
#[derive(Debug)]
pub(super) struct FixedMeta {
    /// The revision that they name.
    pub(super) revision: Revision,
    /// Their text, without braces.
    pub(super) text: String,
}

/// What is sent and why, as far as neither the caller nor the clock decides it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) method: &'a MethodName<'a>,
    pub(super) purpose: Purpose,
    pub(super) parts: MetaParts<'a>,
    /// A further round may have to send it again.
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

/// Writes a request: `_meta` first, where there is any, then the parameters.
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
            parts.write(out);
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

    /// The members, without the braces.
    fn write(&self, out: &mut String) {
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
        for member in self.own.iter().flat_map(|own| own.members()) {
            if !is_written_by_the_machine(&member.name()) {
                comma(out);
                write_string(out, &member.name());
                out.push(':');
                out.extend(member.value.as_str().chars().map(|it| match it {
                    '\n' | '\r' => ' ',
                    other => other,
                }));
            }
        }
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
