//! Servers of older revisions, started by the client, that do not answer the era probe.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "real processes take real time")]

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use adapter_tests::block_on_smol;
use mcp_sansio::Era;
use mcp_sansio::peer::Timeouts;
use mcp_sansio_handlers::{Host, NoArguments};
use mcp_sansio_std::Wait as _;

/// The reaction of a server to an unknown method.
#[derive(Clone, Copy)]
enum Unknown {
    Exits,
    AnswersAndExits,
    IsSilent,
}

/// A 2025-06-18 server written in shell, which appends a line to a file each time it starts.
struct Legacy {
    folder: PathBuf,
    unknown: Unknown,
}

impl Legacy {
    fn new(name: &str, unknown: Unknown) -> Self {
        let folder = std::env::temp_dir().join(format!("mcp-eras-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder, unknown }
    }

    fn command(&self) -> Command {
        let unknown = match self.unknown {
            Unknown::Exits => "echo 'initialize first' >&2; exit 3",
            Unknown::AnswersAndExits => r#"answer error '{"code":-32600,"message":"no"}'; exit 3"#,
            Unknown::IsSilent => ":",
        };
        let script = r#"
            echo started >>"$0"
            answer() {
                id=${line#*\"id\":}
                printf '{"jsonrpc":"2.0","id":%s,"%s":%s}\n' "${id%%[,\}]*}" "$1" "$2"
            }
            session='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
                "serverInfo":{"name":"old","version":"1"}}'
            session=$(printf %s "$session" | tr -d '\n')
            while read -r line; do
                case $line in
                *'"method":"initialize"'*) answer result "$session" ;;
                *'"method":"tools/call"'*)
                    answer result '{"content":[{"type":"text","text":"called"}]}' ;;
                *'"method":"notifications/'*) ;;
                *) UNKNOWN ;;
                esac
            done"#;
        let mut command = Command::new("sh");
        command.arg("-c").arg(script.replace("UNKNOWN", unknown)).arg(self.folder.join("log"));
        command
    }

    /// Returns how often the server was started.
    fn starts(&self) -> usize {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default().lines().count()
    }
}

impl Drop for Legacy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn host() -> Host {
    Host::new("host", "1")
}

/// Returns a program that never acts as a server.
fn broken(legacy: &Legacy) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "echo started >>\"$0\"; echo 'no such option' >&2; exit 2"]);
    command.arg(legacy.folder.join("log"));
    command
}

mod on_tokio {
    use mcp_sansio_tokio::{Error, spawn};

    use super::*;

    #[tokio::test]
    async fn a_server_that_exits_on_the_probe_is_started_again_without_one() {
        // Rule: [VER-022] [VER-023].
        for unknown in [Unknown::Exits, Unknown::AnswersAndExits] {
            let server = Legacy::new("tokio", unknown);
            let client = spawn(server.command(), &host()).await.unwrap();
            assert_eq!((client.era(), server.starts()), (Some(Era::Legacy), 2));
            let result = client.call_tool("any", &NoArguments {}).await.unwrap();
            assert_eq!(result.content[0].as_text(), Some("called"));
            let era = client.era().unwrap();
            client.shutdown().await.unwrap();
            // Rule: [VER-018]. The known era saves the next connection one start.
            let client = spawn(server.command(), &host().known_era(era)).await.unwrap();
            assert_eq!((client.era(), server.starts()), (Some(Era::Legacy), 3));
            client.shutdown().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_server_that_never_answers_the_probe_delays_by_the_probe_timeout() {
        // Rule: [VER-022].
        let server = Legacy::new("silent", Unknown::IsSilent);
        let mut timeouts = Timeouts::default();
        assert!(timeouts.probe <= Duration::from_secs(2));
        timeouts.probe = Duration::from_millis(50);
        let start = std::time::Instant::now();
        let client = spawn(server.command(), &host().timeouts(timeouts)).await.unwrap();
        assert!((50..30_000).contains(&start.elapsed().as_millis()));
        assert_eq!((client.era(), server.starts()), (Some(Era::Legacy), 1));
        let result = client.call_tool("any", &NoArguments {}).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("called"));
        client.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_program_that_always_exits_is_started_only_twice() {
        let server = Legacy::new("broken", Unknown::Exits);
        let refused = spawn(broken(&server), &host()).await.unwrap_err();
        let Error::Closed { stderr_tail, .. } = refused else { panic!("{refused:?}") };
        assert_eq!((stderr_tail, server.starts()), (vec!["no such option".to_owned()], 2));
        // The same when there is no other era to try.
        let known = host().known_era(Era::Legacy);
        assert!(spawn(broken(&server), &known).await.is_err());
        let modern = host().revisions(mcp_sansio::Revisions::MODERN);
        assert!(spawn(broken(&server), &modern).await.is_err());
        assert_eq!(server.starts(), 4);
    }
}

mod on_smol {
    use mcp_sansio_async_std::{Error, spawn};

    use super::*;

    #[test]
    fn a_server_that_exits_on_the_probe_is_started_again_without_one() {
        // Rule: [VER-022].
        block_on_smol(async {
            let server = Legacy::new("smol", Unknown::Exits);
            let client = spawn(server.command(), &host()).await.unwrap();
            assert_eq!((client.era(), server.starts()), (Some(Era::Legacy), 2));
            let result = client.call_tool("any", &NoArguments {}).await.unwrap();
            assert_eq!(result.content[0].as_text(), Some("called"));
            client.shutdown().await.unwrap();
            let refused = spawn(broken(&server), &host()).await.unwrap_err();
            let Error::Closed { stderr_tail, .. } = refused else { panic!("{refused:?}") };
            assert_eq!((stderr_tail, server.starts()), (vec!["no such option".to_owned()], 4));
        });
    }
}

mod on_threads {
    use mcp_sansio_std::{Error, spawn};

    use super::*;

    #[test]
    fn a_server_that_exits_on_the_probe_is_started_again_without_one() {
        // Rule: [VER-022].
        let server = Legacy::new("std", Unknown::Exits);
        let client = spawn(server.command(), &host()).unwrap();
        assert_eq!((client.era(), server.starts()), (Some(Era::Legacy), 2));
        let result = client.call_tool("any", &NoArguments {}).wait().unwrap();
        assert_eq!(result.content[0].as_text(), Some("called"));
        assert!(client.shutdown().wait().unwrap().status.success());
        let refused = spawn(broken(&server), &host()).unwrap_err();
        let Error::Closed { stderr_tail, .. } = refused else { panic!("{refused:?}") };
        assert_eq!((stderr_tail, server.starts()), (vec!["no such option".to_owned()], 4));
    }
}
