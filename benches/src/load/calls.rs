//! Calls that wait for their answers.

use core::time::Duration;

use mcp_sansio::Revision;
use mcp_sansio::catalog::Catalog;
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::Limits;

use super::Load;
use crate::{Link, echo_params};

struct Calls {
    link: Link,
    params: RawJson<'static>,
    waiting: usize,
}

pub(super) fn legacy() -> Box<dyn Load> {
    calls(Revision::V2025_11_25)
}

pub(super) fn modern() -> Box<dyn Load> {
    calls(Revision::V2026_07_28)
}

fn calls(revision: Revision) -> Box<dyn Load> {
    let mut limits = Limits::DEFAULT;
    limits.requests_in_flight_max = 1 << 20;
    limits.calls_in_flight_max = 1 << 20;
    let link = Link::open_with(revision, Catalog::new(), limits);
    Box::new(Calls { link, params: echo_params(64), waiting: 0 })
}

impl Load for Calls {
    fn grow(&mut self, size: usize) {
        while self.waiting < size {
            self.link.pass(Duration::from_micros(1));
            self.link.park(&self.params, 1);
            self.waiting += 1;
        }
    }

    fn work(&mut self) {
        self.link.pass(Duration::from_micros(1));
        self.link.echo(&self.params);
        assert!(self.link.poll_timeout().is_some(), "calls wait");
    }
}
