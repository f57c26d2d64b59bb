//! Middleware that changes parameters, metadata and results.

use std::sync::{Arc, Mutex};

use mcp_sansio::catalog::{CompiledSchema, Validator};
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::{GetPromptResult, PromptMessage, Resource, TextResourceContents};
use mcp_sansio::{ErrorCode, Revision, Revisions};
use mcp_sansio_handlers::middleware::{MiddlewareResult, Next, ServerRequest};
use mcp_sansio_handlers::{Call, Client, ClientError, Host, NoArguments, ReadResource, Server};
use mcp_sansio_test::{Pair, Transport};

use crate::{Place, connect, text};

/// Accepts objects whose `location` is not `nowhere`.
#[derive(Clone, Debug)]
struct Known;

impl Validator for Known {
    fn compile(&self, _: &Json) -> Result<Box<dyn CompiledSchema>, String> {
        Ok(Box::new(self.clone()))
    }

    fn clone_boxed(&self) -> Box<dyn Validator> {
        Box::new(self.clone())
    }
}

impl CompiledSchema for Known {
    fn validate(&self, value: &RawJson<'_>) -> Result<(), String> {
        let location = value.get("location").and_then(|it| Some(it.to_text()?.into_owned()));
        if location.as_deref() == Some("nowhere") { Err("unknown place".into()) } else { Ok(()) }
    }

    fn clone_boxed(&self) -> Box<dyn CompiledSchema> {
        Box::new(self.clone())
    }
}

/// A server with a tool that returns its argument, and `change` around it.
fn server<R>(
    change: impl FnOnce(ServerRequest, Next) -> R + Clone + Send + Sync + 'static,
) -> Server
where
    R: Future<Output = MiddlewareResult> + Send + 'static,
{
    Server::new("s", "1")
        .catalog(|catalog| catalog.validator(Known).unwrap())
        .middleware(change)
        .tool("echo", "", |call: Call<Place>| call.arguments.location.clone())
}

/// Calls the tool with these parameters.
fn call<T: Transport>(client: &Client, pair: &mut Pair<T>) -> Result<String, ClientError> {
    let oslo = Place { location: "Oslo".to_owned() };
    let meta =
        RawJson::parse(r#"{"com.example/kept":{"deep":[1.50]},"com.example/gone":1}"#).unwrap();
    pair.run(client.call_tool("echo", &oslo).meta(meta)).map(|result| text(&result).to_owned())
}

fn echo(location: &str) -> RawJson<'static> {
    let params = format!(r#"{{"name":"echo","arguments":{{"location":"{location}"}}}}"#);
    RawJson::parse(&params).unwrap().into_owned()
}

#[test]
fn changed_parameters_and_metadata_reach_the_inner_middleware_and_the_handler() {
    // Rule: [EXT-030] [EXT-034].
    let seen = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&seen);
    let outer = async |mut request: ServerRequest, next: Next| {
        let meta = request.params().get("_meta").unwrap().into_owned();
        assert_eq!(request.arguments().unwrap().as_str(), r#"{"location":"Oslo"}"#);
        request.set_params(echo("Rome"))?;
        // Without the metadata of the client: `set_params` replaces everything.
        request.insert_meta("com.example/added", &[true])?;
        assert!(meta.get("com.example/kept").is_some());
        next.run(request).await
    };
    let inner = async move |request: ServerRequest, next: Next| {
        *shown.lock().unwrap() = request.meta().as_str().to_owned();
        assert_eq!(request.arguments().unwrap().as_str(), r#"{"location":"Rome"}"#);
        assert_eq!(request.target().as_deref(), Some("echo"));
        next.run(request).await
    };
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(outer).middleware(inner.clone()), revision);
        assert_eq!(call(&client, &mut pair).unwrap(), "Rome", "{revision}");
        assert_eq!(*seen.lock().unwrap(), r#"{"com.example/added":[true]}"#);
        #[cfg(feature = "http")]
        if revision >= Revision::V2025_03_26 {
            let host = Host::new("h", "1").revisions(Revisions::only(revision));
            let server = server(outer).middleware(inner.clone());
            let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
            assert_eq!(call(&client, &mut pair).unwrap(), "Rome", "{revision}");
        }
    }
}

#[test]
fn a_handler_reads_the_metadata_as_middleware_left_it_and_the_name_of_the_client() {
    let change = async |mut request: ServerRequest, next: Next| {
        assert_eq!(request.client_info().unwrap().version, "1");
        request.remove_meta("com.example/gone")?;
        next.run(request).await
    };
    let tell = |call: Call<Place>| {
        let meta = |key| call.meta().get(key).is_some();
        let (kept, gone) = (meta("com.example/kept"), meta("com.example/gone"));
        format!("{} {kept} {gone}", call.client_info().unwrap().name)
    };
    for revision in Revision::ALL {
        let server = Server::new("s", "1").keep_meta().tool("echo", "", tell);
        for (server, seen) in
            [(server.clone(), "h true true"), (server.middleware(change), "h true false")]
        {
            let host = Host::new("h", "1").revisions(Revisions::only(revision));
            let (client, mut pair) = mcp_sansio_test::connect(&server, &host);
            assert_eq!(call(&client, &mut pair).unwrap(), seen, "{revision}");
            #[cfg(feature = "http")]
            if revision >= Revision::V2025_03_26 {
                let (client, mut pair) = mcp_sansio_test::connect_http(&server, &host, None);
                assert_eq!(call(&client, &mut pair).unwrap(), seen, "{revision}");
            }
        }
    }
}

#[test]
fn unknown_metadata_is_kept_when_another_entry_changes() {
    // Rule: [EXT-030].
    let seen = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&seen);
    let outer = async |mut request: ServerRequest, next: Next| {
        request.remove_meta("com.example/gone")?;
        request.insert_meta("com.example/new", "n")?;
        next.run(request).await
    };
    let inner = async move |request: ServerRequest, next: Next| {
        *shown.lock().unwrap() = request.meta().as_str().to_owned();
        next.run(request).await
    };
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(outer).middleware(inner.clone()), revision);
        assert_eq!(call(&client, &mut pair).unwrap(), "Oslo");
        let meta = seen.lock().unwrap().clone();
        assert!(meta.contains(r#""com.example/kept":{"deep":[1.50]}"#), "{revision}: {meta}");
        assert!(meta.contains(r#""com.example/new":"n""#) && !meta.contains("gone"), "{meta}");
    }
}

#[test]
fn changed_arguments_are_validated_like_those_of_a_client() {
    // Rule: [TOOL-009] [TOOL-010].
    let change = async |mut request: ServerRequest, next: Next| {
        request.set_params(echo("nowhere"))?;
        next.run(request).await
    };
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server(change), revision);
        let answered = call(&client, &mut pair);
        if revision < Revision::V2025_11_25 {
            let error = answered.unwrap_err();
            assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS, "{revision}");
        } else {
            assert!(answered.unwrap().contains("unknown place"), "{revision}");
        }
    }
}

