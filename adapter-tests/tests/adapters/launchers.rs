//! Servers behind launchers, and the processes that remain after them, on each adapter with child
//! processes.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

use std::future::Future;
use std::process::Command;
use std::time::{Duration, Instant};

use adapter_tests::{Pinger, block_on_async_std, block_on_smol};
use mcp_sansio_async::child::{ExitReport, GracePeriods};
use mcp_sansio_async::{ByteStream, Driver};
use mcp_sansio_handlers::Host;

/// More than an event takes on a machine with many other processes; `sleep` in a script is longer.
const LOADED_MACHINE: Duration = Duration::from_secs(60);

/// The child servers of an adapter, and how it drives them.
trait Adapter: Sized {
    type Stream: ByteStream + Send + 'static;

    fn spawn(command: Command) -> (Self, Self::Stream);
    fn stderr_tail(&self) -> Vec<String>;
    fn wait(&mut self) -> impl Future<Output = ExitReport>;
    fn shutdown(self, grace_periods: GracePeriods) -> impl Future<Output = ExitReport>;
    /// Reads frames until the stream ends, and returns their number.
    fn count_frames(stream: Self::Stream) -> impl Future<Output = usize>;
    fn pause() -> impl Future<Output = ()>;
    /// Returns the error of a connection that does not open.
    fn refused(command: Command) -> impl Future<Output = String>;
}

macro_rules! asynchronous {
    ($name:ident, $adapter:ident, $pause:path) => {
        struct $name($adapter::ChildServer);

        impl Adapter for $name {
            type Stream = $adapter::runtime::ChildStream;

            fn spawn(command: Command) -> (Self, Self::Stream) {
                let (child, stream) = $adapter::ChildServer::spawn(command).unwrap();
                (Self(child), stream)
            }

            fn stderr_tail(&self) -> Vec<String> {
                self.0.stderr_tail()
            }

            async fn wait(&mut self) -> ExitReport {
                self.0.wait().await.unwrap()
            }

            async fn shutdown(self, grace_periods: GracePeriods) -> ExitReport {
                self.0.shutdown(grace_periods).await.unwrap()
            }

            async fn count_frames(stream: Self::Stream) -> usize {
                let mut driver = $adapter::drive(Pinger::new(Vec::new(), usize::MAX), stream);
                (&mut driver).await.unwrap();
                driver.endpoint().received
            }

            async fn pause() {
                $pause(Duration::from_millis(5)).await;
            }

            async fn refused(command: Command) -> String {
                $adapter::spawn(command, &Host::new("host", "1")).await.unwrap_err().to_string()
            }
        }
    };
}

asynchronous!(OnTokio, mcp_sansio_tokio, tokio::time::sleep);
asynchronous!(OnAsyncStd, mcp_sansio_async_std, smol::Timer::after);

struct OnThreads(mcp_sansio_std::ChildServer);

impl Adapter for OnThreads {
    type Stream = mcp_sansio_std::runtime::ChildStream;

    fn spawn(command: Command) -> (Self, Self::Stream) {
        let (child, stream) = mcp_sansio_std::ChildServer::spawn(command).unwrap();
        (Self(child), stream)
    }

    fn stderr_tail(&self) -> Vec<String> {
        self.0.stderr_tail()
    }

    async fn wait(&mut self) -> ExitReport {
        mcp_sansio_std::block_on(self.0.wait()).unwrap()
    }

    async fn shutdown(self, grace_periods: GracePeriods) -> ExitReport {
        mcp_sansio_std::block_on(self.0.shutdown(grace_periods)).unwrap()
    }

    async fn count_frames(stream: Self::Stream) -> usize {
        let pinger = Pinger::new(Vec::new(), usize::MAX);
        mcp_sansio_std::block_on(async {
            let mut driver = Driver::new(pinger, stream, mcp_sansio_std::Clock::new());
            (&mut driver).await.unwrap();
            driver.endpoint().received
        })
    }

