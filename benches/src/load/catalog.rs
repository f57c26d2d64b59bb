//! Entries of a server's catalog.

use core::num::NonZeroUsize;

use mcp_sansio::Revision;
use mcp_sansio::catalog::Catalog;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;
use mcp_sansio::protocol::ResourceTemplate;

use super::Load;
use crate::{Echo, Endpoints, Link, tools};

const REVISION: Revision = Revision::V2025_11_25;

/// A page of one tool, from the middle of the list.
struct Page {
    link: Link,
    params: RawJson<'static>,
}

pub(super) fn page() -> Box<dyn Load> {
    Box::new(Page::new(1))
}

impl Page {
    fn new(size: usize) -> Self {
        let pages = |page: usize| NonZeroUsize::new(page).unwrap_or(NonZeroUsize::MIN);
        let catalog = tools::catalog(size, pages(size / 2));
        let mut link = Link::open_with(REVISION, catalog, Limits::DEFAULT);
        let mut params = RawJson::EMPTY_OBJECT;
        link.list_tools(&RawJson::EMPTY_OBJECT, &mut |result| {
            // A list with a single tool has only one page.
            params = tools::next_page(result).unwrap_or(RawJson::EMPTY_OBJECT);
        });
        link.turn_pages_of(pages(1));
        Self { link, params }
    }
}

impl Load for Page {
    fn grow(&mut self, size: usize) {
        *self = Self::new(size);
    }

    fn work(&mut self) {
        self.link.list_tools(&self.params, &mut |_| {});
    }
}

struct Handlers {
    endpoints: Endpoints,
    echo: Echo,
}

pub(super) fn call() -> Box<dyn Load> {
    Box::new(Handlers { endpoints: Endpoints::open_at(REVISION), echo: Echo::new(64) })
}

impl Load for Handlers {
    fn grow(&mut self, size: usize) {
        self.endpoints = Endpoints::open_with(REVISION, size);
    }

    fn work(&mut self) {
        self.endpoints.echo(&self.echo);
    }
}

#[derive(Default)]
struct Templates {
    catalog: Catalog,
    size: usize,
}

pub(super) fn template() -> Box<dyn Load> {
    Box::new(Templates::default())
}

impl Load for Templates {
    fn grow(&mut self, size: usize) {
        for number in self.size..size {
            let template = ResourceTemplate::new(format!("file:///{number}/{{name}}"), "files");
            self.catalog.add_resource_template(template).expect("a new template");
        }
        self.size = size;
    }

    fn work(&mut self) {
        let uri = format!("file:///{}/a.txt", self.size - 1);
        assert!(self.catalog.find_template(&uri).is_some(), "the template is found");
    }
}
