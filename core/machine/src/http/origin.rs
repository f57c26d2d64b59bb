use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::str;

use super::authority::{Authority, Host, Origin, Scheme};
use super::field_value::trim;
use crate::InvalidValue;

/// The hosts that a server answers for, and the web pages that may use it. This protects against
/// DNS rebinding.
///
/// A page that the user visits can make its own name resolve to the user's machine, and so reach a
/// server there. Its requests still carry the host that they are sent to (`Host`) and the page that
/// they come from (`Origin`). By default both must therefore be this machine: `localhost`,
/// `127.0.0.0/8` or `[::1]`, on any port. Clients other than browsers send no `Origin`, and the
/// server does not require one.
///
/// A server that is reached by name must allow that name. Requests to the local names are still
/// answered, but local pages are then treated like any other page, because any program that listens
/// on a port of the user's computer can serve one. Allow them by name:
///
/// ```
/// # use mcp_sansio::{InvalidValue, http::AllowedHosts};
/// let allowed = AllowedHosts::new()
///     .allow_host("mcp.example.com")?
///     .allow_origin("https://app.example.com")?
///     .allow_origin("http://localhost:5173")?;
/// # let _ = allowed;
/// # Ok::<_, InvalidValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
    /// Origins with a scheme of an application, as they are written.
    apps: Vec<String>,
    any_host: bool,
    any_origin: bool,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostFault {
    /// `Host` is missing or malformed, or names another server.
    #[error("the Host header does not name a host of this server")]
    Host,
    /// `Origin` is malformed, `null`, or that of a page that may not use this server.
    #[error("the Origin header does not name an allowed origin")]
    Origin,
}