    async fn pause() {
        std::thread::sleep(Duration::from_millis(5));
    }

    async fn refused(command: Command) -> String {
        mcp_sansio_std::spawn(command, &Host::new("host", "1")).unwrap_err().to_string()
    }
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn grace_periods(end_of_input: Duration, terminate: Duration) -> GracePeriods {
    let mut grace_periods = GracePeriods::default();
    (grace_periods.end_of_input, grace_periods.terminate) = (end_of_input, terminate);
    grace_periods
}

fn short() -> GracePeriods {
    grace_periods(Duration::from_millis(300), Duration::from_millis(300))
}

fn long() -> GracePeriods {
    grace_periods(LOADED_MACHINE, LOADED_MACHINE)
}

fn is_running(id: u32) -> bool {
    // A zombie that has not been reaped yet is not running.
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits for the process id that a script prints as the first line of its standard error.
async fn printed_id<A: Adapter>(child: &A) -> u32 {
    loop {
        if let Some(id) = child.stderr_tail().first().and_then(|line| line.parse().ok()) {
            return id;
        }
        A::pause().await;
    }
}

async fn gone<A: Adapter>(id: u32) {
    let start = Instant::now();
    while is_running(id) {
        assert!(start.elapsed() < LOADED_MACHINE, "still running");
        A::pause().await;
    }
}

/// A server whose launcher ends before it, for each way in which that happens.
async fn ends_with_its_launcher<A: Adapter>() {
    let lingering = "while :; do sleep 0.05; done";
    for (script, code) in [
        // The launcher ends with its input, and the server notices neither.
        ("sleep 1000 & echo $! >&2; cat >/dev/null".to_owned(), Some(0)),
        // Nothing is left that a pipe would tell about the server.
        ("sleep 1000 >/dev/null 2>&1 & echo $! >&2; cat >/dev/null".to_owned(), Some(0)),
        // The server ignores the signal that ends its launcher.
        (format!("(trap '' TERM; {lingering}) & echo $! >&2; wait"), None),
        (format!("(trap '' TERM; {lingering}) & echo $! >&2; cat >/dev/null"), Some(0)),
    ] {
        let (child, stream) = A::spawn(shell(&script));
        let id = printed_id(&child).await;
        assert!(is_running(id), "{script}");
        drop(stream);
        let report = child.shutdown(short()).await;
        assert_eq!(report.status.code(), code, "{script}: {report}");
        gone::<A>(id).await;
    }
}

/// A server that saves its state on `SIGTERM`, behind a launcher that ends before it, and whose
/// standard error is not that of the launcher.
async fn has_time_to_end<A: Adapter>() {
    let server = "file=$(mktemp); (trap 'sleep 0.3; echo saved >$file; exit' TERM; echo $file >&2; \
                  exec >/dev/null 2>&1; while :; do sleep 0.05; done) &";
    for (launcher, is_shut_down) in
        [("wait", true), ("cat >/dev/null", true), ("cat >/dev/null", false)]
    {
        let (mut child, stream) = A::spawn(shell(&format!("{server} {launcher}")));
        while child.stderr_tail().is_empty() {
            A::pause().await;
        }
        drop(stream);
        let report = if is_shut_down {
            child.shutdown(grace_periods(Duration::from_millis(100), LOADED_MACHINE)).await
        } else {
            child.wait().await
        };
        let file = &report.stderr_tail[0];
        assert_eq!(std::fs::read_to_string(file).unwrap(), "saved\n", "{launcher}: {report}");
        std::fs::remove_file(file).unwrap();
    }
}

/// A launcher that ends without having been asked to.
async fn ends_after_its_launcher_failed<A: Adapter>() {
    for left in ["sleep 1000", "sleep 1000 2>/dev/null", "(trap '' TERM; sleep 1000; sleep 1000)"] {
        let (mut child, stream) = A::spawn(shell(&format!("{left} & echo $! >&2; exit 3")));
        let start = Instant::now();
        // The server holds the pipe, but cannot be relied on without its launcher.
        assert_eq!(A::count_frames(stream).await, 0);
        let report = child.wait().await;
        assert_eq!((report.status.code(), report.forced), (Some(3), false), "{left}");
        assert!(start.elapsed() < LOADED_MACHINE, "{left}");
        gone::<A>(report.stderr_tail[0].parse().unwrap()).await;
    }
}

/// A process that has left the group on purpose may hold the pipes: it is not waited for, and lives.
async fn is_not_held_up_by_a_daemon<A: Adapter>() {
    let frame = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    // More than fits into a pipe, so that it is read while the server runs, and some afterwards.
    let frames = format!("yes '{frame}' | head -n 4000");
    let script = format!("setsid sleep 1000 & echo $! >&2; sleep 0.2; {frames}; exit 3");
    let (mut child, stream) = A::spawn(shell(&script));
    let start = Instant::now();
    assert_eq!(A::count_frames(stream).await, 4000);
    let report = child.wait().await;
    assert_eq!(report.status.code(), Some(3));
    let daemon: u32 = report.stderr_tail[0].parse().unwrap();
    assert!(is_running(daemon));
    Command::new("kill").arg(daemon.to_string()).status().unwrap();

    let script = "setsid sleep 1000 & echo $! >&2; cat >/dev/null";
    let (child, stream) = A::spawn(shell(script));
    let daemon = printed_id(&child).await;
    drop(stream);
    let report = child.shutdown(long()).await;
    assert!(report.status.success() && !report.forced, "{report}");
    assert!(start.elapsed() < LOADED_MACHINE && is_running(daemon));
    Command::new("kill").arg(daemon.to_string()).status().unwrap();
}

/// A server that writes much before it exits, to a client that has ended the connection.
async fn can_write_to_the_end<A: Adapter>() {
    let script = "cat >/dev/null; yes | head -c 300000 && echo complete >&2";
    let (child, stream) = A::spawn(shell(script));
    drop(stream);
    let report = child.shutdown(long()).await;
    assert!(report.status.success() && !report.forced, "{report}");
    assert_eq!(report.stderr_tail, ["complete"]);
}

async fn explains_its_exit<A: Adapter>() {
    let script = "setsid sleep 5 & echo 'no such option' >&2; exit 2";
    let message = A::refused(shell(script)).await;
    assert!(message.starts_with("the server exited: exit status: 2"), "{message}");
    assert!(message.ends_with("standard error: no such option"), "{message}");
}

macro_rules! on_each_adapter {
    ($($test:ident: $scenario:ident,)*) => {
        mod on_tokio {
            use super::*;
            $(
                #[tokio::test]
                async fn $test() {
                    $scenario::<OnTokio>().await;
                }
            )*
        }

        mod on_smol {
            use super::*;
            $(
                #[test]
                fn $test() {
                    block_on_smol($scenario::<OnAsyncStd>());
                }
            )*
        }

        mod on_async_std {
            use super::*;
            $(
                #[test]
                fn $test() {
                    block_on_async_std($scenario::<OnAsyncStd>());
                }
            )*
        }

        mod on_threads {
            use super::*;
            $(
                #[test]
                fn $test() {
                    block_on_smol($scenario::<OnThreads>());
                }
            )*
        }
    };
}

on_each_adapter! {
    a_server_ends_with_its_launcher: ends_with_its_launcher,
    a_server_has_time_to_end_after_its_launcher: has_time_to_end,
    a_server_ends_after_its_launcher_failed: ends_after_its_launcher_failed,
    the_end_of_a_server_does_not_wait_for_a_daemon: is_not_held_up_by_a_daemon,
    a_server_can_write_until_it_exits: can_write_to_the_end,
    the_exit_of_a_server_is_the_reason_of_the_failure: explains_its_exit,
}
