//! Every transport, through the conformance harness, and what is particular to it.

mod gatt;
#[cfg(feature = "mqtt")]
mod mqtt;
mod packets;
mod tokio_ends;
mod websocket;

use mcp_sansio_test::transport::{Promises, check};
use mcp_sansio_tokio::TokioStream;
use tokio::net::UnixStream;

use tokio_ends::{TokioEnds, sockets};

#[test]
fn tcp_conforms() {
    let report = check(&mut TokioEnds::new(Promises::BYTES, async || {
        let (near, far) = sockets().await;
        (TokioStream::from(near), TokioStream::from(far))
    }));
    println!("TCP: {report}");
    assert!(report.cuts > 50);
}

#[test]
fn pipes_conform() {
    let report = check(&mut TokioEnds::new(Promises::BYTES, async || {
        let (near, far) = UnixStream::pair().unwrap();
        (TokioStream::from(near), TokioStream::from(far))
    }));
    println!("a pair of Unix sockets, as of standard streams: {report}");
}
