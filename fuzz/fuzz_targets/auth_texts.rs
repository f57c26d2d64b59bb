#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| mcp_sansio_fuzz_bodies::auth_texts(bytes));
