//! Subscriptions to resources.

use std::hint::black_box;

use mcp_sansio::Instant;
use mcp_sansio::peer::{Event, Limits, Server, ServerMachine, ServerOptions};
use mcp_sansio::protocol::{Implementation, ResourcesCapability, ServerCapabilities};

use super::Load;

const NOW: Instant = Instant::ZERO;

struct Subscriptions {
    server: Server,
    size: usize,
    more: fn(usize) -> String,
    work: fn(&mut Self),
}

fn subscribe(number: usize) -> String {
    verb("subscribe", number)
}

fn verb(verb: &str, number: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"resources/{verb}","params":{{"uri":"file:///{number:06}"}}}}"#
    )
}

fn listen(number: usize) -> String {
    let meta = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":"l{number}","method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["file:///{number:06}"]}},"_meta":{{{meta}}}}}}}"#
    )
}

pub(super) fn one_more() -> Box<dyn Load> {
    subscriptions(subscribe, |load| {
        load.send(&subscribe(999_999));
        load.send(&verb("unsubscribe", 999_999));
    })
}

pub(super) fn news() -> Box<dyn Load> {
    subscriptions(subscribe, Subscriptions::tell)
}

pub(super) fn listening() -> Box<dyn Load> {
    subscriptions(listen, Subscriptions::tell)
}

fn subscriptions(more: fn(usize) -> String, work: fn(&mut Subscriptions)) -> Box<dyn Load> {
    let mut limits = Limits::DEFAULT;
    limits.listen_streams_max = 1 << 20;
    limits.subscribed_resources_max = 1 << 20;
    let offers = ServerCapabilities::new().resources(ResourcesCapability::new().subscribe(true));
    let options =
        ServerOptions::new(Implementation::new("s", "1")).capabilities(offers).limits(limits);
    let mut load = Subscriptions { server: Server::new(options, 1), size: 0, more, work };
    load.send(crate::http_harness::INITIALIZE);
    load.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    Box::new(load)
}

impl Subscriptions {
    fn send(&mut self, line: &str) {
        let event =
            self.server.handle_message(line.as_bytes(), NOW).expect("the connection is open");
        // The machine handles subscriptions without the application.
        assert!(!matches!(event, Some(Event::Request(_) | Event::Violation(_))), "{event:?}");
        self.transmit();
    }

    /// Announces a change of a resource with a subscriber.
    fn tell(&mut self) {
        let uri = format!("file:///{:06}", self.size / 2);
        self.server.resource_updated(&uri, NOW);
        assert!(self.transmit() > 0, "the subscriber is notified");
    }

    fn transmit(&mut self) -> usize {
        let mut length = 0;
        while let Some(bytes) = self.server.poll_transmit() {
            length += black_box(bytes).len();
        }
        length
    }
}

impl Load for Subscriptions {
    fn grow(&mut self, size: usize) {
        for number in self.size..size {
            self.send(&(self.more)(number));
        }
        self.size = size;
    }

    fn work(&mut self) {
        (self.work)(self);
    }
}
