//! The code of docs/guide/tasks-and-subscriptions.md.

mod subscriptions {
    use mcp_sansio_tokio::HandlerError;

    use mcp_sansio_tokio::protocol::{
        Resource, ResourceUpdatedParams, SubscriptionFilter, TextResourceContents,
    };
    use mcp_sansio_tokio::{self as mcp, Call, Host, Method, NoArguments, ReadResource, Server};

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = Server::new("notes", "1.0.0")
            .subscriptions()
            .resource(Resource::new("notes:///today", "today"), |call: Call<ReadResource>| {
                TextResourceContents::new(call.arguments.uri.as_str(), "Buy milk")
            })
            .tool("write", "Writes a note", |call: Call<NoArguments>| {
                call.resource_updated("notes:///today")?;
                Ok::<_, HandlerError>("Written.")
            });

        for revision in mcp::Revision::ALL {
            let (client, pair) = mcp_sansio_test::connect(
                &server,
                &Host::new("editor", "1.0.0").revisions(mcp::Revisions::only(revision)),
            );
            tokio::spawn(pair.drive());

            // In the client:
            let filter = SubscriptionFilter::new()
                .tools_list_changed(true)
                .resource_subscriptions(["notes:///today".to_owned()]);
            let mut subscription = client.subscribe(filter);
            let honoured = subscription.honoured().await?;
            assert_eq!(honoured.tools_list_changed, Some(true));

            client.call_tool("write", &NoArguments {}).await?;
            if let Some(notification) = subscription.next().await? {
                assert_eq!(notification.method, Method::ResourcesUpdated);
                let updated: ResourceUpdatedParams = notification.params.decode()?;
                println!("{} changed: read it again", updated.uri);
            }
        }
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod tasks {
    use mcp_sansio_tokio::protocol::TaskSupport;
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server, task_settings};
    use std::time::Duration;

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = Server::new("reports", "1.0.0")
            .tasks(task_settings()?.poll_interval(Duration::from_millis(50)))
            .tool("report", "Writes the yearly report", async |call: Call<NoArguments>| {
                call.run_as_task();
                call.progress(1.0, Some(2.0), "reading");
                tokio::time::sleep(Duration::from_millis(100)).await;
                "The year was good."
            })
            .task_support("report", TaskSupport::Optional);

        let (near, far) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(mcp::serve(server, reader, writer));
        let host = Host::new("office", "1.0.0")
            .revisions(mcp::Revisions::only(mcp::Revision::V2025_11_25));
        let (reader, writer) = tokio::io::split(near);
        let client = mcp::connect_over(reader, writer, &host).await?;

        // In a client of 2025-11-25:
        let tools = client.all_tools().await?;
        let task = client
            .call_tool_as_task(&tools[0], &NoArguments {})
            .ttl(Duration::from_secs(600))
            .await?;
        println!("the task is {}", task.name());
        let result = task.result().await?;
        assert_eq!(result.first_text(), Some("The year was good."));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod in_a_client {
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server, task_settings};
    use std::time::Duration;
    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = Server::new("reports", "1.0.0")
            .tasks(task_settings()?.poll_interval(Duration::from_millis(50)))
            .tool("report", "Writes the yearly report", async |call: Call<NoArguments>| {
                call.run_as_task();
                tokio::time::sleep(Duration::from_millis(100)).await;
                "The year was good."
            });

        let host = Host::new("office", "1.0.0").follow_tasks();

        let (near, far) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(far);
        tokio::spawn(mcp::serve(server, reader, writer));
        let (reader, writer) = tokio::io::split(near);
        let client = mcp::connect_over(reader, writer, &host).await?;

        let report = client.call_tool("report", &NoArguments {}).await?;
        assert_eq!(report.first_text(), Some("The year was good."));

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod in_a_client_2 {
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server, task_settings};
    use std::time::Duration;

    use mcp_sansio_tokio::Method;
    use mcp_sansio_tokio::jsonrpc::RawJson;
    use mcp_sansio_tokio::protocol::{CreateTaskResult, TASKS_EXTENSION, TaskStatus};

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let server = Server::new("reports", "1.0.0")
            .tasks(task_settings()?.poll_interval(Duration::from_millis(50)))
            .tool("report", "Writes the yearly report", async |call: Call<NoArguments>| {
                call.run_as_task();
                tokio::time::sleep(Duration::from_millis(100)).await;
                "The year was good."
            });

        let host = Host::new("office", "1.0.0").capabilities(|declared| {
            declared
                .extensions
                .get_or_insert_default()
                .insert(TASKS_EXTENSION, RawJson::EMPTY_OBJECT);
        });

        let (client, pair) = mcp_sansio_test::connect(&server, &host);
        tokio::spawn(pair.drive());

        let params = RawJson::parse(r#"{"name":"report","arguments":{}}"#)?;
        let created: CreateTaskResult = client.call(Method::ToolsCall, params).await?.decode()?;
        let id = &created.task.task_id;
        loop {
            let task = client.get_task(id).await?.detailed;
            match task.task.status {
                TaskStatus::Completed => {
                    break println!("{}", task.result.ok_or("no result")?.as_str());
                }
                TaskStatus::Failed | TaskStatus::Cancelled => return Err("the task failed".into()),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }

        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
