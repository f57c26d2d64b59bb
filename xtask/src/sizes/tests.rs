//! Tests of `sizes`.

use super::*;

/// Crates that run tasks.
const EXECUTORS: [&str; 7] = [
    "async-executor",
    "async-global-executor",
    "async-std",
    "embassy-executor",
    "futures-executor",
    "smol",
    "tokio",
];

#[test]
fn the_documentation_lists_the_actual_dependencies() {
    let text = std::fs::read_to_string(files::root().join("docs/guide/adapters.md")).unwrap();
    for subject in &SUBJECTS {
        let row = subject.row().unwrap();
        assert!(
            text.lines().any(|line| line.starts_with(&row)),
            "docs/guide/adapters.md lacks `{row}`; `cargo run -p xtask -- sizes` prints the table"
        );
    }
}

#[test]
fn the_blocking_adapter_has_no_executor() {
    let edges = "normal,build";
    let folder = files::root();
    let tree = |package| tree(&folder, package, &[], edges, SYSTEM).unwrap();
    let is_executor =
        |line: &String| line.split(' ').next().is_some_and(|name| EXECUTORS.contains(&name));
    let found: Vec<String> = tree("mcp-sansio-std").into_iter().filter(is_executor).collect();
    assert_eq!(found, [""; 0]);
    // Other adapters do have one.
    assert!(tree("mcp-sansio-tokio").iter().any(is_executor));
    assert!(tree("mcp-sansio-async-std").iter().any(is_executor));
}

/// Returns the features of `mcp-sansio-oauth` with these features of `package`.
fn halves_of_oauth(package: &str, features: &str) -> String {
    let mut command = Toolchain::Own.cargo();
    command.current_dir(files::root()).args(["tree", "--quiet", "--locked"]);
    command.args(["--package", package, "--no-default-features", "--features", features]);
    command.args(["--edges", "normal"]);
    let output = command.args(["--prefix", "none", "--format", "{p}|{f}"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let line = printed.lines().find(|line| line.starts_with("mcp-sansio-oauth "));
    line.and_then(|line| line.split('|').nth(1)).unwrap().replace(" (*)", "")
}

#[test]
fn a_server_on_http_is_built_without_the_client_of_oauth() {
    for adapter in ["mcp-sansio-async-std", "mcp-sansio-std", "mcp-sansio-tokio"] {
        let runtime = if adapter == "mcp-sansio-async-std" { "smol," } else { "" };
        let features = format!("{runtime}http-server");
        assert_eq!(halves_of_oauth(adapter, &features), "server", "{adapter}");
    }
}

#[test]
fn a_crate_counts_once_for_each_version() {
    let printed =
        "a v1.0.0 (/somewhere)\nb v1.0.0\n\nc v0.1.0 (proc-macro)\nb v1.0.0 (*)\nb v2.0.0\n";
    assert_eq!(
        names(printed),
        ["a v1.0.0", "b v1.0.0", "b v2.0.0", "c v0.1.0"].map(String::from).into()
    );
}
