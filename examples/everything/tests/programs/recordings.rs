//! Recordings made by the programs can be replayed and drawn.

use std::fs;
use std::path::{Path, PathBuf};

use crate::http_server_process::HttpServerProcess;
use crate::process::{Outcome, RUNTIMES, everything, run};

/// Returns an empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recordings").join(name);
    let _missing = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn replay(file: &Path) -> Outcome {
    run("mcp-inspect", ["replay", text(file)])
}

fn assert_replays(file: &Path) {
    let outcome = replay(file);
    assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", file.display());
    let last = outcome.stdout.lines().last().unwrap();
    assert!(last.ends_with(" outputs, all as recorded"), "{last}");
    assert!(outcome.stdout.lines().count() > 3, "{outcome:?}");
}

#[test]
fn both_sides_of_a_byte_stream_can_be_replayed() {
    for (runtime, revision) in
        RUNTIMES.into_iter().zip(["2024-11-05", "2026-07-28"].into_iter().cycle())
    {
        let folder = folder(&format!("stream-{runtime}"));
        let client = folder.join("client.jsonl");
        let words = ["check", "--revision", revision, "--record", text(&client), "--"];
        let mut words: Vec<String> = words.map(Into::into).into();
        words.extend(everything(runtime));
        words.extend(["--record".into(), text(&folder).into()]);
        let outcome = run("mcp-inspect", words);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_replays(&client);
        assert_replays(&folder.join("connection-1.jsonl"));
    }
}

/// Arguments that suit all of the called tools.
const ARGUMENTS: &str = r#"{"message":"Well?","prompt":"Well?"}"#;

#[test]
fn both_sides_of_http_can_be_replayed() {
    let calls =
        ["test_tool_with_progress", "test_elicitation", "test_sampling", "test_reconnection"];
    for (runtime, revision) in [("tokio", "2025-11-25"), ("std", "2026-07-28")] {
        let folder = folder(&format!("http-{runtime}"));
        let words = ["--record", text(&folder), "--runtime", runtime];
        let http_server = HttpServerProcess::start("everything-server", &words);
        for tool in calls {
            let client = folder.join(format!("{tool}.jsonl"));
            let url = http_server.url("/mcp");
            let words =
                ["call", tool, ARGUMENTS, "--revision", revision, "--record", text(&client)];
            let outcome = run("mcp-inspect", words.into_iter().chain(["--url", &url]));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            assert_replays(&client);
        }
        // Each line is written as soon as its call has finished.
        assert_replays(&folder.join("connection-1.jsonl"));
    }
}

/// Records a call. Returns the folder and the recording.
fn recorded(name: &str, argument: &str) -> (PathBuf, PathBuf) {
    let folder = folder(name);
    let file = folder.join("client.jsonl");
    let arguments = format!(r#"{{"text":"{argument}"}}"#);
    let words = ["call", "echo", &arguments, "--record", text(&file), "--"];
    let mut words: Vec<String> = words.map(Into::into).into();
    words.extend(everything("tokio"));
    let outcome = run("mcp-inspect", words);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    (folder, file)
}

#[test]
fn the_first_difference_is_shown_with_both_texts() {
    let (folder, file) = recorded("difference", "hello");
    let recording = fs::read_to_string(&file).unwrap();
    let (before, after) = recording.rsplit_once("tools/call").unwrap();
    let changed = folder.join("changed.jsonl");
    fs::write(&changed, [before, "tools/cola", after].concat()).unwrap();
    let outcome = replay(&changed);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    for part in ["differs", "recorded: ", "replayed: ", "tools/cola", "tools/call"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    let cut = folder.join("cut.jsonl");
    fs::write(&cut, &recording[..recording.len() - 2]).unwrap();
    let outcome = replay(&cut);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("ends in the middle of line"), "{outcome:?}");
    for none in [folder.join("missing.jsonl"), folder] {
        let outcome = replay(&none);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    }
}

#[test]
fn replay_can_print_the_wire_or_every_call() {
    let (_, file) = recorded("views", "hello");
    let wire = run("mcp-inspect", ["replay", text(&file), "--wire"]).stdout;
    assert!(wire.lines().any(|line| line.starts_with("<-- {\"message\":")), "{wire}");
    assert!(wire.lines().any(|line| line.starts_with("--> {\"sent\":")), "{wire}");
    assert!(!wire.contains("{\"event\":{"), "{wire}");
    let all = run("mcp-inspect", ["replay", text(&file), "--step"]).stdout;
    // Everything but the first line, plus the summary.
    let lines = fs::read_to_string(&file).unwrap().lines().count();
    assert_eq!(all.lines().count(), lines, "{all}");
}

#[test]
fn a_page_shows_the_conversation_as_text() {
    let (folder, file) = recorded("page", "<script>alert(1)</script>");
    let page = folder.join("page.html");
    let outcome = run("mcp-inspect", ["show", text(&file), "-o", text(&page)]);
    assert_eq!((outcome.code, outcome.stdout.trim_end()), (Some(0), text(&page)), "{outcome:?}");
    let drawn = fs::read_to_string(&page).unwrap();
    assert!(
        drawn.contains("tools/call echo") && drawn.contains("&lt;script&gt;alert(1)"),
        "{drawn}"
    );
    assert_eq!(drawn.matches("<script").count(), 1, "{drawn}");
    let outcome = run("mcp-inspect", ["show", text(&folder.join("missing.jsonl"))]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
}