#[test]
fn neither_the_tool_nor_the_form_of_the_parameters_can_be_changed() {
    for params in [
        r#"{"name":"other","arguments":{}}"#,
        r#"{"arguments":{}}"#,
        r#"{"name":"echo","name":"echo"}"#,
        r#"{"name":"echo","arguments":[1]}"#,
        r#"["echo"]"#,
    ] {
        let change = async move |mut request: ServerRequest, next: Next| {
            request.set_params(RawJson::parse(params).unwrap())?;
            next.run(request).await
        };
        let (client, mut pair) = connect(&server(change), Revision::V2026_07_28);
        let error = call(&client, &mut pair).unwrap_err();
        assert_eq!(error.as_refusal().unwrap().code, ErrorCode::INTERNAL_ERROR, "{params}");
    }
}

#[test]
fn metadata_that_middleware_adds_to_a_result_reaches_the_client() {
    // Rule: [EXT-030].
    let mark = async |request: ServerRequest, next: Next| {
        let revision = request.revision();
        let body = next.run(request).await?;
        assert!(body.to_json(revision)?.as_str().starts_with('{'));
        Ok(body.insert_meta("com.example/mark", &7, revision)?)
    };
    let server = Server::new("s", "1")
        .middleware(mark)
        .tool("text", "", |_: Call<NoArguments>| "text")
        .resource(Resource::new("note:a", "a"), |_: Call<ReadResource>| {
            TextResourceContents::new("note:a", "text")
        })
        .prompt("ask", "", |_: Call<NoArguments>| {
            GetPromptResult::new([PromptMessage::user("text")])
        });
    for revision in Revision::ALL {
        let (client, mut pair) = connect(&server, revision);
        let tool = pair.run(client.call_tool("text", &NoArguments {})).unwrap();
        assert_eq!(text(&tool), "text");
        let resource = pair.run(client.read_resource("note:a")).unwrap();
        assert_eq!(resource.contents.len(), 1);
        let prompt = pair.run(client.get_prompt("ask", [])).unwrap();
        for meta in [tool.meta, resource.meta, prompt.meta] {
            let meta = meta.unwrap();
            assert_eq!(meta.get("com.example/mark").unwrap().as_str(), "7", "{revision}");
        }
    }
}
