//! The arguments of recorded calls.

use alloc::borrow::Cow;
use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::framing::FrameError;
use crate::jsonrpc::{RawJson, WriteError, WriteJson};
use crate::peer::CallOptions;
use crate::protocol::{LoggingLevel, Method};

/// The options of a call, as a recording stores them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_hard: Option<Duration>,
    #[serde(skip_serializing_if = "is_false")]
    progress_keeps_deadline: bool,
    #[serde(skip_serializing_if = "is_false")]
    progress: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    meta: Option<RawJson<'a>>,
    /// Requests a task, with a lifetime or without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskLife>,
}

impl<'a> Options<'a> {
    pub(super) fn from_options(options: &CallOptions<'a>) -> Self {
        Self {
            timeout: options.timeout,
            timeout_hard: options.timeout_hard,
            progress_keeps_deadline: options.progress_keeps_deadline,
            progress: options.wants_progress(),
            log_level: options.log_level.map(|level| level.as_str().into()),
            meta: options.meta.clone(),
            task: options.task_ttl().map(|ttl| TaskLife { ttl }),
        }
    }

    pub(super) fn is_default(&self) -> bool {
        matches!(
            self,
            Self {
                timeout: None,
                timeout_hard: None,
                progress_keeps_deadline: false,
                progress: false,
                log_level: None,
                meta: None,
                task: None,
            }
        )
    }

    pub(crate) fn to_options(&self) -> Result<CallOptions<'_>, Unperformable> {
        let mut options = CallOptions::default();
        if self.progress {
            options = options.progress();
        }
        options.timeout = self.timeout;
        options.timeout_hard = self.timeout_hard;
        options.progress_keeps_deadline = self.progress_keeps_deadline;
        options.log_level = self.log_level.as_deref().map(level).transpose()?;
        options.meta = self.meta.as_ref().map(RawJson::borrow);
        if let Some(TaskLife { ttl }) = self.task {
            options = options.task(ttl);
        }
        Ok(options)
    }
}

/// The requested lifetime of a task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct TaskLife {
    ttl: Option<Duration>,
}

/// A framing error.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Misframed {
    TooLong { limit: usize },
    Truncated { length: usize },
}

impl From<FrameError> for Misframed {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLong { limit } => Self::TooLong { limit },
            FrameError::Truncated { length } => Self::Truncated { length },
        }
    }
}

impl From<Misframed> for FrameError {
    fn from(error: Misframed) -> Self {
        match error {
            Misframed::TooLong { limit } => Self::TooLong { limit },
            Misframed::Truncated { length } => Self::Truncated { length },
        }
    }
}

/// A line asks for something that cannot be done. The recording is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unperformable(pub(crate) &'static str);

impl From<super::payload::NotBase64> for Unperformable {
    fn from(_: super::payload::NotBase64) -> Self {
        Self("the bytes are not valid base64")
    }
}

/// The line is a call that this kind of machine does not have.
pub(crate) const MISPLACED: Unperformable =
    Unperformable("this kind of machine does not have this call");

pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The JSON of a value, or `None` if it could not be written.
impl WriteJson for Option<RawJson<'_>> {
    fn write_json(&self, out: &mut String) -> Result<(), WriteError> {
        self.as_ref().ok_or(WriteError::NotAnObject)?.write_json(out)
    }
}

pub(super) fn text(value: &(impl WriteJson + ?Sized)) -> Option<RawJson<'static>> {
    let mut out = String::new();
    value.write_json(&mut out).ok()?;
    Some(RawJson::parse(&out).ok()?.into_owned())
}

pub(crate) fn level(text: &str) -> Result<LoggingLevel, Unperformable> {
    text.parse().map_err(|_| Unperformable("the log level is unknown"))
}

pub(crate) fn method(text: &str) -> Result<Method, Unperformable> {
    Method::parse(text).ok_or(Unperformable("the method is unknown"))
}

pub(crate) fn number(text: &str) -> Result<f64, Unperformable> {
    text.parse().map_err(|_| Unperformable("the number is malformed"))
}

pub(crate) fn decoded<'a, T: Deserialize<'a>>(json: &'a RawJson<'_>) -> Result<T, Unperformable> {
    json.decode().map_err(|_| Unperformable("the value is malformed"))
}
