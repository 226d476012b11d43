//! Faults happen to the requests that they are meant for.

use crate::support::{
    connect, create, everyone, is_unknown, milliseconds, one_server, seconds, three_servers,
};
use futures_util::FutureExt;
use zookeeper_recipes_core::ServerError;
use zookeeper_recipes_core::ensemble::{ConnectionState, CreateMode, Operation, SessionEnd};
use zookeeper_recipes_simulation::{
    Fault, FaultKind, FaultRates, RequestKind, SimulatedProcess, Simulation,
};

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
        // A server that is behind refuses the session, which then tries another one.
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
        Err(ServerError::SessionOver(SessionEnd::Expired)) | Err(ServerError::OutcomeUnknown(_))
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

fn rates() -> FaultRates {
    FaultRates {
        request_lost: 0.03,
        reply_lost: 0.03,
        outcome_hidden: 0.03,
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
        overloaded: 0.01,
        handshakes_late_by: seconds(1),
        overloaded_for: seconds(3),
        path_long: 0.01,
        path_longer_by: milliseconds(200),
        path_long_for: seconds(9),
        look_up_failed: 0.05,
        look_up_late: 0.1,
        look_up_late_by: seconds(5),
        moved: 0.01,
        elected: 0.02,
        elected_within: seconds(3),
    }
}

/// Creates, lists, watches and deletes for a minute. Returns how many creates were done.
async fn work(simulation: Simulation, process: SimulatedProcess) -> usize {
    let acl = everyone();
    let mut done = 0;
    while simulation.now() < seconds(60) {
        let Ok(session) = process.connect().await else {
            continue;
        };
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
}

#[tokio::test(start_paused = true)]
async fn by_chance_leave_an_ensemble_that_works_once_they_stop() {
    for seed in 0..30 {
        let simulation = three_servers(seed);
        simulation.faults().set_rates(rates());
        let work = |process| {
            let process = simulation.process(&format!("p{process}"));
            tokio::spawn(work(simulation.clone(), process))
        };
        let tasks: Vec<_> = (0..4).map(work).collect();
        tokio::time::sleep(seconds(60)).await;
        simulation.faults().stop();
        for task in tasks {
            let done = tokio::time::timeout(seconds(60), task).await;
            let done = done.unwrap_or_else(|_| panic!("seed {seed} hangs\n{}", simulation.trace()));
            let done = done.unwrap();
            assert!(done > 20, "seed {seed}: {done}");
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
