//! What a worker says of itself.

use super::*;

#[test]
fn member_is_read_as_it_is_written() {
    for (capacity, zone) in [(1, None), (4, None), (1, Some("eu")), (2, Some("eu"))] {
        let member = MemberData {
            address: "10.0.0.7:8080".to_owned(),
            capacity,
            zone: zone.map(str::to_owned),
        };
        assert_eq!(MemberData::parse(member.text().as_bytes()), member);
    }
    assert_eq!(MemberData::parse(b"").address, "");
}
