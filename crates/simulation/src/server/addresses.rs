//! Ranges of IPv4 addresses, as access control lists name them.

use std::net::Ipv4Addr;

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressRange {
    address: u32,
    mask: u32,
}

impl AddressRange {
    /// Reads a range, or one address. The server knows no others than those of IPv4.
    pub(super) fn parse(text: &str) -> Option<AddressRange> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok().filter(|bits| *bits <= 32)?),
            None => (text, 32),
        };
        Some(AddressRange {
            address: parse_address(address)?,
            mask: u32::MAX.checked_shl(32 - bits).unwrap_or(0),
        })
    }

    pub(super) fn contains(self, address: &str) -> bool {
        parse_address(address).is_some_and(|it| it & self.mask == self.address & self.mask)
    }
}

fn parse_address(text: &str) -> Option<u32> {
    Some(u32::from(text.parse::<Ipv4Addr>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::AddressRange;

    #[test]
    fn a_range_holds_the_addresses_that_begin_as_it_does() {
        let contains = |range: &str, address: &str| {
            AddressRange::parse(range).map(|range| range.contains(address))
        };
        assert_eq!(contains("127.0.0.1", "127.0.0.1"), Some(true));
        assert_eq!(contains("127.0.0.1", "127.0.0.2"), Some(false));
        assert_eq!(contains("127.0.0.0/8", "127.9.9.9"), Some(true));
        assert_eq!(contains("0.0.0.0/0", "10.0.0.1"), Some(true));
        assert_eq!(contains("10.0.0.0/8", "::1"), Some(false));
        for malformed in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "::1"] {
            assert_eq!(contains(malformed, "10.0.0.1"), None, "{malformed}");
        }
    }
}
