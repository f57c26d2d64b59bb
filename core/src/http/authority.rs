//! Who an `http` or `https` URL speaks of, in one form for each: `Host`, `Origin` and URLs share it.

use alloc::string::String;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`, port 80 unless there is another one.
    Http,
    /// `https`, port 443 unless there is another one.
    Https,
}

impl Scheme {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("http") {
            Some(Self::Http)
        } else if text.eq_ignore_ascii_case("https") {
            Some(Self::Https)
        } else {
            None
        }
    }

    /// In lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URL that names none.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A host. Names are in lower case and without the dot at the end that marks them as complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Name(String),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// What is wrong with a host and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidAuthority {
    Host,
    Port,
}

impl Host {
    /// The longest name that DNS has, in bytes.
    const NAME_LENGTH_MAX: usize = 253;

    fn parse(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            return address.strip_suffix(']')?.parse().ok().map(Self::V6);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = text.parse() {
            return Some(Self::V4(address));
        }
        let is_label = |label: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !label.is_empty() && label.bytes().all(plain)
        };
        // Many resolvers take `127.1` and `0x7f000001` for addresses. A name that is one for some
        // and none for others must not be compared as text.
        let is_number = |label: &str| {
            let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
            label.bytes().all(|byte| byte.is_ascii_digit())
                || hexadecimal.is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_hexdigit()))
        };
        let name = text.len() <= Self::NAME_LENGTH_MAX
            && text.split('.').all(is_label)
            && !text.rsplit('.').next().is_some_and(is_number);
        name.then(|| Self::Name(text.to_ascii_lowercase()))
    }

    /// Whether it is this machine whatever a name server says.
    // Not `*.localhost`: some resolvers ask a name server for these.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::V4(address) => address.is_loopback(),
            Self::V6(address) => address.is_loopback(),
        }
    }

    /// Whether it is an address of this machine, of its link or of a private network.
    #[cfg(feature = "auth")]
    fn is_internal(&self) -> bool {
        let internal = |it: Ipv4Addr| {
            let [first, second, ..] = it.octets();
            // 100.64.0.0/10 is shared by the customers of a provider (RFC 6598).
            let shared = first == 100 && second & 0xC0 == 64;
            first == 0 || it.is_loopback() || it.is_private() || it.is_link_local() || shared
        };
        match self {
            // Where a name server is asked for `*.localhost`, it should answer with this machine.
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::V4(address) => internal(*address),
            Self::V6(address) => {
                let local = address.is_unique_local() || address.is_unicast_link_local();
                // The old way to write an address of version 4 too: `::` and `::1` are such.
                local || address.to_ipv4().is_some_and(internal)
            }
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(address) => write!(f, "{address}"),
            Self::V6(address) => write!(f, "[{address}]"),
        }
    }
}

/// A host and, where it is named, a port: what `Host` and `:authority` say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) host: Host,
    pub(super) port: Option<u16>,
}

impl Authority {
    /// Linear in the length.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidAuthority> {
        // The colons of an IPv6 address are within its brackets.
        let find = |from: usize, wanted| text.bytes().skip(from).position(|byte| byte == wanted);
        let literal = find(0, b']').map_or(0, |bracket| bracket + 1);
        let colon = find(literal, b':').map(|colon| literal + colon);
        let (host, port) = match colon {
            Some(colon) => (&text[..colon], &text[colon + 1..]),
            None => (text, ""),
        };
        let host = Host::parse(host).ok_or(InvalidAuthority::Host)?;
        // `+80` is a number for the parser, but no port.
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            "" => None,
            _ if digits => Some(port.parse().map_err(|_| InvalidAuthority::Port)?),
            _ => return Err(InvalidAuthority::Port),
        };
        Ok(Self { host, port })
    }
}

/// Where a URL, or a page that a browser shows, comes from: scheme, host and port.
///
/// Two are equal however they were written: in upper case, with the port that goes without saying,
/// or with a dot after the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    pub(super) host: Host,
    port: u16,
}

impl Origin {
    pub(super) fn new(scheme: Scheme, authority: Authority) -> Self {
        let port = authority.port.unwrap_or_else(|| scheme.default_port());
        Self { scheme, host: authority.host, port }
    }

    /// `http` or `https`, a host, perhaps a port, and nothing else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        Some(Self::new(Scheme::parse(scheme)?, Authority::parse(authority).ok()?))
    }

    /// `http` or `https`.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The port, named or not.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether the host is this machine: `localhost`, `127.0.0.0/8` or `[::1]`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host.is_loopback()
    }

    /// Whether the host is written as an address that is not for everybody: of this machine, of its
    /// link or of a private network.
    #[cfg(feature = "auth")]
    pub(crate) fn is_internal(&self) -> bool {
        self.host.is_internal()
    }
}

impl fmt::Display for Origin {
    /// As browsers write it: lower case, and a port only where it is not that of the scheme.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() {
            return Ok(());
        }
        write!(f, ":{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_host_has_one_form() {
        for (text, host, port) in [
            ("Example.COM", "example.com", None),
            ("example.com.:8443", "example.com", Some(8443)),
            ("a_b-c.example:", "a_b-c.example", None),
            ("127.0.0.1.:080", "127.0.0.1", Some(80)),
            ("[0:0::0001]:65535", "[::1]", Some(65535)),
            ("[2001:DB8::1]", "[2001:db8::1]", None),
            ("xn--bcher-kva.example", "xn--bcher-kva.example", None),
            ("1password.com", "1password.com", None),
        ] {
            let authority = Authority::parse(text).expect(text);
            assert_eq!((&*authority.host.to_string(), authority.port), (host, port), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ".",
            ":80",
            "a..b",
            ".a",
            "b ",
            "a b",
            "a/b",
            "a@b",
            "a\\b",
            "a%41",
            "bücher.de",
            "::1",
            "[::1",
            "::1]",
            "[]",
            "[::1]x",
            "[fe80::1%25eth0]",
            "[v1.a]",
            "[127.0.0.1]",
            "x[::1]",
            "127.1",
            "2130706433",
            "0x7f.0.0.1.0X1f",
            "0x7f000001",
            "0x",
            "256.0.0.1",
            "1.2.3.4.5",
            "127.0.0.01",
        ] {
            assert!(Authority::parse(text).is_err(), "{text}");
        }
        let long = "a.".repeat(127);
        assert!(Authority::parse(&long).is_ok());
        assert_eq!(Authority::parse(&format!("a{long}a")), Err(InvalidAuthority::Host));
    }

    #[test]
    fn a_port_is_a_number_that_fits() {
        for text in ["a:65536", "a:+80", "a:-1", "a:8a", "a:80:80", "[::1]:99999", "a:\u{661}"] {
            assert_eq!(Authority::parse(text), Err(InvalidAuthority::Port), "{text}");
        }
    }

    #[test]
    fn loopback_is_this_machine_and_nothing_like_it() {
        for host in ["localhost", "LocalHost.", "127.0.0.1", "127.255.255.254", "[::1]"] {
            assert!(Authority::parse(host).expect(host).host.is_loopback(), "{host}");
        }
        for host in
            ["0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "128.0.0.1", "a.localhost", "localhost.com"]
        {
            assert!(!Authority::parse(host).expect(host).host.is_loopback(), "{host}");
        }
    }

    #[cfg(feature = "auth")]
    #[test]
    fn addresses_that_are_not_for_everybody_are_told_from_others() {
        for host in [
            "localhost",
            "a.localhost",
            "127.1.2.3",
            "0.0.0.0",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "[::]",
            "[::1]",
            "[fd00::1]",
            "[fe80::1]",
            "[::ffff:10.0.0.1]",
            "[::127.0.0.1]",
        ] {
            assert!(Authority::parse(host).expect(host).host.is_internal(), "{host}");
        }
        for host in [
            "example.com",
            "172.32.0.1",
            "100.128.0.1",
            "8.8.8.8",
            "[2001:db8::1]",
            "[::ffff:8.8.8.8]",
        ] {
            assert!(!Authority::parse(host).expect(host).host.is_internal(), "{host}");
        }
    }

    #[test]
    fn an_origin_is_the_same_however_it_is_written() {
        let origin = Origin::parse("https://example.com").expect("an origin");
        for text in ["HTTPS://EXAMPLE.com:443", "https://example.com.", "https://example.com:0443"]
        {
            assert_eq!(Origin::parse(text), Some(origin.clone()), "{text}");
        }
        for text in ["http://example.com", "https://example.com:80", "https://www.example.com"] {
            assert_ne!(Origin::parse(text), Some(origin.clone()), "{text}");
        }
        assert_eq!(origin.to_string(), "https://example.com");
        let other = Origin::parse("http://[::1]:443").expect("an origin");
        assert_eq!((other.to_string().as_str(), other.port()), ("http://[::1]:443", 443));
    }
}
