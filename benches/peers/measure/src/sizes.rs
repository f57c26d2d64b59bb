//! The smallest servers: their size, their dependencies and their build time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::programs;
use crate::table::{Table, number};

const SERVERS: [(&str, &str); 5] = [
    ("this project: std", "minimal-std"),
    ("this project: tokio", "minimal-tokio"),
    ("rmcp 3.11.0", "minimal-rmcp"),
    ("tower-mcp 0.25.0", "minimal-tower-mcp"),
    ("rust-mcp-sdk 2.0.0", "minimal-rust-mcp-sdk"),
];

/// Cargo profiles and the names of their rows.
const PROFILES: [(&str, &str); 2] = [
    ("plain", "cargo's default release profile, stripped: KB"),
    ("small", "release optimized for size, stripped: KB"),
];

pub(crate) fn compare() {
    let mut table = Table::default();
    for (title, package) in SERVERS {
        let mut figures = Vec::new();
        let start = Instant::now();
        for (profile, name) in PROFILES {
            let Some(size) = size(package, profile) else { break };
            // Only the first profile is a clean build.
            if figures.is_empty() {
                let time = start.elapsed().as_secs_f64();
                figures.push(("built from nothing: s".into(), number(time)));
            }
            figures.push((name.into(), number(size / 1000.0)));
        }
        if figures.is_empty() {
            eprintln!("{package} does not build: its column is left out");
            continue;
        }
        let linked = crates(package, "normal,no-proc-macro");
        figures.push(("crates linked".into(), linked.to_string()));
        figures.push(("crates compiled".into(), crates(package, "normal,build").to_string()));
        table.column(title, figures);
    }
    table.print("A server with one tool on standard input and output");
}

/// Builds the server in its own folder and returns its size in bytes.
fn size(package: &str, profile: &str) -> Option<f64> {
    let folder = folder(package);
    if profile == PROFILES[0].0 && folder.exists() {
        std::fs::remove_dir_all(&folder).expect("the previous build can be removed");
    }
    let mut build = programs::cargo("build");
    build.args(["--quiet", "--package", package, "--profile", profile, "--target-dir"]);
    let status = build.arg(&folder).status().expect("cargo starts");
    let program = folder.join(profile).join(package);
    status
        .success()
        .then(|| std::fs::metadata(program).expect("the program was built").len() as f64)
}

fn folder(package: &str) -> PathBuf {
    let here = std::env::current_exe().expect("this program is a file");
    let built: &Path = here.ancestors().nth(2).expect("the program is in cargo's target folder");
    built.join("sizes").join(package)
}

/// Returns the number of crates in the dependency tree, including the package.
fn crates(package: &str, edges: &str) -> usize {
    let mut tree: Command = programs::cargo("tree");
    tree.args(["--quiet", "--package", package, "--prefix", "none", "--edges", edges]);
    let output = tree.output().expect("cargo starts").stdout;
    let text = String::from_utf8(output).expect("names");
    // The tree has one line per dependency edge, so crates repeat.
    let names = text.lines().filter(|line| !line.is_empty());
    names.map(|line| line.split(' ').take(2).collect::<Vec<_>>()).collect::<BTreeSet<_>>().len()
}
