//! A leader that is cut off from its followers still answers, and is deposed.

use crate::support::{
    GIVEN_UP, TICK, TIMEOUT, comes, connect, connect_alone_to, create_ephemeral, everyone,
    milliseconds, servers, when_ended,
};
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::{CreateMode, ServerSession};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation};

#[tokio::test(start_paused = true)]
async fn answers_its_own_clients_and_commits_nothing() {
    for count in [3, 5] {
        let simulation = servers(1, count);
        let session = connect_alone_to(&simulation, "a", 0).await;
        let elsewhere = connect_alone_to(&simulation, "b", 1).await;
        create_ephemeral(&session, "/a").await;
        simulation.faults().isolate_leader(GIVEN_UP * 3);
        sleep(TICK).await;
        assert!(comes(milliseconds(20), session.sync("/")).await);
        assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
        assert!(comes(milliseconds(20), elsewhere.list("/")).await);
        assert!(!comes(milliseconds(500), elsewhere.sync("/")).await);
        let created = session.create("/b", b"", CreateMode::Ephemeral, everyone());
        sleep(milliseconds(20)).await;
        assert!(!comes(milliseconds(500), session.sync("/")).await);
        assert!(created.await.is_err());
        assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
    }
}

#[tokio::test(start_paused = true)]
async fn confirms_a_session_that_comes_back() {
    let simulation = servers(2, 3);
    let session = connect_alone_to(&simulation, "a", 0).await;
    simulation.faults().isolate_leader(GIVEN_UP * 3);
    sleep(TICK).await;
    let fault = Fault::new(FaultKind::RequestLost).reconnecting_to(0);
    simulation.faults().inject(fault);
    assert!(session.list("/").await.is_err());
    sleep(milliseconds(50)).await;
    assert!(session.connection().is_some());
    assert_eq!(simulation.administrator().server_of(session.id), Some(0));
    assert!(comes(milliseconds(20), session.sync("/")).await);
}

#[tokio::test(start_paused = true)]
async fn takes_no_request_of_a_session_from_where_it_was_before() {
    for seed in 0..10 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 1).await;
        simulation.faults().isolate_leader(GIVEN_UP - TICK);
        let fault = Fault::new(FaultKind::RequestLost).on(RequestKind::List);
        simulation.faults().inject(fault.reconnecting_to(0));
        let created = session.create("/a", b"", CreateMode::Ephemeral, everyone());
        sleep(milliseconds(20)).await;
        assert!(session.list("/").await.is_err());
        assert!(created.await.is_err());
        session.sync("/").await.unwrap();
        assert_eq!(simulation.administrator().server_of(session.id), Some(0));
        assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
        sleep(GIVEN_UP).await;
        assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
    }
}

