//! Znodes are created, read, changed and deleted as on a server.

use crate::support::{
    connect, connect_to, create, everyone, is_unknown, milliseconds, one_server, refusal, seconds,
};
use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Operation, Permission};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

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
async fn in_sequence_keep_a_count_that_was_set_when_a_follower_leads_and_is_deposed() {
    for seed in 0..10 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            commit_delay: milliseconds(100)..=milliseconds(100),
            ..Default::default()
        });
        let administrator = simulation.administrator();
        administrator
            .create("/q", b"", CreateMode::Persistent)
            .unwrap();
        administrator.set_create_counter("/q", i32::MAX).unwrap();
        simulation.faults().elect(1, seconds(2));
        tokio::time::sleep(seconds(4)).await;
        let session = connect_to(&simulation, "a", 1).await;
        let acl = everyone();
        let uncommitted = session.create("/n", b"", CreateMode::Persistent, &acl);
        tokio::time::sleep(milliseconds(50)).await;
        simulation.faults().isolate_leader(seconds(30));
        assert!(is_unknown(&uncommitted.await));
        tokio::time::sleep(seconds(30)).await;
        assert_ne!(simulation.administrator().leader(), 1);
        let mode = CreateMode::PersistentSequential;
        let later = connect(&simulation, "b").await;
        assert_eq!(create(&*later, "/q/n-", mode).await, "/q/n-2147483647");
    }
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
    let owner = simulation
        .process("owner")
        .with_credentials("digest", "ada:secret");
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
