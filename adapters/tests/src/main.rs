//! Serves [`quiet`] on the standard streams.

use std::process::ExitCode;

use adapter_tests::quiet;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) if runtime.block_on(mcp_sansio_tokio::serve_stdio(quiet())).is_ok() => {
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}
