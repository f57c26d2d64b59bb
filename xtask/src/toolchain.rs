//! Toolchains for targets that the current one may not support.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// The toolchain of Debian and its derivatives.
const DISTRIBUTION_CARGO: &str = "/usr/bin/cargo";
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// A toolchain that builds for a target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Toolchain {
    /// The current one, which has the target's library.
    Own,
    /// The distribution's, which builds the library from its sources.
    Distribution,
}

impl Toolchain {
    /// Returns a toolchain that builds for `target`, if any.
    pub(crate) fn for_target(target: &str) -> Option<Self> {
        let has = |compiler: &str, folder: &str| {
            sysroot(compiler).is_some_and(|root| root.join("lib/rustlib").join(folder).is_dir())
        };
        let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        if has(&compiler, &format!("{target}/lib")) {
            Some(Self::Own)
        } else if Path::new(DISTRIBUTION_CARGO).exists()
            && has(DISTRIBUTION_RUSTC, "src/rust/library/core")
        {
            Some(Self::Distribution)
        } else {
            None
        }
    }

    /// Returns its cargo.
    pub(crate) fn cargo(self) -> Command {
        match self {
            Self::Own => own(),
            Self::Distribution => distribution(),
        }
    }
}

/// Returns an error that no toolchain builds for `targets`, and how to install one.
pub(crate) fn missing(targets: &[&str]) -> Failure {
    let targets = targets.join(" ");
    Failure::Unable(format!(
        "no toolchain builds for {targets}; install one with either of these:\n  \
         rustup target add {targets}\n  \
         apt-get install rustc-web cargo-web rust-web-src lld"
    ))
}

/// Returns the linker bundled with the current toolchain, for targets without a linker of their
/// own.
pub(crate) fn bundled_linker() -> Option<PathBuf> {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let hosts = std::fs::read_dir(sysroot(&compiler)?.join("lib/rustlib")).ok()?;
    let linkers = hosts.flatten().map(|host| host.path().join("bin/rust-lld"));
    linkers.into_iter().find(|linker| linker.is_file())
}

fn sysroot(compiler: &str) -> Option<PathBuf> {
    let mut command = Command::new(compiler);
    if compiler == DISTRIBUTION_RUSTC {
        forget_own(&mut command);
    }
    let output = command.args(["--print", "sysroot"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(text.trim()))
}

fn own() -> Command {
    Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

fn distribution() -> Command {
    let mut command = Command::new(DISTRIBUTION_CARGO);
    forget_own(&mut command);
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env("PATH", format!("/usr/bin:{path}"))
        .env("RUSTC", DISTRIBUTION_RUSTC)
        // `-Z` on a stable compiler; the sources match this compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Z", "build-std=core,alloc", "-Z", "build-std-features=optimize_for_size"]);
    command
}

/// Removes variables that `cargo run` set for its own toolchain.
fn forget_own(command: &mut Command) {
    for name in ["LD_LIBRARY_PATH", "RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
}
