//! Programs as an application would have them: each is a process, with a client of this project.

use mcp_sansio_std::http::Location;
use mcp_sansio_std::protocol::ResourceContents;
use mcp_sansio_std::{
    Client, Connector, Host, HttpClientOptions, HttpConnection, NoArguments, Proxy, Wait,
    connect_with,
};
use serde_json::{Value, json};

use crate::http_server_process::HttpServerProcess;
use crate::process::run;

fn call(client: &Client, tool: &str, arguments: &Value) -> Result<String, String> {
    let result = client.call_tool(tool, arguments).wait().map_err(|error| error.to_string())?;
    let text = result.first_text().unwrap_or_default().to_owned();
    if result.is_error == Some(true) { Err(text) } else { Ok(text) }
}

fn read(client: &Client, uri: &str) -> String {
    let result = client.read_resource(uri).wait().unwrap();
    let [ResourceContents::Text(contents)] = &result.contents[..] else { panic!("{result:?}") };
    contents.text.clone()
}

/// Returns the titles and the URIs of all resources.
fn resources(client: &Client) -> Vec<(String, String)> {
    let resources = client.all_resources().wait().unwrap();
    resources.iter().map(|it| (it.name.clone(), it.uri.clone())).collect()
}

fn connect(url: &str, token: Option<&str>) -> Result<HttpConnection, mcp_sansio_std::Error> {
    let options = HttpClientOptions::new(Location::parse(url).unwrap());
    let options = match token {
        Some(token) => options.header("Authorization", &format!("Bearer {token}")).unwrap(),
        None => options,
    };
    let connector = Connector::builder().proxy(Proxy::none()).build().unwrap();
    connect_with(options, &connector, &Host::new("test", "1.0.0"))
}

#[test]
fn each_user_sees_the_own_items_only() {
    let tokens = [("ANN_TOKEN", "ann-s3cret"), ("BOB_TOKEN", "bob-s3cret")];
    let server = HttpServerProcess::at_address("per-user", &tokens, "/mcp\n");
    let url = server.url("/mcp");
    assert!(connect(&url, None).is_err());
    for (token, name, other, may_purge) in
        [("ann-s3cret", "ann", "bob", true), ("bob-s3cret", "bob", "ann", false)]
    {
        let client = connect(&url, Some(token)).unwrap();
        let mut tools: Vec<_> =
            client.all_tools().wait().unwrap().into_iter().map(|it| it.name).collect();
        tools.sort();
        assert_eq!(tools, if may_purge { &["purge", "whoami"][..] } else { &["whoami"] });
        assert_eq!(call(&client, "whoami", &json!({})).as_deref(), Ok(name));
        assert_eq!(client.call_tool("purge", &NoArguments {}).wait().is_ok(), may_purge);
        let uri = format!("diary:///{name}");
        assert_eq!(resources(&client), [("Diary".to_owned(), uri.clone())]);
        assert_eq!(read(&client, &uri), format!("The diary of {name}"));
        let foreign = client.read_resource(&format!("diary:///{other}")).wait();
        assert!(foreign.unwrap_err().is_resource_not_found());
    }
}

#[test]
fn tools_are_added_at_runtime_for_all_clients() {
    let server = HttpServerProcess::at_address("runtime-tools", &[], "/mcp\n");
    let (teacher, pupil) = (connect(&server.url("/mcp"), None), connect(&server.url("/mcp"), None));
    let (teacher, pupil) = (teacher.unwrap(), pupil.unwrap());
    assert!(call(&pupil, "greet", &json!({})).is_err());
    let greet = json!({ "name": "greet", "text": "Good morning!" });
    call(&teacher, "teach", &greet).unwrap();
    assert_eq!(call(&pupil, "greet", &json!({})).as_deref(), Ok("Good morning!"));
    let again = call(&teacher, "teach", &greet).unwrap_err();
    assert!(again.contains("there is a tool \"greet\" already"), "{again}");
}

#[test]
fn messages_travel_over_web_sockets() {
    let server = HttpServerProcess::at_address("websocket", &[], "\n");
    for _ in 0..2 {
        let outcome = run("websocket", [server.url("")]);
        assert_eq!((outcome.code, &*outcome.stdout), (Some(0), "Hello!\n"), "{outcome:?}");
    }
    assert_eq!(upgrade(&server.url(""), ""), 101);
    assert_eq!(upgrade(&server.url(""), "Origin: https://evil.example\r\n"), 403);
}

/// Asks for a WebSocket with additional fields; returns the status of the response.
fn upgrade(url: &str, fields: &str) -> u16 {
    use std::io::{Read, Write};
    let address = url.strip_prefix("ws://").unwrap();
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{fields}\r\n"
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut start = [0; 12];
    socket.read_exact(&mut start).unwrap();
    str::from_utf8(&start[9..]).unwrap().parse().unwrap()
}

#[test]
fn the_card_of_a_server_is_read_without_a_connection() {
    let server = HttpServerProcess::start("everything-server", &["--auth"]);
    let url = server.url("/mcp");
    let outcome = run("mcp-inspect", ["card", "--url", &url]);
    let expected = format!("  streamable-http {url} (2024-11-05, 2025-03-26, ");
    assert!(outcome.stdout.starts_with("example.mcp-sansio/demo "), "{outcome:?}");
    assert!(outcome.stdout.contains(&expected), "{outcome:?}");
    assert_eq!(run("mcp-inspect", ["card", "--", "server"]).code, Some(2));
}
