//! The redirects of users who sign in with a browser.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use mcp_sansio_std::adapter::loopback::CONNECTIONS_MAX;
use mcp_sansio_std::{Loopback, block_on, now};

const RIGHT: &str = "/callback?code=c&state=right";

fn is_right(target: &str) -> bool {
    target.ends_with("state=right")
}

/// Returns the address of the loopback.
fn host(loopback: &Loopback) -> String {
    let uri = loopback.redirect_uri();
    uri.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned()
}

/// Waits for a redirect.
fn redirect(loopback: &Loopback, answers: impl Fn(&str) -> bool) -> Option<String> {
    block_on(loopback.redirect(answers, || ()))
}

/// Returns the loopback's complete response to a request.
fn ask(loopback: &Loopback, line: &str) -> String {
    let host = &host(loopback);
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Runs `browser` while another thread waits for the right redirect. Returns the result of the
/// wait.
fn while_waiting(
    loopback: &Loopback,
    browser: impl FnOnce(&ScopedJoinHandle<'_, Option<String>>),
) -> Option<String> {
    thread::scope(|scope| {
        let wait = scope.spawn(|| redirect(loopback, is_right));
        browser(&wait);
        wait.join().unwrap()
    })
}

#[test]
fn only_the_redirect_that_answers_ends_the_wait() {
    // Rule: [AUTHC-048].
    let loopback = block_on(Loopback::bind(0)).unwrap().application("the <tour>");
    let redirect = while_waiting(&loopback, |wait| {
        for (line, status) in [
            ("GET /favicon.ico", "HTTP/1.1 404 "),
            ("GET /callback", "HTTP/1.1 400 "),
            ("GET /callback?code=c&state=forged", "HTTP/1.1 400 "),
            ("GET /other?code=c&state=right", "HTTP/1.1 404 "),
            ("POST /callback?code=c&state=right", "HTTP/1.1 405 "),
            ("nonsense", "HTTP/1.1 400 "),
        ] {
            let response = ask(&loopback, line);
            assert!(response.starts_with(status), "{line}: {response}");
            assert!(!wait.is_finished(), "{line}");
        }
        let response = ask(&loopback, &format!("GET {RIGHT}"));
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        assert!(response.contains("to the &lt;tour&gt;."), "{response}");
    });
    assert_eq!(redirect.as_deref(), Some(RIGHT));
}

#[test]
fn silent_connections_do_not_block_others() {
    let loopback = block_on(Loopback::bind(0)).unwrap();
    let redirect = while_waiting(&loopback, |_| {
        let mut silent: Vec<_> = (0..CONNECTIONS_MAX + 2)
            .map(|_| {
                let stream = TcpStream::connect(host(&loopback));
                let mut stream = stream.unwrap();
                stream.write_all(b"GET ").unwrap();
                stream
            })
            .collect();
        // The limit on connections has closed the oldest ones.
        assert!(!matches!(silent[0].read(&mut [0]), Ok(1)));
        assert!(ask(&loopback, &format!("GET {RIGHT}")).starts_with("HTTP/1.1 200 "));
    });
    assert_eq!(redirect.as_deref(), Some(RIGHT));
}

#[test]
fn waiting_for_a_user_who_does_not_return_times_out() {
    let time = Duration::from_millis(30);
    let loopback = block_on(Loopback::bind(0)).unwrap().timeout(time);
    let _silent = TcpStream::connect(host(&loopback)).unwrap();
    let begun = now();
    assert_eq!(redirect(&loopback, is_right), None);
    assert!(now().saturating_since(begun) >= time);
}

#[test]
fn a_redirect_answers_once() {
    let loopback = block_on(Loopback::bind(0)).unwrap().path("/back").unwrap();
    assert!(loopback.redirect_uri().ends_with("/back"));
    for (state, other) in [("one", "two"), ("two", "one")] {
        let redirect = thread::scope(|scope| {
            let wait = scope.spawn(|| redirect(&loopback, |it| it.ends_with(state)));
            let foreign = ask(&loopback, &format!("GET /back?state={other}"));
            assert!(foreign.starts_with("HTTP/1.1 400 "), "{foreign}");
            let response = ask(&loopback, &format!("GET /back?state={state}"));
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
            wait.join().unwrap()
        });
        assert_eq!(redirect, Some(format!("/back?state={state}")));
    }
}

#[test]
fn a_request_may_come_in_pieces() {
    let loopback = block_on(Loopback::bind(0)).unwrap();
    let host = host(&loopback);
    let redirect = while_waiting(&loopback, |_| {
        let mut stream = TcpStream::connect(&host).unwrap();
        let host = format!("Host: {host}");
        for piece in ["GET /callback?code=c&", "state=right HTTP/1.1\r\n", &host, "\r\n"] {
            stream.write_all(piece.as_bytes()).unwrap();
            // Meanwhile other requests are answered.
            ask(&loopback, "GET /favicon.ico");
        }
        stream.write_all(b"\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    });
    assert_eq!(redirect.as_deref(), Some(RIGHT));
}
