//! A session that moves from member to member, with watches on znodes that change all the while.

use fastrand::Rng;
use tokio::time::sleep;
use zookeeper_recipes_core::ensemble::RequestBody;
use zookeeper_recipes_core::{Ensemble, Operation};
use zookeeper_recipes_protocol::{ReadRequest, ReplyBody};
use zookeeper_recipes_testkit::Ensemble as Members;

use crate::support::*;

/// As many znodes of each kind are watched.
const ZNODES: usize = 10;

#[derive(Clone, Copy, Debug)]
enum Watched {
    Data,
    Children,
    Existence,
}

const KINDS: [Watched; 3] = [Watched::Data, Watched::Children, Watched::Existence];

impl Watched {
    fn path(self, number: usize) -> String {
        format!("/{self:?}-{number}").to_lowercase()
    }
}

/// What a watcher has read: a number that grows with each change that it watches for.
type Seen = Option<i64>;

fn everyone() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

fn watched() -> impl Iterator<Item = (Watched, String)> {
    let of_kind = |kind: Watched| (0..ZNODES).map(move |number| (kind, kind.path(number)));
    KINDS.into_iter().flat_map(of_kind)
}

async fn create_all(writer: &ServerSession) {
    for (_, path) in watched().filter(|(kind, _)| !matches!(kind, Watched::Existence)) {
        let create = writer.create(&path, b"", CreateMode::Persistent, everyone());
        create.await.expect("the tree is empty");
    }
}

/// Changes a znode that is watched. `nth` is the number of the change.
async fn change(writer: &ServerSession, rng: &mut Rng, nth: usize) {
    let (kind, number) = (KINDS[rng.usize(..KINDS.len())], rng.usize(..ZNODES));
    let path = kind.path(number);
    let mode = CreateMode::Persistent;
    let done = match kind {
        Watched::Data => {
            let operation = Operation::set_data(path, nth.to_string());
            let done = writer.transact(&[operation]).await;
            done.map(drop).map_err(|refused| refused.error)
        }
        Watched::Children | Watched::Existence => {
            let path = match kind {
                Watched::Children => format!("{path}/child"),
                _ => path,
            };
            match writer.create(&path, b"", mode, everyone()).await {
                Err(error) if error.is(Refusal::NodeExists) => writer.delete(&path).await,
                created => created.map(drop),
            }
        }
    };
    done.expect("the writer stays at its server");
}

/// Changes znodes until it is quiet. The call returns the number of changes.
async fn change_all_the_while(writer: Arc<ServerSession>, quiet: watch::Receiver<bool>) -> usize {
    let mut rng = Rng::with_seed(1);
    let mut changes = 0;
    while !*quiet.borrow() {
        change(&writer, &mut rng, changes).await;
        changes += 1;
        sleep(Duration::from_millis(1)).await;
    }
    changes
}

