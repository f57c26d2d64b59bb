//! Random options for clients and servers.

use std::time::Duration;

use mcp_sansio::catalog::Catalog;
use mcp_sansio::http;
use mcp_sansio::http::{
    ClientLimits, EventStore, LostSession, ResponseMode, ServerLimits, ServerTimeouts,
};
use mcp_sansio::jsonrpc::RawJson;
use mcp_sansio::peer::{ClientOptions, Limits, ServerOptions};
use mcp_sansio::protocol::{
    CapabilitySettings, ClientCapabilities, ElicitationCapability, Implementation,
    PromptsCapability, ResourcesCapability, RootsCapability, ServerCapabilities, Tool,
    ToolsCapability,
};
use mcp_sansio::{Revision, Revisions};

use crate::client_application::{Binding, ClientApplication, MEMORY};
use crate::coverage::Happening;
use crate::exchanges::WebMaker;
use crate::messages;
use crate::played::{Client, HttpClient, HttpServer, Played, Server};
use crate::scene::Scene;
use crate::server_application::{ServerApplication, Tolerance};
use crate::side::{ClientSide, ServerSide, Side};
use crate::streams::Maker;
use crate::web::{BareClient, BareServer, WebClient, WebServer};

/// Returns options for a client that supports one or several revisions.
pub(crate) fn client_options(scene: &mut Scene) -> ClientOptions {
    let mut capabilities = ClientCapabilities::new();
    if !scene.random.once_in(5) {
        capabilities = capabilities.roots(RootsCapability::new().list_changed(true));
    }
    if !scene.random.once_in(5) {
        capabilities = capabilities.elicitation(ElicitationCapability::new());
    }
    let keep_alive = scene.random.once_in(3).then_some(Duration::from_secs(7));
    let revisions = if scene.random.once_in(4) {
        scene.count(Happening::BothEras);
        Revisions::ALL
    } else {
        Revisions::only(scene.random.one_of(Revision::ALL))
    };
    let mut limits = Limits::default();
    if scene.random.once_in(4) {
        limits.rounds_max = 1 + scene.random.below(3) as u32;
    }
    ClientOptions::new(Implementation::new("guest", "1"))
        .capabilities(capabilities)
        .revisions(revisions)
        .timeouts(messages::timeouts(keep_alive))
        .limits(limits)
}