impl AllowedHosts {
    /// Allows only this machine.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            apps: Vec::new(),
            any_host: false,
            any_origin: false,
        }
    }

    /// Allows `host` and its pages: on any port (`mcp.example.com`), or on one
    /// (`mcp.example.com:8443`). A request without a port matches both 80 and 443.
    ///
    /// # Errors
    ///
    /// `host` is not a host, so no request could name it. A non-ASCII name must be in its DNS form,
    /// `xn--…`.
    pub fn allow_host(mut self, host: &str) -> Result<Self, InvalidValue> {
        match Authority::parse(host) {
            Ok(authority) => self.hosts.push(authority),
            Err(_) => {
                return Err(InvalidValue::new(format!(
                    "{host:?} is not a host: write it as `mcp.example.com`, \
                     `mcp.example.com:8443` or `[::1]`"
                )));
            }
        }
        Ok(self)
    }

    /// Allows the pages of `origin` (`https://app.example.com`): scheme, host and port must be
    /// equal. The pages of an application have a scheme of its own, such as `tauri://localhost` or
    /// `chrome-extension://` with the id of the extension; their `Origin` must be spelled the same.
    ///
    /// # Errors
    ///
    /// `origin` is not an origin, so no request could name it.
    pub fn allow_origin(mut self, origin: &str) -> Result<Self, InvalidValue> {
        match Origin::parse(origin) {
            Some(origin) => self.origins.push(origin),
            None if is_of_app(origin) => self.apps.push(origin.into()),
            None => {
                return Err(InvalidValue::new(format!(
                    "{origin:?} is not an origin: write it as `https://app.example.com`, without \
                     a path"
                )));
            }
        }
        Ok(self)
    }

    /// Allows every host, and requests without one: for a server behind a proxy that checks `Host`.
    /// Origins are still checked.
    #[must_use]
    pub const fn allow_any_host(mut self) -> Self {
        self.any_host = true;
        self
    }

    /// Allows every web page. Without another form of access control, every page that a user visits
    /// can then call the tools of the server.
    #[must_use]
    pub const fn allow_any_origin(mut self) -> Self {
        self.any_origin = true;
        self
    }

    /// Checks the value of `Host`, or of `:authority` in HTTP/2 and later, and the value of
    /// `Origin`. Linear in their lengths and in the number of allowed hosts and origins.
    ///
    /// # Errors
    ///
    /// See [`HostFault`].
    // MCP 2026-07-28 basic/transports/streamable-http#security-endpoint [HSRV-003]: `Host` is
    // checked too, because a browser may omit `Origin` in a GET.
    #[inline]
    pub(crate) fn check(
        &self,
        host: Option<&[u8]>,
        origin: Option<&[u8]>,
    ) -> Result<(), HostFault> {
        if !self.any_host && !host.is_some_and(|host| self.is_spelled_out(host)) {
            let host = host.and_then(text).and_then(|host| Authority::parse(host).ok());
            if !host.is_some_and(|it| self.is_answered_for(&it.host, it.port)) {
                return Err(HostFault::Host);
            }
        }
        let Some(origin) = origin.filter(|_| !self.any_origin) else {
            return Ok(());
        };
        let allowed = text(origin).is_some_and(|origin| {
            Origin::parse(origin).is_some_and(|it| self.may_use(&it))
                || self.apps.iter().any(|app| app == origin)
        });
        if allowed { Ok(()) } else { Err(HostFault::Origin) }
    }

    /// Returns whether the pages of an origin may use the server.
    // MCP 2026-07-28 basic/transports/streamable-http#security-endpoint [HSRV-003]: if the server
    // is public, a page of a loopback host may run on another computer than the server.
    fn may_use(&self, origin: &Origin) -> bool {
        self.is_named(&origin.host, Some(origin.port()))
            || self.origins.contains(origin)
            || (origin.host.is_loopback() && self.is_of_this_machine())
    }

    /// Returns whether only hosts of this machine are allowed. It says nothing of where requests
    /// come from: any program can send any `Host`.
    #[must_use]
    pub fn is_of_this_machine(&self) -> bool {
        !self.any_host && self.hosts.iter().all(|it| it.host.is_loopback())
    }

    /// Returns whether a host is allowed and written in its most common form. This is a fast path.
    #[inline]
    fn is_spelled_out(&self, host: &[u8]) -> bool {
        let machine = [&b"127.0.0.1"[..], b"localhost", b"[::1]"];
        let port = machine.into_iter().find_map(|name| host.strip_prefix(name));
        match port {
            Some([]) => true,
            // Any number of four digits is a port.
            Some([b':', digits @ ..]) => {
                matches!(digits.len(), 1..=4) && digits.iter().all(u8::is_ascii_digit)
            }
            _ => self.hosts.iter().any(|allowed| match &allowed.host {
                Host::Name(name) => allowed.port.is_none() && name.as_bytes() == host,
                _ => false,
            }),
        }
    }

    fn is_answered_for(&self, host: &Host, port: Option<u16>) -> bool {
        host.is_loopback() || self.is_named(host, port)
    }

    /// Returns whether a host was allowed by name.
    fn is_named(&self, host: &Host, port: Option<u16>) -> bool {
        let same_port = |allowed| port.map_or(matches!(allowed, 80 | 443), |port| port == allowed);
        let allows = |it: &Authority| it.host == *host && it.port.is_none_or(same_port);
        self.hosts.iter().any(allows)
    }
}

/// The contents of an [`AllowedHosts`] as text.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HostTexts {
    hosts: Vec<String>,
    origins: Vec<String>,
    any_host: bool,
    any_origin: bool,
}

impl AllowedHosts {
    pub(crate) fn texts(&self) -> HostTexts {
        let host = |it: &Authority| match it.port {
            Some(port) => alloc::format!("{}:{port}", it.host),
            None => alloc::format!("{}", it.host),
        };
        HostTexts {
            hosts: self.hosts.iter().map(host).collect(),
            origins: self
                .origins
                .iter()
                .map(|origin| alloc::format!("{origin}"))
                .chain(self.apps.iter().cloned())
                .collect(),
            any_host: self.any_host,
            any_origin: self.any_origin,
        }
    }

    pub(crate) fn from_texts(texts: &HostTexts) -> Result<Self, InvalidValue> {
        let (any_host, any_origin) = (texts.any_host, texts.any_origin);
        let all = Self { any_host, any_origin, ..Self::new() };
        let hosts = texts.hosts.iter().try_fold(all, |all, host| all.allow_host(host))?;
        texts.origins.iter().try_fold(hosts, |all, origin| all.allow_origin(origin))
    }
}

/// Returns whether the text is an origin with a scheme other than `http` and `https`.
fn is_of_app(origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let in_host = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b',');
    Scheme::parse(scheme).is_none()
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(in_scheme)
        && !host.is_empty()
        && host.bytes().all(in_host)
}

