use core::num::NonZeroUsize;

use mcp_sansio::catalog::Catalog;
use mcp_sansio::jsonrpc::{RawJson, WriteError};
use mcp_sansio::peer::{
    CallOptions, Client, ClientOptions, Event, Limits, Request, Server, ServerOptions,
};
use mcp_sansio::protocol::{Implementation, Method, ServerCapabilities, ToolsCapability};
use mcp_sansio::{Instant, Revision, Revisions};

/// What the client and the server of any number of pairs are made from.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    client: ClientOptions,
    server: ServerOptions,
}

impl LinkOptions {
    /// Options of a pair that speaks `revision`, with what the server offers and the limits of both.
    #[must_use]
    pub fn new(revision: Revision, catalog: Catalog, limits: Limits) -> Self {
        let identity = Implementation::new("bench", "1.0.0");
        let offers = ServerCapabilities::new().tools(ToolsCapability::new());
        let client = ClientOptions::new(identity.clone()).revisions(Revisions::only(revision));
        let server = ServerOptions::new(identity).capabilities(offers).catalog(catalog);
        Self { client: client.limits(limits.clone()), server: server.limits(limits) }
    }

    /// Options of a pair that speaks `revision`, of a server that offers nothing.
    #[must_use]
    pub fn at(revision: Revision) -> Self {
        Self::new(revision, Catalog::new(), Limits::DEFAULT)
    }
}

/// A client and a server of one process, open and at rest.
#[derive(Debug)]
pub struct Link {
    client: Client,
    server: Server,
    now: Instant,
    /// Notifications of progress that come before each answer.
    steps: u32,
}

impl Link {
    /// A pair that speaks `revision`.
    ///
    /// # Panics
    ///
    /// The machines do not agree.
    #[must_use]
    pub fn open_at(revision: Revision) -> Self {
        Self::open(&LinkOptions::at(revision))
    }

    /// A pair that speaks `revision`, with what the server offers and the limits of both.
    ///
    /// # Panics
    ///
    /// The machines do not agree.
    #[must_use]
    pub fn open_with(revision: Revision, catalog: Catalog, limits: Limits) -> Self {
        Self::open(&LinkOptions::new(revision, catalog, limits))
    }

    /// One more pair of these options, which shares them with the others.
    ///
    /// # Panics
    ///
    /// The machines do not agree.
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

    /// Lets that much time pass.
    pub fn pass(&mut self, time: core::time::Duration) {
        self.now = self.now + time;
    }

    /// One `ping` and its answer.
    ///
    /// # Panics
    ///
    /// It has no answer.
    pub fn ping(&mut self) {
        self.call(Method::Ping, &RawJson::EMPTY_OBJECT, &mut |_| {});
    }

    /// One call of a tool that gives the text of its arguments back.
    ///
    /// # Panics
    ///
    /// It has no answer.
    pub fn echo(&mut self, params: &RawJson<'_>) {
        self.call(Method::ToolsCall, params, &mut |_| {});
    }

    /// The same, `count` calls at once, all of which are made before the first is answered.
    ///
    /// # Panics
    ///
    /// One has no answer.
    pub fn echo_at_once(&mut self, params: &RawJson<'_>, count: u32) {
        for _ in 0..count {
            self.start(Method::ToolsCall, params, &CallOptions::default());
        }
        assert_eq!(self.exchange(&mut |_| {}).ended, count, "each call has an answer");
    }

    /// The same, one call, with `steps` notifications of progress before its answer.
    ///
    /// # Panics
    ///
    /// One of these does not come.
    pub fn echo_with_progress(&mut self, params: &RawJson<'_>, steps: u32) {
        self.steps = steps;
        self.start(Method::ToolsCall, params, &CallOptions::default().progress());
        let arrived = self.exchange(&mut |_| {});
        assert_eq!((arrived.progress, arrived.ended), (steps, 1), "all of it comes");
        self.steps = 0;
    }

    /// Makes `count` calls that the server has and does not answer.
    ///
    /// # Panics
    ///
    /// One of them is not taken.
    pub fn park(&mut self, params: &RawJson<'_>, count: usize) {
        for _ in 0..count {
            self.start(Method::ToolsCall, params, &CallOptions::default());
            let Self { client, server, now, .. } = self;
            let bytes = client.poll_transmit().expect("a call");
            for line in lines(bytes) {
                let event = server.handle_message(line, *now).expect("open");
                assert!(matches!(event, Some(Event::Request(_))), "the call is taken");
            }
        }
    }

    /// Shows `take` one page of the server's tools: the first, or the one that `params` names.
    ///
    /// # Panics
    ///
    /// There is no such page.
    pub fn list_tools(&mut self, params: &RawJson<'_>, take: &mut dyn FnMut(&RawJson<'_>)) {
        self.call(Method::ToolsList, params, take);
    }

    /// Has the server give that many tools at once from here on.
    pub fn turn_pages_of(&mut self, page: NonZeroUsize) {
        self.server.edit_catalog(|catalog| {
            catalog.page_size(Some(page));
        });
        self.exchange(&mut |_| {});
    }

    /// When either side has something to do.
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

    /// Carries what waits to the other side, and back, and shows the results of calls to `take`.
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
                    server.respond_with(request.handle, &echoed(&request)).expect("due");
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

/// What has come to a client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) ended: u32,
    pub(crate) progress: u32,
}

/// The lines in `bytes`, found fast: what is measured are the machines.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes).map(move |end| {
        let line = &bytes[start..end];
        start = end + 1;
        line
    })
}

/// The answer of the tool: a block with the text that came.
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
