//! What builds for targets that the toolchain in use may not have.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;

/// Where Debian and its like put a toolchain.
const DISTRIBUTION_CARGO: &str = "/usr/bin/cargo";
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// What builds for a target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Toolchain {
    /// The one in use has the target's library.
    Own,
    /// The distribution's has the library's sources and builds them.
    Distribution,
}

impl Toolchain {
    /// One that builds for `target`, if there is any.
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

    /// Its cargo.
    pub(crate) fn cargo(self) -> Command {
        match self {
            Self::Own => own(),
            Self::Distribution => distribution(),
        }
    }
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "the toolchain in use",
            Self::Distribution => "the distribution's toolchain",
        })
    }
}

/// That nothing builds for `targets`, and what to do about it.
pub(crate) fn missing(targets: &[&str]) -> Failure {
    let targets = targets.join(" ");
    Failure::Unable(format!(
        "no toolchain builds for {targets}; either of these brings one:\n  \
         rustup target add {targets}\n  \
         apt-get install rustc-web cargo-web rust-web-src lld"
    ))
}

/// The linker that comes with the toolchain in use, for targets that it makes no libraries for.
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
        // `-Z` on a stable compiler; the sources are those of this very compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["-Z", "build-std=core,alloc"]);
    command
}

/// Takes away what `cargo run` told this process about its own toolchain.
fn forget_own(command: &mut Command) {
    for name in ["LD_LIBRARY_PATH", "RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
}
