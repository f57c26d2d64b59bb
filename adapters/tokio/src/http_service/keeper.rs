use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use mcp_sansio::Instant;
use mcp_sansio_async::Timer;

use super::site::{Locked, Site};
use crate::{TokioTimer, now};

/// Keeps the deadlines of a site, and passes on what its handlers send, until it is gone.
pub(super) async fn keep_time(site: Weak<Site>) {
    let mut timer = TokioTimer::new();
    poll_fn(|cx| {
        loop {
            let Some(deadline) = site.upgrade().map(|site| keep(&site, cx)) else {
                return Poll::Ready(());
            };
            match deadline {
                Some(deadline) if timer.poll_until(cx, deadline).is_ready() => {}
                _ => return Poll::Pending,
            }
        }
    })
    .await;
}

/// Does what is due, and returns when to do so again. Whatever comes nearer, or is sent, from here
/// on wakes the keeper.
fn keep(site: &Arc<Site>, cx: &mut Context<'_>) -> Option<Instant> {
    site.change(|locked| {
        if !locked.keeper.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            locked.keeper = Some(cx.waker().clone());
        }
        let now = now();
        let Locked { server, wakes_at, .. } = locked;
        // An edit of the catalog that panics is gone; what came after it is still to be taken.
        while catch_unwind(AssertUnwindSafe(|| server.poll_handlers(cx, now))).is_err() {}
        server.handle_timeout(now);
        *wakes_at = server.poll_timeout();
        *wakes_at
    })
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;
    use std::time::Duration;

    use http_body::Body;
    use mcp_sansio::handler::{Call, NoArguments, Server};
    use mcp_sansio::http::ServerOptions;
    use tokio::runtime::Handle;
    use tokio::time::Instant as Moment;

    use super::*;
    use crate::http_service::{HttpService, ServedBody};

    fn server() -> Server {
        Server::new("clocked", "1").tool("plain", "Answers", |_: Call<NoArguments>| "plain").tool(
            "wait",
            "Waits",
            async |_: Call<NoArguments>| {
                std::future::pending::<()>().await;
                "never"
            },
        )
    }

    /// A service, and how often the keeper of its time was woken.
    fn counted() -> (HttpService, Arc<AtomicUsize>) {
        let server = server().http(ServerOptions::new(), [0; 32], 7).unwrap();
        let site = Arc::new(Site::new(server, Handle::current()));
        let polls = Arc::<AtomicUsize>::default();
        let (mut keeper, counter) =
            (Box::pin(keep_time(Arc::downgrade(&site))), Arc::clone(&polls));
        tokio::spawn(poll_fn(move |cx| {
            counter.fetch_add(1, Ordering::Relaxed);
            keeper.as_mut().poll(cx)
        }));
        (HttpService { site }, polls)
    }

    fn call(tool: &str) -> http::Request<ServedBody> {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{
            "io.modelcontextprotocol/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(ServedBody::whole(body.into_bytes()))
            .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_nearer_deadline_wakes_the_keeper_and_nothing_else_does() {
        let (service, polls) = counted();
        tokio::task::yield_now().await;
        let start = Moment::now();
        let response = service.serve(call("wait")).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let opened = start.elapsed();
        assert!(opened.as_secs() == 5 && opened.subsec_millis() <= 1, "{opened:?}");
        let mut body = pin!(response.into_body());
        for count in 1..=240 {
            poll_fn(|cx| body.as_mut().poll_frame(cx)).await.unwrap().unwrap();
            assert_eq!(start.elapsed().as_secs(), 5 + count * 15);
        }
        let polls = polls.load(Ordering::Relaxed);
        // Its first, for the call, for the stream when it opens, and for each deadline.
        assert!(polls <= 3 + 1 + 240, "{polls}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plain_call_is_answered_where_it_is_made_and_wakes_nobody() {
        let (service, polls) = counted();
        tokio::task::yield_now().await;
        let (before, tasks) = (polls.load(Ordering::Relaxed), alive());
        for _ in 0..100 {
            let served = pin!(service.serve(call("plain")));
            let polled = served.poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_ready());
            assert_eq!(alive(), tasks);
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(polls.load(Ordering::Relaxed), before);
    }

    fn alive() -> usize {
        Handle::current().metrics().num_alive_tasks()
    }

    #[tokio::test(start_paused = true)]
    async fn the_keeper_and_the_handlers_go_with_the_last_clone() {
        let service = HttpService::new(&server(), ServerOptions::new()).unwrap();
        let clone = service.clone();
        let mut served = Box::pin(service.serve(call("wait")));
        let polled = Pin::new(&mut served).poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        assert_eq!(alive(), 2);
        drop(served);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(alive(), 1);
        drop(service);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(alive(), 1);
        drop(clone);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(alive(), 0);
    }

    #[test]
    fn a_body_may_be_dropped_where_there_is_no_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        let response = runtime.block_on(async { counted().0.serve(call("wait")).await });
        drop(response);
        assert_eq!(
            runtime.block_on(async {
                tokio::task::yield_now().await;
                alive()
            }),
            0
        );
    }
}
