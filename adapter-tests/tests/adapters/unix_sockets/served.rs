//! Servers and clients of each adapter on Unix-domain sockets.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use adapter_tests::{block_on_async_std, block_on_smol};
use mcp_sansio::http::HttpServerOptions;
use mcp_sansio_handlers::{Call, Host, NoArguments, Server};
use mcp_sansio_tokio::adapter::http_server::UnixSocket;
use tokio::sync::oneshot;

/// An adapter and its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adapter {
    Tokio,
    Smol,
    AsyncStd,
    Std,
}

impl Adapter {
    pub(crate) const ALL: [Self; 4] = [Self::Tokio, Self::Smol, Self::AsyncStd, Self::Std];

    /// Calls the tool `who` with a new connection to the socket.
    pub(crate) fn who(self, path: &Path) -> Result<String, String> {
        match self {
            Self::Tokio => tokio_runtime().block_on(async {
                use mcp_sansio_tokio::connect_unix;
                let client = connect_unix(path, &host()).await.map_err(|it| it.to_string())?;
                let result = client.call_tool("who", &NoArguments {}).await;
                client.close().await;
                text(result)
            }),
            Self::Smol => block_on_smol(on_async_std(path)),
            Self::AsyncStd => block_on_async_std(on_async_std(path)),
            Self::Std => {
                use mcp_sansio_std::{Wait, connect_unix};
                let client = connect_unix(path, &host()).map_err(|it| it.to_string())?;
                let result = client.call_tool("who", &NoArguments {}).wait();
                client.close();
                text(result)
            }
        }
    }
}

async fn on_async_std(path: &Path) -> Result<String, String> {
    use mcp_sansio_async_std::connect_unix;
    let client = connect_unix(path, &host()).await.map_err(|it| it.to_string())?;
    let result = client.call_tool("who", &NoArguments {}).await;
    client.close().await;
    text(result)
}

pub(crate) fn host() -> Host {
    Host::new("host", "1")
}

pub(crate) fn text(
    result: Result<mcp_sansio::protocol::CallToolResult, mcp_sansio_handlers::ClientError>,
) -> Result<String, String> {
    let result = result.map_err(|error| error.to_string())?;
    Ok(result.content[0].as_text().unwrap_or_default().to_owned())
}

/// Returns a server whose tool `who` names the caller.
pub(crate) fn server() -> Server {
    Server::new("local", "1").tool("who", "Names the caller", |call: Call<NoArguments>| {
        call.principal().map_or_else(|| "anonymous".to_owned(), |who| who.as_str().to_owned())
    })
}

pub(crate) fn tokio_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A folder of its own for each test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short, since the path of a socket is limited.
        let folder = format!("mcp-unix-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("mcp.sock")
    }

    /// Leaves a socket behind that no process listens on.
    pub(crate) fn stale(&self) -> PathBuf {
        let path = self.socket();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(crate) struct Served {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn new(adapter: Adapter, socket: UnixSocket) -> Self {
        Self::with(adapter, socket, true)
    }

    pub(crate) fn with(adapter: Adapter, socket: UnixSocket, principals: bool) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let options = HttpServerOptions::new();
        let stopped = async move { drop(stopped.await) };
        let serve = move || match adapter {
            Adapter::Tokio => tokio_runtime().block_on(async {
                use mcp_sansio_tokio::{HttpListener, HttpService};
                let service = HttpService::new(&server(), options).unwrap();
                let listener = HttpListener::try_from(socket).unwrap();
                listener.peer_principals(principals).serve(service, stopped).await;
            }),
            Adapter::Smol | Adapter::AsyncStd => {
                use mcp_sansio_async_std::{HttpListener, HttpService};
                let serve = async {
                    let service = HttpService::new(&server(), options).unwrap();
                    let listener = HttpListener::try_from(socket).unwrap();
                    listener.peer_principals(principals).serve(service, stopped).await;
                };
                match adapter {
                    Adapter::Smol => block_on_smol(serve),
                    _ => block_on_async_std(serve),
                }
            }
            Adapter::Std => {
                use mcp_sansio_std::{BackgroundListener, HttpListener, HttpService, Wait};
                let service = HttpService::new(&server(), options).unwrap();
                let listener = HttpListener::try_from(socket).unwrap();
                let listener = listener.peer_principals(principals);
                let serving = BackgroundListener::spawn(listener, service).unwrap();
                assert_eq!(serving.address(), None);
                stopped.wait();
                serving.stop();
            }
        };
        Self { stop: Some(stop), thread: Some(thread::spawn(serve)) }
    }

    /// Stops the server and waits for its end.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}
