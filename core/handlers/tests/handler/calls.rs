use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::peer::Event;
use mcp_sansio::protocol::{Prompt, Resource, TextResourceContents};
use mcp_sansio::{Era, LoggingLevel, Method, Revision};
use mcp_sansio_handlers::{Call, ClientError, Host, NoArguments, ReadResource, Server};

use crate::{Place, connect, connect_host, text};

#[test]
fn progress_comes_in_order_and_before_the_answer() {
    // Rule: [PROG-003] [PROG-006].
    let server = Server::new("s", "1")
        .tool("plain", "", |call: Call<NoArguments>| {
            call.progress(1.0, Some(2.0), "half");
            call.progress(2.0, Some(2.0), "");
        })
        .tool("later", "", async |call: Call<NoArguments>| {
            call.progress(1.0, Some(2.0), "half");
            yield_once().await;
            call.progress(2.0, Some(2.0), "");
        });
    for revision in Revision::ALL {
        for tool in ["plain", "later"] {
            let (client, mut pair) = connect(&server, revision);
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sink = Arc::clone(&seen);
            let call = client
                .call_tool(tool, &NoArguments {})
                .on_progress(move |progress| sink.lock().unwrap().push(progress.progress));
            pair.run(call).unwrap();
            assert_eq!(*seen.lock().unwrap(), [1.0, 2.0]);
            assert!(!pair.transcript.lines().last().unwrap().contains("notifications/progress"));
            // Without a progress token nothing is sent.
            pair.run(client.call_tool(tool, &NoArguments {})).unwrap();
            assert_eq!(pair.transcript.count("notifications/progress"), 2);
        }
    }
}

/// Lets other tasks run once.
async fn yield_once() {
    let mut again = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut again) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}

