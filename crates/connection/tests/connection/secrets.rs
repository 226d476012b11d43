//! No `Debug` of the crate shows credentials or the password of a session.

use std::fmt::Debug;

use zookeeper_recipes_protocol::{OpCode, RequestBody, SaslRequest};

use crate::world::{Way, World, config_with_credentials};

const SECRET: &[u8] = b"me:secret";

/// The bytes as `Debug` writes a list, and as text.
fn assert_hidden(value: &dyn Debug, bytes: &[u8]) {
    let shown = format!("{value:?}");
    let list = format!("{bytes:?}");
    assert!(!shown.contains(list.trim_matches(['[', ']'])), "{shown}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn debug_of_a_session_shows_neither_credentials_nor_its_password_at_any_moment() {
    let credentials = config_with_credentials(1);
    assert_hidden(&credentials, SECRET);
    let mut world = World::new(credentials);
    let token = Some(SECRET.to_vec());
    // It is refused, because only the session itself may send it.
    world.request(RequestBody::Sasl(SaslRequest { token }));
    let mut moments = 0;
    for way in [Way::Member, Way::Mute, Way::Member] {
        world.ways.fill(way);
        for _ in 0..40 {
            assert_hidden(&world.machine, SECRET);
            for password in world.ensemble.sessions.values() {
                assert_hidden(&world.machine, password);
            }
            moments += usize::from(format!("{:?}", world.machine).contains("credentials: 1"));
            world.step();
        }
        world.close_connection();
    }
    assert!(moments > 0, "the answer to the credentials was outstanding");
    world.until(World::is_connected);
}

/// What has come of a reply, and requests that wait for a connection, can have secrets in them.
#[test]
fn debug_of_a_session_shows_no_bytes_that_wait() {
    let mut world = World::connected();
    world.ensemble.conduct.closes_at = Some(OpCode::Create);
    world.inject(&[&[0, 0, 0, 99][..], SECRET].concat());
    world.settle();
    assert_hidden(&world.machine, SECRET);
    world.silence();
    world.create("/secrets");
    let shown = format!("{:?}", world.machine);
    assert!(
        !shown.contains("47, 115, 101, 99, 114, 101, 116"),
        "{shown}"
    );
}
