use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The origin of a request: the remote end of its connection, or the client that a trusted proxy
/// names. It identifies callers without a [`Principal`](crate::Principal) when the server divides
/// its resources between clients: see [`ServerLimits`](super::ServerLimits).
///
/// Only the first 64 bits of an IPv6 address are used, because a client usually controls all
/// addresses below them. An IPv4-mapped IPv6 address is treated as IPv4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteAddress(IpAddr);

impl RemoteAddress {
    /// Creates the address of a client.
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

    /// Returns the normalized address: for IPv6 the first 64 bits, followed by zeros.
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

crate::partial_debug! {
    /// Omits the address, because logs have many readers.
    impl Debug for RemoteAddress(..)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn address(text: &str) -> RemoteAddress {
        RemoteAddress::new(text.parse().expect("an address"))
    }

    #[test]
    fn ipv6_addresses_are_truncated_to_64_bits_and_mapped_ones_become_ipv4() {
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