async fn move_to(simulation: &Simulation, session: &ServerSession, server: usize) {
    let administrator = simulation.administrator();
    while administrator.server_of(session.id) != Some(server) || session.connection().is_none() {
        simulation.process("a").disconnect();
        sleep(milliseconds(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn takes_no_late_request_of_a_session_that_has_gone_and_come_back() {
    for seed in 0..20 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 0).await;
        let faults = simulation.faults();
        let late = Fault::new(FaultKind::RequestLate(TICK)).on(RequestKind::Create);
        faults.inject(late);
        let created = session.create("/a", b"", CreateMode::Ephemeral, everyone());
        move_to(&simulation, &session, 1).await;
        session.sync("/").await.unwrap();
        faults.isolate_leader(GIVEN_UP - TICK);
        // What was sent to the leader comes while the session is elsewhere.
        sleep(TICK).await;
        move_to(&simulation, &session, 0).await;
        assert!(created.await.is_err());
        sleep(GIVEN_UP).await;
        session.sync("/").await.unwrap();
        assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
    }
}

#[tokio::test(start_paused = true)]
async fn expires_no_session_though_its_clients_take_it_for_expired() {
    let simulation = servers(3, 3);
    let session = connect_alone_to(&simulation, "a", 0).await;
    create_ephemeral(&session, "/a").await;
    simulation.faults().isolate_leader(GIVEN_UP - TICK);
    simulation.process("a").sleep(TIMEOUT + TICK);
    sleep(TIMEOUT + TICK - milliseconds(10)).await;
    assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
    sleep(milliseconds(50)).await;
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn is_deposed_and_steps_down_in_time() {
    for seed in 0..20 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 0).await;
        let first = session.connection();
        let cut = Instant::now();
        simulation.faults().isolate_leader(GIVEN_UP * 3);
        while simulation.administrator().leader() == 0 {
            sleep(milliseconds(10)).await;
        }
        assert!(cut.elapsed() >= GIVEN_UP - TICK / 2, "{:?}", cut.elapsed());
        assert!(cut.elapsed() <= GIVEN_UP + TICK, "{:?}", cut.elapsed());
        while session.connection() == first {
            sleep(milliseconds(1)).await;
        }
        assert!(cut.elapsed() >= GIVEN_UP, "{:?}", cut.elapsed());
        let latest = GIVEN_UP + TICK + milliseconds(15);
        assert!(cut.elapsed() <= latest, "{:?}", cut.elapsed());
        // It finds one of the others, and its session lives.
        create_ephemeral(&session, "/a").await;
        assert_ne!(simulation.administrator().server_of(session.id), Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn keeps_a_session_that_the_new_leader_expires_after_its_whole_timeout() {
    let mut overlapped = false;
    for seed in 0..20 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 0).await;
        create_ephemeral(&session, "/a").await;
        simulation.faults().isolate_leader(GIVEN_UP * 3);
        while simulation.administrator().leader() == 0 {
            sleep(milliseconds(10)).await;
        }
        let elected = simulation.now();
        let answered = comes(milliseconds(20), session.sync("/")).await;
        overlapped |= answered;
        simulation.process("a").sleep(TIMEOUT * 2);
        sleep(TIMEOUT * 2).await;
        let ended = when_ended(&simulation, &session).unwrap();
        assert!(ended >= elected + TIMEOUT, "{:?}", ended - elected);
    }
    assert!(overlapped, "no leader was deposed before it knew");
}

#[tokio::test(start_paused = true)]
async fn goes_on_where_nobody_has_given_it_up() {
    let simulation = servers(4, 3);
    let session = connect_alone_to(&simulation, "a", 0).await;
    let elsewhere = connect_alone_to(&simulation, "b", 1).await;
    simulation.faults().isolate_leader(TICK);
    sleep(milliseconds(10)).await;
    let began = Instant::now();
    let (one, other) = tokio::join!(
        session.create("/a", b"", CreateMode::Ephemeral, everyone()),
        elsewhere.create("/b", b"", CreateMode::Ephemeral, everyone()),
    );
    assert!(one.is_ok() && other.is_ok());
    assert!(began.elapsed() < TICK + milliseconds(50));
    assert_eq!(simulation.administrator().leader(), 0);
}

#[tokio::test(start_paused = true)]
async fn loses_what_it_has_proposed_and_follows() {
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..20 {
        let simulation = servers(seed, 3);
        let session = connect_alone_to(&simulation, "a", 0).await;
        simulation.faults().stall_commits(TICK / 10);
        let created = session.create("/a", b"", CreateMode::Persistent, everyone());
        sleep(milliseconds(20)).await;
        simulation.faults().isolate_leader(GIVEN_UP * 2);
        assert!(created.await.is_err());
        sleep(GIVEN_UP * 2 + TICK).await;
        let observer = connect(&simulation, "b").await;
        observer.sync("/").await.unwrap();
        match observer.list("/").await.unwrap().len() {
            1 => lost += 1,
            _ => kept += 1,
        }
        create_ephemeral(&observer, "/b").await;
        // All three agree again, the old leader as well.
        for server in 0..3 {
            let session = connect_alone_to(&simulation, "c", server).await;
            session.sync("/").await.unwrap();
            let list = session.list("/").await.unwrap();
            assert_eq!(list, simulation.administrator().children("/"));
        }
    }
    assert!(lost > 0 && kept > 0, "{lost} lost, {kept} kept");
}

#[tokio::test(start_paused = true)]
async fn by_the_request_that_it_has_answered_last() {
    let simulation = servers(5, 3);
    let session = connect_alone_to(&simulation, "a", 0).await;
    let fault = Fault::new(FaultKind::CutOff(GIVEN_UP * 2)).on(RequestKind::Sync);
    simulation.faults().inject(fault.nth(2));
    session.sync("/").await.unwrap();
    create_ephemeral(&session, "/a").await;
    session.sync("/").await.unwrap();
    session.sync("/").await.unwrap();
    let created = session.create("/b", b"", CreateMode::Ephemeral, everyone());
    assert!(created.await.is_err());
}
