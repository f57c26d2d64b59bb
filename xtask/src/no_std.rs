//! Builds of the core where there is no standard library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, files};

/// A Cortex-M3, one without compare-and-swap, a RISC-V, and WebAssembly without a host.
const TARGETS: [&str; 4] = [
    "thumbv7m-none-eabi",
    "thumbv6m-none-eabi",
    "riscv32imac-unknown-none-elf",
    "wasm32-unknown-unknown",
];

/// Where Debian and its like put a toolchain.
const DISTRIBUTION_CARGO: &str = "/usr/bin/cargo";
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";

/// What builds for a target.
enum Toolchain {
    /// The one in use has the target's library.
    Own,
    /// The distribution's has the library's sources and builds them.
    Distribution,
}

pub(crate) fn run(targets: &[&str]) -> Result<(), Failure> {
    let root = files::root();
    let mut failed = Vec::new();
    for target in if targets.is_empty() { &TARGETS } else { targets } {
        let Some(toolchain) = toolchain(target) else {
            return Err(Failure::Unable(format!(
                "no toolchain builds for {target}; either of these brings one:\n  \
                 rustup target add {}\n  \
                 apt-get install rustc-web cargo-web rust-web-src",
                TARGETS.join(" ")
            )));
        };
        let (name, mut command) = match toolchain {
            Toolchain::Own => ("the toolchain in use", own()),
            Toolchain::Distribution => ("the distribution's toolchain", distribution()),
        };
        println!("{target}: with {name}");
        command.current_dir(&root).args(["build", "--quiet", "--package", "mcp-sansio"]);
        command.args(["--target", target]).arg("--target-dir").arg(root.join("target/no-std"));
        let features = if *target == "thumbv6m-none-eabi" {
            "critical-section,http,seal"
        } else {
            "http,seal"
        };
        command.args(["--features", features]);
        if !command.status()?.success() {
            failed.push(*target);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("the core does not build for {}", failed.join(", "))))
}

fn toolchain(target: &str) -> Option<Toolchain> {
    let has = |compiler: &str, folder: &str| {
        sysroot(compiler).is_some_and(|root| root.join("lib/rustlib").join(folder).is_dir())
    };
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    if has(&compiler, &format!("{target}/lib")) {
        Some(Toolchain::Own)
    } else if Path::new(DISTRIBUTION_CARGO).exists()
        && has(DISTRIBUTION_RUSTC, "src/rust/library/core")
    {
        Some(Toolchain::Distribution)
    } else {
        None
    }
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
