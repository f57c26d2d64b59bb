//! The connector over real sockets, against minimal servers and proxies.

mod certificate;
mod documents;
mod failures;
mod http1;
mod http2;
mod origin;
mod proxies;
