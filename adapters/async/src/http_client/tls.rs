use http::Uri;
use http::uri::Scheme;
use rustls::ClientConfig;

/// The protocols offered in a TLS connection, preferred first.
const HTTP_2_OR_1: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Makes `config` offer the protocols that the connector speaks, unless it sets its own ALPN
/// protocols, which may include HTTP/2.
pub(super) fn offer_protocols(config: &mut ClientConfig, http2: bool, http2_only: bool) {
    if !(http2 && cfg!(feature = "http2")) {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
    } else if http2_only {
        config.alpn_protocols = vec![b"h2".to_vec()];
    } else if config.alpn_protocols.is_empty() {
        config.alpn_protocols = HTTP_2_OR_1.map(<[u8]>::to_vec).to_vec();
    }
}

pub(super) fn is_secure(server: &Uri) -> bool {
    server.scheme() == Some(&Scheme::HTTPS)
}
