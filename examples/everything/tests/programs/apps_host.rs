//! The host of MCP Apps: its HTTP responses, and its page in a browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::http_server_process::HttpServerProcess;

/// The names of a browser that needs no display.
const BROWSERS: [&str; 3] = ["chromium-headless-shell", "chromium", "google-chrome"];

/// Returns the response to a request.
fn ask(host: &HttpServerProcess, method: &str, path: &str, body: &str) -> String {
    let url = host.url("");
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn a_page_is_served_under_its_policy_and_calls_only_its_tools() {
    let host = HttpServerProcess::apps_host();
    let tools = ask(&host, "GET", "/tools", "");
    assert!(tools.contains(r#"{"name":"forecast","page":"ui://weather/forecast"}"#), "{tools}");
    let page = ask(&host, "GET", "/page?uri=ui%3A%2F%2Fweather%2Fforecast", "");
    let policy = "content-security-policy: default-src 'none'; script-src 'self' 'unsafe-inline'";
    assert!(page.contains(policy), "{page}");
    let unknown = ask(&host, "GET", "/page?uri=https%3A%2F%2Fexample.com", "");
    assert!(unknown.starts_with("HTTP/1.1 502"), "{unknown}");
    let call = |name: &str| {
        let body =
            format!(r#"{{"name":"{name}","arguments":{{"location":"Oslo"}},"from_page":true}}"#);
        ask(&host, "POST", "/call", &body)
    };
    assert!(call("refresh").contains(r#""text":"22.0""#));
    assert!(call("elsewhere").contains("has no tool"));
}

#[test]
fn a_browser_shows_the_page_with_the_result_and_blocks_its_network() {
    let Some(browser) = test_programs::find(&BROWSERS) else { return };
    let host = HttpServerProcess::apps_host();
    let shown = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000"])
        .args(["--dump-dom", &host.url("/")])
        .output()
        .unwrap();
    let document = String::from_utf8_lossy(&shown.stdout);
    assert!(document.contains("forecast: {\"location\":\"Oslo\",\"celsius\":21.5}"), "{document}");
    assert!(document.contains("the page says: Oslo 22.0, network blocked"), "{document}");
}
