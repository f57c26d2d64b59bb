//! Checks that the core compiles for targets without a standard library.

use crate::toolchain::{self, Toolchain};
use crate::{Failure, files};

/// A Cortex-M3, a processor without compare-and-swap, a RISC-V, and WebAssembly without a host.
const TARGETS: [&str; 4] = [
    "thumbv7m-none-eabi",
    "thumbv6m-none-eabi",
    "riscv32imac-unknown-none-elf",
    "wasm32-unknown-unknown",
];

pub(crate) fn run(targets: &[&str]) -> Result<(), Failure> {
    let root = files::root();
    let mut failed = Vec::new();
    for target in if targets.is_empty() { &TARGETS } else { targets } {
        let toolchain =
            Toolchain::for_target(target).ok_or_else(|| toolchain::missing(&TARGETS))?;
        println!("{target}: with the toolchain: {toolchain:?}");
        let mut command = toolchain.cargo();
        // What is built for these targets, and linked, are the images of the firmware and of WebAssembly.
        command.current_dir(&root).args(["check", "--quiet"]);
        command.args(["--package", "mcp-sansio", "--package", "mcp-sansio-oauth"]);
        command.args(["--target", target]).arg("--target-dir").arg(root.join("target/no-std"));
        if *target == "thumbv6m-none-eabi" {
            // Handlers need `alloc::sync::Arc`, which this target lacks.
            command.args(["--package", "mcp-sansio-sync"]);
            command.args(["--features", "client,http,recording,server"]);
            command.args(["--features", "mcp-sansio-sync/critical-section"]);
        } else {
            command.args(["--package", "mcp-sansio-handlers", "--package", "mcp-sansio-test"]);
            command.args(["--package", "mcp-sansio-extensions"]);
            command.args(["--features", "client,http"]);
        }
        if !command.status()?.success() {
            failed.push(*target);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("the core does not build for {}", failed.join(", "))))
}
