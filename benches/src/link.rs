use core::num::NonZeroUsize;

use mcp_sansio::catalog::Catalog;
use mcp_sansio::jsonrpc::{RawJson, WriteError};
use mcp_sansio::peer::{
    CallOptions, Client, ClientMachine, ClientOptions, Event, Limits, Request, Server,
    ServerMachine, ServerOptions,
};
use mcp_sansio::protocol::{Implementation, ServerCapabilities, ToolsCapability};
use mcp_sansio::{Instant, Method, Revision, Revisions};

/// The options of the client and server of any number of pairs.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    client: ClientOptions,
    server: ServerOptions,
}

impl LinkOptions {
    /// Creates the options of a pair at `revision`, with the catalog of the server and the limits
    /// of both.
    #[must_use]
    pub fn new(revision: Revision, catalog: Catalog, limits: Limits) -> Self {
        let identity = Implementation::new("bench", "1.0.0");
        let offers = ServerCapabilities::new().tools(ToolsCapability::new());
        let client = ClientOptions::new(identity.clone()).revisions(Revisions::only(revision));
        let server = ServerOptions::new(identity).capabilities(offers).catalog(catalog);
        Self { client: client.limits(limits.clone()), server: server.limits(limits) }
    }

    /// Creates the options of a pair at `revision`, with an empty catalog.
    #[must_use]
    pub fn at(revision: Revision) -> Self {
        Self::new(revision, Catalog::new(), Limits::DEFAULT)
    }
}

/// A client and a server in one process, open and idle.
#[derive(Debug)]
pub struct Link {
    client: Client,
    server: Server,
    now: Instant,
    /// Progress notifications sent before each answer.
    steps: u32,
}

impl Link {
    /// Opens a pair at `revision`.
    ///
    /// # Panics
    ///
    /// If the machines do not agree.
    #[must_use]
    pub fn open_at(revision: Revision) -> Self {
        Self::open(&LinkOptions::at(revision))
    }

    /// Opens a pair at `revision`, with the catalog of the server and the limits of both.
    ///
    /// # Panics
    ///
    /// If the machines do not agree.
    #[must_use]
    pub fn open_with(revision: Revision, catalog: Catalog, limits: Limits) -> Self {
        Self::open(&LinkOptions::new(revision, catalog, limits))
    }

    /// Opens another pair that shares these options.
    ///
    /// # Panics
    ///
    /// If the machines do not agree.
    #[must_use]
    pub fn open(options: &LinkOptions) -> Self {
        let LinkOptions { client, server } = options.clone();
        let mut link = Self {
            client: Client::new(client, 1, Instant::ZERO),
            server: Server::new(server, 2),
            now: Instant::ZERO,
            steps: 0,
        };
        for _ in 0..2 {
            link.exchange(&mut |_| {});
        }
        assert!(link.client.session().is_some(), "not open");
        link
    }

    /// Advances the clock.
    pub fn pass(&mut self, time: core::time::Duration) {
        self.now = self.now + time;
    }

    /// Sends one `ping` and receives its answer.
    ///
    /// # Panics
    ///
    /// If it has no answer.
    pub fn ping(&mut self) {
        self.call(Method::Ping, &RawJson::EMPTY_OBJECT, &mut |_| {});
    }

    /// Calls a tool that returns the text of its arguments.
    ///
    /// # Panics
    ///
    /// If the call has no answer.
    pub fn echo(&mut self, params: &RawJson<'_>) {
        self.call(Method::ToolsCall, params, &mut |_| {});
    }

    /// Makes `count` concurrent calls, all before the first is answered.
    ///
    /// # Panics
    ///
    /// If a call has no answer.
    pub fn echo_at_once(&mut self, params: &RawJson<'_>, count: u32) {
        for _ in 0..count {
            self.start(Method::ToolsCall, params, &CallOptions::default());
        }
        assert_eq!(self.exchange(&mut |_| {}).ended, count, "each call has an answer");
    }

