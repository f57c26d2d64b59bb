//! The loopback redirect listener that receives the user after a browser sign-in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_sansio_async::loopback::{CONNECTIONS_MAX, USER_TIME};
use mcp_sansio_tokio::Loopback;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const RIGHT: &str = "/callback?code=c&state=right";

fn is_right(target: &str) -> bool {
    target.ends_with("state=right")
}

/// Returns the address of the loopback listener.
fn host(loopback: &Loopback) -> String {
    let uri = loopback.redirect_uri();
    uri.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned()
}

/// Sends a request and returns the loopback's response, read until the connection closes.
async fn ask(loopback: &Loopback, line: &str) -> String {
    let host = &host(loopback);
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// Waits for the right redirect in a separate task.
fn wait(loopback: &Loopback) -> tokio::task::JoinHandle<Option<String>> {
    let loopback = loopback.clone();
    tokio::spawn(async move { loopback.redirect(is_right, || ()).await })
}

#[tokio::test]
async fn only_the_matching_redirect_ends_the_wait() {
    // Rule: [AUTHC-048].
    let loopback = Loopback::bind(0).await.unwrap().application("the <tour>");
    let wait = wait(&loopback);
    for (line, status) in [
        ("GET /favicon.ico", "HTTP/1.1 404 "),
        ("GET /callback", "HTTP/1.1 400 "),
        ("GET /callback?code=c&state=forged", "HTTP/1.1 400 "),
        ("GET /other?code=c&state=right", "HTTP/1.1 404 "),
        ("POST /callback?code=c&state=right", "HTTP/1.1 405 "),
        ("nonsense", "HTTP/1.1 400 "),
    ] {
        let response = ask(&loopback, line).await;
        assert!(response.starts_with(status), "{line}: {response}");
        assert!(!wait.is_finished(), "{line}");
    }
    let response = ask(&loopback, &format!("GET {RIGHT}")).await;
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    assert!(response.contains("to the &lt;tour&gt;."), "{response}");
    assert_eq!(wait.await.unwrap().as_deref(), Some(RIGHT));
}

#[tokio::test]
async fn silent_connections_do_not_block_others() {
    let loopback = Loopback::bind(0).await.unwrap();
    let wait = wait(&loopback);
    let address = host(&loopback);
    let mut silent = Vec::new();
    for _ in 0..CONNECTIONS_MAX + 2 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET ").await.unwrap();
        silent.push(stream);
    }
    // The number of open connections is limited: the oldest ones were closed.
    assert!(silent[0].read_u8().await.is_err());
    assert!(ask(&loopback, &format!("GET {RIGHT}")).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(wait.await.unwrap().as_deref(), Some(RIGHT));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_user_who_does_not_return_times_out() {
    let loopback = Loopback::bind(0).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(loopback.redirect(is_right, || ()).await, None);
    assert!(begun.elapsed() >= USER_TIME);
}

#[tokio::test(start_paused = true)]
async fn a_user_has_the_full_time_for_each_of_two_sign_ins() {
    let loopback = Loopback::bind(0).await.unwrap();
    let begun = tokio::time::Instant::now();
    let waits =
        tokio::join!(loopback.redirect(is_right, || ()), loopback.redirect(is_right, || ()));
    assert_eq!(waits, (None, None));
    assert!(begun.elapsed() >= 2 * USER_TIME);
}

#[tokio::test]
async fn waits_are_served_in_order_and_each_redirect_is_accepted_once() {
    let loopback = Loopback::bind(0).await.unwrap().path("/back").unwrap();
    assert!(loopback.redirect_uri().ends_with("/back"));
    let opened = Arc::new(AtomicUsize::new(0));
    let start = |state: &'static str| {
        let (loopback, opened) = (loopback.clone(), Arc::clone(&opened));
        async move {
            let open = || {
                opened.fetch_add(1, Ordering::Relaxed);
            };
            loopback.redirect(|target| target.ends_with(state), open).await
        }
    };
    let first = tokio::spawn(start("one"));
    while opened.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    let second = tokio::spawn(start("two"));
    // The second wait does not open a browser before the first one has finished.
    assert!(ask(&loopback, "GET /back?state=two").await.starts_with("HTTP/1.1 400 "));
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    assert!(ask(&loopback, "GET /back?state=one").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(first.await.unwrap().as_deref(), Some("/back?state=one"));
    assert!(ask(&loopback, "GET /back?state=one").await.starts_with("HTTP/1.1 400 "));
    assert!(ask(&loopback, "GET /back?state=two").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(second.await.unwrap().as_deref(), Some("/back?state=two"));
}

#[tokio::test]
async fn a_dropped_wait_releases_the_listener() {
    let loopback = Loopback::bind(0).await.unwrap();
    let abandoned = wait(&loopback);
    ask(&loopback, "GET /favicon.ico").await;
    abandoned.abort();
    let wait = wait(&loopback);
    assert!(ask(&loopback, &format!("GET {RIGHT}")).await.starts_with("HTTP/1.1 200 "));
    assert_eq!(wait.await.unwrap().as_deref(), Some(RIGHT));
}