/// The transaction of the last change of a znode that is watched.
async fn last_change(
    session: &ServerSession,
    kind: Watched,
    path: &str,
) -> Result<Seen, ServerError> {
    match session.get(path).await {
        Ok((_, stat)) => Ok(Some(match kind {
            Watched::Data => stat.mzxid,
            Watched::Children => stat.pzxid,
            Watched::Existence => stat.czxid,
        })),
        Err(error) if error.is(Refusal::NoNode) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The state of a znode before and after its watch was set.
struct Read {
    before: Seen,
    after: Seen,
    watch: Watch,
}

/// A read with a watch that the session sets again after each move.
async fn watched_read(
    session: &ServerSession,
    path: &str,
    request: fn(ReadRequest) -> RequestBody,
) -> Result<(ReplyBody, Watch), ServerError> {
    let request = request(ReadRequest::new(path, true));
    let (answer, watch) = session.raw.send(request).await?;
    Ok((answer.reply.body, watch.expect("a watch is set")))
}

/// Reads a znode and watches it.
///
/// After a move, the new member may lag behind an event that the former member has sent. So the new
/// member catches up first.
async fn read(session: &ServerSession, kind: Watched, path: &str) -> Result<Read, ServerError> {
    session.sync(path).await?;
    let (before, watch) = match kind {
        Watched::Data => {
            let (_, stat, watch) = session.get_and_keep_watch(path).await?;
            (Some(stat.mzxid), watch)
        }
        Watched::Existence => {
            let (found, watch) = watched_read(session, path, RequestBody::Exists).await?;
            let created = match found {
                ReplyBody::Stat(stat) => Some(stat.czxid),
                _ => None,
            };
            (created, watch)
        }
        Watched::Children => {
            let before = last_change(session, kind, path).await?;
            let (_, watch) = watched_read(session, path, RequestBody::GetChildren).await?;
            let after = last_change(session, kind, path).await?;
            return Ok(Read {
                before,
                after,
                watch,
            });
        }
    };
    Ok(Read {
        before,
        after: before,
        watch,
    })
}

/// Reads a znode after each event of it, publishes its state, and counts the events.
async fn watch_one(
    session: Arc<ServerSession>,
    (kind, path): (Watched, String),
    seen: watch::Sender<Seen>,
    events: Arc<watch::Sender<usize>>,
    mut is_over: watch::Receiver<bool>,
) {
    let mut last: Option<(Seen, WatchEvent)> = None;
    loop {
        let read = match read(&session, kind, &path).await {
            Ok(read) => read,
            // The connection broke.
            Err(ServerError::OutcomeUnknown(_)) => continue,
            Err(error) => panic!("{path}: {error}"),
        };
        // A znode that is created and deleted again looks as it did.
        if let Some((before @ Some(_), event)) = last {
            assert_ne!(before, read.after, "{path}: {event:?} of no change");
        }
        seen.send_replace(read.after);
        let event = tokio::select! {
            biased;
            event = read.watch => event,
            _ = is_over.wait_for(|is_over| *is_over) => return,
        };
        assert!(matches!(event, WatchEvent::Fired(_)), "{path}: {event:?}");
        events.send_modify(|events| *events += 1);
        last = Some((read.before, event));
    }
}

/// Moves the session so many times, while the writer changes what the session watches.
///
/// No event is lost: in the end each watcher has read the last change, though it reads only after
/// an event. No event arrives twice: after each event the watcher finds a change.
async fn watches_hold(
    session: Arc<ServerSession>,
    writer: Arc<ServerSession>,
    moves: usize,
    mut disconnect: impl FnMut(),
) {
    create_all(&writer).await;
    let (is_over, over) = watch::channel(false);
    let events = Arc::new(watch::Sender::new(0));
    let mut watchers = Vec::new();
    for (kind, path) in watched() {
        let (seen, seen_by) = watch::channel(None);
        let (session, events) = (session.clone(), events.clone());
        let watched = (kind, path.clone());
        let watcher = watch_one(session, watched, seen, events, over.clone());
        watchers.push((kind, path, seen_by, tokio::spawn(watcher)));
    }
    let (is_quiet, quiet) = watch::channel(false);
    let load = tokio::spawn(change_all_the_while(writer.clone(), quiet));
    let mut states = session.states();
    let mut connected = async move || {
        while !matches!(states.next().await, Some(ConnectionState::Connected { .. })) {}
    };
    connected().await;
    for nth in 0..moves {
        disconnect();
        // A state that passes quickly is skipped.
        let connected = timeout(PATIENCE, connected()).await;
        assert!(connected.is_ok(), "move {nth}: not connected");
        // Each other move comes before anything is answered.
        let before = *events.borrow();
        let mut events = events.subscribe();
        let notified = timeout(
            PATIENCE,
            events.wait_for(|events| nth % 2 == 0 || *events > before),
        );
        assert!(notified.await.is_ok(), "move {nth}: no change is notified");
    }
    is_quiet.send_replace(true);
    let changes = load.await.expect("the writer stays at its server");
    for (kind, path, seen, _) in &mut watchers {
        let last = last_change(&writer, *kind, path).await.expect("an answer");
        let notified = timeout(PATIENCE, seen.wait_for(|seen| *seen == last)).await;
        assert!(
            matches!(notified, Ok(Ok(_))),
            "{path}: the last change is not notified"
        );
    }
    is_over.send_replace(true);
    for (_, _, _, watcher) in watchers {
        watcher.await.expect("each event has its change");
    }
    let events = *events.borrow();
    println!("{moves} moves, {changes} changes, {events} events");
}

async fn watches_hold_over_simulated_moves(moves: usize) {
    let simulation = Simulation::new(SimulationOptions {
        servers: 3,
        follower_lag: Duration::ZERO..=Duration::from_millis(20),
        ..SimulationOptions::default()
    });
    let session = simulation.process("moving").connect().await;
    let writer = simulation.process("writer").connect().await;
    let process = simulation.process("moving");
    let (session, writer) = (session.expect("it is open"), writer.expect("it is open"));
    watches_hold(session, writer, moves, || process.disconnect()).await;
}

#[tokio::test(start_paused = true)]
async fn watches_hold_while_a_session_moves_a_thousand_times() {
    watches_hold_over_simulated_moves(1_000).await;
}

mod at_night {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn watches_hold_while_a_session_moves_ten_thousand_times() {
        watches_hold_over_simulated_moves(10_000).await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn watches_hold_while_a_session_moves_between_real_members() {
        let options = ServerOptions::new().tick_time(TICK);
        let members = Members::start(3, options).await.expect("an ensemble");
        let mut proxies = Vec::new();
        for member in members.members() {
            proxies.push(
                Proxy::start(member.connect_string())
                    .await
                    .expect("a proxy"),
            );
        }
        let hosts: Vec<_> = proxies.iter().map(Proxy::connect_string).collect();
        let connect = async |hosts: &str| {
            let ensemble = Arc::new(ZookeeperEnsemble::new(hosts).expect("it is valid"));
            let connector = ensemble.connector(&ConnectOptions::new());
            let connected = connector.expect("it needs no options").connect().await;
            Arc::new(connected.expect("it is open"))
        };
        let session = connect(&hosts.join(",")).await;
        let writer = connect(&members.connect_string()).await;
        let cut = || proxies.iter().for_each(Proxy::cut);
        watches_hold(session, writer, 300, cut).await;
    }
}
