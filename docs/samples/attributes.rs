//! The code of docs/guide/attributes.md.

mod attributes {
    use mcp_sansio_tokio::{self as mcp, Server};

    use mcp_sansio_tokio::tool;

    /// Weather at a place
    #[tool(title = "Forecast", read_only)]
    async fn forecast(
        /// City name or postal code
        location: String,
        /// How many days ahead
        #[serde(default)]
        days: u8,
    ) -> String {
        format!("Sunny in {location} in {days} days")
    }

    fn server() -> Server {
        Server::new("weather", "1.0.0").add_item(forecast_tool())
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result =
            client.call_tool("forecast", &serde_json::json!({ "location": "Oslo" })).await?;
        assert_eq!(result.first_text(), Some("Sunny in Oslo in 0 days"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod attributes_2 {
    /// Weather at a place
    async fn forecast(location: String, days: u8) -> String {
        format!("Sunny in {location} in {days} days")
    }
    /// Returns the tool [`forecast`].
    fn forecast_tool() -> ::mcp_sansio_tokio::ServerItem<::mcp_sansio_tokio::protocol::Tool> {
        #[derive(::serde::Deserialize, ::schemars::JsonSchema)]
        struct ForecastArguments {
            /// City name or postal code
            location: String,
            /// How many days ahead
            #[serde(default)]
            days: u8,
        }
        ::mcp_sansio_tokio::ServerItem::tool(
            "forecast",
            "Weather at a place",
            async |call: ::mcp_sansio_tokio::Call<ForecastArguments>| {
                forecast(call.arguments.location, call.arguments.days).await
            },
        )
        .title("Forecast")
        .read_only()
    }
}

mod methods {
    use mcp_sansio_tokio::{self as mcp, Server};

    use mcp_sansio_tokio::tools;

    struct Notes {
        texts: Vec<String>,
    }

    #[tools]
    impl Notes {
        /// Finds notes
        #[tool(read_only)]
        async fn search(&self, words: String) -> Result<String, String> {
            let found = self.texts.iter().find(|text| text.contains(&words));
            found.cloned().ok_or_else(|| format!("no note about {words}"))
        }

        /// Counts the notes
        #[tool(blocking)]
        fn count(&self) -> String {
            self.texts.len().to_string()
        }
    }

    fn server() -> Server {
        Notes::add_tools(Server::new("notes", "1.0.0"))
            .state(Notes { texts: vec!["buy milk".into()] })
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("search", &serde_json::json!({ "words": "milk" })).await?;
        assert_eq!(result.first_text(), Some("buy milk"));
        let result = client.call_tool("count", &mcp::NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("1"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod methods_2 {
    struct Notes {
        texts: Vec<String>,
    }

    impl Notes {
        /// Finds notes
        async fn search(&self, words: String) -> Result<String, String> {
            let found = self.texts.iter().find(|text| text.contains(&words));
            found.cloned().ok_or_else(|| format!("no note about {words}"))
        }
        /// Counts the notes
        fn count(&self) -> String {
            self.texts.len().to_string()
        }
        /// Adds the tools and prompts of this type, which is a state of the server.
        pub(crate) fn add_tools(server: ::mcp_sansio_tokio::Server) -> ::mcp_sansio_tokio::Server {
            server
                .add_item({
                    #[derive(::serde::Deserialize, ::schemars::JsonSchema)]
                    struct SearchArguments {
                        words: String,
                    }
                    ::mcp_sansio_tokio::ServerItem::tool(
                        "search",
                        "Finds notes",
                        ::mcp_sansio_tokio::fallible(
                            async |call: ::mcp_sansio_tokio::Call<SearchArguments>,
                                   this: ::mcp_sansio_tokio::State<Self>| {
                                this.search(call.arguments.words).await
                            },
                        ),
                    )
                    .read_only()
                })
                .add_item(::mcp_sansio_tokio::ServerItem::tool(
                    "count",
                    "Counts the notes",
                    ::mcp_sansio_tokio::blocking(
                        |_: ::mcp_sansio_tokio::Call<::mcp_sansio_tokio::NoArguments>,
                         this: ::mcp_sansio_tokio::State<Self>| {
                            this.count()
                        },
                    ),
                ))
        }
    }
}
