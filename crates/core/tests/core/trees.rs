//! Watches of a znode and all znodes below it.

use std::collections::BTreeSet;

use zookeeper_recipes_testkit::altered as testkit;
use zookeeper_recipes_testkit::fake::FakeSession;
use zookeeper_recipes_testkit::meter::Meter;

use crate::support::*;

async fn server(session: &Session) -> Arc<ServerSession> {
    let any = NodePath::new("/any").expect("a path");
    session.server(&any).await.expect("a session is open")
}

fn created(path: &str) -> Option<TreeEvent> {
    Some(TreeEvent::Created(path.to_owned()))
}

/// What a reader knows who lists again what the events name.
struct Reader {
    server: Arc<ServerSession>,
    tree: TreeWatch,
    known: BTreeSet<String>,
}

impl Reader {
    async fn new(session: &Session) -> Reader {
        let (server, tree) = Reader::watching(session).await;
        let known = BTreeSet::new();
        let mut reader = Reader {
            server,
            tree,
            known,
        };
        reader.read().await;
        reader
    }

    async fn watching(session: &Session) -> (Arc<ServerSession>, TreeWatch) {
        loop {
            let server = server(session).await;
            if let Ok(tree) = server.watch_tree("/tree").await {
                return (server, tree);
            }
            sleep(SECOND).await;
        }
    }

    /// Reads all, until that succeeds.
    async fn read(&mut self) {
        loop {
            match self.server.list("/tree").await {
                Ok(names) => break self.known = names.into_iter().collect(),
                Err(ServerError::SessionOver(_)) => return,
                Err(_) => sleep(SECOND).await,
            }
        }
    }

    /// Follows one event.
    async fn follow(&mut self, session: &Session) {
        let name = |path: &str| path.trim_start_matches("/tree/").to_owned();
        match self.tree.next().await {
            Some(TreeEvent::Created(path)) => drop(self.known.insert(name(&path))),
            Some(TreeEvent::Deleted(path)) => drop(self.known.remove(&name(&path))),
            Some(TreeEvent::DataChanged(_)) => {}
            Some(TreeEvent::Missed) => self.read().await,
            None => {
                (self.server, self.tree) = Reader::watching(session).await;
                self.read().await;
            }
        }
    }
}

/// In time, whatever breaks, the session's end too.
#[tokio::test(start_paused = true)]
async fn reader_of_a_tree_knows_it_whatever_is_lost_on_the_way() {
    for seed in 0..20 {
        let simulation =
            simulation!(seed, servers: 3, network_delay: MILLISECOND..=20 * MILLISECOND);
        make(&simulation, "/tree");
        let session = simulated_session(&simulation, "p").await;
        let mut reader = Reader::new(&session).await;
        simulation.faults().set_rates(FaultRates {
            request_lost: 0.02,
            reply_lost: 0.02,
            throttled: 0.02,
            event_late: 0.1,
            late_by: 300 * MILLISECOND,
            disconnected: 0.2,
            expired: 0.02,
            ..FaultRates::default()
        });
        let administrator = simulation.administrator();
        let changes = async {
            for number in 0..300 {
                let path = format!("/tree/{}", number % 7);
                let created = administrator.create(&path, b"", CreateMode::Persistent);
                if created.is_err() {
                    administrator.delete(&path).expect("it is there");
                }
                sleep(100 * MILLISECOND).await;
            }
            simulation.faults().set_rates(FaultRates::default());
            sleep(30 * SECOND).await;
        };
        let follows = async {
            loop {
                reader.follow(&session).await;
            }
        };
        tokio::select! {
            biased;
            () = follows => {}
            () = changes => {}
        }
        let names = administrator.children("/tree").into_iter().collect();
        assert_eq!(reader.known, names, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn tree_below_a_chroot_has_paths_below_it_and_its_root() {
    let simulation = Simulation::default();
    make(&simulation, "/app");
    let process = simulation.process("p").with_chroot("/app");
    let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
    let session = session.expect("a session opens");
    let mut tree = server(&session)
        .await
        .watch_tree("/")
        .await
        .expect("watched");
    for path in ["/application", "/app/a", "/app/app"] {
        make(&simulation, path);
    }
    for path in ["/a", "/app"] {
        assert_eq!(tree.next().await, created(path));
    }
    simulation
        .administrator()
        .set_data("/app", b"x")
        .expect("written");
    let event = TreeEvent::DataChanged("/".to_owned());
    assert_eq!(tree.next().await, Some(event));
}

#[tokio::test(start_paused = true)]
async fn server_without_watches_of_trees_refuses_them_and_the_holds_stay() {
    let simulation = simulation!(unknown: vec![Opcode::AddWatch]);
    let session = simulated_session(&simulation, "p").await;
    let hold = hold(&lock(&session, "/queue")).await;
    let server = server(&session).await;
    for _ in 0..5 {
        let refused = server.watch_tree("/").await.expect_err("it is unknown");
        assert!(refused.is(Refusal::Unimplemented), "{refused}");
    }
    let connection = server.connection();
    assert_eq!(connection, server.opened_over.map(|first| first + 1));
    assert!(hold.is_held());
}

#[tokio::test(start_paused = true)]
async fn client_without_watches_of_trees_refuses_them() {
    let simulation = Simulation::default();
    let ensemble = testkit::altered(simulation.ensemble("p"), |_, raw| FakeSession {
        watch_tree: None,
        ..testkit::passing(raw)
    });
    let session = open(Arc::new(ensemble), ConnectOptions::new()).await;
    let refused = server(&session).await.watch_tree("/").await;
    let refused = refused.expect_err("it has none");
    assert!(refused.is(Refusal::Unimplemented), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn meter_passes_the_watch_of_a_tree_and_counts_its_request() {
    let simulation = Simulation::default();
    let meter = Meter::default();
    let ensemble = meter.around(simulation.ensemble("p"));
    let session = open(ensemble, ConnectOptions::new()).await;
    let server = server(&session).await;
    let before = meter.read().requests;
    let mut tree = server.watch_tree("/").await.expect("watched");
    assert_eq!(meter.read().requests, before + 1);
    make(&simulation, "/a");
    assert_eq!(tree.next().await, created("/a"));
}

#[tokio::test(start_paused = true)]
async fn tree_ends_with_its_session_and_is_removed_when_it_is_dropped() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "p").await;
    let server = server(&session).await;
    let dropped = server.watch_tree("/a").await.expect("watched");
    let mut tree = server.watch_tree("/b").await.expect("watched");
    drop(dropped);
    sleep(SECOND).await;
    let watches = simulation.administrator().watches();
    assert!(
        watches.iter().all(|watch| watch.path == "/b"),
        "{watches:?}"
    );
    make(&simulation, "/b");
    simulation.administrator().expire(server.id);
    assert_eq!(tree.next().await, created("/b"));
    assert_eq!(tree.next().await, None);
    let over = server.watch_tree("/b").await;
    assert!(matches!(over, Err(ServerError::SessionOver(_))), "{over:?}");
}
