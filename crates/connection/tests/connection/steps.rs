//! Steps of callers, of other clients, of servers and of the network, read from bytes.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_connection::{
    RequestError, SessionEnd, TreeEvent, WatchEvent, WatchId, WatchedRead,
};
use zookeeper_recipes_protocol::{ErrorCode, EventType};

use crate::world::{Cut, T, Way, World, address, named};

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create,
    Sync,
    Watch(u8, u8),
    Unwatch(u8),
    WatchTree(u8),
    UnwatchTree(u8),
    ReadTrees,
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
    Leave(u8),
    /// What the name servers answer from now on.
    Name(u8),
    /// Other hosts.
    Hosts(u8),
}

impl Step {
    /// The step of these bytes. Each number of bytes is a step.
    pub(crate) fn of([kind, one, other]: [u8; 3]) -> Step {
        let both = u16::from_be_bytes([one, other]);
        match kind % 48 {
            0..4 => Step::Create,
            4..6 => Step::Sync,
            6..12 => Step::Watch(one, other),
            12..15 => Step::Unwatch(one),
            15..21 => Step::Change(one, other),
            21 => Step::CloseConnection,
            22 => Step::Silence,
            23..25 => Step::CutToServer(one, other % 2 == 0),
            25..27 => Step::CutToClient(one, other % 2 == 0),
            27..31 => Step::Pass(both % 8000),
            31..37 => Step::Settle,
            37 => Step::Fragment(1 + one % 39),
            38 => Step::Grant(500 + both % 19_500),
            39 => Step::Way(one, other),
            40 => Step::Leave(one),
            41 => Step::Name(one),
            42 => Step::Hosts(one),
            43..45 => Step::WatchTree(one),
            45 => Step::UnwatchTree(one),
            _ => Step::ReadTrees,
        }
    }
}

/// After this many connections in a row that broke at its watches, a session does without.
const MAX_WATCH_BREAKS: u32 = 3;

const READS: [WatchedRead; 3] = [
    WatchedRead::Data,
    WatchedRead::Exists,
    WatchedRead::Children,
];

const PATHS: [&str; 3] = ["/x", "/y", "/x/z"];

/// A name, if the hosts are named.
const NAME: &str = "zk";

/// What the test knows beside the world.
#[derive(Default)]
struct Known {
    watched: Vec<usize>,
    trees: Vec<Tree>,
    knows_trees: bool,
    /// The trees that were watched at any time.
    were_trees: BTreeSet<&'static str>,
    number: usize,
    /// How often a connection broke, at most, before all is healthy.
    broken: u32,
}

/// A reader of a tree, who knows its znodes by the events.
struct Tree {
    path: &'static str,
    id: WatchId,
    znodes: BTreeSet<String>,
}

const TREES: [&str; 3] = ["/", "/x", "/y"];

impl Tree {
    fn new(world: &mut World, path: &'static str) -> Tree {
        let (id, znodes) = (world.watch_tree(path), BTreeSet::new());
        Tree { path, id, znodes }
    }

