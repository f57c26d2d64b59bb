use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use mcp_sansio::jsonrpc::Json;
use mcp_sansio::peer::Progress;
use mcp_sansio_sync::Mutex;
use mcp_sansio_sync::atomic::{AtomicBool, Ordering};

use crate::client::ClientError;
use crate::pending::{ClientCall, OnProgress, Pending};

use super::request::ClientRequest;

/// The result of a call as JSON, as middleware sees it and returns it. The caller decodes it: a
/// changed result that does not match the type of the call is a
/// [`ClientError::InvalidResult`].
pub type CallResult = Result<Json, ClientError>;

/// The next step of a call: the next middleware, or the server.
#[derive(Clone)]
pub struct NextCall {
    sent: Arc<SentCall>,
    index: usize,
}

impl NextCall {
    pub(crate) fn new(on_progress: Option<OnProgress>) -> (Self, Arc<SentCall>) {
        let wants_progress = on_progress.is_some();
        let on_progress = Mutex::new(on_progress);
        let sent = Arc::new(SentCall {
            wants_progress,
            on_progress,
            task: Mutex::new(None),
            took_input: AtomicBool::new(false),
        });
        (Self { sent: Arc::clone(&sent), index: 0 }, sent)
    }

    /// Runs the rest of the middleware, and sends the call. To try again, call it again, with a
    /// clone of the request: the server then receives another call.
    ///
    /// Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub async fn run(&self, request: ClientRequest) -> CallResult {
        let layer = request.client.layers().and_then(|layers| layers.get(self.index)).cloned();
        match layer {
            // MCP 2026-07-28 extensions:SEP-3371-summary#3-middleware [EXT-034]: in the order of
            // registration, which the application determines.
            Some(layer) => {
                let next = Self { sent: Arc::clone(&self.sent), index: self.index + 1 };
                layer(request, next).await
            }
            None => {
                let wants_task = request.options.wants_task();
                let call = ClientCall::from_request(request, SentCall::on_progress(&self.sent));
                let mut call = call.send();
                if wants_task {
                    self.sent.task.lock(|task| *task = Some(call.pending()));
                }
                let result = (&mut call).await;
                if call.took_input() {
                    self.sent.took_input.store(true, Ordering::Relaxed);
                }
                result
            }
        }
    }
}

impl NextCall {
    /// Whether the server asked for input before its result, since 2026-07-28.
    pub(crate) fn took_input(&self) -> bool {
        self.sent.took_input.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for NextCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextCall").field("index", &self.index).finish_non_exhaustive()
    }
}

/// State shared by the attempts to make a call.
pub(crate) struct SentCall {
    wants_progress: bool,
    /// The callback of the caller, except while it runs.
    on_progress: Mutex<Option<OnProgress>>,
    /// The last attempt of a call that becomes a task, whose progress continues.
    task: Mutex<Option<Arc<Pending>>>,
    /// Whether the server asked for input in an attempt.
    took_input: AtomicBool,
}

impl SentCall {
    pub(crate) fn task(&self) -> Option<Arc<Pending>> {
        self.task.lock(|task| task.clone())
    }

    /// Returns the progress callback of an attempt.
    fn on_progress(shared: &Arc<Self>) -> Option<OnProgress> {
        let shared = shared.wants_progress.then(|| Arc::clone(shared))?;
        Some(Box::new(move |progress: &Progress<'_>| {
            // It runs outside of the lock: it may make calls.
            let callback = shared.on_progress.lock(Option::take);
            let Some(mut callback) = callback else { return };
            callback(progress);
            shared.on_progress.lock(|place| *place = Some(callback));
        }))
    }
}
