use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{Command, ExitStatus};
use std::task::{Context, Poll};
use std::{env, fmt, io};

use mcp_sansio::Printable;
use mcp_sansio::peer::CloseReason;
use mcp_sansio_handlers::Client;
use mcp_sansio_handlers::endpoint::Endpoint;

use crate::{ByteStream, Driver, Runtime, Timer};

/// A child process of a runtime.
pub trait Process: fmt::Debug + Send + Sized + 'static {
    /// The runtime that manages the process.
    type Runtime: Runtime;

    /// The command that starts the process.
    type Command: Send + 'static;

    /// Its standard output and input. [`ByteStream::poll_close`] closes the pipe of the input.
    type Stream: ByteStream + Send + Unpin + 'static;

    /// Its standard error.
    type Stderr: Send + 'static;

    /// Starts a command with pipes for its three standard streams; on Unix in its own process
    /// group. It may be called more than once. Returns the process, which is killed when the value
    /// is dropped, its standard output and input, and its standard error.
    ///
    /// # Errors
    ///
    /// The process did not start.
    ///
    /// # Panics
    ///
    /// Where [`Runtime::current`] does.
    fn start(command: &mut Self::Command)
    -> Result<(Self, Self::Stream, Self::Stderr), SpawnError>;

    /// Returns the process id, or `None` once the process has been waited for.
    fn id(&self) -> Option<u32>;

    /// Returns the handle of the process, or `None` once the process has been waited for.
    #[cfg(windows)]
    fn raw_handle(&self) -> Option<std::os::windows::io::RawHandle>;

    /// Waits until the process has exited, and returns its status. It can be called again.
    /// Cancel-safe.
    fn wait(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + Send;

    /// Kills the process, unless it has exited.
    fn kill(&mut self);

    /// Reads from the standard error of the process, as [`ByteStream::poll_read`] does.
    ///
    /// # Errors
    ///
    /// The standard error is broken. It is not read from again.
    fn poll_stderr(
        stderr: &mut Self::Stderr,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>>;

    /// Writes to the standard error of this process, without blocking the thread. Errors are
    /// ignored.
    fn forward(text: String) -> impl Future<Output = ()> + Send;
}

// ------------------------------------------------------------------ command

/// Creates the command of a server from its program, arguments, additional environment variables
/// and working directory.
///
/// On Windows, a program without an extension may be a batch file, such as `npx.cmd` in a directory
/// of `PATH`, or `node_modules/.bin/server.cmd`. Shells find it by its name; [`Command::new`] finds
/// only `npx.exe`.
#[must_use]
pub fn command(
    program: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    directory: Option<&str>,
) -> Command {
    let own = env.iter().find(|(name, _)| name.eq_ignore_ascii_case("PATH"));
    let file =
        batch_file(program.as_ref(), own.map(|(_, path)| path.into()), directory.map(Path::new));
    let mut command = Command::new(file.unwrap_or_else(|| program.into()));
    command.args(args).envs(env);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    command
}

/// Returns the batch file that a shell of Windows would run in a directory. The process to start may
/// have a `PATH` of its own.
fn batch_file(name: &Path, own: Option<OsString>, directory: Option<&Path>) -> Option<PathBuf> {
    let paths = own.into_iter().chain(env::var_os("PATH"));
    if cfg!(windows) { find_batch_file(name, paths, directory) } else { None }
}

fn find_batch_file(
    name: &Path,
    paths: impl Iterator<Item = OsString>,
    directory: Option<&Path>,
) -> Option<PathBuf> {
    if name.extension().is_some() {
        return None;
    }
    let directories = if name.components().count() == 1 {
        let in_path = paths.flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
        in_path.filter(|it| !it.as_os_str().is_empty()).collect()
    } else {
        // A path, which is not searched for.
        vec![std::path::absolute(directory.unwrap_or_else(|| Path::new("."))).ok()?]
    };
    let mut files = directories.into_iter().flat_map(|directory| {
        ["exe", "bat", "cmd"].map(|extension| directory.join(name).with_extension(extension))
    });
    // The system runs a program.
    files.find(|file| file.is_file()).filter(|file| file.extension() != Some("exe".as_ref()))
}

// ------------------------------------------------------------------ report

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
    let file = directory.unwrap_or_else(|| Path::new("")).join(program);
    if source.kind() == io::ErrorKind::NotFound && is_path && file.is_file() {
        return advise_on_interpreter(&file);
    }
    if source.kind() == io::ErrorKind::NotFound
        && let Some(file) = batch_file(program.as_ref(), None, directory)
    {
        let file = file.display();
        return format!("it is the batch file `{file}`; name it with its extension");
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

/// Explains why a program is not found whose file exists: its interpreter does not.
fn advise_on_interpreter(file: &Path) -> String {
    match interpreter(file).filter(|interpreter| !Path::new(interpreter).exists()) {
        Some(interpreter) => format!(
            "its first line names the interpreter `{}`, which does not exist; install it, or \
             correct the line",
            Printable::new(&interpreter)
        ),
        None => "the file exists, but the loader or interpreter that it needs does not; it may be \
                 made for another system"
            .into(),
    }
}

/// Returns the interpreter of a script.
fn interpreter(file: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(file).ok()?.take(FIRST_LINE_MAX).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start);
    // The carriage return of a line end of Windows belongs to the name.
    let line = start.strip_prefix("#!")?.split('\n').next()?;
    line.trim_start().split([' ', '\t']).next().map(Into::into)
}

/// The maximum length of the first line of a script, as on Linux.
const FIRST_LINE_MAX: u64 = 256;

// ------------------------------------------------------------------ open

/// Progress of a connection to a child process.
#[derive(Debug)]
pub(crate) enum OpenOutcome {
    /// The connection is open. Keep polling the driver.
    Open,
    /// The child exited on the era probe, and the connection needs a new one: see
    /// [`Driver::wants_stream`].
    WantsStream,
    /// The connection closed before it was open.
    Closed(CloseReason),
}

/// Drives a connection until it is open, or can no longer be opened on this stream. Cancel-safe.
pub(crate) async fn open<E, S, T>(client: &Client, driver: &mut Driver<E, S, T>) -> OpenOutcome
where
    E: Endpoint,
    S: ByteStream,
    T: Timer,
{
    let mut opened = pin!(client.opened());
    let mut has_ended = false;
    poll_fn(|cx| {
        // Poll the driver first: its progress completes the other future.
        if !has_ended && Pin::new(&mut *driver).poll(cx).is_ready() {
            if driver.wants_stream() {
                return Poll::Ready(OpenOutcome::WantsStream);
            }
            has_ended = true;
        }
        opened.as_mut().poll(cx).map(|opened| match opened {
            Ok(_) => OpenOutcome::Open,
            Err(reason) => OpenOutcome::Closed(reason),
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_file_is_found_by_its_name_unless_a_program_precedes_it() {
        let root = env::temp_dir().join(format!("mcp-batch-files-{}", std::process::id()));
        let (first, second) = (root.join("first"), root.join("second"));
        for (directory, files) in [
            (&first, ["npx", "npx.cmd", "node.exe"]),
            (&second, ["npx.exe", "uvx.bat", "node.cmd"]),
        ] {
            std::fs::create_dir_all(directory).unwrap();
            for file in files {
                File::create(directory.join(file)).unwrap();
            }
        }
        let paths = [OsString::new(), first.clone().into(), second.clone().into()];
        for (name, expected) in [
            ("npx", Some(first.join("npx.cmd"))),
            ("uvx", Some(second.join("uvx.bat"))),
            ("node", None),
            ("npx.cmd", None),
            ("deno", None),
        ] {
            let paths = paths.iter().cloned();
            assert_eq!(find_batch_file(Path::new(name), paths, None), expected, "{name}");
        }
        // A path, such as `node_modules/.bin/server`, is not searched for.
        for (name, expected) in
            [("npx", Some("npx.cmd")), ("node", None), ("npx.cmd", None), ("uvx", None)]
        {
            let expected = expected.map(|it| first.join(it));
            let found = find_batch_file(&first.join(name), paths.iter().cloned(), None);
            assert_eq!(found, expected, "{name}");
            let (inside, paths) = (Path::new("first").join(name), paths.iter().cloned());
            assert_eq!(find_batch_file(&inside, paths, Some(&root)), expected, "{name}");
        }
        // Other systems run the program beside it.
        let named = command(first.join("npx").to_str().unwrap(), &[], &BTreeMap::new(), None);
        let expected = first.join(if cfg!(windows) { "npx.cmd" } else { "npx" });
        assert_eq!(named.get_program(), expected.as_os_str());
        std::fs::remove_dir_all(root).unwrap();
    }
}
