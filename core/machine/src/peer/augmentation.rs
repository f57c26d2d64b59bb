//! Requests that ask for a task, at 2025-11-25.

use alloc::string::String;
use core::time::Duration;

use crate::gate::GateError;
use crate::jsonrpc::{RawJson, WriteError, close_object_with, write_integer};
use crate::protocol::{Capabilities, Capability, Method, Side};

use super::calls::{Call, Purpose, Timing};
use super::error::CommandError;

/// How a request asks for a task. Only this type names these functions, so a program links them
/// only if one of its requests asks for a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Augmentation {
    /// How long the receiver should keep the task.
    pub(super) ttl: Option<Duration>,
    pub(super) check: fn(Method, Capabilities, Side) -> Result<(), CommandError>,
    pub(super) write: Write,
    pub(super) lasts: Lasts,
}

/// Adds the task member to parameters.
type Write = fn(Option<Duration>, &RawJson<'_>) -> Result<RawJson<'static>, WriteError>;

/// Returns whether a call continues after its response.
pub(super) type Lasts = fn(&mut Call, &RawJson<'_>) -> bool;

impl Augmentation {
    pub(super) const fn new(ttl: Option<Duration>) -> Self {
        Self { ttl, check, write, lasts }
    }
}

/// Checks that the peer can run requests of this method as tasks.
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

/// Returns whether progress is expected after this response. The call then keeps its token but has
/// no deadline.
// MCP 2025-11-25 basic/utilities/progress#behavior-requirements [PROG-010]
fn lasts(call: &mut Call, result: &RawJson<'_>) -> bool {
    let lasts = call.wants_progress.is_some() && result.get_present("task").is_some();
    if lasts {
        call.purpose = Purpose::Task;
        call.timing = Timing::NEVER;
    }
    lasts
}
