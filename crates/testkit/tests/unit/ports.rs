//! Tests of `src/ports.rs`.

use super::*;

#[test]
fn no_port_is_given_twice() {
    let ports: BTreeSet<u16> = (0..50).map(|_| free_port().expect("a port")).collect();
    assert_eq!(ports.len(), 50);
    assert!(ports.iter().all(|port| *port >= LOWEST));
}
