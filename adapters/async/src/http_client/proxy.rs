use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::ConnectorError;

/// The proxies through which servers are reached, if any.
///
/// Proxies are given as URLs: `http://` and `https://` (`CONNECT` for secure connections,
/// forwarding for others), `socks5://` and `socks5h://` (in both cases the proxy resolves names). A
/// user and password in the URL are sent to the proxy.
#[derive(Clone)]
pub struct Proxy {
    rule: Rule,
}

#[derive(Clone)]
enum Rule {
    Direct,
    Environment(Arc<Matcher>),
    Explicit { url: String, except: String, matcher: Arc<Matcher> },
}

impl Proxy {
    /// Uses no proxy.
    #[must_use]
    pub const fn none() -> Self {
        Self { rule: Rule::Direct }
    }

    /// Uses the current values of the environment variables `HTTPS_PROXY`, `HTTP_PROXY`,
    /// `ALL_PROXY`, and `NO_PROXY` for excluded hosts; in upper or lower case.
    ///
    /// Servers on this machine (`localhost`, names under it, 127.0.0.0/8, `::1`) are never proxied:
    /// a proxy elsewhere would look for them on its own machine. Within CGI (`REQUEST_METHOD` is
    /// set) nothing is proxied, since `HTTP_PROXY` may come from a request header.
    ///
    /// As in other programs, a value that is not a proxy URL is ignored; one of SOCKS 4 makes each
    /// exchange fail.
    #[must_use]
    pub fn from_env() -> Self {
        Self { rule: Rule::Environment(Arc::new(Matcher::from_env())) }
    }

    /// Uses the proxy at `url` for all servers, including those on this machine, for example to
    /// inspect the traffic between a client and a server.
    ///
    /// # Errors
    ///
    /// The URL is not that of a supported proxy.
    pub fn all(url: &str) -> Result<Self, ConnectorError> {
        let matcher = explicit(url, "");
        // The message omits the URL, which may contain a password.
        let supported = matcher
            .intercept(&Uri::from_static("http://server.invalid"))
            .is_some_and(|proxy| is_http(&proxy) || is_socks5(&proxy));
        if !supported {
            return Err(ConnectorError::Configuration {
                reason: "not the URL of a proxy: http, https, socks5 or socks5h".to_owned(),
            });
        }
        let rule = Rule::Explicit {
            url: url.to_owned(),
            except: String::new(),
            matcher: Arc::new(matcher),
        };
        Ok(Self { rule })
    }

    /// Excludes hosts from the proxy of [`all`](Self::all): `hosts` is a list as in `NO_PROXY`,
    /// separated by commas, of names (including names under them), addresses, networks
    /// (`10.0.0.0/8`), or `*`. Replaces an earlier list; has no effect without a proxy, or with
    /// those of the environment.
    #[must_use]
    pub fn except(mut self, hosts: &str) -> Self {
        if let Rule::Explicit { url, except, matcher } = &mut self.rule {
            hosts.clone_into(except);
            *matcher = Arc::new(explicit(url, hosts));
        }
        self
    }

    /// Returns the proxy for `server`.
    pub(super) fn intercept(&self, server: &Uri) -> Option<Intercept> {
        match &self.rule {
            Rule::Direct => None,
            Rule::Environment(_) if is_loopback(server.host().unwrap_or_default()) => None,
            Rule::Environment(matcher) | Rule::Explicit { matcher, .. } => {
                matcher.intercept(server)
            }
        }
    }
}

/// Omits the proxies' URLs, which may contain passwords.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Direct => f.write_str("Proxy::none"),
            Rule::Environment(_) => f.write_str("Proxy::from_env"),
            Rule::Explicit { except, .. } => {
                f.debug_struct("Proxy::all").field("except", except).finish_non_exhaustive()
            }
        }
    }
}

fn explicit(url: &str, except: &str) -> Matcher {
    Matcher::builder().all(url).no(except).build()
}

pub(super) fn is_http(proxy: &Intercept) -> bool {
    matches!(proxy.uri().scheme_str(), Some("http" | "https"))
}

pub(super) fn is_socks5(proxy: &Intercept) -> bool {
    matches!(proxy.uri().scheme_str(), Some("socks5" | "socks5h"))
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    if let Ok(address) = host.parse::<IpAddr>() {
        return address.to_canonical().is_loopback();
    }
    // RFC 6761 section 6.3: names under `localhost` also refer to this machine.
    let last = host.rsplit('.').next().unwrap_or_default();
    last.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts_are_recognized() {
        for host in ["localhost", "LOCALHOST.", "app.localhost", "127.0.0.9", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "localhost.example", "notlocalhost", "10.0.0.1", "[2001:db8::1]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn passwords_are_not_printed() {
        let proxy =
            Proxy::all("http://user:secret@proxy.example:3128").unwrap().except("a.example");
        assert_eq!(format!("{proxy:?}"), "Proxy::all { except: \"a.example\", .. }");
        let intercept = proxy.intercept(&Uri::from_static("http://b.example/")).unwrap();
        assert!(!format!("{intercept:?}").contains("secret"));
        let error = Proxy::all("ftp://user:secret@proxy.example").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}
