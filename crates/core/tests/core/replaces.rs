//! Holds that continue as another kind, on a simulated ensemble.

use crate::support::*;

const TIMEOUT: Duration = Duration::from_secs(10);

/// A hold, its session, and the ensemble that it is held on.
async fn held(rule: impl Rule + 'static) -> (Simulation, Session, Hold) {
    let simulation = simulation!(session_timeout: TIMEOUT, tick: TIMEOUT / 5);
    let options = ConnectOptions::new().tick(TIMEOUT / 5);
    let session = open(simulation.ensemble("a"), options).await;
    let queue = queue_by(&session, "/queue", rule);
    let hold = queue.acquire().await.expect("free");
    (simulation, session, hold)
}

#[tokio::test(start_paused = true)]
async fn a_replacement_is_done_once_however_many_answers_are_lost() {
    for lost in 1..4 {
        let simulation = Simulation::default();
        let queue = lock_of(&simulation, "a", "/queue").await;
        let hold = queue.acquire().await.expect("free");
        let faults = simulation.faults();
        let fault = Fault::new(FaultKind::ReplyLost).on(RequestKind::Transact);
        for _ in 0..lost {
            faults.inject(fault.clone().under("/queue"));
        }
        let hold = hold.replace("lock-", "new-", b"", &everyone()).await;
        assert_eq!(faults.waiting(), 0, "all that was to be lost is");
        let hold = hold.expect("replaced");
        assert!(hold.is_held());
        let standing = simulation.administrator().children("/queue");
        assert_eq!(standing.len(), 1);
        assert!(hold.node_path().ends_with(&standing[0]), "{hold:?}");
    }
}

/// The connection breaks before the answer. The same hold continues, so no lease need grant it.
#[tokio::test(start_paused = true)]
async fn a_replacement_does_not_wait_until_the_next_connection_is_proven() {
    let (simulation, _session, hold) = held(FIRST).await;
    let faults = simulation.faults();
    faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Transact));
    let late = FaultKind::ReplyLate(TIMEOUT / 5);
    faults.inject(Fault::new(late).on(RequestKind::Transact).nth(3));

    let acl = everyone();
    let replace = hold.replace("lock-", "new-", b"", &acl);
    let replaced = timeout(TIMEOUT / 10, replace).await.expect("in time");
    assert_eq!(faults.waiting(), 0, "the proof is late");
    assert!(replaced.expect("replaced").is_held());
}

