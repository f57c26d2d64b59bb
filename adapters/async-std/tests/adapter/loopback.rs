//! The loopback redirect listener that receives the user after a browser sign-in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_sansio_async::loopback::CONNECTIONS_MAX;
use mcp_sansio_async_std::{Loopback, now};

const RIGHT: &str = "/callback?code=c&state=right";

fn bind() -> Loopback {
    async_io::block_on(Loopback::bind(0)).unwrap()
}

fn connect(loopback: &Loopback) -> TcpStream {
    let uri = loopback.redirect_uri();
    TcpStream::connect(uri.strip_prefix("http://").unwrap().split('/').next().unwrap()).unwrap()
}

/// Sends a request and returns the loopback's response, read until the connection closes.
fn ask(loopback: &Loopback, line: &str) -> String {
    let mut stream = connect(loopback);
    let host = stream.peer_addr().unwrap();
    write!(stream, "{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Waits for a redirect on a separate thread.
fn wait(loopback: &Loopback, state: &'static str) -> JoinHandle<Option<String>> {
    let loopback = loopback.clone();
    thread::spawn(move || {
        async_io::block_on(loopback.redirect(|target| target.ends_with(state), || ()))
    })
}

#[test]
fn only_the_matching_redirect_ends_the_wait() {
    // Rule: [AUTHC-048].
    let loopback = bind().application("the <tour>");
    let wait = wait(&loopback, "state=right");
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
    assert_eq!(wait.join().unwrap().as_deref(), Some(RIGHT));
}

#[test]
fn silent_connections_do_not_block_others() {
    let loopback = bind();
    let wait = wait(&loopback, "state=right");
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX + 2 {
        let mut stream = connect(&loopback);
        stream.write_all(b"GET ").unwrap();
        silent.push(stream);
    }
    // The number of open connections is limited: the oldest ones were closed.
    assert!(!matches!(silent[0].read(&mut [0]), Ok(1)));
    assert!(ask(&loopback, &format!("GET {RIGHT}")).starts_with("HTTP/1.1 200 "));
    assert_eq!(wait.join().unwrap().as_deref(), Some(RIGHT));
}

#[test]
fn waiting_for_a_user_who_does_not_return_times_out() {
    let time = Duration::from_millis(30);
    let loopback = bind().timeout(time);
    let _silent = connect(&loopback);
    let begun = now();
    assert_eq!(async_io::block_on(loopback.redirect(|_| true, || ())), None);
    assert!(now().saturating_since(begun) >= time);
}

#[test]
fn waits_are_served_in_order_and_each_redirect_is_accepted_once() {
    let loopback = bind().path("/back").unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let start = |state: &'static str| {
        let (loopback, opened) = (loopback.clone(), Arc::clone(&opened));
        thread::spawn(move || {
            let open = || {
                opened.fetch_add(1, Ordering::SeqCst);
            };
            async_io::block_on(loopback.redirect(|target| target.ends_with(state), open))
        })
    };
    let first = start("one");
    while opened.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    let second = start("two");
    // The second wait does not open a browser before the first one has finished.
    assert!(ask(&loopback, "GET /back?state=two").starts_with("HTTP/1.1 400 "));
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    assert!(ask(&loopback, "GET /back?state=one").starts_with("HTTP/1.1 200 "));
    assert_eq!(first.join().unwrap().as_deref(), Some("/back?state=one"));
    assert!(ask(&loopback, "GET /back?state=one").starts_with("HTTP/1.1 400 "));
    assert!(ask(&loopback, "GET /back?state=two").starts_with("HTTP/1.1 200 "));
    assert_eq!(second.join().unwrap().as_deref(), Some("/back?state=two"));
}

#[test]
fn a_dropped_wait_releases_the_listener() {
    let loopback = bind();
    let mut abandoned = Box::pin(loopback.redirect(|_| true, || ()));
    let poll = |cx: &mut Context<'_>| Poll::Ready(abandoned.as_mut().poll(cx).is_pending());
    assert!(async_io::block_on(poll_fn(poll)));
    drop(abandoned);
    let wait = wait(&loopback, "state=right");
    assert!(ask(&loopback, &format!("GET {RIGHT}")).starts_with("HTTP/1.1 200 "));
    assert_eq!(wait.join().unwrap().as_deref(), Some(RIGHT));
}
