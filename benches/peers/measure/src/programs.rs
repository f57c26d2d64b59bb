use std::path::{Path, PathBuf};
use std::process::Command;

/// The package name of the TypeScript program, which is a folder next to this crate.
pub(crate) const TYPESCRIPT: &str = "typescript";

/// The package name of the Python program, likewise.
pub(crate) const PYTHON: &str = "python";

/// A program of the comparison: an SDK and a way to use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// The title of its column.
    pub(crate) title: &'static str,
    /// The package to build.
    pub(crate) package: &'static str,
    /// The first argument of the program.
    pub(crate) variant: &'static str,
    /// Whether it is called at 2026-07-28, on standard streams.
    pub(crate) modern: bool,
}

impl Program {
    pub(crate) const fn new(
        title: &'static str,
        package: &'static str,
        variant: &'static str,
    ) -> Self {
        Self { title, package, variant, modern: false }
    }

    pub(crate) const fn modern(self) -> Self {
        Self { modern: true, ..self }
    }

    /// Builds the program and returns its path, or `None` if it does not build.
    pub(crate) fn build(&self) -> Option<PathBuf> {
        let (mut build, path) = match self.package {
            TYPESCRIPT => script(),
            PYTHON => python_script(),
            package => build_crate(package),
        };
        if build.status().is_ok_and(|status| status.success()) {
            return Some(path);
        }
        eprintln!("{} does not build: its column is left out", self.package);
        None
    }
}

/// Returns the command that builds a crate, and the path of the program.
// Each crate is built separately: in one build, all would get the features of `serde_json` and
// tokio that any of them enables.
fn build_crate(package: &str) -> (Command, PathBuf) {
    let mut build = cargo("build");
    build.args(["--release", "--quiet", "--package", package]);
    // Cargo puts this program into the same folder.
    let here = std::env::current_exe().expect("this program is a file");
    (build, here.with_file_name(package))
}

/// Returns the command that installs the TypeScript SDK, and the path of the program.
fn script() -> (Command, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(TYPESCRIPT);
    let mut fetch = Command::new("npm");
    fetch.args(["ci", "--ignore-scripts", "--silent"]).current_dir(&folder);
    (fetch, folder.join("server.mjs"))
}

/// Returns the command that installs the Python SDK, and the path of the program.
fn python_script() -> (Command, PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PYTHON);
    let program = folder.join("server");
    (Command::new(folder.join("install")), program)
}

/// Returns a cargo command for this workspace.
pub(crate) fn cargo(verb: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    command.arg(verb).arg("--manifest-path").arg(manifest);
    // Build scripts that depend on variables set by `cargo run` for this package would run again.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo sets this variable for a package that it runs.
fn is_of_package(name: &str) -> bool {
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| name.starts_with(prefix))
}
