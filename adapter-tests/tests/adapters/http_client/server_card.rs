//! The card of a server, read over a socket.

use mcp_sansio_tokio::auth::protected_resource::StaticTokens;
use mcp_sansio_tokio::http::Location;
use mcp_sansio_tokio::{Connector, ProtectedResource, Server, ServerCard, serve_http};
use tokio::net::TcpListener;

use super::within;

#[tokio::test]
async fn the_card_of_a_protected_server_is_public() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let card = ServerCard::new("com.example/weather", "1.0.0", "Weather at a place").unwrap();
    let card = card.remote(&url).unwrap();
    let tokens = StaticTokens::new::<&str>([]).unwrap();
    let resource = ProtectedResource::without_issuer(&url).unwrap();
    let server = Server::new("weather", "1.0.0")
        .protect(resource, move |check| tokens.check(&check))
        .card(card.clone());
    tokio::spawn(serve_http(server, listener));
    within(async {
        let connector = Connector::new().unwrap();
        let address = ServerCard::url_of(&Location::parse(&url).unwrap());
        let document = connector.fetch(address).await.unwrap();
        let (parsed, omissions) = ServerCard::parse(&document).unwrap();
        assert_eq!((parsed, omissions.count()), (card, 0));
        assert!(connector.fetch(format!("{url}/other")).await.is_err());
    })
    .await;
}