#[test]
fn log_messages_reach_clients_that_asked_for_their_level() {
    // Rule: [LOG-003] [LOG-004] [LOG-007] [LOG-008].
    let server = Server::new("s", "1").logging().tool("log", "", |call: Call<NoArguments>| {
        call.log(LoggingLevel::Info, "fine");
        call.log((LoggingLevel::Error, "pump"), &[1, 2]);
    });
    for revision in Revision::ALL {
        let seen = Arc::new(Mutex::new(0));
        let sink = Arc::clone(&seen);
        let host = Host::new("h", "1").observe(move |event| {
            if matches!(event, Event::Notification(n) if n.method == Method::Message) {
                *sink.lock().unwrap() += 1;
            }
        });
        let (client, mut pair) = connect_host(&server, host, revision);
        client.set_log_level(LoggingLevel::Warning).unwrap();
        pair.run(client.call_tool("log", &NoArguments {})).unwrap();
        assert_eq!(pair.transcript.count("fine"), 0);
        assert_eq!(
            pair.transcript.count(r#""logger":"pump","data":[1,2]"#),
            1,
            "{}",
            pair.transcript
        );
        assert_eq!(*seen.lock().unwrap(), 1);
        if revision.era() == Era::Modern {
            let call = client.call_tool("log", &NoArguments {}).log_level(LoggingLevel::Debug);
            pair.run(call).unwrap();
            assert_eq!(pair.transcript.count("fine"), 1);
        } else {
            let server = pair.transport.server.as_ref().unwrap().handle();
            server.log((LoggingLevel::Error, "valve"), "shut");
            pair.run_until_idle();
            assert_eq!(pair.transcript.count(r#""logger":"valve","data":"shut""#), 1);
        }
    }
}

/// A server whose tool never answers, and a handle that shows whether its handler is alive.
fn sleeper() -> (Server, Arc<()>) {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let server = Server::new("s", "1").tool("sleep", "", move |_: Call<NoArguments>| {
        let held = Arc::clone(&held);
        async move {
            std::future::pending::<()>().await;
            drop(held);
        }
    });
    (server, alive)
}

#[test]
fn a_call_whose_future_is_dropped_is_cancelled_and_its_handler_dropped() {
    // Rule: [CANC-001] [CANC-003] [CANC-014] [CANC-017].
    for revision in Revision::ALL {
        let (server, alive) = sleeper();
        let (client, mut pair) = connect(&server, revision);
        let mut call = Box::pin(client.call_tool("sleep", &NoArguments {}).into_future());
        assert!(pair.poll(call.as_mut()).is_none());
        assert_eq!(Arc::strong_count(&alive), 3);
        drop(call);
        pair.run_until_idle();
        assert_eq!(pair.transcript.count("notifications/cancelled"), 1);
        assert_eq!(Arc::strong_count(&alive), 2);
        // The call does not wait for an answer.
        assert!(pair.transcript.lines().last().unwrap().contains("notifications/cancelled"));
    }
}

#[test]
fn a_call_that_is_dropped_before_it_is_sent_is_never_sent() {
    let (server, _) = sleeper();
    let (client, mut pair) = connect(&server, Revision::LATEST);
    drop(client.call_tool("sleep", &NoArguments {}).into_future());
    pair.run_until_idle();
    assert_eq!(pair.transcript.count("tools/call"), 0, "{}", pair.transcript);
    assert_eq!(pair.transcript.count("cancelled"), 0, "{}", pair.transcript);
}

#[test]
fn the_slot_of_a_cancelled_call_is_free_at_once() {
    let server = Server::new("s", "1").tool("echo", "", async |call: Call<Place>| {
        if call.arguments.location == "nowhere" {
            std::future::pending::<()>().await;
        }
        Ok(call.arguments.location.clone())
    });
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let place = |location: &str| Place { location: location.into() };
    let mut first = Box::pin(client.call_tool("echo", &place("nowhere")).into_future());
    assert!(pair.poll(first.as_mut()).is_none());
    drop(first);
    let second = client.call_tool("echo", &place("Oslo")).into_future();
    assert_eq!(text(&pair.run(second).unwrap()), "Oslo");
}

#[test]
fn a_call_without_an_answer_times_out_and_is_cancelled() {
    // Rule: [TIME-001] [TIME-002] [TIME-003] [TIME-004].
    let (server, alive) = sleeper();
    let (client, mut pair) = connect(&server, Revision::LATEST);
    let call = client.call_tool("sleep", &NoArguments {}).timeout(Duration::from_secs(5));
    let mut call = Box::pin(call.into_future());
    assert!(pair.poll(call.as_mut()).is_none());
    pair.advance(Duration::from_secs(4));
    assert!(pair.poll(call.as_mut()).is_none());
    pair.advance(Duration::from_secs(1));
    let error = pair.poll(call.as_mut()).unwrap().unwrap_err();
    assert_eq!(error.executed(), None);
    assert!(matches!(error, ClientError::TimedOut { hard: false, .. }), "{error}");
    assert_eq!(pair.transcript.count("notifications/cancelled"), 1);
    assert_eq!(Arc::strong_count(&alive), 2);
}

#[test]
fn the_error_of_a_timeout_names_the_call_and_the_time() {
    use std::future::pending;

    let mut timeouts = mcp_sansio::peer::Timeouts::default();
    timeouts.call = Duration::from_secs(7);
    let server = Server::new("s", "1")
        .tool("dig", "", async |call: Call<NoArguments>| -> String {
            for depth in 1..=100 {
                call.progress(f64::from(depth), None, "");
                yield_once().await;
            }
            pending().await
        })
        .prompt("draft", "", async |_: Call<NoArguments>| pending::<String>().await)
        .resource(Resource::new("m:x", "slow"), async |_: Call<ReadResource>| {
            pending::<TextResourceContents>().await
        })
        .request("vendor/wait", async |_: Call<Json>| pending::<Json>().await);
    for revision in Revision::ALL {
        let host = Host::new("h", "1").timeouts(timeouts.clone());
        let (client, mut pair) = connect_host(&server, host, revision);
        let text = |error: ClientError| error.to_string();
        let dig = || client.call_tool("dig", &NoArguments {}).on_progress(|_| ());
        assert_eq!(
            text(pair.run(dig().timeout(Duration::from_millis(1500))).unwrap_err()),
            r#"`tools/call` of "dig" got no answer or progress within 1.5s; raise its `timeout`"#
        );
        assert_eq!(
            text(pair.run(dig().timeout_hard(Duration::from_secs(3))).unwrap_err()),
            r#"`tools/call` of "dig" got no answer within 3s in total; raise its `timeout_hard`"#
        );
        assert_eq!(
            text(pair.run(client.get_prompt("draft", [])).unwrap_err()),
            r#"`prompts/get` of "draft" got no answer or progress within 7s; raise its `timeout`"#
        );
        assert_eq!(
            text(pair.run(client.read_resource("m:x")).unwrap_err()),
            r#"`resources/read` of "m:x" got no answer or progress within 7s; raise its `timeout`"#
        );
        let other = client.call_other("vendor/wait", RawJson::EMPTY_OBJECT);
        assert_eq!(
            text(pair.run(other).unwrap_err()),
            "`vendor/wait` got no answer or progress within 7s; raise its `timeout`"
        );
    }
}

#[test]
fn a_list_whose_cursors_repeat_or_never_end_has_each_page_once_and_a_remark() {
    // Rule: [PAGE-002] [PAGE-004] [PAGE-005] [PAGE-006].
    use std::sync::{Arc, Mutex};

    use mcp_sansio::framing::LineDecoder;
    use mcp_sansio::peer::{Event, Violation};
    use mcp_sansio::{Instant, Revisions};
    use mcp_sansio_handlers::endpoint::Endpoint;

    /// Answers list requests with `pages`, each of one tool and the next cursor. Returns the tools
    /// and the remarks.
    fn all_tools(mut pages: impl Iterator<Item = (String, String)>) -> (String, String) {
        let remarks = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&remarks);
        let host = Host::new("h", "1").observe(move |event| {
            if let Event::Violation(Violation::ElementsOmitted(omissions)) = event {
                seen.lock().unwrap().push_str(&omissions.to_string());
            }
        });
        let host = host.revisions(Revisions::only(Revision::V2025_11_25));
        let (client, mut endpoint) = host.connect(0, Instant::ZERO);
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut all = Box::pin(async {
            client.opened().await.unwrap();
            client.all_tools().await.unwrap()
        });
        loop {
            if let std::task::Poll::Ready(tools) = all.as_mut().poll(&mut cx) {
                let names = tools.into_iter().map(|tool| tool.name).collect();
                return (names, remarks.lock().unwrap().clone());
            }
            endpoint.poll_handlers(&mut cx, Instant::ZERO);
            let mut decoder = LineDecoder::growing(1 << 16);
            endpoint.transmit(&mut |bytes| decoder.feed(bytes));
            while let Some(frame) = decoder.next_frame() {
                let frame = RawJson::parse(std::str::from_utf8(frame.unwrap()).unwrap()).unwrap();
                let Some(id) = frame.get("id") else { continue };
                let result = if frame.get("method").unwrap().as_str() == r#""initialize""# {
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},
                       "serverInfo":{"name":"s","version":"1"}}"#
                        .replace('\n', " ")
                } else {
                    let (tool, cursor) = pages.next().unwrap();
                    format!(
                        r#"{{"tools":[{{"name":"{tool}","inputSchema":{{}}}}],"nextCursor":"{cursor}"}}"#
                    )
                };
                let answer =
                    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.as_str());
                endpoint.handle_frame(Ok(answer.as_bytes()), Instant::ZERO);
            }
        }
    }

    for (pages, tools, again) in [
        // The server ignores cursors.
        (&[("a", ""), ("a", "")][..], "a", ""),
        (&[("a", "8"), ("a", "8")], "a", "8"),
        // It starts again at one that it does not know.
        (&[("a", "1"), ("b", ""), ("a", "1")], "ab", "1"),
        // The last page has a cursor, to itself or to an earlier one: nothing was read twice.
        (&[("a", "1"), ("b", "1")], "ab", "1"),
        (&[("a", ""), ("b", "c"), ("c", "")], "abc", ""),
    ] {
        let mut asked = 0;
        let sent = pages.iter().map(|(tool, cursor)| (tool.to_string(), cursor.to_string()));
        let (read, remark) = all_tools(sent.inspect(|_| asked += 1));
        assert_eq!((&*read, asked), (tools, pages.len()), "{pages:?}");
        let expected = format!("`/nextCursor`: the server gave the same cursor twice: {again:?}");
        assert_eq!(remark, expected);
    }
    let many = "`/nextCursor`: the list has more than 1000 pages";
    let (read, remark) = all_tools((0..).map(|n: u32| ("a".to_owned(), n.to_string())));
    assert_eq!((&*read, &*remark), ("a", many));
    let (read, remark) = all_tools((0..).map(|n: u32| (format!("{n},"), n.to_string())));
    assert_eq!(read.split_terminator(',').count(), 1000);
    assert!(read.ends_with(",999,") && remark == many, "{remark}");
}

