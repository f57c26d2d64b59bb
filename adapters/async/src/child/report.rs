use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use mcp_sansio::Printable;

/// How a child process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitReport {
    /// Its exit status.
    pub status: ExitStatus,
    /// The last lines of its standard error.
    pub stderr_tail: Vec<String>,
    /// Whether it had to be terminated, because it did not exit when its input was closed.
    pub forced: bool,
}

impl ExitReport {
    /// Creates a report of a child that has exited.
    #[must_use]
    pub const fn new(status: ExitStatus, stderr_tail: Vec<String>, forced: bool) -> Self {
        Self { status, stderr_tail, forced }
    }
}

impl fmt::Display for ExitReport {
    /// Writes one line, or several if the child wrote to its standard error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forced = if self.forced { "was terminated" } else { "exited" };
        write!(f, "the server {forced}: {}", self.status)?;
        if !self.stderr_tail.is_empty() {
            f.write_str("; last lines of its standard error:")?;
            for line in &self.stderr_tail {
                write!(f, "\n  {}", Printable::new(line))?;
            }
        }
        Ok(())
    }
}

/// A child process could not be started. The message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the server `{program}`: {advice}")]
#[non_exhaustive]
pub struct SpawnError {
    /// The program, as named by the command.
    pub program: String,
    /// The error of the operating system.
    pub source: io::Error,
    advice: String,
}

impl SpawnError {
    /// Creates an error for a program that was to run in `directory`, or in the current directory
    /// of this process.
    #[must_use]
    pub fn new(program: &OsStr, directory: Option<&Path>, source: io::Error) -> Self {
        let advice = advise(program, directory, &source);
        Self { program: program.to_string_lossy().into_owned(), source, advice }
    }
}

fn advise(program: &OsStr, directory: Option<&Path>, source: &io::Error) -> String {
    let is_path = Path::new(program).components().count() > 1;
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let directory = directory.display();
        return format!("its working directory `{directory}` does not exist; create it");
    }
    let advice = match source.kind() {
        io::ErrorKind::NotFound if is_path => "there is no such file; check the path",
        io::ErrorKind::NotFound => {
            "it is in no directory of PATH; install it, or give its full path"
        }
        io::ErrorKind::PermissionDenied => "it may not be executed; check its permissions",
        _ => return source.to_string(),
    };
    advice.into()
}
