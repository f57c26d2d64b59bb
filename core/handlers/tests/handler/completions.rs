//! Completions of single arguments.

use mcp_sansio::ErrorCode;
use mcp_sansio::catalog::CatalogError;
use mcp_sansio::protocol::{
    CompleteParams, CompletionArgument, CompletionContext, CompletionReference, Map,
    PromptReference, ResourceTemplate, ResourceTemplateReference, TextResourceContents,
};
use mcp_sansio::{Capability, Revision};
use mcp_sansio_handlers::handler::Threading;
use mcp_sansio_handlers::{Call, ReadResource, Server, ServerItem, State};

use crate::{Both, connect};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Review {
    language: String,
    style: Option<String>,
}

fn review(call: Call<Review>) -> String {
    format!("{} {:?}", call.arguments.language, call.arguments.style)
}

fn read(call: Call<ReadResource>) -> TextResourceContents {
    TextResourceContents::new(call.arguments.uri.as_str(), "")
}

fn typed(call: &Call<CompleteParams>) -> &str {
    &call.arguments.argument.value
}

fn languages(call: Call<CompleteParams>) -> Vec<String> {
    let known = ["Ruby", "Rust", "Zig"].into_iter();
    known.filter(|it| it.starts_with(typed(&call))).map(Into::into).collect()
}

async fn styles(call: Call<CompleteParams>) -> Vec<String> {
    let context = call.arguments.context.as_ref().and_then(|it| it.arguments.as_ref());
    let language = context.and_then(|it| it.get("language")).map_or("any", String::as_str);
    vec![format!("{}short {language}", typed(&call))]
}

fn everything_else(call: Call<CompleteParams>) -> Vec<String> {
    vec![format!("else {}", typed(&call))]
}

fn prompt(name: &str) -> CompletionReference {
    CompletionReference::Prompt(PromptReference::new(name))
}

fn template(uri: &str) -> CompletionReference {
    CompletionReference::Resource(ResourceTemplateReference::new(uri))
}

fn complete<K: Threading>(
    (client, pair): &mut Both<K>,
    reference: CompletionReference,
    argument: &str,
) -> Vec<String> {
    let mut params = CompleteParams::new(reference, CompletionArgument::new(argument, "Ru"));
    let filled: Map<String> = [("language".to_owned(), "Rust".to_owned())].into_iter().collect();
    params.context = Some(CompletionContext::new().arguments(filled));
    pair.run(client.complete(&params)).unwrap().completion.values
}

fn review_item() -> ServerItem<mcp_sansio::protocol::Prompt> {
    ServerItem::prompt("review", "", review)
        .complete("language", languages)
        .complete("style", styles)
}

fn books() -> ServerItem<ResourceTemplate> {
    let template = ResourceTemplate::new("books:///{isbn}/{chapter}", "book");
    ServerItem::new(template, read).complete("isbn", |_: Call<CompleteParams>| vec!["42".into()])
}

#[test]
fn each_argument_has_its_own_handler() {
    // Rule: [CAP-005] [COMP-001] [COMP-002].
    let server = Server::new("s", "1").add_item(review_item()).add_item(books());
    for revision in Revision::ALL {
        let mut both = connect(&server, revision);
        let declared = both.0.session().unwrap().capabilities.contains(Capability::Completions);
        assert_eq!(declared, revision > Revision::V2024_11_05);
        assert_eq!(complete(&mut both, prompt("review"), "language"), ["Ruby", "Rust"]);
        let context = if revision >= Revision::V2025_06_18 { "Rust" } else { "any" };
        assert_eq!(
            complete(&mut both, prompt("review"), "style"),
            [format!("Rushort {context}")],
            "{revision}"
        );
        for uri in ["books:///{isbn}/{chapter}", "books:///4/1"] {
            assert_eq!(complete(&mut both, template(uri), "isbn"), ["42"]);
            // Without a handler for all arguments, nothing completes the others.
            assert!(complete(&mut both, template(uri), "chapter").is_empty());
        }
        let unknown = CompletionArgument::new("no such argument", "");
        let params = CompleteParams::new(prompt("review"), unknown);
        let refused = both.1.run(both.0.complete(&params)).unwrap_err();
        assert_eq!(refused.as_refusal().unwrap().code, ErrorCode::INVALID_PARAMS, "{refused}");
    }
}

#[test]
fn other_arguments_are_completed_by_the_handler_for_all() {
    let servers = [
        Server::new("s", "1").completion(everything_else).add_item(books()),
        Server::new("s", "1").add_item(books()).completion(everything_else),
    ];
    for server in servers {
        let mut both = connect(&server.prompt("review", "", review), Revision::LATEST);
        assert_eq!(complete(&mut both, template("books:///4/1"), "isbn"), ["42"]);
        assert_eq!(complete(&mut both, template("books:///4/1"), "chapter"), ["else Ru"]);
        assert_eq!(complete(&mut both, prompt("review"), "style"), ["else Ru"]);
    }
}

#[test]
fn without_a_handler_completions_are_not_declared() {
    // Rule: [CAP-005].
    let server = Server::new("s", "1").prompt("review", "", review);
    let (client, _pair) = connect(&server, Revision::LATEST);
    assert!(!client.session().unwrap().capabilities.contains(Capability::Completions));
}