#[test]
fn the_pages_of_a_list_are_joined() {
    // Rule: [PAGE-001] [PAGE-005] [PRMT-008].
    let mut server = Server::new("s", "1").catalog(|catalog| {
        catalog.page_size(std::num::NonZeroUsize::new(2));
    });
    for n in 0..5 {
        server = server.tool(&format!("t{n}"), "", |_: Call<NoArguments>| ());
        server =
            server.prompt_with(Prompt::new(format!("p{n}")), |_: Call<NoArguments>| String::new());
    }
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, revision);
        let tools = pair.run(client.all_tools()).unwrap();
        assert!(tools.iter().map(|tool| &*tool.name).eq(["t0", "t1", "t2", "t3", "t4"]));
        assert_eq!(pair.transcript.count(r#""method":"tools/list""#), 3);
        // Rule: [PAGE-003]: cursors are not kept for the next listing.
        pair.run(client.all_tools()).unwrap();
        assert_eq!(pair.transcript.count(r#""method":"tools/list""#), 6);
        assert_eq!(pair.transcript.count(r#""cursor":"#), 4);
        let prompts = pair.run(client.all_prompts()).unwrap();
        assert!(prompts.iter().map(|prompt| &*prompt.name).eq(["p0", "p1", "p2", "p3", "p4"]));
    }
}
