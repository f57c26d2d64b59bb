//! The ends of a transport on tokio.

use std::pin::Pin;
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio_test::transport::{Ends, Promises, Side};
use mcp_sansio_tokio as mcp;
use mcp_sansio_tokio::adapter::ByteStream;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::{AbortHandle, JoinSet};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two streams for each connection, of the client and of the server.
pub(crate) struct TokioEnds<F> {
    promises: Promises,
    open: F,
    runtime: Runtime,
    drivers: JoinSet<()>,
    /// The drivers of the client and of the server.
    sides: Vec<AbortHandle>,
    cuts: usize,
}

impl<F, A, B> TokioEnds<F>
where
    F: AsyncFnMut() -> (A, B),
    A: ByteStream + Send + 'static,
    B: ByteStream + Send + 'static,
{
    pub(crate) fn new(promises: Promises, open: F) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (drivers, sides) = (JoinSet::new(), Vec::new());
        Self { promises, open, runtime, drivers, sides, cuts: 0 }
    }
}

impl<F, A, B> Ends for TokioEnds<F>
where
    F: AsyncFnMut() -> (A, B),
    A: ByteStream + Send + 'static,
    B: ByteStream + Send + 'static,
{
    fn promises(&self) -> Promises {
        self.promises
    }

    fn now(&self) -> Instant {
        mcp::now()
    }

    fn connect(&mut self, client: Side, server: Side) {
        let Self { open, runtime, drivers, sides, .. } = self;
        drivers.abort_all();
        let (near, far) = runtime.block_on(open());
        *sides = runtime.block_on(async {
            vec![
                drivers.spawn(async move { drop(mcp::drive(client, near).await) }),
                drivers.spawn(async move { drop(mcp::drive(server, far).await) }),
            ]
        });
    }

    fn run(&mut self, future: Pin<&mut dyn Future<Output = ()>>) -> bool {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, future).await.is_ok() })
    }

    /// Kills one side, in turn: the other must notice.
    fn cut(&mut self) {
        self.sides[self.cuts % 2].abort();
        self.cuts += 1;
    }
}

/// Returns two sockets that are connected.
pub(crate) async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (far, _) = listener.accept().await.unwrap();
    (near, far)
}
