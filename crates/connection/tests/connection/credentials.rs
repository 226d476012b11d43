//! Credentials that servers refuse.

use zookeeper_recipes_connection::{DisconnectReason, SessionEnd};
use zookeeper_recipes_protocol::RequestBody;

use crate::world::{World, config_with_credentials};

fn world(hosts: usize) -> World {
    let mut config = config_with_credentials(hosts);
    config.auth.push(("ip".to_owned(), Vec::new()));
    World::new(config)
}

#[test]
fn credentials_go_out_in_order_over_each_connection_before_any_request() {
    let mut world = world(2);
    world.create("/a");
    world.until(World::all_answered);
    world.lose_connection();
    world.create("/b");
    world.until(World::all_answered);
    let kinds = world
        .ensemble
        .requests
        .iter()
        .map(|request| match &request.body {
            RequestBody::Auth(auth) => auth.scheme.clone(),
            RequestBody::Ping => "ping".to_owned(),
            body => body.path().unwrap_or_default().to_owned(),
        });
    let kinds: Vec<String> = kinds.collect();
    assert_eq!(kinds, ["digest", "ip", "ping", "/a", "digest", "ip", "/b"]);
}

#[test]
fn refusal_when_the_session_is_opened_is_the_end() {
    let mut world = world(3);
    world.ensemble.conduct.refuses_auth = true;
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(SessionEnd::AuthenticationFailed));
    assert_eq!(world.connects.len(), 1);
    let (_, host) = world.connects[0];
    let obstacle = world.obstacle(host);
    assert_matches!(obstacle, Some(DisconnectReason::AuthenticationFailed(it)) if it == "digest");
}

#[test]
fn refusal_at_a_reconnect_is_the_end_after_three_or_once_by_each_host() {
    for (hosts, refusals) in [(1, 3), (2, 3), (3, 3), (5, 5)] {
        let mut world = world(hosts);
        world.until(World::is_connected);
        world.ensemble.conduct.refuses_auth = true;
        world.close_connection();
        world.until(|world| world.end().is_some());
        assert_eq!(world.end(), Some(SessionEnd::AuthenticationFailed));
        assert_eq!(world.connects.len(), 1 + refusals, "{hosts} hosts");
    }
}

#[test]
fn refusal_at_a_reconnect_that_passes_keeps_the_session() {
    let mut world = world(3);
    world.until(World::is_connected);
    for _ in 0..5 {
        world.ensemble.conduct.refuses_auth = true;
        world.close_connection();
        let before = world.connects.len();
        world.until(|world| world.connects.len() == before + 1);
        let (_, host) = world.connects[before];
        let obstacle = world.obstacle(host);
        assert_matches!(obstacle, Some(DisconnectReason::AuthenticationFailed(_)));
        world.ensemble.conduct.refuses_auth = false;
        world.settle();
        world.until(World::is_connected);
        assert_eq!(world.end(), None);
    }
}
