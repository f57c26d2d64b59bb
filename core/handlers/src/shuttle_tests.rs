//! Threads that share a connection, under many schedules: see [`explore`].

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use mcp_sansio::Instant;
use mcp_sansio::framing::LineDecoder;
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::Limits;
use mcp_sansio_sync::{Mutex, TaskCount};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{future, thread};

use super::endpoint::Endpoint;
use super::executor::Executor;
use super::mailbox::Mailbox;
use super::mailbox::MailboxLimits;
use super::{Call, Client, Host, Server};

/// Runs `test` under many random but reproducible schedules. Their number is `MCP_SCHEDULES` or a
/// default, divided by the `weight` of one run. A schedule that deadlocks is a failure.
fn explore(weight: usize, test: impl Fn() + Send + Sync + 'static) {
    const SEED: u64 = 0x5eed;
    let schedules = std::env::var("MCP_SCHEDULES").ok();
    let schedules = schedules.map_or(200, |it| it.parse().expect("`MCP_SCHEDULES` is a number"));
    let schedules = (schedules / weight).max(1);
    let test = Arc::new(test);
    let config = || {
        let mut config = shuttle::Config::new();
        // Complete machines run on these stacks, without optimizations.
        config.stack_size = 1024 * 1024;
        // About weak memory ordering: see the decision.
        config.silence_warnings = true;
        config
    };
    let run = Arc::clone(&test);
    let random = RandomScheduler::new_from_seed(SEED, schedules);
    shuttle::Runner::new(random, config()).run(move || run());
    // A few well-chosen preemptions find bugs that need one long pause.
    let pct = PctScheduler::new_from_seed(SEED, 3, schedules);
    shuttle::Runner::new(pct, config()).run(move || test());
}

/// A flag that a handler waits for.
#[derive(Default)]
struct Flag(Mutex<(bool, Option<Waker>)>);

