//! Checks that the core compiles for targets without a standard library.

use crate::toolchain::{self, Toolchain};
use crate::{Failure, files};

/// A processor without compare-and-swap, and a RISC-V. The images of the firmware and of WebAssembly are
/// linked for two more.
const TARGETS: [&str; 2] = ["thumbv6m-none-eabi", "riscv32imac-unknown-none-elf"];

pub(crate) fn run(targets: &[&str]) -> Result<(), Failure> {
    let root = files::root();
    let mut failed = Vec::new();
    for target in if targets.is_empty() { &TARGETS } else { targets } {
        let toolchain =
            Toolchain::for_target(target).ok_or_else(|| toolchain::missing(&TARGETS))?;
        println!("{target}: with the toolchain: {toolchain:?}");
        let others = if *target == "thumbv6m-none-eabi" {
            // Handlers need `alloc::sync::Arc`, which this target lacks.
            "-p mcp-sansio-sync -F client,http,recording,server -F mcp-sansio-sync/critical-section"
        } else {
            "-p mcp-sansio-handlers -p mcp-sansio-test -p mcp-sansio-extensions -F client,http"
        };
        // Apart, because the other packages turn on the feature `alloc` of the machine.
        let others = format!("-p mcp-sansio -p mcp-sansio-oauth {others}");
        for packages in ["-p mcp-sansio-fixed", &others] {
            let mut command = toolchain.cargo();
            command.current_dir(&root).args(["check", "--quiet", "--target", target]);
            command.arg("--target-dir").arg(root.join("target/no-std"));
            if !command.args(packages.split(' ')).status()?.success() {
                failed.push(*target);
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Failed(format!("the core does not build for {}", failed.join(", "))))
}
