//! Servers with many tools.

use core::num::NonZeroUsize;

use mcp_sansio::catalog::Catalog;
use mcp_sansio::jsonrpc::{Json, RawJson};
use mcp_sansio::protocol::Tool;

use crate::Link;

/// Creates a catalog with this number of tools and this page size.
///
/// # Panics
///
/// Never: the names are unique.
#[must_use]
pub fn catalog(tools: usize, page: NonZeroUsize) -> Catalog {
    let schema =
        r#"{"type":"object","properties":{"a":{"type":"number","minimum":-1.5}},"required":["a"]}"#;
    let schema: Json = RawJson::parse(schema).expect("JSON").into();
    let mut catalog = Catalog::new();
    catalog.page_size(Some(page));
    for number in 0..tools {
        let tool = Tool::new(format!("tool_{number}"), schema.clone());
        let tool = tool.description("Looks something up, and says so in a \"sentence\".");
        catalog.add_tool(tool).expect("a new name");
    }
    catalog
}

/// Returns the parameters that request the page after this result; `None` after the last page.
#[must_use]
pub fn next_page(result: &RawJson<'_>) -> Option<RawJson<'static>> {
    let cursor = result.get("nextCursor")?;
    let params = format!(r#"{{"cursor":{}}}"#, cursor.as_str());
    Some(RawJson::parse(&params).ok()?.into_owned())
}

/// Lists all tools of the server, page by page. Returns the number of pages.
///
/// # Panics
///
/// If a page does not arrive.
pub fn list_all(link: &mut Link) -> usize {
    let (mut pages, mut params) = (0, Some(RawJson::EMPTY_OBJECT));
    while let Some(asked) = params.take() {
        link.list_tools(&asked, &mut |result| params = next_page(result));
        pages += 1;
    }
    pages
}
