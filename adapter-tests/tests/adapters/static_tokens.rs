//! A server with tokens of its own, without an authorization server.

use mcp_sansio_std::auth::protected_resource::{Operation, StaticTokens};
use mcp_sansio_std::http::Location;
use mcp_sansio_std::{
    Call, ClientError, ConnectError, Connector, Error, Host, HttpClientOptions, HttpConnection,
    NoArguments, Principal, ProtectedResource, Proxy, Server, VerifiedToken, Wait, connect_with,
    serve_http,
};

use mcp_sansio::peer::{Failure, TransportFailure};

/// Starts a server with two tools, of which `delete` needs a scope, and returns its URL.
fn serve() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let holder = |name: &str| VerifiedToken::new(Principal::new(name));
    let tokens = StaticTokens::new([
        ("ann-s3cret", holder("ann").scopes(["files:write"])),
        ("bob-s3cret", holder("bob")),
        ("old-s3cret", holder("old").expires_at(1)),
    ]);
    let tokens = tokens.unwrap();
    let resource = ProtectedResource::without_issuer(&url).unwrap();
    let resource = resource.scopes_for(Operation::tool("delete"), ["files:write"]).unwrap();
    let who = |call: Call<NoArguments>| {
        call.principal().map_or("anonymous", Principal::as_str).to_owned()
    };
    let server = Server::new("files", "1").tool("who", "Names the caller", who).tool(
        "delete",
        "Deletes everything",
        |_: Call<NoArguments>| "deleted",
    );
    let server = server.protect(resource, move |check| tokens.check(&check));
    std::thread::spawn(|| serve_http(server, listener).unwrap());
    url
}

fn connect(url: &str, token: Option<&str>) -> Result<HttpConnection, Error> {
    let options = HttpClientOptions::new(Location::parse(url).unwrap());
    let options = match token {
        Some(token) => options.header("Authorization", &format!("Bearer {token}")).unwrap(),
        None => options,
    };
    let connector = Connector::builder().proxy(Proxy::none()).build().unwrap();
    connect_with(options, &connector, &Host::new("host", "1"))
}

#[test]
fn each_token_identifies_its_holder() {
    let url = serve();
    for (token, name) in [("ann-s3cret", "ann"), ("bob-s3cret", "bob")] {
        let client = connect(&url, Some(token)).unwrap();
        let result = client.call_tool("who", &NoArguments {}).wait().unwrap();
        assert_eq!(result.content[0].as_text(), Some(name));
        let deleted = client.call_tool("delete", &NoArguments {}).wait();
        match deleted {
            Ok(_) => assert_eq!(name, "ann"),
            Err(ClientError::Failed(Failure::Transport(TransportFailure::Unauthorized {
                status,
                ..
            }))) => assert_eq!((name, status), ("bob", 403)),
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn other_requests_are_refused_without_metadata() {
    // Rule: [AUTHC-001] [AUTHS-001].
    let url = serve();
    for token in [None, Some("eve-s3cret"), Some("old-s3cret")] {
        let Error::Connect(error) = connect(&url, token).unwrap_err() else { panic!() };
        let ConnectError::Unauthorized { status, challenge, .. } = *error else {
            panic!("{error}")
        };
        let challenge = challenge.unwrap();
        assert_eq!(status, 401);
        assert!(challenge.starts_with("Bearer realm=\"MCP\""), "{challenge}");
        assert!(!challenge.contains("resource_metadata"), "{challenge}");
        assert_eq!(challenge.contains("invalid_token"), token.is_some(), "{challenge}");
    }
}