fn text(value: &[u8]) -> Option<&str> {
    str::from_utf8(trim(value)).ok()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const HERE: &str = "localhost:3000";

    fn check(allowed: &AllowedHosts, host: &str, origin: Option<&str>) -> Result<(), HostFault> {
        allowed.check(Some(host.as_bytes()), origin.map(str::as_bytes))
    }

    #[test]
    fn by_default_only_local_hosts_are_allowed() {
        // Rule: [HSRV-003].
        let allowed = AllowedHosts::new();
        for host in
            ["localhost", "LOCALHOST:8080", "localhost.", " 127.0.0.1:1 ", "127.9.9.9", "[::1]:80"]
        {
            assert_eq!(check(&allowed, host, None), Ok(()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1evil.example",
            "localhost:80x",
            "localhost:80@evil.example",
            "[::1]:80.evil.example",
            "evil.example:80#localhost",
            "localhost@evil.example",
            "localhost:65536",
            "localhost, evil.example",
            "0.0.0.0",
            "127.1",
            "[::ffff:127.0.0.1]",
            "::1",
        ] {
            assert_eq!(check(&allowed, host, None), Err(HostFault::Host), "{host}");
        }
        assert_eq!(allowed.check(None, None), Err(HostFault::Host));
        assert_eq!(allowed.check(Some(b"\xff"), None), Err(HostFault::Host));
    }

    #[test]
    fn by_default_only_local_origins_are_allowed() {
        // Rule: [HSRV-003].
        let allowed = AllowedHosts::new();
        for origin in [
            "http://localhost:5173",
            "HTTPS://LocalHost.",
            "http://127.0.0.1",
            "https://[0::1]:8443",
        ] {
            assert_eq!(check(&allowed, HERE, Some(origin)), Ok(()), "{origin}");
        }
        for origin in [
            "",
            "null",
            "localhost",
            "//localhost",
            "file://",
            "ws://localhost",
            "chrome-extension://localhost",
            "http://evil.example",
            "http://localhost.evil.example",
            "http://user@localhost",
            "http://localhost@evil.example",
            "http://localhost/",
            "http://localhost:99999",
            "http://localhost http://evil.example",
            "http://localhost, http://evil.example",
        ] {
            let refused = check(&allowed, HERE, Some(origin));
            assert_eq!(refused, Err(HostFault::Origin), "{origin}");
        }
        assert_eq!(allowed.check(Some(b"localhost"), Some(b"\xff")), Err(HostFault::Origin));
    }

    #[test]
    fn dns_rebinding_is_refused() {
        // Rule: [HSRV-003].
        let open = AllowedHosts::new().allow_any_host();
        let origin = Some("http://evil.example:3000");
        let rebound = check(&AllowedHosts::new(), "evil.example:3000", origin);
        assert_eq!(rebound, Err(HostFault::Host));
        assert_eq!(check(&open, "evil.example:3000", origin), Err(HostFault::Origin));
    }

    #[test]
    fn a_host_is_allowed_on_every_port_or_on_one() {
        let allowed = AllowedHosts::new()
            .allow_host("MCP.example.com")
            .and_then(|it| it.allow_host("one.example:8443"))
            .and_then(|it| it.allow_host("web.example:443"))
            .and_then(|it| it.allow_host("[2001:db8::1]"))
            .expect("hosts");
        for host in [
            "mcp.example.com",
            "mcp.example.com.:81",
            "one.example:8443",
            "web.example",
            "web.example:443",
            "[2001:db8:0::1]:9",
            HERE,
        ] {
            assert_eq!(check(&allowed, host, None), Ok(()), "{host}");
        }
        for host in
            ["example.com", "a.mcp.example.com", "one.example", "one.example:80", "web.example:80"]
        {
            assert_eq!(check(&allowed, host, None), Err(HostFault::Host), "{host}");
        }
        let own = Some("https://web.example");
        assert_eq!(check(&allowed, "web.example", own), Ok(()));
        let plain = Some("http://web.example");
        assert_eq!(check(&allowed, "web.example", plain), Err(HostFault::Origin));
    }

    #[test]
    fn an_application_is_allowed_by_its_own_origin() {
        // Rule: [HSRV-003].
        let apps = ["tauri://localhost", "chrome-extension://abcdefgh", "app://obsidian.md"];
        let all = apps.iter().try_fold(AllowedHosts::new(), |all, app| all.allow_origin(app));
        let allowed = all.unwrap();
        for app in apps {
            assert_eq!(check(&allowed, HERE, Some(app)), Ok(()), "{app}");
            assert_eq!(check(&AllowedHosts::new(), HERE, Some(app)), Err(HostFault::Origin));
        }
        for other in ["tauri://LOCALHOST", "tauri://localhost:1", "chrome-extension://b", "app://"]
        {
            assert_eq!(check(&allowed, HERE, Some(other)), Err(HostFault::Origin), "{other}");
        }
        assert_eq!(AllowedHosts::from_texts(&allowed.texts()), Ok(allowed));
        for wrong in
            ["file://", "null", "://a", "1a://b", "a b://c", "app://a/b", "http://a/", "x:y"]
        {
            assert!(AllowedHosts::new().allow_origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_allowed_origin_must_match_exactly() {
        let allowed = AllowedHosts::new().allow_origin("https://App.example.com:443").expect("one");
        for origin in ["https://app.example.com", "https://app.example.com:443"] {
            assert_eq!(check(&allowed, HERE, Some(origin)), Ok(()), "{origin}");
        }
        for origin in
            ["http://app.example.com", "https://app.example.com:444", "https://example.com"]
        {
            let refused = check(&allowed, HERE, Some(origin));
            assert_eq!(refused, Err(HostFault::Origin), "{origin}");
        }
        assert_eq!(check(&allowed, "app.example.com", None), Err(HostFault::Host));
    }

    #[test]
    fn a_public_server_refuses_loopback_pages_unless_allowed_by_name() {
        // Rule: [HSRV-003].
        let public = AllowedHosts::new().allow_host("mcp.example.com").expect("a host");
        let behind = AllowedHosts::new().allow_any_host();
        for origin in ["http://localhost:5173", "http://127.0.0.1", "https://[::1]:8443"] {
            // A proxy may have replaced `Host` with a loopback name.
            for host in ["mcp.example.com", HERE] {
                for allowed in [&public, &behind] {
                    let refused = check(allowed, host, Some(origin));
                    assert_eq!(refused, Err(HostFault::Origin), "{host} {origin}");
                }
            }
        }
        let page = Some("http://localhost:5173");
        let named = public.clone().allow_origin("http://localhost:5173").expect("an origin");
        assert_eq!(check(&named, "mcp.example.com", page), Ok(()));
        let other = Some("http://localhost:5174");
        assert_eq!(check(&named, "mcp.example.com", other), Err(HostFault::Origin));
        let every_port = public.allow_host("localhost").expect("a host");
        assert_eq!(check(&every_port, "mcp.example.com", other), Ok(()));
        // Allowing a local host by name does not make a server public.
        let local = AllowedHosts::new().allow_host("127.0.0.1:8000").expect("a host");
        assert_eq!(check(&local, "localhost:8000", page), Ok(()));
        // Clients other than browsers send no origin.
        assert_eq!(check(&behind, "mcp.example.com", None), Ok(()));
    }

    #[test]
    fn allow_any_accepts_every_host_and_origin() {
        let allowed = AllowedHosts::new().allow_any_host().allow_any_origin();
        assert_eq!(check(&allowed, "???", Some("null")), Ok(()));
        assert_eq!(allowed.check(None, Some(b"\xff")), Ok(()));
        let pages = AllowedHosts::new().allow_any_origin();
        assert_eq!(pages.check(None, Some(b"null")), Err(HostFault::Host));
    }

    #[test]
    fn hosts_that_no_request_can_name_are_rejected() {
        for host in ["", "*.example.com", "https://example.com", "example.com/", "a:b"] {
            let refused = AllowedHosts::new().allow_host(host).map_err(|it| it.to_string());
            assert!(refused.is_err_and(|text| text.contains("is not a host")), "{host}");
        }
        for origin in ["example.com", "https://example.com/", "null", "*", "file:///x"] {
            let refused = AllowedHosts::new().allow_origin(origin).map_err(|it| it.to_string());
            assert!(refused.is_err_and(|text| text.contains("is not an origin")), "{origin}");
        }
    }
}