#[test]
fn the_last_handler_of_an_argument_counts() {
    let item = review_item().complete("language", |_: Call<CompleteParams>| vec!["Zig".into()]);
    let mut both = connect(&Server::new("s", "1").add_item(item), Revision::LATEST);
    assert_eq!(complete(&mut both, prompt("review"), "language"), ["Zig"]);
}

#[test]
fn the_arguments_of_a_prompt_are_strings() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is wanted")]
    struct Plan {
        goal: Option<String>,
        days: Option<u8>,
    }

    let plan = |_: Call<Plan>| String::from("Plan");
    let server = Server::new("s", "1").prompt("plan", "", plan);
    let error = server.endpoint(1).unwrap_err();
    assert!(matches!(error, CatalogError::ArgumentNotString { .. }), "{error}");
    let why = "prompt \"plan\": the argument \"days\" must be a string";
    assert!(error.to_string().starts_with(why), "{error}");
}

#[test]
fn an_argument_that_does_not_exist_cannot_be_completed() {
    let prompt = ServerItem::prompt("review", "", review).complete("langage", languages);
    let error = Server::new("s", "1").add_item(prompt).endpoint(1).unwrap_err();
    assert!(matches!(error, CatalogError::NoSuchArgument { .. }), "{error}");
    assert_eq!(error.to_string(), r#"the prompt "review" has no argument "langage""#);
    for (uri, variable, exists) in [
        ("a:/{b}{?c,d*}", "b", true),
        ("a:/{b}{?c,d*}", "c", true),
        ("a:/{b}{?c,d*}", "d", true),
        ("a:/{b}{?c,d*}", "e", false),
        ("a:/{+path*}{#part:3}", "path", true),
        ("a:/{+path*}{#part:3}", "part", true),
    ] {
        let item = ServerItem::new(ResourceTemplate::new(uri, "t"), read);
        let server = Server::new("s", "1").add_item(item.complete(variable, languages));
        assert_eq!(server.endpoint(1).is_ok(), exists, "{uri} {variable}");
    }
}

#[test]
fn completions_take_states() {
    let names = |_: Call<CompleteParams>, names: State<Vec<String>>| names.to_vec();
    let item = || ServerItem::prompt("review", "", review).complete("style", names);
    let server = Server::new("s", "1").add_item(item());
    assert!(matches!(server.endpoint(1).unwrap_err(), CatalogError::MissingState { .. }));
    let mut both = connect(&server.state(vec!["terse".to_owned()]), Revision::LATEST);
    assert_eq!(complete(&mut both, prompt("review"), "style"), ["terse"]);
    // At runtime such an item is refused at once.
    let mut both = connect(&Server::new("s", "1").add_item(review_item()), Revision::LATEST);
    let edit = both.1.transport.server.as_ref().unwrap().handle().edit_catalog(move |catalog| {
        let again = ServerItem::prompt("again", "", review).complete("style", names);
        let refused = catalog.add_item(again).unwrap_err();
        assert!(matches!(refused, CatalogError::MissingState { .. }), "{refused}");
        catalog.remove_prompt("review").unwrap();
    });
    edit.unwrap();
    both.1.run_until_idle();
    let params = CompleteParams::new(prompt("review"), CompletionArgument::new("style", ""));
    let error = both.1.run(both.0.complete(&params)).unwrap_err();
    assert_eq!(error.as_refusal().unwrap().code.0, -32602);
}

#[test]
fn an_item_that_is_added_at_runtime_has_completions() {
    fn check<K: Threading>(server: &Server<K>) {
        let mut both = connect(server, Revision::LATEST);
        let remote = both.1.transport.server.as_ref().unwrap().handle();
        remote
            .edit_catalog(|catalog| {
                catalog.remove_prompt("review").unwrap();
                catalog.add_item(review_item()).unwrap();
                catalog.add_item(books()).unwrap();
            })
            .unwrap();
        both.1.run_until_idle();
        assert_eq!(complete(&mut both, prompt("review"), "language"), ["Ruby", "Rust"]);
        assert_eq!(complete(&mut both, prompt("review"), "style"), ["Rushort Rust"]);
        assert_eq!(complete(&mut both, template("books:///4/1"), "isbn"), ["42"]);
        assert_eq!(complete(&mut both, template("books:///4/1"), "chapter"), ["else Ru"]);
    }
    let template = || ResourceTemplate::new("x:{y}", "x");
    let server =
        Server::new("s", "1").completion(everything_else).resource_template(template(), read);
    check(&server.prompt("review", "", review));
    let server =
        Server::local("s", "1").completion(everything_else).resource_template(template(), read);
    check(&server.prompt("review", "", review));
    // Items that `Server::catalog` adds declare the capability.
    let server = Server::new("s", "1").catalog(|catalog| {
        catalog.add_item(books()).unwrap();
    });
    let mut both = connect(&server, Revision::LATEST);
    assert_eq!(complete(&mut both, self::template("books:///4/1"), "isbn"), ["42"]);
}
