//! Requests of this side that ask to be tasks, at 2025-11-25.

use alloc::string::String;
use core::time::Duration;

use crate::jsonrpc::{RawJson, WriteError, close_object_with, write_integer};
use crate::protocol::{Capabilities, Capability, GateError, Method, Side};

use super::calls::{Call, Purpose, Timing};
use super::error::CommandError;

/// How a request asks to be a task. Its functions are named here alone, so that an image has them
/// only if one of its requests does so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Augmentation {
    /// For how long the task is to be kept.
    pub(super) ttl: Option<Duration>,
    pub(super) check: fn(Method, Capabilities, Side) -> Result<(), CommandError>,
    pub(super) write: Write,
    pub(super) lasts: Lasts,
}

/// Adds to parameters that a task is asked for.
type Write = fn(Option<Duration>, &RawJson<'_>) -> Result<RawJson<'static>, WriteError>;

/// Whether a call lasts beyond its answer.
pub(super) type Lasts = fn(&mut Call, &RawJson<'_>) -> bool;

impl Augmentation {
    pub(super) const fn new(ttl: Option<Duration>) -> Self {
        Self { ttl, check, write, lasts }
    }
}

/// Whether the other side runs requests of a method as tasks.
// MCP 2025-11-25 basic/utilities/tasks#capability-negotiation [TASK-002]
// MCP 2025-11-25 basic/utilities/tasks#tool-level-negotiation [TASK-003]
fn check(method: Method, declared: Capabilities, declared_by: Side) -> Result<(), CommandError> {
    let capability = match method {
        Method::ToolsCall => Capability::TasksToolsCall,
        Method::SamplingCreateMessage => Capability::TasksSampling,
        Method::ElicitationCreate => Capability::TasksElicitation,
        other => return Err(CommandError::OutOfPlace(other)),
    };
    if declared.contains(capability) {
        Ok(())
    } else {
        Err(GateError::NotDeclared { method, declared_by, capability }.into())
    }
}

/// Writes parameters that ask for a task.
// MCP 2025-11-25 basic/utilities/tasks#creating-tasks [TASK-001]
fn write(ttl: Option<Duration>, params: &RawJson<'_>) -> Result<RawJson<'static>, WriteError> {
    let mut out = String::from(r#"{"task":{"#);
    if let Some(ttl) = ttl {
        out.push_str(r#""ttl":"#);
        write_integer(&mut out, i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
    }
    out.push('}');
    close_object_with(&mut out, params)?;
    Ok(RawJson::trusted_shared(out.into()))
}

/// Whether progress is to be expected after this answer; then the call keeps its token, and no
/// deadline.
// MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
fn lasts(call: &mut Call, result: &RawJson<'_>) -> bool {
    let lasts = call.wants_progress.is_some() && result.get("task").is_some();
    if lasts {
        call.purpose = Purpose::Task;
        call.timing = Timing::NEVER;
    }
    lasts
}
