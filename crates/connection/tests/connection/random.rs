//! Random requests, changes, cuts and restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use zookeeper_recipes_connection::{End, RequestId, WatchedRead};
use zookeeper_recipes_protocol::{EventType, PathRequest, RequestBody};

use crate::world::{Cut, Seen, T, Way, World, create};

#[derive(Clone, Debug)]
enum Step {
    Create,
    Sync,
    Watch(u8, u8),
    Unwatch(u8),
    Withdraw(u8),
    Change(u8, u8),
    CloseConnection,
    Silence,
    CutToServer(u8, bool),
    CutToClient(u8, bool),
    Pass(u16),
    Settle,
    Fragment(u8),
    Grant(u16),
    Way(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Create),
        2 => Just(Step::Sync),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(read, path)| Step::Watch(read, path)),
        2 => any::<u8>().prop_map(Step::Unwatch),
        1 => any::<u8>().prop_map(Step::Withdraw),
        6 => (any::<u8>(), any::<u8>()).prop_map(|(path, how)| Step::Change(path, how)),
        1 => Just(Step::CloseConnection),
        1 => Just(Step::Silence),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(at, silent)| Step::CutToServer(at, silent)),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(at, silent)| Step::CutToClient(at, silent)),
        3 => (0..8000_u16).prop_map(Step::Pass),
        4 => Just(Step::Settle),
        1 => (1..40_u8).prop_map(Step::Fragment),
        1 => (500..20_000_u16).prop_map(Step::Grant),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(host, way)| Step::Way(host, way)),
    ]
}

const PATHS: [&str; 3] = ["/x", "/y", "/x/z"];

/// What the test knows beside the world.
#[derive(Default)]
struct Known {
    withdrawn: BTreeMap<usize, RequestId>,
    asked: Vec<(usize, RequestId)>,
    watched: Vec<usize>,
    number: usize,
}

fn apply(world: &mut World, known: &mut Known, step: Step) {
    match step {
        Step::Create => {
            known.number += 1;
            known
                .asked
                .push(world.request_with_id(create(&format!("/r{}", known.number))));
        }
        Step::Sync => {
            known.number += 1;
            let path = format!("/s{}", known.number);
            let sync = RequestBody::Sync(PathRequest { path });
            known.asked.push(world.request_with_id(sync));
        }
        Step::Watch(read, path) => {
            let read = [
                WatchedRead::Data,
                WatchedRead::Exists,
                WatchedRead::Children,
            ][usize::from(read) % 3];
            let watch = world.watch(read, PATHS[usize::from(path) % 3]);
            known.watched.push(watch);
        }
        Step::Unwatch(place) if !known.watched.is_empty() => {
            let place = usize::from(place) % known.watched.len();
            world.unwatch(known.watched.swap_remove(place));
        }
        Step::Withdraw(place) if !known.asked.is_empty() => {
            let (caller, id) = known.asked[usize::from(place) % known.asked.len()];
            if world.machine.withdraw(id).is_some() {
                assert!(!world.is_answered(caller));
                known.withdrawn.insert(caller, id);
            }
        }
        Step::Change(path, how) => change(world, PATHS[usize::from(path) % 3], how),
        Step::CloseConnection => world.close_connection(),
        Step::Silence => world.silence(),
        Step::CutToServer(at, silent) => {
            world.cut_at(
                Cut::ToServer(world.bytes_to_server + usize::from(at)),
                silent,
            );
        }
        Step::CutToClient(at, silent) => {
            world.cut_at(
                Cut::ToClient(world.bytes_to_client + usize::from(at)),
                silent,
            );
        }
        Step::Pass(time) => world.pass(Duration::from_millis(time.into())),
        Step::Settle => world.settle(),
        Step::Fragment(number) => world.fragment = number.into(),
        Step::Grant(timeout) => world.ensemble.conduct.grants = timeout.into(),
        Step::Way(host, way) => {
            let ways = [Way::Member, Way::Refused, Way::Lost, Way::Mute];
            world.ways[usize::from(host) % 3] = ways[usize::from(way) % 4];
        }
        Step::Unwatch(_) | Step::Withdraw(_) => {}
    }
}