/// Returns options for a server that supports all revisions. With `tight`, schedules reach its
/// limits.
pub(crate) fn server_options(tight: bool, scene: &mut Scene) -> ServerOptions {
    let mut capabilities = ServerCapabilities::new()
        .tools(ToolsCapability::new().list_changed(true))
        .prompts(PromptsCapability::new().list_changed(true))
        .resources(ResourcesCapability::new().list_changed(true).subscribe(true));
    if !scene.random.once_in(5) {
        capabilities = capabilities.logging(CapabilitySettings::default());
    }
    let mut limits = Limits::default();
    if tight {
        limits.requests_in_flight_max = 2 + scene.random.index(4);
        limits.transmit_bytes_max = 1000 + scene.random.index(4000);
        limits.listen_streams_max = 1 + scene.random.index(3);
    }
    let mut catalog = Catalog::new();
    let schema = RawJson::parse(r#"{"type":"object"}"#).expect("valid JSON");
    catalog.add_tool(Tool::new("work", schema)).expect("the catalog is empty");
    let keep_alive = scene.random.once_in(3).then_some(Duration::from_secs(9));
    ServerOptions::new(Implementation::new("desk", "1"))
        .capabilities(capabilities)
        .catalog(catalog)
        .limits(limits)
        .timeouts(messages::timeouts(keep_alive))
}

/// Limits of HTTP servers that schedules reach.
pub(crate) const WEB_LIMITS: ServerLimits = {
    let mut limits = ServerLimits::DEFAULT;
    limits.sessions_max = 12;
    limits.exchanges_max = 60;
    limits
};

/// Returns the HTTP options of a server: with tight or wide limits, with or without a store.
pub(crate) fn web_options(scene: &mut Scene) -> http::HttpServerOptions {
    let mut limits = WEB_LIMITS;
    if scene.random.once_in(3) {
        limits.unread_bytes_max = 200 + scene.random.index(40_000);
        limits.replay_events_max = 1 + scene.random.index(20);
        limits.replay_bytes_max = 100 + scene.random.index(20_000);
        limits.replay_bytes_total_max = 2000 + scene.random.index(60_000);
        limits.finished_streams_max = scene.random.index(4);
    }
    if scene.random.once_in(3) {
        limits.store_actions_max = 1 + scene.random.index(100);
        limits.store_bytes_max = 100 + scene.random.index(100_000);
        limits.store_page_events_max = scene.random.index(4);
        limits.store_page_bytes_max = scene.random.index(2000);
        limits.store_replays_max = 1 + scene.random.index(4);
    }
    let mut timeouts = ServerTimeouts::default();
    timeouts.poll_after = scene.random.once_in(4).then_some(Duration::from_secs(12));
    timeouts.replay = Duration::from_secs(60);
    let mut options = http::HttpServerOptions::new()
        .legacy_sse("/sse", "/messages")
        .limits(limits)
        .timeouts(timeouts);
    if scene.random.once_in(3) {
        options = options.answers(ResponseMode::Stream);
    }
    if scene.random.once_in(2) {
        options = options.event_store(EventStore::External);
    }
    options
}

/// Returns the HTTP options of a client.
pub(crate) fn web_client_options(
    old: bool,
    tight: bool,
    scene: &mut Scene,
) -> http::HttpClientOptions {
    let path = if old { "sse" } else { "mcp" };
    let url = format!("http://127.0.0.1:8000/{path}");
    let url = http::Location::parse(&url).expect("our own URL");
    let mut options = http::HttpClientOptions::new(url);
    if scene.random.once_in(3) {
        options = options.lost_session(LostSession::RepeatCalls);
    }
    if tight {
        let mut limits = ClientLimits::DEFAULT;
        limits.requests_max = 1 + scene.random.index(4);
        limits.control_exchanges_max = 1 + scene.random.index(2);
        options = options.limits(limits);
    }
    options
}

const OLDEST: Revisions = Revisions::only(Revision::V2024_11_05);

/// Bare machines over HTTP.
#[derive(Debug)]
pub(crate) struct WebMachines {
    copies: bool,
    tight: bool,
    /// Options of the server, which are kept when it restarts.
    server: ServerOptions,
}

impl WebMachines {
    pub(crate) fn new(scene: &mut Scene) -> Self {
        let tight = scene.random.once_in(6);
        let server = server_options(tight, scene);
        Self { copies: scene.random.once_in(2), tight, server }
    }
}

impl WebMaker for WebMachines {
    fn client(&mut self, name: String, scene: &mut Scene) -> Box<dyn WebClient> {
        let (old, tight) = (scene.random.once_in(8), scene.random.once_in(3));
        let (mut peer, http) = (client_options(scene), web_client_options(old, tight, scene));
        if old {
            scene.count(Happening::OldTransport);
            peer = peer.revisions(scene.random.one_of([OLDEST, Revisions::ALL]));
        }
        let seed = scene.random.below(u64::MAX);
        let (tape, played) = Played::begin();
        let machine = HttpClient::new(peer, http, seed, scene.now, tape);
        let mut application = ClientApplication::new(name, Binding::Exchanges);
        // Open streams may take the slots of others.
        application.uncertain = tight;
        Box::new(BareClient { machine, application, _played: played })
    }

    fn server(&mut self, name: String, scene: &mut Scene) -> Box<dyn WebServer> {
        let (peer, http) = (self.server.clone(), web_options(scene));
        let mut secret = [0; 32];
        secret.fill_with(|| scene.random.below(256) as u8);
        let seed = scene.random.below(u64::MAX);
        let (tape, played) = Played::begin();
        let machine = HttpServer::new(peer, http, secret, seed, tape);
        let machine = machine.expect("the options are valid");
        let mut application = ServerApplication::new(name);
        application.tolerance = Tolerance { copies: self.copies, refusals: self.tight, late: true };
        Box::new(BareServer { machine, application, _played: played })
    }

    fn copies(&self) -> bool {
        self.copies
    }
}

/// Bare machines over byte streams.
#[derive(Debug)]
pub(crate) struct Machines {
    line_length_max: usize,
}

impl Machines {
    pub(crate) fn new(scene: &mut Scene) -> Self {
        // In some schedules the longest lines exceed the limit.
        let line_length_max = if scene.random.once_in(4) { 8_000 } else { 1 << 20 };
        Self { line_length_max }
    }
}

impl Maker for Machines {
    fn client(&mut self, name: String, scene: &mut Scene) -> Box<dyn Side> {
        let options = client_options(scene);
        let seed = scene.random.below(u64::MAX);
        let mut application = ClientApplication::new(name, Binding::Stream);
        // The probe for the era and pings are abandoned without an event.
        application.forgets_at = scene.now + Duration::from_secs(5) + MEMORY;
        let (tape, played) = Played::begin();
        let machine = Client::new(options, seed, scene.now, tape);
        Box::new(ClientSide { machine, application, _played: played })
    }

    fn server(&mut self, name: String, scene: &mut Scene) -> Box<dyn Side> {
        let tight = scene.random.once_in(4);
        let options = server_options(tight, scene);
        let seed = scene.random.below(u64::MAX);
        let mut application = ServerApplication::new(name);
        application.tolerance.refusals = tight;
        application.tolerance.late = true;
        let (tape, played) = Played::begin();
        Box::new(ServerSide {
            machine: Server::new(options, seed, tape),
            application,
            _played: played,
        })
    }

    fn line_length_max(&self) -> usize {
        self.line_length_max
    }
}
