//! Client and server on sockets in one process.

use std::os::unix::net::UnixStream;

use adapter_tests::{
    Pinger, block_on_async_std, block_on_smol, panicking_host, panicking_server, ping, quiet,
    survive,
};
use mcp_sansio_async_std::adapter::ByteStream;
use mcp_sansio_async_std::{SocketStream, drive, now, seed, serve};
use smol::future::zip;

/// Returns a message of 1 MiB, including the line end.
fn large() -> Vec<u8> {
    let mut line = vec![b'x'; 1 << 20];
    line[(1 << 20) - 1] = b'\n';
    line
}

async fn both_write_first(there: impl ByteStream, here: impl ByteStream) {
    let mut there = drive(Pinger::new(large().repeat(10), 10), there);
    let mut here = drive(Pinger::new(large().repeat(10), 10), here);
    let (one, other) = zip(&mut there, &mut here).await;
    one.unwrap();
    other.unwrap();
    assert_eq!(there.endpoint().received_length, 10 * ((1 << 20) - 1));
    assert_eq!(here.endpoint().received_length, 10 * ((1 << 20) - 1));
}

#[test]
fn a_server_and_a_client_meet_on_a_port_of_smol() {
    // Rule: [STDIO-021].
    const COUNT: usize = 50_000;
    block_on_smol(async {
        let listener = smol::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = smol::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            drive(quiet().endpoint(7).unwrap(), SocketStream::from(socket)).await
        });
        let socket = smol::net::TcpStream::connect(address).await.unwrap();
        let stream = SocketStream::from(socket.clone());
        assert!(socket.nodelay().unwrap());
        let output: String = (0..COUNT).map(ping).collect();
        let mut client = drive(Pinger::new(output.into_bytes(), COUNT), stream);
        (&mut client).await.unwrap();
        assert_eq!(client.endpoint().received, COUNT);
        server.await.unwrap();
    });
}

#[test]
fn a_server_and_a_client_meet_on_a_port_of_async_std() {
    // Rule: [STDIO-021].
    const COUNT: usize = 50_000;
    block_on_async_std(async {
        let listener = async_std::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async_std::task::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let stream = SocketStream::try_from(socket).unwrap();
            drive(quiet().endpoint(7).unwrap(), stream).await
        });
        let socket = async_std::net::TcpStream::connect(address).await.unwrap();
        let stream = SocketStream::try_from(socket).unwrap();
        let output: String = (0..COUNT).map(ping).collect();
        let mut client = drive(Pinger::new(output.into_bytes(), COUNT), stream);
        (&mut client).await.unwrap();
        assert_eq!(client.endpoint().received, COUNT);
        server.await.unwrap();
    });
}

#[test]
fn two_sides_that_both_write_first_do_not_block_each_other() {
    block_on_smol(async {
        let (there, here) = smol::Async::<UnixStream>::pair().unwrap();
        both_write_first(SocketStream::from(there), SocketStream::from(here)).await;

        let (there, here) = smol::net::unix::UnixStream::pair().unwrap();
        both_write_first(SocketStream::from(there), SocketStream::from(here)).await;

        let (there, here) = async_std::os::unix::net::UnixStream::pair().unwrap();
        both_write_first(
            SocketStream::try_from(there).unwrap(),
            SocketStream::try_from(here).unwrap(),
        )
        .await;
    });
}

#[test]
fn a_server_serves_on_any_reader_and_writer() {
    block_on_smol(async {
        let (there, here) = smol::net::unix::UnixStream::pair().unwrap();
        let server = serve(quiet(), there.clone(), there);
        let mut client = drive(Pinger::new(ping(1).into_bytes(), 1), SocketStream::from(here));
        let (served, driven) = zip(server, &mut client).await;
        served.unwrap();
        driven.unwrap();
        assert_eq!(client.endpoint().received, 1);
    });
}

async fn panic_on_both_sides(there: impl ByteStream, here: impl ByteStream) {
    let (client, endpoint) = panicking_host().connect(seed(), now());
    let server = drive(panicking_server().endpoint(seed()).unwrap(), there);
    let host = drive(endpoint, here);
    let ((ended, other), ()) = zip(zip(server, host), survive(client)).await;
    ended.unwrap();
    other.unwrap();
}

#[test]
fn panics_on_both_sides_cost_their_requests_and_not_the_connection_on_smol() {
    block_on_smol(async {
        let (there, here) = smol::net::unix::UnixStream::pair().unwrap();
        panic_on_both_sides(SocketStream::from(there), SocketStream::from(here)).await;
    });
}

#[test]
fn panics_on_both_sides_cost_their_requests_and_not_the_connection_on_async_std() {
    block_on_async_std(async {
        let (there, here) = async_std::os::unix::net::UnixStream::pair().unwrap();
        let streams = [there, here].map(|stream| SocketStream::try_from(stream).unwrap());
        let [there, here] = streams;
        panic_on_both_sides(there, here).await;
    });
}
