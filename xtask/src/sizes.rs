//! The dependencies of each adapter, and the size of a small server based on it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::toolchain::{self, Toolchain};
use crate::{Failure, files, firmware};

/// The target whose dependencies are counted: other systems have a few others.
const SYSTEM: &str = "x86_64-unknown-linux-gnu";
const WASM: &str = "wasm32-unknown-unknown";

/// Crates that are relevant for the choice of an adapter.
const NOTABLE: [&str; 15] = [
    "async-executor",
    "async-io",
    "async-process",
    "async-std",
    "blocking",
    "dlmalloc",
    "embedded-io",
    "hyper",
    "mio",
    "polling",
    "rustix",
    "schemars",
    "serde_json",
    "smol",
    "tokio",
];

/// A small server that is measured.
#[derive(Debug)]
struct Subject {
    name: &'static str,
    package: &'static str,
    /// Arguments that select the features.
    features: &'static [&'static str],
    made: Artifact,
}

/// How a server is built.
#[derive(Clone, Copy, Debug)]
enum Artifact {
    /// As the example of the same name in its package.
    Example,
    /// As a separate workspace under `examples`, for this target.
    Workspace(&'static str, &'static str),
}

const SUBJECTS: [Subject; 6] = [
    Subject {
        name: "serve-std",
        package: "mcp-sansio-std",
        features: &[],
        made: Artifact::Example,
    },
    Subject {
        name: "serve-tokio",
        package: "mcp-sansio-tokio",
        features: &[],
        made: Artifact::Example,
    },
    Subject {
        name: "serve-smol",
        package: "mcp-sansio-async-std",
        features: &[],
        made: Artifact::Example,
    },
    Subject {
        name: "serve-async-std",
        package: "mcp-sansio-async-std",
        features: &["--no-default-features", "--features", "schemars,async-std"],
        made: Artifact::Example,
    },
    Subject {
        name: "wasm",
        package: "mcp-sansio-wasm",
        features: &[],
        made: Artifact::Workspace("examples/wasm", WASM),
    },
    Subject {
        name: "firmware",
        package: "mcp-sansio-firmware",
        features: &[],
        made: Artifact::Workspace("examples/firmware", firmware::TARGET),
    },
];

pub(crate) fn run() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for subject in &SUBJECTS {
        eprintln!("building {}", subject.name);
        let size = subject.size()?;
        rows.push(format!("{} {} |", subject.row()?, kilobytes(size)));
    }
    println!("{HEAD}");
    for row in rows {
        println!("{row}");
    }
    Ok(())
}

const HEAD: &str = "\
| Server | Crates in it | With those of the compiler | Of note | Size in KB |
| --- | --: | --: | --- | --: |";

impl Subject {
    /// Returns all cells of the table except the size.
    fn row(&self) -> Result<String, Failure> {
        let linked = self.crates("normal,no-proc-macro")?;
        let compiled = self.crates("normal")?;
        let of_note: Vec<String> = linked
            .iter()
            .filter_map(|line| line.split(' ').next())
            .filter(|name| NOTABLE.contains(name))
            .map(|name| format!("`{name}`"))
            .collect();
        let (name, linked, compiled) = (self.name, linked.len(), compiled.len());
        Ok(format!("| `{name}` | {linked} | {compiled} | {} |", of_note.join(", ")))
    }

    /// Returns the dependencies of the package, including itself, as names and versions.
    fn crates(&self, edges: &str) -> Result<BTreeSet<String>, Failure> {
        let (folder, target) = match self.made {
            Artifact::Example => (files::root(), SYSTEM),
            Artifact::Workspace(folder, target) => (files::root().join(folder), target),
        };
        tree(&folder, self.package, self.features, edges, target)
    }

    /// Returns the size of the server without symbols, in bytes.
    fn size(&self) -> Result<u64, Failure> {
        match self.made {
            Artifact::Workspace(_, firmware::TARGET) => firmware::flash(),
            Artifact::Workspace(folder, target) => module_size(&files::root().join(folder), target),
            Artifact::Example => {
                let mut command = Toolchain::Own.cargo();
                command.current_dir(files::root()).args(["rustc", "--quiet", "--release"]);
                command.args(["--package", self.package, "--example", self.name]);
                command.args(self.features).args(["--", "-C", "strip=symbols"]);
                if !command.status()?.success() {
                    return Err(Failure::Failed(format!("{} does not build", self.name)));
                }
                let path = files::built(&files::root()).join("release/examples").join(self.name);
                let path = path.with_extension(std::env::consts::EXE_EXTENSION);
                Ok(std::fs::metadata(path)?.len())
            }
        }
    }
}

