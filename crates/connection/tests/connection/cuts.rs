//! A conversation that is cut after each byte, in both directions.

use std::time::Duration;

use zookeeper_recipes_connection::{End, WatchedRead};
use zookeeper_recipes_protocol::{
    CheckRequest, CreateRequest, DeleteRequest, MultiOperation, PathRequest, ReadRequest,
    RequestBody,
};

use crate::world::{Cut, Seen, T, World, config, create_request};

/// What the script's watches are to see before its end, if their reads have set them.
struct Expected {
    fires: Vec<usize>,
    stays: usize,
}

fn world() -> World {
    let mut config = config(2);
    config.auth = vec![("digest".to_owned(), b"me:secret".to_vec())];
    let mut world = World::new(config);
    world
        .ensemble
        .znodes
        .insert("/was".to_owned(), Default::default());
    world
}

/// Requests that servers may not know, transactions, and requests that fail.
fn transact_and_fail(world: &mut World) {
    for (path, of) in [
        (
            "/c2",
            RequestBody::Create2 as fn(CreateRequest) -> RequestBody,
        ),
        ("/container", RequestBody::CreateContainer),
        ("/was", RequestBody::Create2),
    ] {
        world.request(of(create_request(path)));
    }
    for (path, checked) in [("/m", "/was"), ("/never", "/absent")] {
        let (checked, version) = (checked.to_owned(), -1);
        world.request(RequestBody::Multi(vec![
            MultiOperation::Create(create_request(path)),
            MultiOperation::Check(CheckRequest {
                path: checked,
                version,
            }),
        ]));
    }
    world.request(RequestBody::Delete(DeleteRequest {
        path: "/absent".to_owned(),
        version: -1,
    }));
}

/// Handshake, credentials, requests, watches, pings, events, a reconnect, the close.
fn converse(world: &mut World) -> Expected {
    world.create("/a");
    let list = RequestBody::GetChildren(ReadRequest {
        path: "/".to_owned(),
        watch: false,
    });
    world.request(list);
    transact_and_fail(world);
    world.until(World::all_answered);
    let dropped = world.watch(WatchedRead::Children, "/");
    world.until(World::all_answered);
    world.unwatch(dropped);
    let changed = world.watch(WatchedRead::Data, "/was");
    let created = world.watch(WatchedRead::Exists, "/will");
    let child = world.watch(WatchedRead::Children, "/was");
    let stays = world.watch(WatchedRead::Data, "/");
    world.until(World::all_answered);
    world.pass(T / 2);
    world.other(|ensemble, served| ensemble.write(served, "/was").map(drop).unwrap());
    world.request(RequestBody::Sync(PathRequest {
        path: "/".to_owned(),
    }));
    world.until(World::all_answered);
    world.close_connection();
    world.settle();
    world.other(|ensemble, served| ensemble.create(served, "/will").unwrap());
    world.create("/b");
    world.until(World::all_answered);
    world.pass(T / 2);
    world.other(|ensemble, served| ensemble.create(served, "/was/child").unwrap());
    world.pass(Duration::from_millis(1));
    // A connection that was cut in silence is noticed, and the watches are set again.
    world.pass(2 * T);
    Expected {
        fires: vec![changed, created, child],
        stays,
    }
}

fn check(world: &mut World, expected: &Expected) {
    for watch in expected.fires.iter().copied() {
        let seen = world.seen.get(&watch);
        assert_eq!(
            seen.is_some(),
            world.was_set(watch),
            "watch {watch}: {seen:?}"
        );
        assert!(!matches!(
            seen.map(|seen| &seen[..]),
            Some([Seen::Unwatched])
        ));
    }
    assert_eq!(world.seen.get(&expected.stays), None);
    if world.is_connected() {
        let stays = usize::from(world.was_set(expected.stays));
        assert_eq!(world.watched_by_server(), stays, "the others are removed");
    }
    world.machine.close(world.now);
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(End::Closed));
    let seen = world.seen.get(&expected.stays).cloned().unwrap_or_default();
    assert_eq!(seen == [Seen::Unwatched], world.was_set(expected.stays));
    world.check();
    assert_eq!(world.ensemble.created.get("/never"), None);
    for path in ["/a", "/b", "/c2", "/container", "/m"] {
        let caller = *world
            .paths
            .iter()
            .find(|(_, asked)| *asked == path)
            .unwrap()
            .0;
        let created = world
            .ensemble
            .created
            .get(path)
            .copied()
            .unwrap_or_default();
        match world.outcome(caller) {
            Ok(_) => assert_eq!(created, 1, "{path}"),
            Err(_) => assert!(created <= 1, "{path} was sent twice"),
        }
    }
}

fn whole() -> World {
    let mut world = world();
    let expected = converse(&mut world);
    check(&mut world, &expected);
    assert!(world.answers.values().flatten().all(Result::is_ok));
    world
}

fn cut_everywhere(direction: impl Fn(usize) -> Cut, bytes: usize, silently: bool) {
    let mut broken = 0;
    for at in 0..bytes {
        let mut world = world();
        world.cut_at(direction(at), silently);
        let expected = converse(&mut world);
        check(&mut world, &expected);
        broken += usize::from(world.answers.values().flatten().any(Result::is_err));
    }
    assert!(
        broken > 0 && broken < bytes,
        "{broken} of {bytes} cuts broke a request"
    );
}

#[test]
fn conversation_survives_a_cut_after_each_byte_to_the_server() {
    cut_everywhere(Cut::ToServer, whole().bytes_to_server, false);
}

#[test]
fn conversation_survives_a_cut_after_each_byte_to_the_client() {
    cut_everywhere(Cut::ToClient, whole().bytes_to_client, false);
}

#[test]
fn conversation_survives_a_silent_cut_after_each_byte_to_the_server() {
    cut_everywhere(Cut::ToServer, whole().bytes_to_server, true);
}

#[test]
fn conversation_survives_a_silent_cut_after_each_byte_to_the_client() {
    cut_everywhere(Cut::ToClient, whole().bytes_to_client, true);
}

#[test]
fn conversation_in_single_bytes_is_the_same() {
    let whole = whole();
    let mut world = world();
    world.fragment = 1;
    let expected = converse(&mut world);
    check(&mut world, &expected);
    assert_eq!(world.ensemble.requests, whole.ensemble.requests);
    assert_eq!(world.seen, whole.seen);
}
