//! Resources: a text, an image, one that can be watched, and a template.

use mcp_sansio::protocol::{
    BlobResourceContents, Resource, ResourceContents, ResourceTemplate, TextResourceContents,
};
use mcp_sansio_handlers::{Call, ReadResource, Server};

use super::media;
use authorization_server::protected::{SCOPED_RESOURCE, SCOPED_TEMPLATE};

/// The resource for subscriptions.
pub(super) const WATCHED: &str = "test://watched-resource";

const PLAIN: &str = "text/plain";

pub(super) fn offer(server: Server) -> Server {
    server
        .resource(
            Resource::new("test://static-text", "static-text")
                .description("A text that never changes")
                .mime_type(PLAIN),
            |call: Call<ReadResource>| {
                text(&call, "This is the content of the static text resource.")
            },
        )
        .resource(
            Resource::new("test://static-binary", "static-binary")
                .description("An image that never changes")
                .mime_type(media::PNG_TYPE),
            |call: Call<ReadResource>| {
                let contents = BlobResourceContents::new(call.arguments.uri.as_str(), media::PNG);
                ResourceContents::Blob(contents.mime_type(media::PNG_TYPE))
            },
        )
        .resource(
            Resource::new(WATCHED, "watched-resource")
                .description("A text to subscribe to; test_touch_watched_resource updates it")
                .mime_type(PLAIN),
            |call: Call<ReadResource>| text(&call, "Watched resource content"),
        )
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", "template")
                .description("Data of any id")
                .mime_type("application/json"),
            |call: Call<ReadResource>| {
                let id = call.arguments.variable("id").unwrap_or_default();
                let data = serde_json::json!({ "id": id, "data": format!("Data for ID: {id}") });
                let uri = call.arguments.uri.as_str();
                let contents = TextResourceContents::new(uri, data.to_string());
                ResourceContents::Text(contents.mime_type("application/json"))
            },
        )
}

/// Registers the items that have their own scopes with authorization.
pub(super) fn offer_scoped(server: Server) -> Server {
    server
        .resource(
            Resource::new(SCOPED_RESOURCE, "scoped-text")
                .description("A text; with --auth it needs the scope mcp:resource")
                .mime_type(PLAIN),
            |call: Call<ReadResource>| {
                text(&call, "This is the content of the scoped text resource.")
            },
        )
        .resource_template(
            ResourceTemplate::new(SCOPED_TEMPLATE, "scoped-template")
                .description("Data of an id; with --auth it needs the scope mcp:template")
                .mime_type(PLAIN),
            |call: Call<ReadResource>| {
                let id = call.arguments.variable("id").unwrap_or_default();
                text(&call, &format!("Scoped data for ID: {id}"))
            },
        )
}

fn text(call: &Call<ReadResource>, text: &str) -> ResourceContents {
    let contents = TextResourceContents::new(call.arguments.uri.as_str(), text);
    ResourceContents::Text(contents.mime_type(PLAIN))
}
