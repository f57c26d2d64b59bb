//! Counts the instructions of each measurement in a program of `benches`.

use std::path::Path;
use std::process::Command;

use crate::toolchain::Toolchain;
use crate::{Failure, files};

/// A measurement of a program, and its instruction count.
#[derive(Debug)]
pub(crate) struct Count {
    /// The fields of the line that the program printed, separated by tabs.
    pub(crate) fields: Vec<String>,
    /// Instructions between entering and leaving the function `measured`.
    pub(crate) instructions: u64,
}

/// Builds the program `name` for release with `features` and runs it under callgrind, whose counts
/// are reproducible and independent of other load on the machine.
pub(crate) fn count(
    name: &str,
    features: &[&str],
    arguments: &[&str],
) -> Result<Vec<Count>, Failure> {
    let root = files::root();
    let mut build = Toolchain::Own.cargo();
    build.current_dir(&root).args(["build", "--release", "--quiet"]);
    build.args(features.iter().flat_map(|feature| ["--features", feature]));
    if !build.args(["--package", "benches", "--bin", name]).status()?.success() {
        return Err(Failure::Unable(format!("`{name}` does not build")));
    }
    let built = files::built(&root).join("release");
    // Leftovers of an earlier run would be mistaken for new counts.
    let dumps = built.join(format!("{name}-counts"));
    if dumps.exists() {
        std::fs::remove_dir_all(&dumps)?;
    }
    std::fs::create_dir_all(&dumps)?;
    let mut run = Command::new("valgrind");
    run.arg("--tool=callgrind");
    run.arg(format!("--callgrind-out-file={}", dumps.join("count").display()));
    run.args(["--zero-before", "--dump-after"].map(|when| format!("{when}={name}::measured")));
    let output = run.arg(built.join(name)).args(arguments).output();
    let output = output.map_err(|error| Failure::Unable(format!("valgrind: {error}")))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Unable(format!("`{name}` failed under valgrind: {messages}")));
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    (1..).zip(lines.lines()).map(|(number, line)| from_line(&dumps, number, line)).collect()
}

fn from_line(dumps: &Path, number: usize, line: &str) -> Result<Count, Failure> {
    let path = dumps.join(format!("count.{number}"));
    let dump = std::fs::read_to_string(&path)?;
    let instructions =
        total(&dump).ok_or_else(|| Failure::Unable(format!("no count in {}", path.display())))?;
    Ok(Count { fields: line.split('\t').map(str::to_owned).collect(), instructions })
}

/// Returns the number of instructions in a dump of callgrind.
fn total(dump: &str) -> Option<u64> {
    let total = |line: &str| {
        let rest = line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: "))?;
        rest.split(' ').next()?.parse().ok()
    };
    dump.lines().find_map(total)
}

/// Returns the versions of the compiler and valgrind, to be recorded with the counts.
pub(crate) fn versions() -> String {
    let first = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().map(str::to_owned)
    };
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let compiler = first(&compiler, "--version").unwrap_or_default();
    let counter = first("valgrind", "--version").unwrap_or_default();
    let compiler = compiler.split(" (").next().unwrap_or_default();
    format!("{compiler}, {counter}, {}", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_under_either_name() {
        assert_eq!(total("version: 1\nevents: Ir\nsummary: 17\n"), Some(17));
        assert_eq!(total("events: Ir\n\nfn=x\ntotals: 23 4\n"), Some(23));
        assert_eq!(total("events: Ir\n"), None);
    }
}
