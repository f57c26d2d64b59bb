use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Where a request comes from: the other end of its connection, or the client that a trusted proxy
/// names. A caller without a [`Principal`](super::Principal) is known by it where the server shares
/// out what it has: see [`ServerLimits`](super::ServerLimits).
///
/// Of an IPv6 address the first 64 bits count, as a client commonly has all addresses behind them;
/// an IPv4 address that is written as IPv6 is an IPv4 address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteAddress(IpAddr);

impl RemoteAddress {
    /// The address of a client.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        })
    }

    /// The address as it counts: of IPv6 the first 64 bits, the rest zero.
    #[must_use]
    pub const fn ip(self) -> IpAddr {
        self.0
    }
}

impl From<IpAddr> for RemoteAddress {
    fn from(address: IpAddr) -> Self {
        Self::new(address)
    }
}

impl From<SocketAddr> for RemoteAddress {
    fn from(address: SocketAddr) -> Self {
        Self::new(address.ip())
    }
}

impl fmt::Debug for RemoteAddress {
    /// Leaves the address out: logs are read by many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteAddress(..)")
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn address(text: &str) -> RemoteAddress {
        RemoteAddress::new(text.parse().expect("an address"))
    }

    #[test]
    fn an_ipv6_address_counts_by_its_first_64_bits_and_a_mapped_one_as_ipv4() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
        assert_ne!(address("::ffff:192.0.2.1"), address("::ffff:192.0.2.2"));
        assert_eq!(
            RemoteAddress::from(SocketAddr::from(([192, 0, 2, 1], 80))),
            address("192.0.2.1")
        );
        assert!(!format!("{:?}", address("192.0.2.1")).contains("192"));
    }
}
