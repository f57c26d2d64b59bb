//! The dependencies of each adapter, and the size of a small server based on it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::document::thousands;
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
    /// The folder and the target of a workspace of its own; otherwise it is the example of that
    /// name.
    workspace: Option<(&'static str, &'static str)>,
}

const ASYNC_STD: &[&str] = &["--no-default-features", "--features", "schemars,async-std"];
const SUBJECTS: [Subject; 6] = [
    example("serve-std", "mcp-sansio-std", &[]),
    example("serve-tokio", "mcp-sansio-tokio", &[]),
    example("serve-smol", "mcp-sansio-async-std", &[]),
    example("serve-async-std", "mcp-sansio-async-std", ASYNC_STD),
    Subject { workspace: Some(("examples/wasm", WASM)), ..example("wasm", "mcp-sansio-wasm", &[]) },
    Subject {
        workspace: Some(("examples/firmware", firmware::TARGET)),
        ..example("firmware", "mcp-sansio-firmware", &[])
    },
];

const fn example(
    name: &'static str,
    package: &'static str,
    features: &'static [&'static str],
) -> Subject {
    Subject { name, package, features, workspace: None }
}

pub(crate) fn run() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for subject in &SUBJECTS {
        eprintln!("building {}", subject.name);
        let size = subject.size()?;
        rows.push(format!("{} {} |", subject.row()?, thousands((size + 500) / 1000)));
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
        let (folder, target) = self.workspace.unwrap_or(("", SYSTEM));
        tree(&files::root().join(folder), self.package, self.features, edges, target)
    }

    /// Returns the size of the server without symbols, in bytes.
    fn size(&self) -> Result<u64, Failure> {
        match self.workspace {
            Some((_, firmware::TARGET)) => firmware::flash(),
            Some((folder, target)) => module_size(&files::root().join(folder), target),
            None => {
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

#[cfg(test)]
mod tests;
