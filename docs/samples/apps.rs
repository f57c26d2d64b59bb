//! The code of docs/guide/apps.md.

mod a_server_with_a_page {
    fn main() -> Result<(), Box<dyn std::error::Error>> {
        use mcp_sansio_tokio::apps::{
            self, App, ContentDomains, PageUi, ServeApps as _, ToolUi, Visibility, WithUi as _,
        };
        use mcp_sansio_tokio::{Call, Host, NoArguments, Server, ServerItem, Structured};

        #[derive(serde::Serialize, schemars::JsonSchema)]
        struct Reading {
            celsius: f64,
        }

        let page =
            "<!DOCTYPE html><title>Thermometer</title><b id=celsius></b><script>/* … */</script>";
        let domains = ContentDomains::new().connect_domains(["https://api.example.com"]);
        let page = App::new("ui://thermometer/view", "thermometer_view", page)?
            .ui(PageUi::new().csp(domains).prefers_border(true));

        let read =
            ServerItem::structured_tool("read", "The temperature", |_: Call<NoArguments>| {
                // The text of the result is for the model and for other hosts, the structured value for the page.
                Structured(Reading { celsius: 21.5 })
            });
        // Only the page may call this one.
        let again = ServerItem::tool("again", "Measures again", |_: Call<NoArguments>| "21.6")
            .ui(&ToolUi::new().visibility([Visibility::App]));

        let server = Server::new("thermometer", "1.0.0").app_tool(read, page).add_item(again);

        let host = Host::new("demo", "1.0.0").extension(apps::host_extension());
        let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
        let result = pair.run(client.call_tool("read", &NoArguments {}))?;
        assert_eq!(result.first_text(), Some(r#"{"celsius":21.5}"#));
        let tools = pair.run(client.all_tools())?;
        assert_eq!(apps::model_tools(&tools).count(), 1);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod a_host {
    fn main() {
        use mcp_sansio_tokio::{Client, Host, apps};

        let host = Host::new("desktop", "1.0.0").extension(apps::host_extension());

        async fn page_of(
            client: &Client,
            tool: &str,
        ) -> Result<Option<(String, String)>, Box<dyn std::error::Error>> {
            let tools = client.all_tools().await?;
            let ui = tools.iter().find(|it| it.name == tool).and_then(apps::tool_ui);
            let Some(uri) = ui.and_then(|ui| ui.resource_uri) else { return Ok(None) };
            let page = apps::read_page(client, &uri).await?;
            Ok(Some((page.content_security_policy(), page.html)))
        }

        let _ = (host, page_of);
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
