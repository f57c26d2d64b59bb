//! Serves [`quiet`] on standard input and output, on the runtime named by the first argument; with a
//! second argument [`fragile`].

use std::process::ExitCode;

use adapter_tests::{Runtime, fragile, quiet};

fn main() -> ExitCode {
    let Some(runtime) = std::env::args().nth(1).and_then(|name| Runtime::named(&name)) else {
        return ExitCode::FAILURE;
    };
    let server = if std::env::args().nth(2).is_some() { fragile() } else { quiet() };
    let served = match runtime {
        Runtime::Tokio => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .is_ok_and(|tokio| tokio.block_on(mcp_sansio_tokio::serve_stdio(server)).is_ok()),
        Runtime::Smol => smol::block_on(mcp_sansio_async_std::serve_stdio(server)).is_ok(),
        Runtime::AsyncStd => {
            async_std::task::block_on(mcp_sansio_async_std::serve_stdio(server)).is_ok()
        }
    };
    if served { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
