use std::path::{Path, PathBuf};
use std::process::Command;

/// The one that is no crate: a folder beside this program's.
pub(crate) const TYPESCRIPT: &str = "typescript";

/// A way to use an SDK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The head of its column.
    pub(crate) title: &'static str,
    /// The package that is built.
    pub(crate) package: &'static str,
    /// What the program is told first.
    pub(crate) variant: &'static str,
}

impl Program {
    pub(crate) const fn new(
        title: &'static str,
        package: &'static str,
        variant: &'static str,
    ) -> Self {
        Self { title, package, variant }
    }

    /// The program, built; nothing where it does not build.
    pub(crate) fn build(&self) -> Option<PathBuf> {
        let (mut build, path) = match self.package {
            TYPESCRIPT => script(),
            package => build_crate(package),
        };
        if build.status().is_ok_and(|status| status.success()) {
            return Some(path);
        }
        eprintln!("{} does not build: its column is left out", self.package);
        None
    }
}

/// What builds a crate, and the program that comes of it.
// Each alone: in one build all would have the features of `serde_json` and tokio that any of
// them asks for.
fn build_crate(package: &str) -> (Command, PathBuf) {
    let mut build = cargo("build");
    build.args(["--release", "--quiet", "--package", package]);
    // This program has been built into the same folder.
    let here = std::env::current_exe().expect("this program is a file");
    (build, here.with_file_name(package))
}

/// What fetches the TypeScript SDK, and the program that stands on it.
fn script() -> (Command, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TYPESCRIPT);
    let mut fetch = Command::new("npm");
    fetch.args(["ci", "--ignore-scripts", "--silent"]).current_dir(&folder);
    (fetch, folder.join("server.mjs"))
}

/// Cargo, for this workspace.
pub(crate) fn cargo(verb: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    command.arg(verb).arg("--manifest-path").arg(manifest);
    // Build scripts that look at what `cargo run` says of this package would run again.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether a variable is one that cargo sets for a package that it runs.
fn is_of_package(name: &str) -> bool {
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| name.starts_with(prefix))
}