fn change(world: &mut World, path: &str, how: u8) {
    world.other(|ensemble, served| {
        // A change that cannot be made is none.
        let _ = match how % 3 {
            0 => ensemble.create(served, path),
            1 => ensemble.delete(served, path),
            _ => ensemble.write(served, path).map(drop),
        };
    });
}

/// The network and the members are healthy from now on.
fn heal(world: &mut World) {
    world.ways.fill(Way::Member);
    world.cut_at(Cut::ToServer(usize::MAX), false);
    world.close_connection();
    world.pass(2 * T);
    world.until(World::is_connected);
}

/// True if a change since the read of the watch must have fired it.
fn must_have_fired(world: &World, watch: usize) -> bool {
    let (read, path, _) = &world.watches[&watch];
    let answer = world.answers[&watch][0].as_ref().unwrap();
    let existed = answer.reply.header.error == zookeeper_recipes_protocol::ErrorCode::Ok;
    let since = world.ensemble.history.iter();
    let mut since = since.filter(|(zxid, of, _)| *zxid > answer.reply.header.zxid && of == path);
    match read {
        // A znode that was created and deleted in between is as it was.
        WatchedRead::Exists if !existed => world.ensemble.znodes.contains_key(path),
        WatchedRead::Children => since.any(|(_, _, kind)| {
            matches!(
                kind,
                EventType::NodeChildrenChanged | EventType::NodeDeleted
            )
        }),
        _ => since.any(|(_, _, kind)| *kind != EventType::NodeChildrenChanged),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300,
        failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_request_has_one_end_and_no_event_is_missed(steps in vec(step(), 1..60)) {
        let mut world = World::connected();
        let mut known = Known::default();
        for step in steps {
            apply(&mut world, &mut known, step);
        }
        heal(&mut world);
        let withdrawn: Vec<usize> = known.withdrawn.keys().copied().collect();
        for caller in world.paths.keys() {
            prop_assert_eq!(world.is_answered(*caller), !withdrawn.contains(caller));
        }
        world.check();
        for (path, created) in &world.ensemble.created {
            prop_assert!(*created == 1 || PATHS.contains(&path.as_str()), "{} sent twice", path);
        }
        for watch in known.watched {
            if !world.was_set(watch) {
                prop_assert!(!world.seen.contains_key(&watch));
            } else if must_have_fired(&world, watch) {
                let seen = &world.seen[&watch];
                prop_assert!(matches!(seen[..], [Seen::Fired(_)]), "{:?}", seen);
            }
        }
        // Watches that are left are set at the server.
        world.machine.close(world.now);
        world.until(|world| world.end().is_some());
        prop_assert!(world.ensemble.sessions.is_empty());
        world.check();
    }

    #[test]
    fn session_that_expires_at_any_moment_ends_and_answers_everything(
        before in vec(step(), 0..30),
        after in vec(step(), 0..10),
    ) {
        let mut world = World::connected();
        let mut known = Known::default();
        for step in before {
            apply(&mut world, &mut known, step);
        }
        world.ensemble.sessions.clear();
        for step in after {
            apply(&mut world, &mut known, step);
        }
        world.ways.fill(Way::Member);
        world.close_connection();
        world.until(|world| world.end().is_some());
        prop_assert_eq!(world.end(), Some(End::Expired));
        for caller in world.paths.keys() {
            let withdrawn = known.withdrawn.contains_key(caller);
            prop_assert_eq!(world.is_answered(*caller), !withdrawn);
        }
        for watch in known.watched {
            prop_assert_eq!(world.seen.contains_key(&watch), world.was_set(watch));
        }
        world.check();
    }
}
