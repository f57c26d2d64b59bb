//! The card of a server, which is read without a connection.

use mcp_sansio::http::HttpClientOptions;
use mcp_sansio_handlers::ServerCard;
use mcp_sansio_tokio::Connector;

use crate::options::Options;
use crate::terminal::show;

/// Fetches and prints the card.
pub(super) async fn show_card(options: &Options, server: &HttpClientOptions) -> Result<(), String> {
    let address = ServerCard::url_of(server.url());
    let connector = Connector::builder().connect_timeout(options.patience());
    #[cfg(unix)]
    let connector = match &options.unix {
        Some(path) => connector.unix_socket(path),
        None => connector,
    };
    let connector = connector.build().map_err(|error| error.to_string())?;
    let document = connector.fetch(address.clone()).await.map_err(|error| error.to_string())?;
    let (card, omissions) =
        ServerCard::parse(&document).map_err(|error| format!("{address}: {error}"))?;
    if !omissions.is_empty() {
        super::remark_omissions(&omissions);
    }
    if options.json {
        show(&serde_json::to_string(&card).map_err(|error| error.to_string())?);
        return Ok(());
    }
    show(&format!("{} {}: {}", card.name, card.version, card.description));
    for remote in card.remotes {
        let revisions = remote.supported_protocol_versions.join(", ");
        show(&format!("  {} {} ({revisions})", remote.transport, remote.url));
    }
    Ok(())
}
