//! Znodes at the end of the create counter, in containers, and below a chroot. The differential test
//! of the embedded server draws all else.

use crate::support::{
    connect, connect_to, create, everyone, is_unknown, make, milliseconds, refusal, seconds,
    servers,
};
use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::CreateMode;
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};

#[tokio::test(start_paused = true)]
async fn in_sequence_stay_at_the_last_number_one_by_one() {
    let simulation = servers(4, 1);
    let session = connect(&simulation, "a").await;
    create(&session, "/q", CreateMode::Persistent).await;
    simulation
        .administrator()
        .set_create_counter("/q", i32::MAX - 1)
        .unwrap();
    let mut names = Vec::new();
    for name in ["a-", "b-", "c-"] {
        names.push(
            create(
                &session,
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
        .create("/q/c-", b"", CreateMode::EphemeralSequential, everyone())
        .await;
    assert_eq!(refusal(again), Refusal::NodeExists);
}

#[tokio::test(start_paused = true)]
async fn in_sequence_wrap_past_the_last_number_while_creates_are_outstanding() {
    let commit = milliseconds(20)..=milliseconds(20);
    let simulation = Simulation::with(|it| it.commit_delay = commit);
    let session = connect(&simulation, "a").await;
    create(&session, "/q", CreateMode::Persistent).await;
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
    assert_eq!(create(&session, "/q/c-", mode).await, "/q/c-2147483647");
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
        assert_eq!(create(&later, "/q/n-", mode).await, "/q/n-2147483647");
    }
}

#[tokio::test(start_paused = true)]
async fn in_containers_leave_them_to_be_reaped() {
    let simulation = servers(5, 1);
    let session = connect(&simulation, "a").await;
    create(&session, "/used", CreateMode::Container).await;
    create(&session, "/unused", CreateMode::Container).await;
    create(&session, "/used/child", CreateMode::Persistent).await;
    assert!(simulation.administrator().reap_containers().is_empty());
    session.delete("/used/child").await.unwrap();
    assert_eq!(simulation.administrator().reap_containers(), ["/used"]);
    assert_eq!(
        simulation.administrator().children("/"),
        ["unused", "zookeeper"]
    );

    create(&session, "/used", CreateMode::Container).await;
    create(&session, "/used/child", CreateMode::Persistent).await;
    session.delete("/used/child").await.unwrap();
    tokio::time::sleep(seconds(61)).await;
    assert_eq!(refusal(session.get("/used").await), Refusal::NoNode);
}

#[tokio::test(start_paused = true)]
async fn are_seen_relative_to_a_chroot() {
    let simulation = servers(7, 1);
    make(&simulation, "/app");
    let process = simulation.process("a").with_chroot("/app");
    assert_eq!(process.ensemble().facts().chroot, "/app");
    let session = process.connect().await.unwrap();
    assert_eq!(create(&session, "/n", CreateMode::Persistent).await, "/n");
    assert_eq!(session.list("/").await.unwrap(), ["n"]);
    assert_eq!(simulation.administrator().children("/app"), ["n"]);
}
