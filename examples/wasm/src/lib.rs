//! An MCP server in a WebAssembly module without any import: whoever loads it brings bytes and the
//! time, and takes bytes. What it exports is in `abi.rs`.

#![no_std]

extern crate alloc;

mod abi;
mod clock;
mod connection;
mod connections;
mod service;

use core::panic::PanicInfo;

use dlmalloc::GlobalDlmalloc;

#[global_allocator]
static HEAP: GlobalDlmalloc = GlobalDlmalloc;

/// Ends the call of the host with a trap. What was locked stays so, and later calls are refused.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
