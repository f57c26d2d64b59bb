//! The loopback redirect listener on any runtime.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mcp_sansio_examples::runtime::Runtime;
use mcp_sansio_oauth::client::{ActionFailure, AuthorizationRequest};
use tokio::sync::oneshot;

use crate::NAME;

/// The listener of a runtime, on a free port.
pub(super) enum Loopback {
    Tokio(mcp_sansio_tokio::Loopback),
    AsyncStd(mcp_sansio_async_std::Loopback),
    Std(Arc<mcp_sansio_std::Loopback>),
}

/// A pending redirect of a user.
type Redirect = Pin<Box<dyn Future<Output = Result<String, ActionFailure>> + Send>>;

impl Loopback {
    /// Opens a listener that waits for at most `time`.
    pub(super) async fn bind(runtime: Runtime, time: Duration) -> io::Result<Self> {
        Ok(match runtime {
            Runtime::Tokio => {
                let loopback = mcp_sansio_tokio::Loopback::bind(0).await?;
                Self::Tokio(loopback.application(NAME).timeout(time))
            }
            Runtime::Smol | Runtime::AsyncStd => {
                let loopback = mcp_sansio_async_std::Loopback::bind(0).await?;
                Self::AsyncStd(loopback.application(NAME).timeout(time))
            }
            Runtime::Std => {
                let loopback = mcp_sansio_std::Loopback::bind(0)?;
                Self::Std(Arc::new(loopback.application(NAME).timeout(time)))
            }
        })
    }

    pub(super) fn redirect_uri(&self) -> String {
        match self {
            Self::Tokio(loopback) => loopback.redirect_uri(),
            Self::AsyncStd(loopback) => loopback.redirect_uri(),
            Self::Std(loopback) => loopback.redirect_uri(),
        }
    }

    /// Shows the user the authorization page with `open` and waits for the redirect.
    pub(super) fn authorize(
        &self,
        request: AuthorizationRequest,
        open: impl FnOnce(&str) + Send + 'static,
    ) -> Redirect {
        match self {
            Self::Tokio(loopback) => Box::pin(loopback.authorize(request, open)),
            Self::AsyncStd(loopback) => Box::pin(loopback.authorize(request, open)),
            Self::Std(loopback) => {
                let loopback = Arc::clone(loopback);
                let (tell, told) = oneshot::channel();
                // This call blocks, so it gets a thread while the connection continues to be
                // driven.
                thread::spawn(move || tell.send(loopback.authorize(&request, open)));
                Box::pin(async {
                    let gone = |_| ActionFailure::Failed("the listener thread ended".into());
                    told.await.map_err(gone)?
                })
            }
        }
    }
}