    /// Makes one call, with `steps` progress notifications before its answer.
    ///
    /// # Panics
    ///
    /// If a notification or the answer does not arrive.
    pub fn echo_with_progress(&mut self, params: &RawJson<'_>, steps: u32) {
        self.steps = steps;
        self.start(Method::ToolsCall, params, &CallOptions::default().progress());
        let arrived = self.exchange(&mut |_| {});
        assert_eq!((arrived.progress, arrived.ended), (steps, 1), "all of it comes");
        self.steps = 0;
    }

    /// Makes `count` calls that the server receives but does not answer.
    ///
    /// # Panics
    ///
    /// If a call is refused.
    pub fn park(&mut self, params: &RawJson<'_>, count: usize) {
        for _ in 0..count {
            self.start(Method::ToolsCall, params, &CallOptions::default());
            let Self { client, server, now, .. } = self;
            let bytes = client.poll_transmit().expect("a call");
            for line in lines(bytes) {
                let event = server.handle_message(line, *now).expect("open");
                assert!(matches!(event, Some(Event::Request(_))), "the call is accepted");
            }
        }
    }

    /// Passes one page of the server's tools to `take`: the first, or the one selected by `params`.
    ///
    /// # Panics
    ///
    /// If the page does not exist.
    pub fn list_tools(&mut self, params: &RawJson<'_>, take: &mut dyn FnMut(&RawJson<'_>)) {
        self.call(Method::ToolsList, params, take);
    }

    /// Sets the page size of the server.
    pub fn turn_pages_of(&mut self, page: NonZeroUsize) {
        self.server.edit_catalog(|catalog| {
            catalog.page_size(Some(page));
        });
        self.exchange(&mut |_| {});
    }

    /// Returns the next deadline of either side.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.client.poll_timeout(), self.server.poll_timeout()].into_iter().flatten().min()
    }

    fn call(&mut self, method: Method, params: &RawJson<'_>, take: &mut dyn FnMut(&RawJson<'_>)) {
        self.start(method, params, &CallOptions::default());
        assert_eq!(self.exchange(take).ended, 1, "the call has an answer");
    }

    fn start(&mut self, method: Method, params: &RawJson<'_>, options: &CallOptions<'_>) {
        self.client.call(method, params, options, self.now).expect("the call is made");
    }

    /// Delivers pending output in both directions, and passes the results of calls to `take`.
    fn exchange(&mut self, take: &mut dyn FnMut(&RawJson<'_>)) -> Arrived {
        let Self { client, server, now, steps } = self;
        let mut arrived = Arrived::default();
        while let Some(bytes) = client.poll_transmit() {
            for line in lines(bytes) {
                let event = server.handle_message(line, *now).expect("open");
                if let Some(Event::Request(request)) = event {
                    let total = Some(f64::from(*steps));
                    for step in 1..=*steps {
                        server.progress(request.handle, f64::from(step), total, None, *now);
                    }
                    server.respond_with(request.handle, &echoed(&request), *now).expect("due");
                }
            }
        }
        while let Some(bytes) = server.poll_transmit() {
            for line in lines(bytes) {
                match client.handle_message(line, *now).expect("open") {
                    Some(Event::Ended(end)) => {
                        take(&end.outcome.expect("a result"));
                        arrived.ended += 1;
                    }
                    Some(Event::Progress(_)) => arrived.progress += 1,
                    _ => {}
                }
            }
        }
        arrived
    }
}

/// Messages received by a client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) ended: u32,
    pub(crate) progress: u32,
}

/// Splits `bytes` into lines with a fast search, so that mainly the machines are measured.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| {
        let line = &bytes[start..end];
        start = end + 1;
        line
    })
}

/// Writes the answer of the tool: a block with the received text.
pub(crate) fn echoed(request: &Request<'_>) -> impl Fn(&mut String) -> Result<(), WriteError> {
    move |out| {
        let arguments = request.arguments();
        let text = arguments.as_ref().and_then(|arguments| arguments.get("text"));
        out.push_str(r#"{"content":[{"type":"text","text":"#);
        out.push_str(text.as_ref().map_or("\"\"", RawJson::as_str));
        out.push_str("}]}");
        Ok(())
    }
}
