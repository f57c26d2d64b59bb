//! Client and server on sockets in one process.

use std::io::{Read, Write};

use adapter_tests::{Pinger, panicking_host, panicking_server, ping, quiet, survive};
use mcp_sansio_tokio::{TokioStream, drive, now, seed};
use tokio::net::{TcpListener, TcpStream};

/// Returns a message of 1 MiB, including the line end.
fn large() -> Vec<u8> {
    let mut line = vec![b'x'; 1 << 20];
    line[(1 << 20) - 1] = b'\n';
    line
}

#[tokio::test]
async fn a_server_and_a_client_meet_on_a_port() {
    // Rule: [STDIO-021].
    const COUNT: usize = 50_000;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        drive(quiet().endpoint(7).unwrap(), TokioStream::from(socket)).await
    });
    let socket = TcpStream::connect(address).await.unwrap();
    assert!(!socket.nodelay().unwrap());
    let output: String = (0..COUNT).map(ping).collect();
    let mut client = drive(Pinger::new(output.into_bytes(), COUNT), TokioStream::from(socket));
    (&mut client).await.unwrap();
    assert_eq!(client.endpoint().received, COUNT);
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn two_sides_that_both_write_first_do_not_block_each_other() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (there, here) =
        tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    let [mut there, mut here] = [there.unwrap(), here.unwrap().0]
        .map(|socket| drive(Pinger::new(large().repeat(10), 10), TokioStream::from(socket)));
    let (one, other) = tokio::join!(&mut there, &mut here);
    one.unwrap();
    other.unwrap();
    for driver in [there, here] {
        assert_eq!(driver.endpoint().received_length, 10 * ((1 << 20) - 1));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_peer_may_write_everything_before_it_reads() {
    let (mut theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let stream = TokioStream::from(tokio::net::UnixStream::from_std(ours).unwrap());
    let naive = tokio::task::spawn_blocking(move || {
        theirs.write_all(&large().repeat(10)).unwrap();
        let mut answer = Vec::new();
        theirs.read_to_end(&mut answer).unwrap();
        answer.len()
    });
    let mut driver = drive(Pinger::new(large().repeat(10), 10), stream);
    (&mut driver).await.unwrap();
    assert_eq!(driver.endpoint().received, 10);
    assert_eq!(naive.await.unwrap(), 10 << 20);
}

#[cfg(unix)]
#[tokio::test]
async fn panics_on_both_sides_cost_their_requests_and_not_the_connection() {
    let (there, here) = tokio::net::UnixStream::pair().unwrap();
    let (client, endpoint) = panicking_host().connect(seed(), now());
    let server = drive(panicking_server().endpoint(seed()).unwrap(), TokioStream::from(there));
    let host = drive(endpoint, TokioStream::from(here));
    let (ended, other, ()) = tokio::join!(server, host, survive(client));
    ended.unwrap();
    other.unwrap();
}
