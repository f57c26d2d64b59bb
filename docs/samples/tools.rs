//! The code of docs/guide/tools.md.

mod tools {
    use mcp_sansio_tokio::{self as mcp, Call, Server};
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Place {
        /// City name or postal code
        location: String,
        /// How many days ahead, today by default
        #[serde(default)]
        days: u8,
    }

    async fn forecast(call: Call<Place>) -> String {
        let Place { location, days } = call.arguments;
        format!("Sunny in {location} in {days} days")
    }

    fn server() -> Server {
        Server::new("weather", "1.0.0").tool("forecast", "Weather at a place", forecast)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let tools = client.all_tools().await?;
        let schema: serde_json::Value = tools[0].input_schema.decode().unwrap();
        assert_eq!(schema["required"], serde_json::json!(["location"]));
        assert_eq!(schema["properties"]["location"]["description"], "City name or postal code");
        let result =
            client.call_tool("forecast", &serde_json::json!({ "location": "Oslo" })).await?;
        assert_eq!(result.first_text(), Some("Sunny in Oslo in 0 days"));
        let result = client.call_tool("forecast", &serde_json::json!({ "days": 1 })).await?;
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.first_text(), Some("invalid arguments: missing field `location`"));
        let error = client.call_tool("no such tool", &mcp::NoArguments {}).await.unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code.0, -32602);
        let old = mcp::Host::new("test", "1.0.0")
            .revisions(mcp::Revisions::only(mcp::Revision::V2025_06_18));
        let (client, pair) = mcp_sansio_test::connect(&server(), &old);
        tokio::spawn(pair.drive());
        let error =
            client.call_tool("forecast", &serde_json::json!({ "days": 1 })).await.unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code.0, -32602);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod arguments_and_schemas {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::SchemaValidator;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Dice {
        #[schemars(range(min = 1, max = 100))]
        sides: u32,
    }

    fn server() -> Server {
        Server::new("dice", "1.0.0")
            .tool("roll", "Rolls a die", |call: Call<Dice>| call.arguments.sides.to_string())
            .catalog(|catalog| {
                catalog.validator(SchemaValidator::new()).expect("the schemas are valid")
            })
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("roll", &serde_json::json!({ "sides": 0 })).await?;
        assert_eq!(result.is_error, Some(true));
        let result = client.call_tool("roll", &serde_json::json!({ "sides": 6 })).await?;
        assert_eq!(result.is_error, None);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod titles_and_annotations {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::ServerItem;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Query {
        words: String,
    }

    fn server() -> Server {
        Server::new("notes", "1.0.0").add_item(
            ServerItem::tool("search", "Searches the notes", async |call: Call<Query>| {
                format!("Nothing about {}", call.arguments.words)
            })
            .title("Search")
            .read_only(),
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let tools = client.all_tools().await?;
        assert_eq!(tools[0].title.as_deref(), Some("Search"));
        assert_eq!(tools[0].annotations.as_ref().unwrap().read_only_hint, Some(true));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod schemas_written_by_hand {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::jsonrpc::RawJson;
    use mcp_sansio_tokio::protocol::{Tool, ToolAnnotations};

    fn server() -> Result<Server, mcp::jsonrpc::JsonError> {
        let schema =
            RawJson::parse(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#)?;
        let tool = Tool::new("read", schema)
            .title("Read a file")
            .description("Returns the text of a file")
            .annotations(ToolAnnotations::new().read_only_hint(true));
        let server = Server::new("files", "1.0.0")
            .tool_with(tool, |call: Call<serde_json::Value>| {
                format!("text of {}", call.arguments["path"])
            });

        Ok(server)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (client, pair) = mcp_sansio_test::connect(&server()?, &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("read", &serde_json::json!({ "path": "a" })).await?;
        assert_eq!(result.first_text(), Some("text of \"a\""));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod results {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use mcp_sansio_tokio::Structured;
    use mcp_sansio_tokio::protocol::ContentBlock;
    use serde::Serialize;

    #[derive(Serialize)]
    struct Reading {
        celsius: f64,
    }

    fn server(png: &'static [u8]) -> Server {
        Server::new("station", "1.0.0")
            .tool("temperature", "The temperature", |_: Call<NoArguments>| {
                Structured(Reading { celsius: 21.5 })
            })
            .tool("camera", "A picture of the sky", move |_: Call<NoArguments>| {
                vec![ContentBlock::text("The sky now:"), ContentBlock::image(png, "image/png")]
            })
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) =
            mcp_sansio_test::connect(&server(&[1, 2, 3]), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result = client.call_tool("temperature", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some(r#"{"celsius":21.5}"#));
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"celsius":21.5}"#);
        assert_eq!(client.call_tool("camera", &NoArguments {}).await?.content.len(), 2);
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod results_2 {
    use mcp_sansio_tokio::{self as mcp, Call, Server, Structured};
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    struct Place {
        location: String,
    }

    #[derive(Serialize, JsonSchema)]
    struct Reading {
        celsius: f64,
    }

    fn server() -> Result<Server, mcp::jsonrpc::JsonError> {
        let server = Server::new("station", "1.0.0").structured_tool(
            "temperature",
            "The temperature at a place",
            |_: Call<Place>| Structured(Reading { celsius: 21.5 }),
        );

        Ok(server)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), Box<dyn std::error::Error>> {
        let (client, pair) = mcp_sansio_test::connect(&server()?, &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let result =
            client.call_tool("temperature", &serde_json::json!({ "location": "Oslo" })).await?;
        assert!(result.structured_content.is_some());
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod structured_content_and_an_image {
    use mcp_sansio_tokio::{self as mcp, Call, Host, NoArguments, Server, Structured};
    use schemars::JsonSchema;
    use serde::Serialize;

    use mcp_sansio_tokio::handler::DescribedOutput;
    use mcp_sansio_tokio::protocol::{CallToolResult, ContentBlock};
    use mcp_sansio_tokio::{HandlerError, ServerItem};

    #[derive(Serialize, JsonSchema)]
    struct Sky {
        clouds: u8,
    }

    fn camera(_: Call<NoArguments>) -> Result<CallToolResult, HandlerError> {
        let mut result = CallToolResult::structured(&Sky { clouds: 3 })?;
        result.content.push(ContentBlock::image(take_picture(), "image/png"));
        Ok(result)
    }

    fn take_picture() -> &'static [u8] {
        &[1, 2, 3]
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let schema = <Structured<Sky> as DescribedOutput>::schema();
        let server = Server::new("station", "1.0.0").add_item(
            ServerItem::tool("camera", "The sky now", camera)
                .define(|tool| tool.output_schema(schema)),
        );

        let (client, pair) = mcp_sansio_test::connect(&server, &Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let tools = client.all_tools().await?;
        let schema: serde_json::Value = tools[0].output_schema.as_ref().unwrap().decode().unwrap();
        assert_eq!(schema["required"], serde_json::json!(["clouds"]));
        let result = client.call_tool("camera", &NoArguments {}).await?;
        assert_eq!(result.structured_content.unwrap().as_str(), r#"{"clouds":3}"#);
        assert!(matches!(result.content[..], [ContentBlock::Text(_), ContentBlock::Image(_)]));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod errors {
    use mcp_sansio_tokio::{self as mcp, Call, Server};

    use mcp_sansio_tokio::HandlerError;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct File {
        path: String,
    }

    fn read(call: Call<File>) -> Result<String, HandlerError> {
        if call.arguments.path.contains("..") {
            return Err(HandlerError::invalid_params("the path leaves the folder"));
        }
        let text = std::fs::read_to_string(&call.arguments.path)?;
        if text.is_empty() {
            return Err(HandlerError::failed("the file is empty"));
        }
        Ok(text)
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let server = Server::new("files", "1.0.0").tool("read", "Reads a file", read);
        let (client, pair) = mcp_sansio_test::connect(&server, &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let path = |path: &str| serde_json::json!({ "path": path });
        let error = client.call_tool("read", &path("..")).await.unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code.0, -32602);
        let result = client.call_tool("read", &path("/no/such/file")).await?;
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.first_text(), Some("No such file or directory (os error 2)"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}

mod errors_of_your_own {
    use mcp_sansio_tokio::{self as mcp, Call, NoArguments, Server};

    use mcp_sansio_tokio::jsonrpc::ErrorObject;
    use mcp_sansio_tokio::{ErrorCode, HandlerError, IntoHandlerError, fallible};

    #[derive(Debug)]
    enum StoreError {
        NoSuchNote(String),
        Quota,
        Disk(std::io::Error),
    }

    impl IntoHandlerError for StoreError {
        fn into_handler_error(self) -> HandlerError {
            match self {
                Self::NoSuchNote(title) => {
                    HandlerError::failed(format!("there is no note {title:?}"))
                }
                Self::Quota => {
                    HandlerError::Protocol(ErrorObject::new(ErrorCode(429), "too many notes"))
                }
                Self::Disk(error) => {
                    eprintln!("{error}");
                    HandlerError::failed("the notes cannot be read now")
                }
            }
        }
    }

    impl From<std::io::Error> for StoreError {
        fn from(error: std::io::Error) -> Self {
            Self::Disk(error)
        }
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Note {
        title: String,
    }

    async fn read(call: Call<Note>) -> Result<String, StoreError> {
        match call.arguments.title.as_str() {
            "todo" => Ok("Buy milk".into()),
            "all" => Err(StoreError::Quota),
            "disk" => Ok(std::fs::read_to_string("/no/such/file")?),
            title => Err(StoreError::NoSuchNote(title.into())),
        }
    }

    fn count(_: Call<NoArguments>) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        let count: u32 = "many".parse()?;
        Ok(count.to_string())
    }

    fn server() -> Server {
        Server::new("notes", "1.0.0").tool("read", "Reads a note", fallible(read)).tool(
            "count",
            "Counts the notes",
            fallible(count),
        )
    }

    #[tokio::main(flavor = "current_thread")]
    async fn main() -> Result<(), mcp::Error> {
        let (client, pair) = mcp_sansio_test::connect(&server(), &mcp::Host::new("test", "1.0.0"));
        tokio::spawn(pair.drive());
        let title = |title: &str| serde_json::json!({ "title": title });
        let result = client.call_tool("read", &title("other")).await?;
        assert_eq!(result.first_text(), Some("there is no note \"other\""));
        let result = client.call_tool("read", &title("disk")).await?;
        assert_eq!(result.first_text(), Some("the notes cannot be read now"));
        let error = client.call_tool("read", &title("all")).await.unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code.0, 429);
        let result = client.call_tool("count", &NoArguments {}).await?;
        assert_eq!(result.first_text(), Some("invalid digit found in string"));
        Ok(())
    }

    #[test]
    fn runs() -> impl std::process::Termination {
        main()
    }
}
