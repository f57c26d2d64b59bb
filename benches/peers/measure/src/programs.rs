use std::path::{Path, PathBuf};
use std::process::Command;

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
    // Each alone: in one build all would have the features of `serde_json` and tokio that any of
    // them asks for.
    pub(crate) fn build(&self) -> Option<PathBuf> {
        let mut build = cargo("build");
        build.args(["--release", "--quiet", "--package", self.package]);
        let built = build.status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("{} does not build: its column is left out", self.package);
            return None;
        }
        // This program has been built into the same folder.
        let here = std::env::current_exe().expect("this program is a file");
        Some(here.with_file_name(self.package))
    }
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
