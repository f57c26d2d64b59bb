//! Lines of a trace: `--trace` of the inspector and of the server.

use crate::process::{RUNTIMES, everything, run};

/// Returns what follows `word` in a line.
fn after<'l>(line: &'l str, word: &str) -> &'l str {
    line.split_once(word).unwrap_or_else(|| panic!("{line}")).1.split(' ').next().unwrap()
}

#[test]
fn the_lines_of_both_sides_belong_to_the_same_traces() {
    for runtime in RUNTIMES {
        for revision in ["2025-11-25", "2026-07-28"] {
            let server = everything(runtime);
            let arguments =
                ["tools", "--trace", "--revision", revision, "--runtime", runtime, "--"];
            let arguments = arguments.into_iter().map(str::to_owned);
            let server = server.into_iter().chain(["--trace".to_owned()]);
            let outcome = run("mcp-inspect", arguments.chain(server));
            assert_eq!(outcome.code, Some(0), "{outcome:?}");
            let lines: Vec<&str> =
                outcome.stderr.lines().filter(|line| line.contains("trace: ")).collect();
            let find = |start: &str| {
                let found = lines.iter().find(|line| line.contains(start));
                *found.unwrap_or_else(|| panic!("{start}: {outcome:?}"))
            };
            let (sent, received) = (find("sent tools/list #"), find("received tools/list #"));
            assert!(sent.contains(": ok, "), "{sent}");
            assert_eq!(after(sent, "trace: sent tools/list #"), after(received, "tools/list #"));
            assert_eq!(after(sent, ", trace "), after(received, ", trace "), "{outcome:?}");
            assert_eq!(after(sent, " span "), after(received, " parent "), "{outcome:?}");
        }
    }
}