    /// The znodes that the ensemble has in the tree.
    fn present(&self, world: &World) -> BTreeSet<String> {
        let prefix = self.path.trim_end_matches('/');
        let covers = |path: &&String| {
            let below = path.strip_prefix(prefix);
            below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        let all = world.ensemble.znodes.iter();
        all.filter(covers).cloned().collect()
    }

    fn read(&mut self, world: &mut World) {
        for event in world.tree_events(&self.id) {
            match event {
                TreeEvent::Created(path) => drop(self.znodes.insert(path)),
                TreeEvent::Deleted(path) => drop(self.znodes.remove(&path)),
                TreeEvent::DataChanged(_) => {}
                TreeEvent::Missed => self.znodes = self.present(world),
            }
        }
    }
}

fn apply(world: &mut World, known: &mut Known, step: Step) {
    known.broken += u32::from(breaks(&step));
    match step {
        Step::Create => {
            known.number += 1;
            world.create(&format!("/r{}", known.number));
        }
        Step::Sync => {
            known.number += 1;
            world.sync(&format!("/s{}", known.number));
        }
        Step::Watch(read, path) => {
            let watch = world.watch(READS[usize::from(read) % 3], PATHS[usize::from(path) % 3]);
            known.watched.push(watch);
        }
        Step::Unwatch(place) if !known.watched.is_empty() => {
            let place = usize::from(place) % known.watched.len();
            world.unwatch(known.watched.swap_remove(place));
        }
        Step::WatchTree(path) => {
            let path = TREES[usize::from(path) % 3];
            known.were_trees.insert(path);
            known.trees.push(Tree::new(world, path));
        }
        Step::UnwatchTree(place) if !known.trees.is_empty() => {
            let place = usize::from(place) % known.trees.len();
            let tree = known.trees.swap_remove(place);
            world.machine.unwatch_tree(world.now, &tree.id);
        }
        Step::ReadTrees => known.trees.iter_mut().for_each(|tree| tree.read(world)),
        Step::Change(path, how) => change(world, PATHS[usize::from(path) % 3], how),
        Step::CloseConnection => world.close_connection(),
        Step::Silence => world.silence(),
        Step::CutToServer(at, silent) => {
            let cut = Cut::ToServer(world.bytes_to_server + usize::from(at));
            world.cut_at(cut, silent);
        }
        Step::CutToClient(at, silent) => {
            let cut = Cut::ToClient(world.bytes_to_client + usize::from(at));
            world.cut_at(cut, silent);
        }
        Step::Pass(time) => world.pass(Duration::from_millis(time.into())),
        Step::Settle => world.settle(),
        Step::Fragment(number) => world.fragment = number.into(),
        Step::Grant(timeout) => world.ensemble.conduct.grants = Some(timeout.into()),
        Step::Way(host, way) => {
            let ways = [Way::Member, Way::Refused, Way::Lost, Way::Mute];
            world.ways[usize::from(host) % 3] = ways[usize::from(way) % 4];
        }
        Step::Leave(back) => {
            // The last requests are those that may be unsent.
            if let Some(caller) = world.paths.len().checked_sub(1 + usize::from(back) % 8) {
                world.leave(caller);
                known.watched.retain(|watch| *watch != caller);
            }
        }
        Step::Name(which) => name(world, which),
        Step::Hosts(which) => replace_hosts(world, which),
        Step::Unwatch(_) | Step::UnwatchTree(_) => {}
    }
}

/// The name servers answer so from now on.
fn name(world: &mut World, which: u8) {
    let answers = [Some(vec![0, 1]), Some(vec![2]), Some(Vec::new()), None];
    match answers.get(usize::from(which) % 5) {
        Some(answer) => world.names.insert(NAME.to_owned(), answer.clone()),
        None => world.names.remove(NAME),
    };
}

fn replace_hosts(world: &mut World, which: u8) {
    let address = |host: usize| address(host).ip().to_string();
    let hosts = [
        vec![address(0), address(1), address(2)],
        vec![address(0), NAME.to_owned()],
        vec![NAME.to_owned()],
    ];
    let hosts = hosts[usize::from(which) % 3].iter().map(named);
    let hosts: Vec<_> = hosts.collect();
    world.machine.set_hosts(world.now, &hosts);
}

fn breaks(step: &Step) -> bool {
    matches!(
        step,
        Step::CloseConnection
            | Step::Silence
            | Step::CutToServer(..)
            | Step::CutToClient(..)
            | Step::Hosts(_)
    )
}

fn change(world: &mut World, path: &str, how: u8) {
    let kinds = [
        EventType::NodeCreated,
        EventType::NodeDeleted,
        EventType::NodeDataChanged,
    ];
    world.change(path, kinds[usize::from(how) % 3]);
}

/// The members and the name servers are healthy from now on.
fn serve(world: &mut World) {
    world.ways.fill(Way::Member);
    world.knows(NAME, 0..3);
}

/// The network, the members and the name servers are healthy from now on.
fn heal(world: &mut World) {
    serve(world);
    world.cut_at(Cut::ToServer(usize::MAX), false);
    world.close_connection();
    world.pass(2 * T);
    world.until(World::is_connected);
}

/// True if a change since the read of the watch must have fired it.
fn must_have_fired(world: &World, watch: usize) -> bool {
    let (read, path, _) = &world.watches[&watch];
    let answer = world.answers[&watch][0].as_ref().unwrap();
    let existed = answer.reply.header.error == ErrorCode::Ok;
    let since = world.ensemble.history.iter();
    let mut since = since.filter(|(zxid, of, _)| *zxid > answer.reply.header.zxid && of == path);
    match read {
        // A znode that was created and deleted in between is as it was.
        WatchedRead::Exists if !existed => world.ensemble.znodes.contains(path),
        WatchedRead::Children => since.any(|(_, _, kind)| {
            matches!(
                kind,
                EventType::NodeChildrenChanged | EventType::NodeDeleted
            )
        }),
        _ => since.any(|(_, _, kind)| *kind != EventType::NodeChildrenChanged),
    }
}

/// Each request has one end, and no event is missed.
pub(crate) fn keep_their_promises(mut world: World, steps: impl IntoIterator<Item = Step>) {
    let mut known = Known::default();
    // A kind of request that was answered once is supported, whatever breaks.
    let first = world.watch_tree("/");
    world.settle();
    known.knows_trees = !world.tree_events(&first).is_empty();
    world.machine.unwatch_tree(world.now, &first);
    for step in steps {
        apply(&mut world, &mut known, step);
    }
    heal(&mut world);
    assert_answered(&world);
    for path in &world.paths {
        let created = world.ensemble.created(path);
        assert!(
            created <= 1 || PATHS.contains(&&**path),
            "{path} was sent twice"
        );
    }
    for watch in known.watched {
        if !world.was_set(watch) {
            assert!(!world.seen.contains_key(&watch));
        } else if must_have_fired(&world, watch) {
            // A session gives up watches at which each connection breaks.
            // A watch of its tree replaces a watch of children, or covers one of data.
            let (_, path, _) = &world.watches[&watch];
            let may_be_unwatched =
                known.broken + 1 >= MAX_WATCH_BREAKS || known.were_trees.contains(&**path);
            let seen = &world.seen[&watch];
            assert!(
                matches!(seen[..], [WatchEvent::Fired(_)])
                    || may_be_unwatched && *seen == [WatchEvent::Unwatched],
                "{seen:?}"
            );
        }
    }
    for mut tree in known.trees {
        tree.read(&mut world);
        match world.tree_end(&tree.id) {
            None => assert_eq!(tree.znodes, tree.present(&world), "{}", tree.path),
            Some(RequestError::Unsupported(_))
                if !known.knows_trees || known.broken >= MAX_WATCH_BREAKS => {}
            Some(end) => panic!("{}: {end}", tree.path),
        }
    }
    // Watches that are left are set at the server.
    world.machine.close(world.now);
    world.until(|world| world.end().is_some());
    assert!(world.ensemble.sessions.is_empty());
    world.check();
}

/// A session that expires between these steps ends and answers everything.
pub(crate) fn end_with_the_session(before: Vec<Step>, after: Vec<Step>) {
    let mut world = World::connected();
    let mut known = Known::default();
    for step in before {
        apply(&mut world, &mut known, step);
    }
    world.ensemble.sessions.clear();
    for step in after {
        apply(&mut world, &mut known, step);
    }
    serve(&mut world);
    world.close_connection();
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(SessionEnd::Expired));
    assert_answered(&world);
    for watch in known.watched {
        assert_eq!(world.seen.contains_key(&watch), world.was_set(watch));
    }
}

/// Each request is answered, but for reads whose callers have gone.
fn assert_answered(world: &World) {
    for (caller, path) in world.paths.iter().enumerate() {
        let may_be_dropped = world.gone.contains(&caller) && !path.starts_with("/r");
        assert!(world.is_answered(caller) || may_be_dropped, "{caller}");
    }
    world.check();
}
