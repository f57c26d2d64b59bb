//! The connector over real sockets, against servers and proxies of a few lines each.

mod certificate;
mod documents;
mod failures;
mod http1;
mod http2;
mod origin;
mod proxies;
