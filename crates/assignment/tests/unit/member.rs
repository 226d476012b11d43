//! What a worker says of itself.

use super::*;

#[test]
fn member_is_read_as_it_is_written() {
    for (capacity, zone) in [(1, None), (4, None), (1, Some("eu")), (2, Some("eu"))] {
        let mut options = AssignmentOptions::new()
            .address("10.0.0.7:8080")
            .capacity(capacity);
        options.zone = zone.map(str::to_owned);
        let (address, worker) = parse(text(&options).as_bytes());
        assert_eq!((address, worker.capacity), (options.address, capacity));
        assert_eq!((worker.zone, worker.drained), (options.zone, false));
    }
    assert_eq!(parse(b"").0, "");
}
