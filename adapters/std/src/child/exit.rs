use std::fmt;
use std::process::ExitStatus;

/// How a child has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitReport {
    /// Its exit code, or the signal that has ended it.
    pub status: ExitStatus,
    /// The last lines of its standard error, without line ends; see
    /// [`ChildOptions::stderr_lines_max`](super::ChildOptions::stderr_lines_max).
    // MCP 2025-11-25 basic/transports#stdio [STDIO-006]: they say nothing about success.
    pub stderr_tail: Vec<String>,
    /// What it took to end it; `None` if it has exited by itself.
    pub forced: Option<Force>,
}

/// What was done to a child that did not exit by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Force {
    /// It was asked to exit, with SIGTERM.
    Terminated,
    /// It was ended without being asked, with SIGKILL or what the system has instead.
    Killed,
}

/// One line with the status, then the last lines of the standard error, indented.
impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.forced {
            None => "",
            Some(Force::Terminated) => " after it was asked to exit",
            Some(Force::Killed) => ": it did not exit, so it was killed",
        };
        write!(f, "the server ended with {}{how}", self.status)?;
        if !self.stderr_tail.is_empty() {
            write!(f, "; it said last:")?;
        }
        self.stderr_tail.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}
