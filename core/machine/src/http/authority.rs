//! The authority and the origin of `http` and `https` URLs in normalized form, as used by `Host`,
//! `Origin` and URLs.

use alloc::string::String;
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`, with default port 80.
    Http,
    /// `https`, with default port 443.
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

    /// Returns the scheme in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the port of a URL without an explicit port.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A host. Names are in lower case and without the trailing dot that marks them as complete.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Name(String),
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

/// The error in a host or its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidAuthority {
    Host,
    Port,
}

impl Host {
    /// The maximum length of a DNS name, in bytes.
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
        // Many resolvers read `127.1` and `0x7f000001` as addresses. A name that only some of them
        // read as an address must not be compared as text.
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

    /// Returns whether the host is this machine, independent of DNS.
    // `*.localhost` is excluded, because some resolvers query a name server for it.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::V4(address) => address.is_loopback(),
            Self::V6(address) => address.is_loopback(),
        }
    }

    /// Returns whether the host is an address of this machine, its link or a private network, or an
    /// IPv6 address that embeds such an IPv4 address.
    fn is_internal(&self) -> bool {
        match self {
            // A name server that is queried for `*.localhost` should return this machine.
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::V4(address) => is_internal_v4(*address),
            Self::V6(address) => is_internal_v6(*address),
        }
    }
}

/// Returns whether the registry of special-purpose addresses (RFC 6890) lists the address as not
/// globally reachable. Documentation addresses, which are not routed, and multicast addresses,
/// which TCP cannot use, are excluded.
const fn is_internal_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // "This network", private networks, loopback, link-local.
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [169, 254, ..] => true,
        // Carrier-grade NAT (RFC 6598); IETF protocol assignments (RFC 6333), where some clouds
        // have their metadata service; benchmarking (RFC 2544).
        [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18 | 19, ..] => true,
        // Reserved, and the limited broadcast address.
        [240..=255, ..] => true,
        _ => false,
    }
}

fn is_internal_v6(address: Ipv6Addr) -> bool {
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_internal_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // Unique local, link-local, and the deprecated site-local addresses (RFC 3879).
        [0xFC00..=0xFDFF | 0xFE80..=0xFEFF, ..] => true,
        // IPv4 in the forms that a socket accepts: compatible, such as `::` and `::1`, mapped, and
        // translated (RFC 2765).
        [0, 0, 0, 0, 0, 0 | 0xFFFF, high, low] | [0, 0, 0, 0, 0xFFFF, 0, high, low] => {
            embedded(high, low)
        }
        // NAT64 (RFC 6052).
        [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => embedded(high, low),
        // Local-use NAT64 (RFC 8215): only the network knows where the IPv4 address is embedded.
        [0x64, 0xFF9B, 1, ..] => true,
        // 6to4 (RFC 3056).
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo (RFC 4380): the server, and the client with all bits inverted.
        [0x2001, 0, server, rest, _, _, high, low] => {
            embedded(server, rest) || embedded(!high, !low)
        }
        _ => false,
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

/// A host with an optional port, as in `Host` and `:authority`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub(super) host: Host,
    pub(super) port: Option<u16>,
}

impl Authority {
    /// Parses a host with an optional port. Linear in the length.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidAuthority> {
        // The colons of an IPv6 address are inside its brackets.
        let find = |from: usize, wanted| text.bytes().skip(from).position(|byte| byte == wanted);
        let literal = find(0, b']').map_or(0, |bracket| bracket + 1);
        let colon = find(literal, b':').map(|colon| literal + colon);
        let (host, port) = match colon {
            Some(colon) => (&text[..colon], &text[colon + 1..]),
            None => (text, ""),
        };
        let host = Host::parse(host).ok_or(InvalidAuthority::Host)?;
        // `+80` parses as a number, but is not a port.
        let digits = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            "" => None,
            _ if digits => Some(port.parse().map_err(|_| InvalidAuthority::Port)?),
            _ => return Err(InvalidAuthority::Port),
        };
        Ok(Self { host, port })
    }
}

/// The origin of a URL or browser page: scheme, host and port.
///
/// Origins are equal regardless of how they are written: in upper case, with the default port, or
/// with a dot after the host.
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

    /// Parses `http` or `https`, a host and an optional port, without anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        Some(Self::new(Scheme::parse(scheme)?, Authority::parse(authority).ok()?))
    }

    /// Returns `http` or `https`.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the port, explicit or not.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the host is this machine: `localhost`, `127.0.0.0/8` or `[::1]`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host.is_loopback()
    }

    /// Returns whether the host is written as an address that is not globally reachable: of this
    /// machine, its link or a private network.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.host.is_internal()
    }
}

impl fmt::Display for Origin {
    /// Formats the origin like browsers do: in lower case, and without the default port.
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
    fn a_host_is_normalized() {
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
    fn invalid_hosts_are_rejected() {
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
    fn a_port_is_a_16_bit_number() {
        for text in ["a:65536", "a:+80", "a:-1", "a:8a", "a:80:80", "[::1]:99999", "a:\u{661}"] {
            assert_eq!(Authority::parse(text), Err(InvalidAuthority::Port), "{text}");
        }
    }

    #[test]
    fn only_loopback_hosts_are_loopback() {
        for host in ["localhost", "LocalHost.", "127.0.0.1", "127.255.255.254", "[::1]"] {
            assert!(Authority::parse(host).expect(host).host.is_loopback(), "{host}");
        }
        for host in
            ["0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "128.0.0.1", "a.localhost", "localhost.com"]
        {
            assert!(!Authority::parse(host).expect(host).host.is_loopback(), "{host}");
        }
    }

    #[test]
    fn no_spelling_of_an_internal_address_is_a_name() {
        // Rule: [SEC-006]. A text that a resolver may read as an address is parsed as one, or
        // refused.
        for host in [
            "127.1",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0X7F000001",
            "2130706433",
            "017700000001",
            "127.0.1",
            "10.1",
            "0xa9fea9fe",
            "169.254.43518",
            "127.0.0.1.1",
            "127.0.0.1..",
            "127.0.0.0x1",
            "[::ffff:127.1]",
            "[::ffff:0x7f.0.0.1]",
            "[::1%25lo]",
            "[::1%lo]",
            "\u{ff11}27.0.0.1",
            "127\u{3002}0.0.1",
        ] {
            let host = Authority::parse(host).map(|it| it.host);
            assert!(host.is_err(), "{host:?}");
        }
        for host in
            ["127.0.0.1.", "LOCALHOST", "A.LocalHost.", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]"]
        {
            assert!(Authority::parse(host).expect(host).host.is_internal(), "{host}");
        }
    }

    #[test]
    fn internal_addresses_are_recognized() {
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
            "192.0.0.192",
            "198.19.255.255",
            "255.255.255.255",
            "[fec0::1]",
            "[fdff:ffff::1]",
            // NAT64.
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:FF9B:0:0:0:0:10.1.2.3]",
            "[64:ff9b:1::1]",
            "[64:ff9b:1:fffe::8.8.8.8]",
            // Mapped, compatible and translated, in different spellings.
            "[::FFFF:7F00:1]",
            "[0:0:0:0:0:ffff:169.254.169.254]",
            "[::192.168.0.1]",
            "[::ffff:0:127.0.0.1]",
            // 6to4.
            "[2002:7f00:1::]",
            "[2002:a9fe:a9fe::1]",
            "[2002:c0a8:101:1:2:3:4:5]",
            // Teredo: a server in a private network, and a client at 127.0.0.1 and at 10.0.0.1.
            "[2001:0:a00:1::]",
            "[2001:0:808:808:0:0:80ff:fffe]",
            "[2001::808:808:8000:63bf:f5ff:fffe]",
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
            "[::8.8.8.8]",
            "[::ffff:0:8.8.8.8]",
            "[64:ff9b::8.8.8.8]",
            "[64:ff9b:2::10.0.0.1]",
            "[64:ff9b::1:0:10.0.0.1]",
            "[2002:808:808::1]",
            "[2002:808:808::10.0.0.1]",
            "[2001:0:808:808:0:0:f7f7:f7f7]",
            "[2001:4860:4860::8888]",
            "[2606:4700::127.0.0.1]",
            "192.0.1.1",
            "198.20.0.1",
            "100.63.255.255",
            "169.253.1.1",
            "126.1.1.1",
        ] {
            assert!(!Authority::parse(host).expect(host).host.is_internal(), "{host}");
        }
    }

    #[test]
    fn an_origin_is_normalized() {
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
