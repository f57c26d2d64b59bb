//! A server whose tools take time on a virtual clock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_sansio::Instant;
use mcp_sansio::protocol::{ElicitSchema, TaskSupport};
use mcp_sansio_handlers::{Call, Elicit, HandlerError, Server, TaskSettings};
use serde_json::Value;

/// How long tasks are kept: longer than a schedule fails.
pub(crate) const TTL: Duration = Duration::from_secs(900);

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Work {
    label: String,
    millis: u64,
}

/// The virtual clock of the handlers.
#[derive(Clone, Default)]
pub(crate) struct Clock {
    nanos: Arc<AtomicU64>,
    due: Arc<Mutex<BTreeSet<u64>>>,
}

impl Clock {
    pub(crate) fn set(&self, now: Instant) {
        self.nanos.store(now.as_nanos(), Ordering::Relaxed);
        let mut due = self.due.lock().expect("one thread");
        while due.first().is_some_and(|first| *first <= now.as_nanos()) {
            due.pop_first();
        }
    }

    /// Returns when the next handler continues.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.lock().expect("one thread").first().copied().map(Instant::from_nanos)
    }

    async fn sleep(&self, millis: u64) {
        let end = self.nanos.load(Ordering::Relaxed) + millis * 1_000_000;
        self.due.lock().expect("one thread").insert(end);
        std::future::poll_fn(|_| {
            let over = self.nanos.load(Ordering::Relaxed) >= end;
            if over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Returns a server. Its tools become tasks as soon as they are called.
pub(crate) fn server(clock: &Clock) -> Server {
    let drawn = AtomicU64::new(0);
    let entropy = move || u128::from(drawn.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes();
    let settings = TaskSettings::new(entropy, Duration::from_secs(1_785_196_800)).ttl(TTL);
    let [working, failing, asking] = [(); 3].map(|()| clock.clone());
    Server::new("s", "1")
        .tasks(settings)
        .tool("work", "", move |call: Call<Work>| {
            let clock = working.clone();
            async move {
                call.run_as_task();
                for part in 1..=2 {
                    clock.sleep(call.arguments.millis / 2).await;
                    call.progress(f64::from(part), None, "at work");
                }
                call.arguments.label.clone()
            }
        })
        .tool("fail", "", move |call: Call<Work>| {
            let clock = failing.clone();
            async move {
                call.run_as_task();
                clock.sleep(call.arguments.millis).await;
                Err::<String, _>(HandlerError::failed(call.arguments.label.clone()))
            }
        })
        .tool("hang", "", async |call: Call<Work>| {
            call.run_as_task();
            std::future::pending::<()>().await;
            call.arguments.label.clone()
        })
        .tool("ask", "", move |call: Call<Work>| {
            let clock = asking.clone();
            async move {
                call.run_as_task();
                clock.sleep(call.arguments.millis).await;
                let who = Elicit::form_with("Who?", ElicitSchema::new());
                match (call.input::<Value>("name")?, call.state()) {
                    (Some(_), Some("second")) => Ok(call.arguments.label.clone()),
                    (answer, _) => {
                        let round = if answer.is_some() { "second" } else { "first" };
                        call.require_input("name", who).state(round).into_result()
                    }
                }
            }
        })
        .task_support("work", TaskSupport::Optional)
        .task_support("fail", TaskSupport::Optional)
        .task_support("hang", TaskSupport::Optional)
}
