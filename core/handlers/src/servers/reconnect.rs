use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::mem;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use mcp_sansio::Attempts;
use mcp_sansio::peer::CloseReason;

use super::{ConnectionError, ServerConnection, ServerState, Servers, ServersError};
use crate::opened_future::ClosedFuture;

impl<C: ServerConnection> Servers<C> {
    /// Adds a server. The returned future calls `connect` to open the connection, waits until it
    /// ends, calls `sleep` with the delay of the [backoff](Self::backoff), and begins again. It
    /// completes when no attempts are left, or when the application has closed the connection or
    /// [all servers](Self::close). Run it as a task; dropping it removes the server and drops its
    /// connection.
    ///
    /// # Errors
    ///
    /// [`ServersError::NameInUse`] and [`ServersError::AmbiguousName`].
    // MCP 2026-07-28 basic/transports/stdio#unexpected-termination [STDIO-019]: the calls of the lost
    // connection have failed; only the application knows which of them to repeat.
    pub fn connect<F, E, S>(
        &self,
        name: &str,
        mut connect: F,
        sleep: S,
    ) -> Result<impl Future<Output = ()> + use<C, F, E, S>, ServersError>
    where
        F: AsyncFnMut() -> Result<C, E>,
        E: Into<Box<dyn core::error::Error + Send + Sync>>,
        S: AsyncFn(Duration),
    {
        let name = Arc::from(name);
        let number = self.register(&name)?;
        let mut attempts = Attempts::new(self.config.backoff, number);
        let registration = Registration { servers: self.clone(), name, number, is_kept: false };
        Ok(async move {
            let mut registration = registration;
            loop {
                let error = match connect().await {
                    Ok(connection) => {
                        let closed = connection.client().closed();
                        if !registration.set(ServerState::Connected, Some(connection)) {
                            return;
                        }
                        let ceiling = registration.servers.config.backoff.ceiling;
                        let reason = end_of(closed, sleep(ceiling), || attempts.reset()).await;
                        let is_wanted = reason == CloseReason::Local;
                        let error: ConnectionError = Arc::new(reason);
                        if is_wanted {
                            return registration.ended(error);
                        }
                        error
                    }
                    Err(error) => ConnectionError::from(error.into()),
                };
                let Some(delay) = attempts.next_delay(None) else {
                    return registration.ended(error);
                };
                if !registration.set(ServerState::Waiting { error, delay }, None) {
                    return;
                }
                sleep(delay).await;
                if !registration.set(ServerState::Connecting, None) {
                    return;
                }
            }
        })
    }
}

/// Waits until a connection is closed. Calls `on_time` if `time` passes before.
async fn end_of(closed: ClosedFuture, time: impl Future, mut on_time: impl FnMut()) -> CloseReason {
    let (mut closed, mut time, mut has_passed) = (pin!(closed), pin!(time), false);
    poll_fn(|cx| {
        if let Poll::Ready(reason) = closed.as_mut().poll(cx) {
            return Poll::Ready(reason);
        }
        if !has_passed && time.as_mut().poll(cx).is_ready() {
            has_passed = true;
            on_time();
        }
        Poll::Pending
    })
    .await
}

/// The entry of a server, removed when the future is dropped.
struct Registration<C: ServerConnection> {
    servers: Servers<C>,
    name: Arc<str>,
    /// Distinguishes the entry from later ones of the same name.
    number: u64,
    /// Whether the entry stays, with the error of the server.
    is_kept: bool,
}

impl<C: ServerConnection> Registration<C> {
    fn ended(&mut self, error: ConnectionError) {
        self.is_kept = true;
        self.set(ServerState::Ended { error }, None);
    }

    /// Sets the state and the connection; returns `false` if the servers were closed.
    fn set(&self, state: ServerState, mut connection: Option<C>) -> bool {
        let mut other = state.clone();
        let is_open = self.servers.table.lock(|table| {
            let server = table.servers.get_mut(&self.name);
            let server = server.filter(|server| server.number == self.number);
            let is_open = server.is_some();
            if let Some(server) = server {
                mem::swap(&mut server.state, &mut other);
                mem::swap(&mut server.connection, &mut connection);
            }
            is_open
        });
        // Outside of the lock: connections and errors may run any code.
        drop((other, connection));
        self.servers.wake_ready();
        if is_open && let Some(observer) = &self.servers.config.observer {
            observer(&self.name, &state);
        }
        is_open
    }
}

impl<C: ServerConnection> Drop for Registration<C> {
    fn drop(&mut self) {
        if !self.is_kept {
            let removed = self.servers.table.lock(|table| {
                let server = table.servers.get(&self.name)?;
                let is_own = server.number == self.number;
                is_own.then(|| table.servers.remove(&self.name))
            });
            drop(removed);
            self.servers.wake_ready();
        }
    }
}
