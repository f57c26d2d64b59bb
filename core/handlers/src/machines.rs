//! The machines under the handlers, wrapped in a recorder if the feature `recording` is on.

#[cfg(feature = "recording")]
mod recorded {
    use mcp_sansio::recording::Recorded;

    /// The machine of a client over a byte stream.
    #[cfg(feature = "client")]
    pub(crate) type StreamClient = Recorded<mcp_sansio::peer::Client>;

    /// The machine of a client over HTTP.
    #[cfg(all(feature = "client", feature = "http"))]
    pub(crate) type HttpClient = Recorded<mcp_sansio::http::Client>;

    /// The machine of a server over a byte stream.
    pub(crate) type StreamServer = Recorded<mcp_sansio::peer::Server>;

    /// The machine of a server over HTTP.
    #[cfg(feature = "http")]
    pub(crate) type HttpServerMachine = Recorded<mcp_sansio::http::Server>;
}

#[cfg(not(feature = "recording"))]
mod recorded {
    /// The machine of a client over a byte stream.
    #[cfg(feature = "client")]
    pub(crate) type StreamClient = mcp_sansio::peer::Client;

    /// The machine of a client over HTTP.
    #[cfg(all(feature = "client", feature = "http"))]
    pub(crate) type HttpClient = mcp_sansio::http::Client;

    /// The machine of a server over a byte stream.
    pub(crate) type StreamServer = mcp_sansio::peer::Server;

    /// The machine of a server over HTTP.
    #[cfg(feature = "http")]
    pub(crate) type HttpServerMachine = mcp_sansio::http::Server;
}

#[cfg(all(feature = "client", feature = "http"))]
pub(crate) use recorded::HttpClient;
#[cfg(feature = "http")]
pub(crate) use recorded::HttpServerMachine;
#[cfg(feature = "client")]
pub(crate) use recorded::StreamClient;
pub(crate) use recorded::StreamServer;