impl Flag {
    fn set(&self) {
        let waker = self.0.lock(|(is_set, waker)| {
            *is_set = true;
            waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        self.0.lock(|(is_set, known)| {
            *known = Some(waker);
            if *is_set { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

#[test]
fn concurrent_commands_and_wakeups_are_not_lost() {
    const HANDLERS: u32 = 3;
    explore(1, || {
        let mailbox = Arc::new(Mailbox::<u32>::new(MailboxLimits::new(&Limits::DEFAULT)));
        let mut executor = Executor::<Task, u32, u32>::new(Arc::clone(&mailbox));
        let flags: Vec<Arc<Flag>> = (0..HANDLERS).map(|_| Arc::default()).collect();
        for (place, flag) in (0..HANDLERS).zip(&flags) {
            let flag = Arc::clone(flag);
            let task: Task = Box::pin(poll_fn(move |cx| flag.poll(cx)));
            assert!(executor.start(place, task, place).is_none());
        }
        let threads: Vec<_> = (0..HANDLERS)
            .zip(flags)
            .map(|(number, flag)| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || {
                    mailbox.send(number).expect("there is room");
                    flag.set();
                })
            })
            .collect();
        let (mut done, mut taken) = (0, 0);
        future::block_on(poll_fn(|cx| {
            for _ in 0..mailbox.len() {
                taken += u32::from(mailbox.take_command().is_some());
            }
            for _ in 0..executor.ready() {
                done += u32::from(executor.poll_next().is_some());
            }
            mailbox.register(cx.waker());
            if (done, taken) == (HANDLERS, HANDLERS) { Poll::Ready(()) } else { Poll::Pending }
        }));
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_closing_mailbox_accepts_or_returns_a_command() {
    explore(1, || {
        let mailbox = Arc::new(Mailbox::<u32>::new(MailboxLimits::new(&Limits::DEFAULT)));
        let sender = Arc::clone(&mailbox);
        let sent =
            thread::spawn(move || (1..4).filter(|command| sender.send(*command).is_ok()).count());
        let taken = usize::from(mailbox.take_command().is_some());
        let left = mailbox.close().len();
        assert_eq!(taken + left, sent.join().unwrap());
    });
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Number {
    number: u32,
}

/// Carries messages between both sides until the client is closed.
fn drive(mut server: impl Endpoint, mut client: impl Endpoint) {
    fn carry(from: &mut impl Endpoint, to: &mut impl Endpoint) -> bool {
        let mut bytes = Vec::new();
        from.transmit(&mut |waiting| {
            bytes.extend_from_slice(waiting);
            waiting.len()
        });
        let (mut decoder, mut rest) = (LineDecoder::growing(1 << 16), &*bytes);
        while !rest.is_empty() {
            rest = &rest[decoder.feed(rest)..];
            while let Some(frame) = decoder.next_frame() {
                to.handle_frame(frame, Instant::ZERO);
            }
        }
        !bytes.is_empty()
    }
    future::block_on(poll_fn(|cx| {
        loop {
            client.poll_handlers(cx, Instant::ZERO);
            server.poll_handlers(cx, Instant::ZERO);
            let moved = carry(&mut client, &mut server) | carry(&mut server, &mut client);
            if client.is_closed() {
                return Poll::Ready(());
            }
            if !moved {
                return Poll::Pending;
            }
        }
    }));
}

async fn echo(client: &Client, number: u32) {
    let params = Json::from_serialize(&Number { number }).expect("a number");
    let call = client.call_other("x/echo", RawJson::trusted(params.as_str()));
    let answer = call.await.expect("the server answers");
    assert_eq!(answer.decode::<Number>().expect("a number").number, number);
}

#[test]
fn calls_of_many_threads_end_with_their_own_results() {
    // Each schedule runs two complete machines.
    explore(20, || {
        let server = Server::new("s", "1").request("x/echo", async |call: Call<Number>| {
            Json::from_serialize(&call.arguments).expect("a number")
        });
        let (client, endpoint) = Host::new("h", "1").connect(7, Instant::ZERO);
        let server = server.endpoint(7).expect("it offers nothing");
        let driver = thread::spawn(move || drive(server, endpoint));
        let callers: Vec<_> = (0..2)
            .map(|caller| {
                let client = client.clone();
                thread::spawn(move || {
                    future::block_on(async {
                        client.opened().await.map_err(|it| it.to_string()).expect("it opens");
                        echo(&client, 10 * caller).await;
                        // A call that is dropped at any point must not affect the next ones.
                        let mut given_up = Box::pin(echo(&client, 99));
                        let polled = poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx))).await;
                        drop((polled, given_up));
                        echo(&client, 10 * caller + 1).await;
                    });
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        drop(client);
        driver.join().unwrap();
    });
}

#[cfg(feature = "http")]
#[test]
fn a_handler_cancelled_during_its_poll_is_notified() {
    use mcp_sansio::catalog::Catalog;

    use super::NoArguments;
    use super::endpoint::PanicGuard;
    use super::http_call::{HandlerCall, HandlerPoll};
    use super::received_requests::received_requests;

    explore(1, || {
        let server = Server::new("s", "1")
            .request("x/wait", async |_: Call<NoArguments>| -> Json {
                core::future::pending().await
            });
        let request = received_requests(1).remove(0);
        let work = HandlerCall {
            id: None,
            now: Instant::ZERO,
            function: server
                .handlers
                .prepare(&server.items, &Catalog::new(), (&request, false), PanicGuard::NONE)
                .cloned(),
            request,
            handlers: Arc::clone(&server.handlers),
            wrapped: None,
            commands: Arc::new(Mailbox::new(MailboxLimits::NONE)),
            tasks: false,
            is_task: false,
            sealed: false,
            guard: PanicGuard::NONE,
            spawner: None,
            observation: None,
            details: None,
        };
        let HandlerPoll::Pending(running) = work.run() else { panic!("it waits") };
        let cancel_signal = Arc::clone(&running.cancel_signal);
        let gives_up = thread::spawn(move || cancel_signal.cancel());
        assert!(future::block_on(running).is_none());
        gives_up.join().unwrap();
    });
}

#[test]
fn the_end_of_the_last_task_reaches_the_one_that_waits_for_it() {
    const TASKS: usize = 3;
    explore(1, || {
        let shared = Arc::new((TaskCount::default(), Mutex::new(Vec::<Waker>::new())));
        for _ in 0..TASKS {
            shared.0.begin();
        }
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (count, wakers) = &*shared;
                    if count.end() {
                        let wakers = wakers.lock(core::mem::take);
                        wakers.into_iter().for_each(Waker::wake);
                    }
                })
            })
            .collect();
        let (count, wakers) = &*shared;
        // A wake that is missed is a deadlock, which the exploration reports.
        future::block_on(poll_fn(|cx| {
            wakers.lock(|wakers| {
                wakers.push(cx.waker().clone());
                if count.await_end() { Poll::Pending } else { Poll::Ready(()) }
            })
        }));
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}