#[tokio::test(start_paused = true)]
async fn a_replacement_without_an_answer_ends_with_the_lease_and_leaves_nothing() {
    let (simulation, _session, hold) = held(FIRST).await;
    simulation.process("a").partition(TIMEOUT);
    let acl = everyone();
    let replace = hold.replace("lock-", "new-", b"", &acl);
    let failed = timeout(TIMEOUT * 9 / 10, replace).await.expect("in time");
    let elapsed = LossReason::LeaseElapsed;
    assert!(
        matches!(&failed, Err(Error::Lost { reason, .. }) if *reason == elapsed),
        "{failed:?}"
    );
    sleep(2 * TIMEOUT).await;
    assert_eq!(simulation.administrator().children("/queue"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_of_a_hold_whose_znode_was_deleted_says_so_and_leaves_nothing() {
    for directory_too in [false, true] {
        let (simulation, _session, hold) = held(FIRST).await;
        let administrator = simulation.administrator();
        delete(&simulation, hold.node_path());
        if directory_too {
            delete(&simulation, "/queue");
        }
        let failed = hold.replace("lock-", "new-", b"", &everyone()).await;
        let deleted = LossReason::Deleted;
        assert!(
            matches!(&failed, Err(Error::Lost { reason, .. }) if *reason == deleted),
            "{failed:?}"
        );
        sleep(TIMEOUT).await;
        assert_eq!(administrator.children("/queue"), [""; 0]);
    }
}

/// The super user writes to the znode just before, which the waiters take for the release.
#[tokio::test(start_paused = true)]
async fn a_replacement_of_a_hold_whose_znode_was_written_to_says_so_and_leaves_nothing() {
    for answer_is_lost in [false, true] {
        let (simulation, _session, hold) = held(FIRST_ALONE).await;
        if answer_is_lost {
            inject(&simulation, FaultKind::ReplyLost, RequestKind::Transact);
        }
        write(&simulation, hold.node_path());
        let failed = hold.replace("lock-", "new-", b"", &everyone()).await;
        let written = LossReason::Written;
        assert!(
            matches!(&failed, Err(Error::Lost { reason, .. }) if *reason == written),
            "{failed:?}"
        );
        sleep(TIMEOUT).await;
        assert_eq!(simulation.administrator().children("/queue"), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_the_rule_forbids_is_refused() {
    let never = ByPlace {
        may_be_replaced: false,
        ..FIRST
    };
    let (_simulation, _session, hold) = held(never).await;
    let refused = hold.replace("lock-", "new-", b"", &everyone()).await;
    assert_fails!(refused, Error::InvalidInput);
}

/// The new znode would be the youngest of those with that number.
#[tokio::test(start_paused = true)]
async fn a_replacement_at_the_end_of_the_count_is_refused() {
    let (simulation, _session, hold) = held(FIRST).await;
    end_the_count(&simulation, "/queue");
    hold.release().await.expect("it is released");
    let session = simulated_session(&simulation, "b").await;
    let queue = Queue::new(&session, "/queue", FIRST);
    let hold = queue.expect("a good path").acquire().await.expect("free");
    assert!(
        hold.node_path().ends_with("2147483647"),
        "{}",
        hold.node_path()
    );
    let refused = hold.replace("lock-", "new-", b"", &everyone()).await;
    assert_fails!(refused, Error::InvalidInput);
}

/// The replacement is done, and the client has not heard the answer.
#[tokio::test(start_paused = true)]
async fn a_replacement_dropped_half_way_leaves_nothing() {
    let (simulation, _session, hold) = held(FIRST).await;
    let acl = everyone();
    let mut replace = Box::pin(hold.replace("lock-", "new-", b"", &acl));
    assert!((&mut replace).now_or_never().is_none());
    sleep(Duration::from_secs(1)).await;
    drop(replace);
    sleep(Duration::from_secs(1)).await;
    let standing = simulation.administrator().children("/queue");
    assert_eq!(standing.len(), 0, "{standing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_is_lost_in_its_replacement_stays_lost() {
    let (simulation, _session, hold) = held(FIRST).await;
    sleep(TIMEOUT).await;
    let lapses = hold.remaining() + Duration::from_millis(100);
    let acl = everyone();
    let mut replace = Box::pin(hold.replace("lock-", "new-", b"", &acl));
    assert!((&mut replace).now_or_never().is_none());
    sleep(Duration::from_millis(100)).await;
    simulation.process("a").partition(lapses);
    // Long enough that the lease has been renewed meanwhile.
    sleep(lapses + TIMEOUT).await;
    let lost = replace.await;
    assert_fails!(lost, Error::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_whose_new_znode_was_deleted_says_that_the_hold_is_lost() {
    let (simulation, _session, hold) = held(FIRST).await;
    let administrator = simulation.administrator();
    let old = hold.node_path().to_owned();
    inject(&simulation, FaultKind::ReplyLost, RequestKind::Transact);
    let replace = tokio::spawn(async move {
        let acl = everyone();
        hold.replace("lock-", "new-", b"", &acl).await
    });
    let new = loop {
        let children = administrator.children("/queue");
        match children.iter().find(|child| !old.ends_with(*child)) {
            Some(new) => break format!("/queue/{new}"),
            None => sleep(Duration::from_micros(100)).await,
        }
    };
    delete(&simulation, &new);
    let lost = replace.await.expect("no panic");
    let deleted = LossReason::Deleted;
    assert!(
        matches!(&lost, Err(Error::Lost { reason, .. }) if *reason == deleted),
        "{lost:?}"
    );
}

/// The thread of the write is delayed before the sending, while the owner replaces the znode.
#[tokio::test(start_paused = true)]
async fn write_that_is_sent_after_the_replacement_of_its_hold_is_refused() {
    let (simulation, call) = (Simulation::default(), Call::default());
    make(&simulation, "/data");
    let before_transaction = call.clone();
    let session = altered(&simulation, "a", move |raw, request| {
        if matches!(request, RequestBody::Multi(_)) {
            before_transaction.make();
        }
        raw.send(request)
    });
    let session = session.await;
    let queue = lock(&session, "/queue");
    let hold = queue.acquire().await.expect("free");
    let view = hold.view();
    let (sender, replacing) = oneshot::channel();
    call.set(move || {
        let mut replacing =
            Box::pin(async move { hold.replace("lock-", "new-", b"", &everyone()).await });
        assert!((&mut replacing).now_or_never().is_none(), "no answer yet");
        assert!(sender.send(replacing).is_ok());
    });
    let late = view.transaction().set_data("/data", b"late").commit().await;
    assert_fails!(late, Error::Released);
    let replaced = replacing.await.expect("it was called").await;
    assert!(replaced.expect("replaced").is_held());
    assert_eq!(data(&simulation, "/data"), b"");
}
