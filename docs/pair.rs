// A client and a server in one process, for the programs in the guide: include this file in a hidden line.

/// Connects `host` to `server` over a pipe in memory; both are driven by tasks of their own.
#[allow(dead_code, reason = "not every page that includes this file uses it")]
async fn pair(
    server: mcp_sansio_tokio::Server,
    host: &mcp_sansio_tokio::Host,
) -> Result<mcp_sansio_tokio::Client, mcp_sansio_tokio::Error> {
    use mcp_sansio_tokio::{self as mcp, TokioStream};

    let (near, far) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(mcp::serve(server, reader, writer));
    let (reader, writer) = tokio::io::split(near);
    let (client, endpoint) = host.connect(mcp::seed(), mcp::now());
    tokio::spawn(mcp::drive(endpoint, TokioStream::new(reader, writer)));
    client.opened().await.map_err(mcp::ClientError::from)?;
    Ok(client)
}
