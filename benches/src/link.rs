use mcp_sansio::jsonrpc::{RawJson, WriteError};
use mcp_sansio::peer::{CallOptions, Client, ClientOptions, Event, Request, Server, ServerOptions};
use mcp_sansio::protocol::{Implementation, Method, ServerCapabilities, ToolsCapability};
use mcp_sansio::{Instant, Revision, Revisions};

/// A client and a server of one process, open and at rest.
#[derive(Debug)]
pub struct Link {
    client: Client,
    server: Server,
}

impl Link {
    /// A pair that speaks `revision`.
    ///
    /// # Panics
    ///
    /// The machines do not agree.
    #[must_use]
    pub fn open_at(revision: Revision) -> Self {
        let identity = Implementation::new("bench", "1.0.0");
        let offers = ServerCapabilities::new().tools(ToolsCapability::new());
        let client = ClientOptions::new(identity.clone()).revisions(Revisions::only(revision));
        let server = ServerOptions::new(identity).capabilities(offers);
        let mut link =
            Self { client: Client::new(client, 1, Instant::ZERO), server: Server::new(server, 2) };
        for _ in 0..2 {
            link.exchange();
        }
        assert!(link.client.session().is_some(), "not open");
        link
    }

    /// One `ping` and its answer.
    ///
    /// # Panics
    ///
    /// It has no answer.
    pub fn ping(&mut self) {
        self.call(Method::Ping, &RawJson::EMPTY_OBJECT);
    }

    /// One call of a tool that gives the text of its arguments back.
    ///
    /// # Panics
    ///
    /// It has no answer.
    pub fn echo(&mut self, params: &RawJson<'_>) {
        self.call(Method::ToolsCall, params);
    }

    fn call(&mut self, method: Method, params: &RawJson<'_>) {
        let options = CallOptions::default();
        self.client.call(method, params, &options, Instant::ZERO).expect("the call is made");
        assert_eq!(self.exchange(), 1, "the call has an answer");
    }

    /// Carries what waits to the other side, and back; how many calls ended.
    fn exchange(&mut self) -> u32 {
        let Self { client, server } = self;
        let mut ended = 0;
        while let Some(bytes) = client.poll_transmit() {
            for line in lines(bytes) {
                let event = server.handle_message(line, Instant::ZERO).expect("open");
                if let Some(Event::Request(request)) = event {
                    server.respond_with(request.handle, &echoed(&request)).expect("due");
                }
            }
        }
        while let Some(bytes) = server.poll_transmit() {
            for line in lines(bytes) {
                let event = client.handle_message(line, Instant::ZERO).expect("open");
                ended += u32::from(matches!(event, Some(Event::Ended(_))));
            }
        }
        ended
    }
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
fn echoed(request: &Request<'_>) -> impl Fn(&mut Vec<u8>) -> Result<(), WriteError> {
    move |out| {
        let arguments = request.params.get("arguments");
        let text = arguments.as_ref().and_then(|arguments| arguments.get("text"));
        out.extend_from_slice(br#"{"content":[{"type":"text","text":"#);
        out.extend_from_slice(text.as_ref().map_or("\"\"", RawJson::as_str).as_bytes());
        out.extend_from_slice(b"}]}");
        Ok(())
    }
}
