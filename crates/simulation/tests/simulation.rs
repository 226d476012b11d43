//! What the simulated ensemble promises, behaviour by behaviour.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Event, Operation, Outcome, Permission, ServerSession,
    SessionEnd,
};
use zookeeper_recipes_core::{ConnectOptions, Refusal, ServerError, Session, SessionState};
use zookeeper_recipes_simulation::{
    Change, Fault, FaultKind, FaultRates, RequestKind, Simulation, SimulationOptions,
};

fn everyone() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn one_server(seed: u64) -> Simulation {
    Simulation::new(SimulationOptions {
        seed,
        ..Default::default()
    })
}

fn three_servers(seed: u64) -> Simulation {
    Simulation::new(SimulationOptions {
        seed,
        servers: 3,
        ..Default::default()
    })
}

async fn connect(simulation: &Simulation, process: &str) -> Arc<dyn ServerSession> {
    simulation.ensemble(process).connect().await.unwrap()
}

async fn create(session: &dyn ServerSession, path: &str, mode: CreateMode) -> String {
    session
        .create(path, b"", mode, &everyone())
        .await
        .unwrap()
        .path
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ServerError>) -> Refusal {
    match result {
        Err(ServerError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn is_unknown<T>(result: &Result<T, ServerError>) -> bool {
    matches!(result, Err(ServerError::OutcomeUnknown(_)))
}

/// A session of this process that is connected to this server.
async fn connect_to(
    simulation: &Simulation,
    process: &str,
    server: usize,
) -> Arc<dyn ServerSession> {
    loop {
        let session = connect(simulation, process).await;
        if simulation.administrator().server_of(session.id()) == Some(server) {
            return session;
        }
    }
}

mod znodes {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn are_created_read_and_deleted_with_their_metadata() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        let created = session
            .create("/n", b"one", CreateMode::Persistent, &everyone())
            .await
            .unwrap();
        assert_eq!(created.path, "/n");
        assert_eq!(created.stat.czxid, created.stat.mzxid);
        assert_eq!((created.stat.version, created.stat.data_length), (0, 3));
        assert_eq!(created.stat.ephemeral_owner, 0);

        let (data, stat) = session.get("/n").await.unwrap();
        assert_eq!((data.as_slice(), stat), (b"one".as_slice(), created.stat));

        create(&*session, "/n/child", CreateMode::Ephemeral).await;
        let (_, parent) = session.get("/n").await.unwrap();
        let (_, child) = session.get("/n/child").await.unwrap();
        assert_eq!((parent.num_children, parent.cversion), (1, 1));
        assert_eq!(parent.pzxid, child.czxid);
        assert!(child.czxid > created.stat.czxid);
        assert_eq!(child.ephemeral_owner, session.id().0);
        assert_eq!(session.list("/n").await.unwrap(), ["child"]);

        session.delete("/n/child").await.unwrap();
        let (_, parent) = session.get("/n").await.unwrap();
        assert_eq!((parent.num_children, parent.cversion), (0, 2));
        assert!(parent.pzxid > child.czxid);
        session.delete("/n").await.unwrap();
        assert_eq!(refusal(session.get("/n").await), Refusal::NoNode);
    }

    #[tokio::test(start_paused = true)]
    async fn are_refused_with_the_reason() {
        let simulation = one_server(2);
        let session = connect(&simulation, "a").await;
        create(&*session, "/d", CreateMode::Persistent).await;
        create(&*session, "/d/e", CreateMode::Ephemeral).await;
        let attempt = async |path: &str| {
            refusal(
                session
                    .create(path, b"", CreateMode::Persistent, &everyone())
                    .await,
            )
        };
        assert_eq!(attempt("/d").await, Refusal::NodeExists);
        assert_eq!(attempt("/none/child").await, Refusal::NoNode);
        assert_eq!(
            attempt("/d/e/child").await,
            Refusal::NoChildrenForEphemerals
        );
        assert!(matches!(
            attempt("relative").await,
            Refusal::BadArguments(_)
        ));
        assert!(matches!(attempt("/a//b").await, Refusal::BadArguments(_)));
        assert!(matches!(attempt("/a/").await, Refusal::BadArguments(_)));
        assert!(matches!(attempt("/a/../b").await, Refusal::BadArguments(_)));
        assert_eq!(refusal(session.delete("/d").await), Refusal::NotEmpty);
        assert_eq!(refusal(session.delete("/none").await), Refusal::NoNode);
        assert_eq!(refusal(session.list("/none").await), Refusal::NoNode);
        let unnamed = session.create("/x", b"", CreateMode::Persistent, &[]).await;
        assert_eq!(refusal(unnamed), Refusal::InvalidAcl);
        let stale = Operation::SetData {
            path: "/d".into(),
            data: vec![],
            version: Some(7),
        };
        let failed = session.transact(&[stale]).await.unwrap_err();
        assert_eq!(failed.operation, Some(0));
        assert!(failed.error.is(Refusal::BadVersion));
    }

    #[tokio::test(start_paused = true)]
    async fn in_sequence_are_numbered_by_the_parents_creates() {
        let simulation = one_server(3);
        let session = connect(&simulation, "a").await;
        create(&*session, "/q", CreateMode::Persistent).await;
        create(&*session, "/q/plain", CreateMode::Persistent).await;
        let first = create(&*session, "/q/n-", CreateMode::EphemeralSequential).await;
        session.delete(&first).await.unwrap();
        let second = create(&*session, "/q/m-", CreateMode::PersistentSequential).await;
        assert_eq!(
            (first.as_str(), second.as_str()),
            ("/q/n-0000000001", "/q/m-0000000002")
        );
        assert_eq!(
            create(&*session, "/q/", CreateMode::EphemeralSequential).await,
            "/q/0000000003"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn in_sequence_stay_at_the_last_number_one_by_one() {
        let simulation = one_server(4);
        let session = connect(&simulation, "a").await;
        create(&*session, "/q", CreateMode::Persistent).await;
        simulation
            .administrator()
            .set_create_counter("/q", i32::MAX - 1)
            .unwrap();
        let mut names = Vec::new();
        for name in ["a-", "b-", "c-"] {
            names.push(
                create(
                    &*session,
                    &format!("/q/{name}"),
                    CreateMode::EphemeralSequential,
                )
                .await,
            );
        }
        assert_eq!(
            names,
            ["/q/a-2147483646", "/q/b-2147483647", "/q/c-2147483647"]
        );
        let again = session
            .create("/q/c-", b"", CreateMode::EphemeralSequential, &everyone())
            .await;
        assert_eq!(refusal(again), Refusal::NodeExists);
    }

    #[tokio::test(start_paused = true)]
    async fn in_sequence_wrap_past_the_last_number_while_creates_are_outstanding() {
        let commit = milliseconds(20)..=milliseconds(20);
        let simulation = Simulation::new(SimulationOptions {
            commit_delay: commit,
            ..Default::default()
        });
        let session = connect(&simulation, "a").await;
        create(&*session, "/q", CreateMode::Persistent).await;
        simulation
            .administrator()
            .set_create_counter("/q", i32::MAX)
            .unwrap();
        let acl = everyone();
        let mode = CreateMode::EphemeralSequential;
        let first = session.create("/q/a-", b"", mode, &acl);
        let second = session.create("/q/b-", b"", mode, &acl);
        assert_eq!(first.await.unwrap().path, "/q/a-2147483647");
        assert_eq!(second.await.unwrap().path, "/q/b--2147483648");
        assert_eq!(create(&*session, "/q/c-", mode).await, "/q/c-2147483647");
    }

    #[tokio::test(start_paused = true)]
    async fn in_containers_leave_them_to_be_reaped() {
        let simulation = one_server(5);
        let session = connect(&simulation, "a").await;
        create(&*session, "/used", CreateMode::Container).await;
        create(&*session, "/unused", CreateMode::Container).await;
        create(&*session, "/used/child", CreateMode::Persistent).await;
        assert!(simulation.administrator().reap_containers().is_empty());
        session.delete("/used/child").await.unwrap();
        assert_eq!(simulation.administrator().reap_containers(), ["/used"]);
        assert_eq!(
            simulation.administrator().children("/"),
            ["unused", "zookeeper"]
        );

        create(&*session, "/used", CreateMode::Container).await;
        create(&*session, "/used/child", CreateMode::Persistent).await;
        session.delete("/used/child").await.unwrap();
        tokio::time::sleep(seconds(61)).await;
        assert_eq!(refusal(session.get("/used").await), Refusal::NoNode);
    }

    #[tokio::test(start_paused = true)]
    async fn are_guarded_by_their_access_control_lists() {
        let simulation = one_server(6);
        let identity = AuthId::new("digest", "ada:hash");
        let owner = simulation.process("owner").with_identity(identity.clone());
        let owner = owner.ensemble().connect().await.unwrap();
        let stranger = connect(&simulation, "stranger").await;
        let creator_only = [Acl::new(Permission::ALL, AuthId::authed())];

        let unauthenticated = stranger
            .create("/x", b"", CreateMode::Persistent, &creator_only)
            .await;
        assert_eq!(refusal(unauthenticated), Refusal::InvalidAcl);
        owner
            .create("/p", b"", CreateMode::Persistent, &creator_only)
            .await
            .unwrap();
        let made = stranger
            .create("/p/c", b"", CreateMode::Persistent, &everyone())
            .await;
        assert_eq!(refusal(made), Refusal::NoAuth);
        assert_eq!(refusal(stranger.get("/p").await), Refusal::NoAuth);
        assert_eq!(refusal(stranger.list("/p").await), Refusal::NoAuth);
        owner
            .create("/p/c", b"", CreateMode::Persistent, &everyone())
            .await
            .unwrap();
        assert_eq!(refusal(stranger.delete("/p/c").await), Refusal::NoAuth);
        let write = Operation::SetData {
            path: "/p/c".into(),
            data: vec![1],
            version: None,
        };
        stranger.transact(&[write]).await.unwrap();
        owner.delete("/p/c").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn are_seen_relative_to_a_chroot() {
        let simulation = one_server(7);
        simulation
            .administrator()
            .create("/app", b"", CreateMode::Persistent)
            .unwrap();
        let ensemble = simulation.process("a").with_chroot("/app").ensemble();
        assert_eq!(ensemble.chroot(), "/app");
        let session = ensemble.connect().await.unwrap();
        assert_eq!(create(&*session, "/n", CreateMode::Persistent).await, "/n");
        assert_eq!(session.list("/").await.unwrap(), ["n"]);
        assert_eq!(simulation.administrator().children("/app"), ["n"]);
    }
}

mod transactions {
    use super::*;

    fn create(path: &str, mode: CreateMode) -> Operation {
        Operation::Create {
            path: path.into(),
            data: vec![],
            mode,
            acl: everyone(),
        }
    }

    fn delete(path: &str) -> Operation {
        Operation::Delete {
            path: path.into(),
            version: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn see_their_own_earlier_operations() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        let outcomes = session
            .transact(&[
                create("/d", CreateMode::Persistent),
                create("/d/n-", CreateMode::EphemeralSequential),
                create("/d/n-", CreateMode::EphemeralSequential),
                Operation::SetData {
                    path: "/d".into(),
                    data: vec![1],
                    version: Some(0),
                },
                Operation::Check {
                    path: "/d".into(),
                    version: Some(1),
                },
                delete("/d/n-0000000000"),
            ])
            .await
            .unwrap();
        let [
            Outcome::Created(directory),
            _,
            Outcome::Created(second),
            set,
            checked,
            deleted,
        ] = outcomes.as_slice()
        else {
            panic!("{outcomes:?}");
        };
        assert_eq!(second.path, "/d/n-0000000001");
        assert_eq!(
            second.stat.czxid, directory.stat.czxid,
            "one transaction has one zxid"
        );
        assert!(matches!(set, Outcome::DataSet(stat) if stat.version == 1));
        assert_eq!((checked, deleted), (&Outcome::Checked, &Outcome::Deleted));
        assert_eq!(session.list("/d").await.unwrap(), ["n-0000000001"]);
    }

    #[tokio::test(start_paused = true)]
    async fn happen_whole_or_not_at_all() {
        let simulation = one_server(2);
        let session = connect(&simulation, "a").await;
        let failed = session
            .transact(&[
                create("/d", CreateMode::Persistent),
                create("/d/c-", CreateMode::PersistentSequential),
                delete("/none"),
                create("/e", CreateMode::Persistent),
            ])
            .await
            .unwrap_err();
        assert_eq!(failed.operation, Some(2));
        assert!(failed.error.is(Refusal::NoNode));
        assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
        session
            .transact(&[create("/d", CreateMode::Persistent)])
            .await
            .unwrap();
        let name = super::create(&*session, "/d/c-", CreateMode::PersistentSequential).await;
        assert_eq!(
            name, "/d/c-0000000000",
            "what did not happen has used up no number"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn fire_watches_in_the_order_of_their_operations() {
        let simulation = one_server(3);
        let session = connect(&simulation, "a").await;
        super::create(&*session, "/own", CreateMode::Ephemeral).await;
        let (_, marker) = session.exists_and_watch("/marker").await.unwrap();
        let (_, _, own) = session.get_and_watch("/own").await.unwrap();
        let other = connect(&simulation, "b").await;
        other
            .transact(&[
                create("/marker", CreateMode::Persistent),
                delete("/marker"),
                delete("/own"),
            ])
            .await
            .unwrap();
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(marker.now_or_never(), Some(Event::Created));
        assert_eq!(own.now_or_never(), Some(Event::Deleted));
        let trace = simulation.trace();
        let events: Vec<&str> = trace
            .entries()
            .iter()
            .filter(|entry| entry.to_string().contains("<!"))
            .map(|entry| entry.text.as_str())
            .collect();
        assert_eq!(events, ["/marker Created", "/own Deleted"]);
    }
}

mod watches {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fire_once_each_for_what_they_watch() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        let other = connect(&simulation, "b").await;
        create(&*session, "/n", CreateMode::Persistent).await;
        let (stat, absent) = session.exists_and_watch("/later").await.unwrap();
        assert_eq!(stat, None);
        let (_, children) = session.list_and_watch("/n").await.unwrap();
        let (_, _, data) = session.get_and_watch("/n").await.unwrap();
        let (_, _, same) = session.get_and_watch("/n").await.unwrap();
        assert_eq!(simulation.counters().watches(), 3);

        create(&*other, "/later", CreateMode::Persistent).await;
        assert_eq!(absent.await, Event::Created);
        create(&*other, "/n/c", CreateMode::Persistent).await;
        assert_eq!(children.await, Event::ChildrenChanged);
        let set = Operation::SetData {
            path: "/n".into(),
            data: vec![1],
            version: None,
        };
        other.transact(std::slice::from_ref(&set)).await.unwrap();
        assert_eq!(
            (data.await, same.await),
            (Event::DataChanged, Event::DataChanged)
        );
        assert_eq!(simulation.counters().notifications(), 3);
        assert_eq!(simulation.counters().notifications_to("b"), 0);
        other.transact(&[set]).await.unwrap();
        assert_eq!(simulation.counters().notifications(), 3, "one-shot");
        assert_eq!(simulation.counters().watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn on_data_and_children_of_one_znode_are_told_of_its_deletion_by_one_notification() {
        let simulation = one_server(2);
        let session = connect(&simulation, "a").await;
        create(&*session, "/n", CreateMode::Persistent).await;
        let (_, children) = session.list_and_watch("/n").await.unwrap();
        let (_, _, data) = session.get_and_watch("/n").await.unwrap();
        session.delete("/n").await.unwrap();
        assert_eq!(
            (data.await, children.await),
            (Event::Deleted, Event::Deleted)
        );
        assert_eq!(simulation.counters().notifications(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn are_told_before_a_read_that_sees_the_change() {
        for seed in 0..50 {
            let simulation = three_servers(seed);
            let session = connect(&simulation, "a").await;
            let other = connect(&simulation, "b").await;
            create(&*session, "/n", CreateMode::Persistent).await;
            let (_, _, mut watch) = session.get_and_watch("/n").await.unwrap();
            let deletion = other.delete("/n");
            while session.get("/n").await.is_ok() {
                assert_eq!((&mut watch).now_or_never(), None);
            }
            assert_eq!(watch.now_or_never(), Some(Event::Deleted));
            deletion.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leave_nothing_behind_when_dropped() {
        let simulation = one_server(3);
        let session = connect(&simulation, "a").await;
        create(&*session, "/n", CreateMode::Persistent).await;
        let (_, _, one) = session.get_and_watch("/n").await.unwrap();
        let (_, _, two) = session.get_and_watch("/n").await.unwrap();
        let (_, children) = session.list_and_watch("/n").await.unwrap();
        drop(one);
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(
            simulation.counters().watches(),
            2,
            "the other one still stands"
        );
        drop((two, children));
        drop(session.get_and_watch("/n"));
        drop(session.exists_and_watch("/none"));
        drop(session.get_and_watch("/none"));
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(simulation.counters().watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn set_anew_while_one_is_dropped_still_stand() {
        let simulation = one_server(4);
        let session = connect(&simulation, "a").await;
        create(&*session, "/n", CreateMode::Persistent).await;
        let (_, _, earlier) = session.get_and_watch("/n").await.unwrap();
        let anew = session.get_and_watch("/n");
        drop(earlier);
        let (_, _, watch) = anew.await.unwrap();
        tokio::time::sleep(seconds(1)).await;
        assert_eq!(simulation.counters().watches(), 1);
        session.delete("/n").await.unwrap();
        assert_eq!(watch.await, Event::Deleted);
    }

    #[tokio::test(start_paused = true)]
    async fn survive_a_reconnect_and_tell_what_happened_meanwhile() {
        for seed in 0..20 {
            let simulation = three_servers(seed);
            let session = connect(&simulation, "a").await;
            for path in ["/gone", "/stays", "/set"] {
                create(&*session, path, CreateMode::Persistent).await;
            }
            let (_, _, gone) = session.get_and_watch("/gone").await.unwrap();
            let (_, _, stays) = session.get_and_watch("/stays").await.unwrap();
            let (_, _, set) = session.get_and_watch("/set").await.unwrap();
            let (_, comes) = session.exists_and_watch("/comes").await.unwrap();
            simulation.process("a").partition(seconds(3));
            tokio::time::sleep(milliseconds(100)).await;
            let administrator = simulation.administrator();
            administrator.delete("/gone").unwrap();
            administrator.set_data("/set", b"1").unwrap();
            administrator
                .create("/comes", b"", CreateMode::Persistent)
                .unwrap();
            assert_eq!(gone.await, Event::Deleted);
            assert_eq!(
                (set.await, comes.await),
                (Event::DataChanged, Event::Created)
            );
            tokio::time::sleep(seconds(1)).await;
            administrator.delete("/stays").unwrap();
            assert_eq!(stays.await, Event::Deleted);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_paths_end_the_session_at_a_reconnect() {
        let simulation = one_server(5);
        let session = connect(&simulation, "a").await;
        let mut watches = Vec::new();
        for number in 0..1500 {
            let path = format!("/{number:0>100}");
            watches.push(session.exists_and_watch(&path).await.unwrap());
        }
        simulation.faults().disconnect(session.id());
        let end = session
            .states()
            .filter(|state| std::future::ready(matches!(state, ConnectionState::Ended(_))));
        let end = std::pin::pin!(end).next().await;
        assert_eq!(end, Some(ConnectionState::Ended(SessionEnd::Expired)));
    }
}

mod faults {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lose_a_request_before_it_is_applied() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        simulation.faults().inject(
            Fault::new(FaultKind::RequestLost)
                .of_process("a")
                .on(RequestKind::Create)
                .nth(2),
        );
        create(&*session, "/one", CreateMode::Persistent).await;
        let acl = everyone();
        let two = session.create("/two", b"", CreateMode::Persistent, &acl);
        let three = session.create("/three", b"", CreateMode::Persistent, &acl);
        assert!(is_unknown(&two.await));
        assert!(
            is_unknown(&three.await),
            "what was sent after it is lost with it"
        );
        assert_eq!(session.list("/").await.unwrap(), ["one", "zookeeper"]);
        assert_eq!(session.state(), ConnectionState::Connected);
        assert_eq!(simulation.faults().waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn lose_a_reply_after_the_request_was_applied() {
        let simulation = one_server(2);
        let session = connect(&simulation, "a").await;
        simulation.faults().inject(
            Fault::new(FaultKind::ReplyLost)
                .on(RequestKind::Transact)
                .under("/two"),
        );
        let operation = |path: &str| Operation::Create {
            path: path.into(),
            data: vec![],
            mode: CreateMode::Ephemeral,
            acl: everyone(),
        };
        session.transact(&[operation("/one")]).await.unwrap();
        let failed = session.transact(&[operation("/two")]).await.unwrap_err();
        assert!(matches!(failed.error, ServerError::OutcomeUnknown(_)));
        assert_eq!(
            session.list("/").await.unwrap(),
            ["one", "two", "zookeeper"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn move_a_session_to_another_server() {
        for server in 0..3 {
            let simulation = three_servers(3);
            let session = connect(&simulation, "a").await;
            let fault = Fault::new(FaultKind::ReplyLost).on(RequestKind::Create);
            simulation.faults().inject(fault.reconnecting_to(server));
            let lost = session
                .create("/n", b"", CreateMode::Ephemeral, &everyone())
                .await;
            assert!(is_unknown(&lost));
            session.sync("/").await.unwrap();
            assert_eq!(session.list("/").await.unwrap(), ["n", "zookeeper"]);
            let at = simulation.administrator().server_of(session.id());
            // A server that is behind refuses the session, which then goes on to another one.
            assert!(at.is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn expire_a_session_as_its_request_arrives() {
        let simulation = one_server(4);
        let session = connect(&simulation, "a").await;
        create(&*session, "/e", CreateMode::Ephemeral).await;
        simulation
            .faults()
            .inject(Fault::new(FaultKind::SessionExpired).on(RequestKind::Create));
        let refused = session
            .create("/n", b"", CreateMode::Persistent, &everyone())
            .await;
        assert!(matches!(
            refused,
            Err(ServerError::SessionOver(SessionEnd::Expired))
                | Err(ServerError::OutcomeUnknown(_))
        ));
        let end = session.list("/").await;
        assert!(
            matches!(end, Err(ServerError::SessionOver(SessionEnd::Expired))),
            "{end:?}"
        );
        assert_eq!(session.state(), ConnectionState::Ended(SessionEnd::Expired));
        assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
    }

    #[tokio::test(start_paused = true)]
    async fn delay_requests_and_replies_without_changing_their_order() {
        let simulation = one_server(5);
        let session = connect(&simulation, "a").await;
        simulation
            .faults()
            .inject(Fault::new(FaultKind::RequestLate(seconds(1))).on(RequestKind::Create));
        let start = simulation.now();
        let acl = everyone();
        let creation = session.create("/n", b"", CreateMode::Persistent, &acl);
        let listing = session.list("/");
        assert_eq!(listing.await.unwrap(), ["n", "zookeeper"]);
        assert!(creation.now_or_never().is_some());
        assert!(simulation.now() - start >= seconds(1));
        simulation
            .faults()
            .inject(Fault::new(FaultKind::ReplyLate(seconds(1))));
        let start = simulation.now();
        session.delete("/n").await.unwrap();
        assert!(simulation.now() - start >= seconds(1));
    }

    #[tokio::test(start_paused = true)]
    async fn by_chance_leave_an_ensemble_that_works_once_they_stop() {
        for seed in 0..30 {
            let simulation = three_servers(seed);
            let rates = FaultRates {
                request_lost: 0.03,
                reply_lost: 0.03,
                request_late: 0.05,
                reply_late: 0.05,
                throttled: 0.02,
                event_late: 0.2,
                late_by: milliseconds(300),
                disconnected: 0.1,
                expired: 0.01,
                partitioned: 0.05,
                partitioned_for: seconds(9),
                asleep: 0.05,
                asleep_for: seconds(9),
                cut_off: 0.05,
                cut_off_for: seconds(15),
                one_way: 0.3,
                forgotten: 0.02,
                replaced: 0.3,
                blocked: 0.05,
                blocked_for: seconds(9),
                isolated: 0.02,
                isolated_for: seconds(20),
                stalled: 0.05,
                stalled_for: seconds(6),
                paused: 0.02,
                paused_for: seconds(6),
                elected: 0.02,
                elected_within: seconds(3),
            };
            simulation.faults().set_rates(rates);
            let mut tasks = Vec::new();
            for process in 0..4 {
                let ensemble = simulation.ensemble(&format!("p{process}"));
                let simulation = simulation.clone();
                tasks.push(tokio::spawn(async move {
                    let mut done = 0;
                    while simulation.now() < seconds(60) {
                        let Ok(session) = ensemble.connect().await else {
                            continue;
                        };
                        let acl = everyone();
                        loop {
                            let mode = CreateMode::EphemeralSequential;
                            let created = session.create("/n-", b"", mode, &acl);
                            let watch = session.list_and_watch("/");
                            match created.await {
                                Ok(created) => {
                                    done += 1;
                                    drop(watch.await);
                                    let _ = session.delete(&created.path).await;
                                }
                                Err(ServerError::SessionOver(_)) => break,
                                Err(_) => {}
                            }
                            tokio::time::sleep(milliseconds(100)).await;
                            if simulation.now() > seconds(60) {
                                break;
                            }
                        }
                    }
                    done
                }));
            }
            tokio::time::sleep(seconds(60)).await;
            simulation.faults().stop();
            for task in tasks {
                let done = tokio::time::timeout(seconds(60), task).await;
                let done =
                    done.unwrap_or_else(|_| panic!("seed {seed} hangs\n{}", simulation.trace()));
                assert!(done.unwrap() > 20, "seed {seed}");
            }
            tokio::time::sleep(seconds(60)).await;
            let tree = simulation.administrator().tree();
            assert!(
                tree.is_empty(),
                "seed {seed}: {tree:?}\n{}",
                simulation.trace()
            );
            assert_eq!(simulation.counters().watches(), 0, "seed {seed}");
            assert!(simulation.administrator().sessions().is_empty());
        }
    }
}

mod sessions {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn live_on_while_nobody_asks_anything() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        create(&*session, "/e", CreateMode::Ephemeral).await;
        tokio::time::sleep(seconds(600)).await;
        assert_eq!(session.state(), ConnectionState::Connected);
        assert_eq!(session.list("/").await.unwrap(), ["e", "zookeeper"]);
        assert!(simulation.counters().requests(RequestKind::Ping) > 300);
    }

    #[tokio::test(start_paused = true)]
    async fn are_closed_with_their_last_reference() {
        let simulation = one_server(2);
        let session = connect(&simulation, "a").await;
        let watcher = connect(&simulation, "b").await;
        create(&*session, "/e", CreateMode::Ephemeral).await;
        create(&*session, "/f", CreateMode::Ephemeral).await;
        let (_, _, gone) = watcher.get_and_watch("/e").await.unwrap();
        let (_, own) = session.exists_and_watch("/none").await.unwrap();
        let states = session.states();
        let start = simulation.now();
        drop(session);
        assert_eq!(gone.await, Event::Deleted);
        assert!(simulation.now() - start < seconds(1));
        assert_eq!(own.await, Event::SessionEnded(SessionEnd::Closed));
        let states: Vec<ConnectionState> = states.collect().await;
        assert_eq!(
            states.last(),
            Some(&ConnectionState::Ended(SessionEnd::Closed))
        );
        let history = simulation.history();
        let deletions: Vec<_> = history
            .iter()
            .filter(|committed| matches!(committed.change, Change::Deleted { .. }))
            .collect();
        assert_eq!(deletions.len(), 2);
        assert_eq!(deletions[0].zxid, deletions[1].zxid, "in one transaction");
        assert_eq!(simulation.counters().watches(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn whose_connection_is_cut_are_disconnected_and_come_back() {
        let simulation = one_server(3);
        let session = connect(&simulation, "a").await;
        let states = session.states();
        simulation.faults().disconnect(session.id());
        assert_eq!(session.state(), ConnectionState::Disconnected);
        let states: Vec<ConnectionState> = states.take(2).collect().await;
        assert_eq!(
            states,
            [ConnectionState::Disconnected, ConnectionState::Connected]
        );
        session.list("/").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn cut_off_are_disconnected_after_two_fifths_and_over_after_seven_fifths() {
        let simulation = one_server(4);
        let session = connect(&simulation, "a").await;
        session.sync("/").await.unwrap();
        let start = simulation.now();
        simulation.process("a").partition(seconds(60));
        let mut states = session.states();
        assert_eq!(states.next().await, Some(ConnectionState::Connected));
        let in_flight = session.list("/");
        assert_eq!(states.next().await, Some(ConnectionState::Disconnected));
        let silent = simulation.now() - start;
        assert!(
            silent >= milliseconds(2400) && silent <= milliseconds(2800),
            "{silent:?}"
        );
        assert!(is_unknown(&in_flight.await));
        let waiting = session.list("/");
        assert_eq!(
            states.next().await,
            Some(ConnectionState::Ended(SessionEnd::Expired))
        );
        let end = simulation.now() - start;
        assert!(
            end >= milliseconds(8400) && end <= milliseconds(11100),
            "{end:?}"
        );
        assert!(matches!(
            waiting.await,
            Err(ServerError::SessionOver(SessionEnd::Expired))
        ));
        assert_eq!(states.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_sleeping_process_expire_and_are_told_so_on_waking() {
        for seed in 0..20 {
            let simulation = one_server(seed);
            let process = simulation.process("a");
            let session = connect(&simulation, "a").await;
            let other = connect(&simulation, "b").await;
            create(&*session, "/e", CreateMode::Ephemeral).await;
            let (_, _, gone) = other.get_and_watch("/e").await.unwrap();
            let start = simulation.now();
            process.sleep(seconds(12));
            assert_eq!(gone.await, Event::Deleted);
            let expired = simulation.now() - start;
            assert!(
                expired >= seconds(4) && expired <= seconds(9),
                "{expired:?}"
            );
            assert_eq!(
                session.state(),
                ConnectionState::Connected,
                "it has seen nothing yet"
            );
            let seen = process
                .while_awake(async { simulation.now() - start })
                .await;
            assert!(seen >= seconds(12));
            let asked = session.list("/").await;
            assert!(matches!(
                asked,
                Err(ServerError::SessionOver(_) | ServerError::OutcomeUnknown(_))
            ));
            let mut states = session.states();
            while let Some(state) = states.next().await {
                assert_ne!(state, ConnectionState::Ended(SessionEnd::Closed));
            }
            assert_eq!(session.state(), ConnectionState::Ended(SessionEnd::Expired));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_sleeping_process_do_nothing_in_the_background() {
        let simulation = one_server(7);
        let process = simulation.process("a");
        let session = Session::open(process.ensemble(), ConnectOptions::new())
            .await
            .unwrap();
        let id = session.id().unwrap();
        tokio::time::sleep(seconds(1)).await;
        process.sleep(seconds(30));
        tokio::time::sleep(seconds(20)).await;
        assert!(simulation.administrator().sessions().is_empty(), "expired");
        assert_eq!(session.state(), SessionState::Connected(id));
        let mut states = session.states().skip(1);
        let next = states.next().await.unwrap();
        assert!(simulation.now() >= seconds(31));
        assert_ne!(next, SessionState::Connected(id));
        while !matches!(session.state(), SessionState::Connected(_)) {
            states.next().await.unwrap();
        }
        assert_ne!(session.id(), Some(id));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_process_that_is_woken_go_on() {
        let simulation = one_server(8);
        let process = simulation.process("a");
        let session = connect(&simulation, "a").await;
        process.sleep(seconds(3600));
        let asked = session.list("/");
        tokio::time::sleep(seconds(2)).await;
        process.wake();
        assert!(asked.await.is_ok());
        assert!(simulation.now() < seconds(3));
        process.wake();
        assert_eq!(session.state(), ConnectionState::Connected);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_killed_process_are_left_to_their_timeout() {
        let simulation = one_server(9);
        let process = simulation.process("a");
        let session = connect(&simulation, "a").await;
        create(&*session, "/e", CreateMode::Ephemeral).await;
        let (_, _, unheard) = session.get_and_watch("/e").await.unwrap();
        let other = connect(&simulation, "b").await;
        let (_, _, gone) = other.get_and_watch("/e").await.unwrap();
        let killed = simulation.now();
        process.kill();
        process.wake();
        let dead = tokio::spawn({
            let process = process.clone();
            async move { process.while_awake(async {}).await }
        });
        assert_eq!(gone.await, Event::Deleted);
        let after = simulation.now() - killed;
        assert!(after >= seconds(4) && after <= seconds(9), "{after:?}");
        assert!(unheard.now_or_never().is_none());
        assert!(!dead.is_finished());
        let again = connect(&simulation, "a").await;
        create(&*again, "/e", CreateMode::Ephemeral).await;
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_process_that_sleeps_a_little_live_on() {
        let simulation = one_server(5);
        let session = connect(&simulation, "a").await;
        create(&*session, "/e", CreateMode::Ephemeral).await;
        let (_, _, watch) = session.get_and_watch("/e").await.unwrap();
        simulation.process("a").sleep(seconds(2));
        assert_eq!(session.list("/").await.unwrap(), ["e", "zookeeper"]);
        assert!(simulation.now() >= seconds(2));
        // Longer than the client waits for an answer, shorter than the server waits for it.
        simulation.process("a").sleep(seconds(3));
        let asked = session.list("/").await;
        assert!(asked.is_ok() || is_unknown(&asked), "{asked:?}");
        assert_eq!(session.list("/").await.unwrap(), ["e", "zookeeper"]);
        simulation.administrator().delete("/e").unwrap();
        assert_eq!(watch.await, Event::Deleted);
        assert!(simulation.now() >= seconds(5));
    }

    #[tokio::test(start_paused = true)]
    async fn expired_by_the_administrator_are_told_at_once() {
        let simulation = one_server(6);
        let session = connect(&simulation, "a").await;
        let (_, watch) = session.exists_and_watch("/none").await.unwrap();
        simulation.administrator().expire(session.id());
        assert_eq!(watch.await, Event::SessionEnded(SessionEnd::Expired));
        let over = simulation.history().into_iter().any(|committed| {
            committed.change
                == Change::SessionEnded {
                    session: session.id(),
                    end: SessionEnd::Expired,
                }
        });
        assert!(over);
    }

    #[tokio::test(start_paused = true)]
    async fn are_not_applied_for_on_a_connection_they_have_left() {
        let mut moved = 0;
        for seed in 0..200 {
            let simulation = three_servers(seed);
            let session = connect(&simulation, "a").await;
            simulation
                .administrator()
                .create("/d", b"", CreateMode::Persistent)
                .unwrap();
            session.sync("/d").await.unwrap();
            let late = Fault::new(FaultKind::RequestLate(milliseconds(40)));
            simulation.faults().inject(late.on(RequestKind::Create));
            let acl = everyone();
            let created = session.create("/d/n", b"", CreateMode::Ephemeral, &acl);
            simulation.faults().disconnect(session.id());
            assert!(is_unknown(&created.await));
            session.sync("/d").await.unwrap();
            let names = session.list("/d").await.unwrap();
            let at = simulation.now();
            tokio::time::sleep(seconds(1)).await;
            let later = session.list("/d").await.unwrap();
            assert_eq!(
                names,
                later,
                "seed {seed}: applied after {at:?}\n{}",
                simulation.trace()
            );
            moved += u32::from(simulation.trace().to_string().contains("SessionMoved"));
        }
        assert!(moved > 0, "the case that this is about has come up");
    }

    #[tokio::test(start_paused = true)]
    async fn opened_for_nobody_end_by_their_timeout() {
        let simulation = one_server(7);
        let ensemble = simulation.ensemble("a");
        let mut opening = ensemble.connect();
        assert!((&mut opening).now_or_never().is_none());
        while simulation.administrator().sessions().is_empty() {
            tokio::time::sleep(milliseconds(1)).await;
        }
        drop(opening);
        tokio::time::sleep(seconds(10)).await;
        assert!(simulation.administrator().sessions().is_empty());
    }
}

mod servers {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn that_follow_lag_until_a_sync() {
        let lag = milliseconds(500)..=milliseconds(500);
        let simulation = Simulation::new(SimulationOptions {
            servers: 3,
            follower_lag: lag,
            ..Default::default()
        });
        let reader = connect_to(&simulation, "reader", 1).await;
        simulation
            .administrator()
            .create("/n", b"", CreateMode::Persistent)
            .unwrap();
        assert_eq!(
            reader.list("/").await.unwrap(),
            ["zookeeper"],
            "an old state"
        );
        reader.sync("/").await.unwrap();
        assert_eq!(reader.list("/").await.unwrap(), ["n", "zookeeper"]);
    }

    #[tokio::test(start_paused = true)]
    async fn answer_in_the_order_of_the_calls_whatever_is_asked() {
        for seed in 0..50 {
            let simulation = three_servers(seed);
            let session = connect(&simulation, "a").await;
            let acl = everyone();
            let mode = CreateMode::PersistentSequential;
            let mut asked = Vec::new();
            for _ in 0..5 {
                asked.push(
                    session
                        .create("/n-", b"", mode, &acl)
                        .map(|it| it.is_ok())
                        .boxed(),
                );
                asked.push(session.sync("/").map(|it| it.is_ok()).boxed());
                asked.push(session.delete("/none").map(|it| it.is_err()).boxed());
                asked.push(session.list("/").map(|it| it.is_ok()).boxed());
            }
            let last = asked.pop().unwrap();
            assert!(
                tokio::time::timeout(seconds(1), last).await.unwrap(),
                "seed {seed}"
            );
            for each in asked {
                assert_eq!(each.now_or_never(), Some(true), "seed {seed}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn never_show_a_session_less_than_it_has_seen() {
        for seed in 0..30 {
            let simulation = Simulation::new(SimulationOptions {
                seed,
                servers: 3,
                follower_lag: milliseconds(0)..=milliseconds(400),
                ..Default::default()
            });
            let session = connect(&simulation, "a").await;
            let mut seen = 0;
            for round in 0..10 {
                let path = format!("/{round}");
                simulation
                    .administrator()
                    .create(&path, b"", CreateMode::Persistent)
                    .unwrap();
                if round % 3 == 0 {
                    simulation.faults().disconnect(session.id());
                }
                if let Ok(names) = session.list("/").await {
                    assert!(names.len() >= seen);
                    seen = names.len();
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cut_off_from_the_leader_answer_reads_but_no_syncs() {
        let simulation = three_servers(1);
        let session = connect_to(&simulation, "a", 1).await;
        let other = connect_to(&simulation, "b", 0).await;
        create(&*session, "/e", CreateMode::Ephemeral).await;
        let (_, _, gone) = other.get_and_watch("/e").await.unwrap();
        simulation.faults().cut_off_from_leader(1, seconds(30));
        let start = simulation.now();
        assert_eq!(gone.await, Event::Deleted);
        let expired = simulation.now() - start;
        assert!(expired < seconds(10), "{expired:?}");
        assert_eq!(session.state(), ConnectionState::Connected);
        assert_eq!(
            session.list("/").await.unwrap(),
            ["e", "zookeeper"],
            "an old state"
        );
        let in_time = tokio::time::timeout(seconds(1), session.sync("/")).await;
        assert!(in_time.is_err());
        let mut states = session.states();
        assert_eq!(states.next().await, Some(ConnectionState::Connected));
        assert_eq!(
            states.next().await,
            Some(ConnectionState::Disconnected),
            "pings hang too"
        );
        assert_eq!(
            states.next().await,
            Some(ConnectionState::Ended(SessionEnd::Expired))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_quorum_commit_nothing_until_it_is_back() {
        let simulation = three_servers(2);
        let session = connect_to(&simulation, "a", 0).await;
        simulation.faults().cut_off_from_leader(1, seconds(4));
        simulation.faults().cut_off_from_leader(2, seconds(3));
        let acl = everyone();
        let creation = session.create("/n", b"", CreateMode::Persistent, &acl);
        let start = simulation.now();
        let created = creation.await;
        assert!(simulation.now() - start >= seconds(2));
        if created.is_ok() {
            assert!(simulation.now() - start >= seconds(3));
        }
        simulation.faults().cut_off_from_leader(1, seconds(40));
        simulation.faults().cut_off_from_leader(2, seconds(40));
        tokio::time::sleep(seconds(50)).await;
        let later = connect(&simulation, "b").await;
        later.sync("/").await.unwrap();
        assert_eq!(later.list("/").await.unwrap(), ["n", "zookeeper"]);
    }

    #[tokio::test(start_paused = true)]
    async fn cut_off_during_an_election_pass_nothing_on_to_the_new_leader() {
        let simulation = three_servers(3);
        let session = connect_to(&simulation, "a", 2).await;
        simulation.faults().cut_off_from_leader(1, seconds(12));
        tokio::time::sleep(seconds(5)).await;
        simulation.faults().cut_off_from_leader(2, seconds(9));
        // Server 1 has given its leader up, that one has lost its quorum, and both have elected.
        tokio::time::sleep(milliseconds(8500)).await;
        let start = simulation.now();
        let created = session
            .create("/n", b"", CreateMode::Persistent, &everyone())
            .await;
        assert!(is_unknown(&created), "{created:?}");
        assert!(simulation.now() - start < seconds(2), "the server said so");
        session.sync("/").await.unwrap();
        assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
    }

    #[tokio::test(start_paused = true)]
    async fn elect_a_leader_and_keep_sessions_and_znodes() {
        for seed in 0..20 {
            let simulation = three_servers(seed);
            let session = connect(&simulation, "a").await;
            let before = session
                .create("/e", b"", CreateMode::Ephemeral, &everyone())
                .await
                .unwrap();
            simulation.faults().elect(2, seconds(2));
            tokio::time::sleep(seconds(4)).await;
            assert_eq!(simulation.administrator().leader(), 2);
            let after = session
                .create("/f", b"", CreateMode::Ephemeral, &everyone())
                .await
                .unwrap();
            assert!(
                after.stat.czxid >> 32 > before.stat.czxid >> 32,
                "a new epoch"
            );
            session.sync("/").await.unwrap();
            assert_eq!(session.list("/").await.unwrap(), ["e", "f", "zookeeper"]);
        }
    }
}

mod a_seed {
    use super::*;

    async fn run(seed: u64) -> String {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            trace_limit: usize::MAX,
            ..Default::default()
        });
        simulation.faults().set_rates(FaultRates {
            request_lost: 0.02,
            reply_lost: 0.02,
            event_late: 0.3,
            late_by: milliseconds(100),
            asleep: 0.05,
            asleep_for: seconds(8),
            partitioned: 0.05,
            partitioned_for: seconds(8),
            disconnected: 0.1,
            cut_off: 0.05,
            cut_off_for: seconds(8),
            elected: 0.01,
            elected_within: seconds(1),
            ..Default::default()
        });
        let mut tasks = Vec::new();
        for process in ["a", "b", "c"] {
            let ensemble = simulation.ensemble(process);
            tasks.push(tokio::spawn(async move {
                let session = ensemble.connect().await.unwrap();
                for _ in 0..30 {
                    let acl = everyone();
                    let mode = CreateMode::EphemeralSequential;
                    let created = session.create("/n-", b"", mode, &acl);
                    let listed = session.list_and_watch("/");
                    let _ = created.await;
                    if let Ok((_, watch)) = listed.await {
                        let _ = tokio::time::timeout(milliseconds(700), watch).await;
                    }
                }
            }));
        }
        for task in tasks {
            let _ = tokio::time::timeout(seconds(120), task).await;
        }
        simulation.trace().to_string()
    }

    fn replay(seed: u64) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(seed))
    }

    #[test]
    fn gives_the_same_trace_again_and_another_seed_another() {
        for seed in 0..10 {
            let first = replay(seed);
            assert!(first.lines().count() > 100);
            assert_eq!(first, replay(seed), "seed {seed}");
            assert_ne!(first, replay(seed + 1000));
        }
    }

    #[tokio::test]
    async fn is_not_needed_on_the_real_clock() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        let start = std::time::Instant::now();
        for _ in 0..20 {
            let path = create(&*session, "/n-", CreateMode::EphemeralSequential).await;
            session.delete(&path).await.unwrap();
        }
        assert!(start.elapsed() < seconds(2));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn is_not_needed_on_several_threads() {
        let simulation = three_servers(1);
        let mut tasks = Vec::new();
        for process in ["a", "b", "c"] {
            let ensemble = simulation.ensemble(process);
            tasks.push(tokio::spawn(async move {
                let session = ensemble.connect().await.unwrap();
                for _ in 0..20 {
                    let path = create(&*session, "/n-", CreateMode::EphemeralSequential).await;
                    session.delete(&path).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert!(simulation.administrator().tree().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn ends_with_the_last_handle() {
        let simulation = one_server(1);
        let session = connect(&simulation, "a").await;
        drop(simulation);
        create(&*session, "/n", CreateMode::Persistent).await;
        let (_, _, watch) = session.get_and_watch("/n").await.unwrap();
        drop(session);
        assert!(matches!(watch.await, Event::SessionEnded(_)));
    }
}