/// Returns the size of the module in `folder`, in bytes.
fn module_size(folder: &Path, target: &str) -> Result<u64, Failure> {
    let toolchain = Toolchain::for_target(target).ok_or_else(|| toolchain::missing(&[target]))?;
    let mut command = toolchain.cargo();
    if matches!(toolchain, Toolchain::Distribution) {
        let linker = toolchain::bundled_linker()
            .ok_or_else(|| Failure::Unable("no linker for WebAssembly found".into()))?;
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    command.current_dir(folder).args(["build", "--quiet", "--release", "--target", target]);
    if !command.status()?.success() {
        return Err(Failure::Failed("the module does not build".into()));
    }
    let name = Path::new(target).join("release/mcp_sansio_wasm.wasm");
    Ok(std::fs::metadata(files::built(folder).join(name))?.len())
}

/// Returns the dependencies of `package` on `target`, including itself, as names and versions.
fn tree(
    folder: &Path,
    package: &str,
    features: &[&str],
    edges: &str,
    target: &str,
) -> Result<BTreeSet<String>, Failure> {
    let mut command = Toolchain::Own.cargo();
    command.current_dir(folder).args(["tree", "--quiet", "--locked", "--package", package]);
    command.args(features).args(["--prefix", "none", "--edges", edges, "--target", target]);
    let output = command.output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::Unable(format!("cargo tree of {package}: {text}")));
    }
    Ok(names(&String::from_utf8_lossy(&output.stdout)))
}

/// Parses the names and versions in the output of `cargo tree` without a prefix: one crate per
/// line, with repetitions.
fn names(printed: &str) -> BTreeSet<String> {
    let lines = printed.lines().filter(|line| !line.is_empty());
    lines.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// Formats a size in units of 1,000 bytes.
fn kilobytes(bytes: u64) -> String {
    let text = ((bytes + 500) / 1000).to_string();
    match text.len().checked_sub(3) {
        None | Some(0) => text,
        Some(thousands) => format!("{},{}", &text[..thousands], &text[thousands..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates that run futures, or wait for input and output.
    const RUNTIMES: [&str; 10] = [
        "async-executor",
        "async-global-executor",
        "async-io",
        "async-std",
        "embassy-executor",
        "futures-executor",
        "mio",
        "polling",
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
    fn the_blocking_adapter_depends_on_no_runtime() {
        let edges = "normal,build";
        let folder = files::root();
        let tree = |package| tree(&folder, package, &["--all-features"], edges, SYSTEM).unwrap();
        let is_runtime =
            |line: &String| line.split(' ').next().is_some_and(|name| RUNTIMES.contains(&name));
        let found: Vec<String> = tree("mcp-sansio-std").into_iter().filter(is_runtime).collect();
        assert_eq!(found, [""; 0]);
        // Other adapters do depend on them.
        assert!(tree("mcp-sansio-tokio").iter().any(is_runtime));
        assert!(tree("mcp-sansio-async-std").iter().any(is_runtime));
    }

    /// Returns the features of `mcp-sansio-oauth` with these features of `package`.
    fn halves_of_oauth(package: &str, features: &str) -> String {
        let mut command = Toolchain::Own.cargo();
        command.current_dir(files::root()).args(["tree", "--quiet", "--locked"]);
        command.args(["--package", package, "--features", features, "--edges", "normal"]);
        let output = command.args(["--prefix", "none", "--format", "{p}|{f}"]).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let line = printed.lines().find(|line| line.starts_with("mcp-sansio-oauth "));
        line.and_then(|line| line.split('|').nth(1)).unwrap().replace(" (*)", "")
    }

    #[test]
    fn a_server_on_http_is_built_without_the_client_of_oauth() {
        for adapter in ["mcp-sansio-async-std", "mcp-sansio-std", "mcp-sansio-tokio"] {
            assert_eq!(halves_of_oauth(adapter, "http-server"), "server", "{adapter}");
            assert_eq!(halves_of_oauth(adapter, "auth"), "client", "{adapter}");
        }
        for adapter in ["mcp-sansio-async-std", "mcp-sansio-tokio"] {
            assert_eq!(halves_of_oauth(adapter, "verify"), "server", "{adapter}");
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

    #[test]
    fn sizes_are_written_for_people() {
        let written = [999, 344_242, 999_499, 999_500, 1_248_416].map(kilobytes);
        assert_eq!(written, ["1", "344", "999", "1,000", "1,248"]);
    }
}
