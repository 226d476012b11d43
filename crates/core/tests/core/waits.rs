//! What a waiter does as its reads and watches answer, and what it asks for.

use crate::support::*;

/// As [`FIRST`]. No contender is ever replaced.
const KEPT: ByPlace = ByPlace {
    may_be_replaced: false,
    ..FIRST
};

const PATH: &str = "/queue";

fn simulation() -> Simulation {
    let simulation = Simulation::default();
    make(&simulation, PATH);
    simulation
}

async fn queue(simulation: &Simulation, process: &str, rule: ByPlace) -> Queue {
    let session = simulated_session(simulation, process).await;
    queue_by(&session, PATH, rule)
}

type Waiting = JoinHandle<Result<Hold, Error>>;

async fn held(simulation: &Simulation, rule: ByPlace) -> Hold {
    hold(&queue(simulation, "holder", rule).await).await
}

async fn wait(simulation: &Simulation, process: &str, rule: ByPlace) -> Waiting {
    spawned(&queue(simulation, process, rule).await)
}

/// A hold that lasts until its loss watch is set, and a contender that waits for it.
async fn hold_and_waiter(simulation: &Simulation, rule: ByPlace) -> (Hold, Waiting) {
    let hold = held(simulation, rule).await;
    let waiting = wait(simulation, "waiter", rule).await;
    sleep(5 * SECOND).await;
    (hold, waiting)
}

/// The lists and the reads of all sessions since then.
fn since(simulation: &Simulation, before: &Counters) -> [u64; 2] {
    sent_since(simulation, before, [RequestKind::List, RequestKind::Get])
}

async fn holds(waiting: Waiting) {
    let granted = timeout(60 * SECOND, waiting).await.expect("its turn");
    let hold = granted.expect("no panic").expect("it is acquired");
    assert!(hold.is_held());
}

#[tokio::test(start_paused = true)]
async fn waiter_that_may_not_read_its_predecessor_does_not_hold() {
    let simulation = simulation();
    let closed = granting(Permission::ADMIN);
    let name = format!("{PATH}/{}", Identity::random().name("lock-"));
    let administrator = simulation.administrator();
    let mode = CreateMode::PersistentSequential;
    let created = administrator.create_with_acl(&name, b"", mode, &closed);
    let predecessor = created.expect("it is free");
    let queue = queue(&simulation, "waiter", KEPT).await;
    let refused = timeout(60 * SECOND, queue.acquire()).await;
    let error = refused.expect("an answer").expect_err("it cannot know");
    let Error::Refused { path, refusal, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*path, predecessor);
    assert_eq!(*refusal, Refusal::NoPermission(Permission::READ));
    sleep(SECOND).await;
    assert_eq!(administrator.children(PATH).len(), 1);
}

/// One list and one read for the decision, and one read that sets the watch again.
#[tokio::test(start_paused = true)]
async fn waiter_reads_changed_data_of_the_directory_once_and_watches_it_again() {
    let simulation = simulation();
    let rule = ByPlace {
        reads_directory: true,
        ..KEPT
    };
    let (_hold, _waiting) = hold_and_waiter(&simulation, rule).await;
    for data in [b"a", b"b"] {
        let before = simulation.counters();
        let administrator = simulation.administrator();
        administrator.set_data(PATH, data).expect("it exists");
        sleep(SECOND).await;
        assert_eq!(since(&simulation, &before), [1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn waiter_whose_rule_looks_behind_reads_the_directory_only_before_it_holds() {
    let simulation = simulation();
    let rule = ByPlace {
        looks_behind: true,
        ..KEPT
    };
    let (hold, waiting) = hold_and_waiter(&simulation, rule).await;
    let before = simulation.counters();
    let administrator = simulation.administrator();
    administrator.set_data(PATH, b"a").expect("it exists");
    sleep(SECOND).await;
    assert_eq!(since(&simulation, &before), [0, 0]);
    hold.release().await.expect("it is held");
    holds(waiting).await;
    assert_eq!(since(&simulation, &before), [1, 1]);
}

/// A member that lags behind lists a contender that no read finds.
#[tokio::test(start_paused = true)]
async fn looks_at_a_list_that_is_out_of_date_are_paced() {
    let simulation = simulation();
    let (session, lists) = with_lists(&simulation, "waiter").await;
    let hold = held(&simulation, KEPT).await;
    let waiter = lock(&session, PATH);
    let waiting = spawned(&waiter);
    sleep(SECOND).await;
    let stale = simulation.administrator().children(PATH);
    assert_eq!(stale.len(), 2);
    *lists.lock().expect("no panic") = Some(stale);
    hold.release().await.expect("it is held");
    let before = simulation.counters();
    sleep(3 * SECOND).await;
    let [_, reads] = since(&simulation, &before);
    assert!((5..20).contains(&reads), "{reads} reads");
    *lists.lock().expect("no panic") = None;
    holds(waiting).await;
}

/// After a reconnect, the server may report its predecessor's release before the deletion of its own
/// znode, though the deletion came first.
#[tokio::test(start_paused = true)]
async fn waiter_whose_watches_are_of_an_earlier_connection_lists_before_it_holds() {
    let simulation = simulation();
    let (hold, waiting) = hold_and_waiter(&simulation, KEPT).await;
    simulation.process("waiter").disconnect();
    sleep(5 * SECOND).await;
    let before = simulation.counters();
    hold.release().await.expect("it is held");
    holds(waiting).await;
    assert_eq!(since(&simulation, &before)[0], 1);
}

#[tokio::test(start_paused = true)]
async fn waiter_that_watches_a_new_predecessor_after_a_reconnect_holds_without_a_list() {
    let simulation = simulation();
    let hold = held(&simulation, KEPT).await;
    let leaving = wait(&simulation, "between", KEPT).await;
    sleep(SECOND).await;
    let waiting = wait(&simulation, "waiter", KEPT).await;
    sleep(SECOND).await;
    simulation.process("waiter").disconnect();
    sleep(5 * SECOND).await;
    leaving.abort();
    sleep(SECOND).await;
    assert_eq!(simulation.administrator().children(PATH).len(), 2);
    let before = simulation.counters();
    hold.release().await.expect("it is held");
    holds(waiting).await;
    assert_eq!(since(&simulation, &before)[0], 0);
}

/// It asks for the data only, because its znode's number proves that it is alone.
#[tokio::test(start_paused = true)]
async fn contender_that_is_alone_lists_the_queue_if_its_read_has_no_answer() {
    let simulation = simulation();
    let rule = ByPlace {
        reads_directory: true,
        ..KEPT
    };
    let queue = queue(&simulation, "one", rule).await;
    let mut holds = 0;
    loop {
        let before = simulation.counters();
        take_turn(&queue).await;
        if since(&simulation, &before) == [0, 1] {
            break;
        }
        holds += 1;
        assert!(holds < 10, "each has asked for a list");
    }
    inject(&simulation, FaultKind::ReplyLost, RequestKind::Get);
    let before = simulation.counters();
    let acquired = timeout(60 * SECOND, queue.acquire()).await;
    assert_eq!(simulation.faults().waiting(), 0, "the reply is lost");
    let hold = acquired.expect("in time").expect("it is free");
    assert!(hold.is_held());
    assert!(since(&simulation, &before)[0] >= 1);
}
