//! The code of docs/guide/memory.md.

mod memory {
    use mcp_sansio::peer::{Limits, MessageLengths};

    const LENGTHS: MessageLengths = MessageLengths::new(1024, 512);
    const _: () = assert!(Limits::SMALL.server_memory_max(LENGTHS) < 112 * 1024);
}
