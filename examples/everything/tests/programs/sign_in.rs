//! Browser sign-in with each party in its own process. The test acts as the browser.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use authorization_server::browser::Browser;
use mcp_sansio_tokio::Connector;

use crate::http_server_process::HttpServerProcess;
use crate::process::{Outcome, RUNTIMES, example, run};

/// A credential file in a temporary folder, which is removed with the value.
struct Store(PathBuf);

impl Store {
    fn new(name: &str) -> Self {
        let name = format!("mcp-inspect-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // An earlier process with the same id may have left a folder.
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("credentials")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Inspects a server and passes each sign-in URL to `browse`. Returns the outcome and the number of
/// sign-ins.
fn inspect(words: &[&str], browse: impl Fn(&str)) -> (Outcome, usize) {
    watch(Command::new(example("mcp-inspect")).args(words), browse)
}

/// Like [`inspect`], for any program that prints a sign-in URL.
fn watch(command: &mut Command, browse: impl Fn(&str)) -> (Outcome, usize) {
    let mut child = command
        // Prevents the program from opening a browser.
        .env("PATH", "")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stderr, mut visits) = (String::new(), 0);
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if let Some((_, url)) = line.split_once(", open ") {
            browse(url);
            visits += 1;
        }
        stderr.push_str(&line);
        stderr.push('\n');
    }
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    let code = child.wait().unwrap().code();
    (Outcome { code, stdout, stderr }, visits)
}

/// Visits the authorization page, which needs no user, and follows the redirect. Returns the page
/// shown by the program.
fn follow(url: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let connector = Connector::new().unwrap();
        let redirect = Browser::new(connector.clone()).visit(url).await.unwrap();
        String::from_utf8(connector.fetch(redirect).await.unwrap()).unwrap()
    })
}

fn agree(url: &str) {
    let page = follow(url);
    assert!(page.contains("mcp-inspect"), "{page}");
}

fn forbid(url: &str) {
    panic!("no sign-in is expected at {url}");
}

#[test]
fn a_user_signs_in_steps_up_and_is_remembered() {
    let http_server = HttpServerProcess::start("everything-server", &["--auth"]);
    let (url, store) = (http_server.url("/mcp"), Store::new("remembered"));
    let file = store.file();
    let flags = ["--url", &url, "--sign-in", "--store", file.to_str().unwrap()];
    let call = |words: &[&str], browse: fn(&str)| {
        let (outcome, visits) = inspect(&[words, &flags].concat(), browse);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        (outcome.stdout, visits)
    };
    let echo: [&str; 3] = ["call", "echo", r#"{"text":"hi"}"#];
    assert_eq!(call(&echo, agree), ("hi\n".into(), 1));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(call(&echo, forbid), ("hi\n".into(), 0));
    // This tool requires another scope.
    assert_eq!(call(&["call", "test_touch_watched_resource"], agree).1, 1);
    assert_eq!(call(&["call", "test_touch_watched_resource"], forbid).1, 0);
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        assert_eq!(call(&[&echo[..], &["--revision", revision]].concat(), forbid).1, 0);
    }
}

#[test]
fn users_sign_in_at_a_server_on_every_runtime() {
    for runtime in RUNTIMES {
        let http_server =
            HttpServerProcess::start("everything-server", &["--auth", "--runtime", runtime]);
        let url = http_server.url("/mcp");
        let flags = ["--url", &url];
        let words = ["call", "echo", r#"{"text":"hi"}"#, "--sign-in"];
        let (outcome, visits) = inspect(&[&words[..], &flags].concat(), agree);
        assert_eq!((outcome.stdout.as_str(), visits), ("hi\n", 1), "{outcome:?}");
        let outcome = run("mcp-inspect", [&["tools"], &flags[..]].concat());
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.contains("use `--sign-in` to sign in"), "{outcome:?}");
    }
}

#[test]
fn the_sample_client_signs_in() {
    let http_server = HttpServerProcess::start("everything-server", &["--auth"]);
    let store = Store::new("sample");
    std::fs::create_dir(&store.0).unwrap();
    for expected in [1, 0] {
        let mut client = Command::new(example("sign-in-client"));
        let client = client.arg(http_server.url("/mcp")).current_dir(&store.0);
        let (outcome, visits) = watch(client, |url| drop(follow(url)));
        assert_eq!((outcome.code, visits), (Some(0), expected), "{outcome:?}");
        assert!(outcome.stdout.starts_with("test_simple_text\n"), "{outcome:?}");
    }
}

#[test]
fn credentials_are_not_printed() {
    let http_server = HttpServerProcess::start("everything-server", &["--auth"]);
    let url = http_server.url("/mcp");
    let words = ["tools", "--wire", "--url", &url, "--sign-in", "--scope", "mcp:write"];
    let (outcome, visits) = inspect(&words, agree);
    assert_eq!((outcome.code, visits), (Some(0), 1), "{outcome:?}");
    assert!(outcome.stderr.contains("/token\n"), "{outcome:?}");
    for secret in ["Bearer ey", "\"access_token\"", "code_verifier", "&code="] {
        assert!(!outcome.stderr.contains(secret), "{secret} is in {}", outcome.stderr);
    }
}

#[test]
fn errors_are_reported_in_one_line() {
    let http_server = HttpServerProcess::start("everything-server", &["--auth"]);
    let url = http_server.url("/mcp");
    let words = ["tools", "--url", &url, "--sign-in", "--scope", "mcp:other"];
    let (outcome, visits) = inspect(&words, |url| drop(follow(url)));
    assert_eq!((outcome.code, visits), (Some(1), 1), "{outcome:?}");
    assert!(outcome.stderr.contains("`invalid_scope`"), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 2, "{outcome:?}");
    for words in [&["tools", "--sign-in", "--", "x"][..], &["tools", "--store", "x", "--url", &url]]
    {
        assert_eq!(run("mcp-inspect", words).code, Some(2), "{words:?}");
    }
}
