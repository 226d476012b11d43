//! Orders of operators whose requests the servers apply late.

use futures_util::future::{BoxFuture, join};

use crate::support::*;

/// Short enough for the session to keep its connection.
const LATE: Duration = Duration::from_secs(1);

/// Gives an order, or takes it back.
type Order = fn(&AssignmentOperator) -> BoxFuture<'_, Result<(), Error>>;

/// An order whose request is late, the order after it, and the orders that count in the end.
struct Case {
    late: Order,
    later: Order,
    count: &'static [(&'static str, &'static str)],
}

const DRAIN: Order = |operator| operator.drain("a").boxed();
const UNDRAIN: Order = |operator| operator.undrain("a").boxed();
const FREEZE: Order = |operator| operator.freeze().boxed();
const THAW: Order = |operator| operator.thaw().boxed();
const PIN_TO_A: Order = |operator| operator.pin("p", "a").boxed();
const PIN_TO_B: Order = |operator| operator.pin("p", "b").boxed();
const UNPIN: Order = |operator| operator.unpin("p").boxed();

const CASES: [Case; 8] = [
    case(DRAIN, UNDRAIN, &[]),
    case(UNDRAIN, DRAIN, &[("drain/a", "")]),
    case(FREEZE, THAW, &[]),
    case(THAW, FREEZE, &[("freeze", "")]),
    case(PIN_TO_A, UNPIN, &[]),
    case(UNPIN, PIN_TO_A, &[("move/p", "a")]),
    case(PIN_TO_A, PIN_TO_B, &[("move/p", "b")]),
    // Any order makes a late one void.
    case(DRAIN, FREEZE, &[("freeze", "")]),
];

const fn case(late: Order, later: Order, count: &'static [(&'static str, &'static str)]) -> Case {
    Case { late, later, count }
}

async fn operator(simulation: &Simulation, process: &str) -> AssignmentOperator {
    let session = simulated_session(simulation, process).await;
    AssignmentOperator::new(&session, PATH).expect("a good path")
}

/// The orders that count, with their data.
fn orders(simulation: &Simulation) -> BTreeMap<String, String> {
    let directory = format!("{PATH}/orders/");
    let tree = simulation.administrator().tree().into_iter();
    let order = |node: zookeeper_recipes_simulation::StandingNode| {
        let name = node.path.strip_prefix(&directory)?.to_owned();
        let is_order = name == "freeze" || name.contains('/');
        let data = String::from_utf8_lossy(&node.data).into_owned();
        is_order.then_some((name, data))
    };
    tree.filter_map(order).collect()
}

/// The request of the dropped call arrives in the end, after the order of another operator.
#[tokio::test(start_paused = true)]
async fn order_whose_call_was_dropped_does_not_come_after_a_later_order() {
    for (number, Case { late, later, count }) in CASES.iter().enumerate() {
        // The order that is late changes something, and so does the later one.
        for before in [&[][..], &[DRAIN, FREEZE, PIN_TO_B]] {
            let simulation = Simulation::new(SimulationOptions::default());
            let first = operator(&simulation, "first").await;
            let second = operator(&simulation, "second").await;
            let partitions = second.set_partitions(Partitions::numbered(1)).await;
            partitions.expect("an answer");
            // The directories exist after it.
            for order in [DRAIN, UNDRAIN, PIN_TO_A, UNPIN].iter().chain(before) {
                order(&second).await.expect("an answer");
            }
            let faults = simulation.faults();
            let write = Fault::new(FaultKind::RequestLate(LATE)).of_process("first");
            faults.inject(write.on(RequestKind::Transact));
            let dropped = timeout(LATE / 2, late(&first)).await;
            assert!(dropped.is_err(), "{number}: {dropped:?}");
            assert_eq!(faults.waiting(), 0, "{number}: the request was sent");
            later(&second).await.expect("an answer");
            let now = orders(&simulation);
            sleep(LATE * 10).await;
            assert_eq!(orders(&simulation), now, "{number}, after {}", before.len());
            if before.is_empty() {
                let count = count
                    .iter()
                    .map(|(name, data)| (name.to_string(), data.to_string()));
                assert_eq!(now, count.collect(), "{number}");
            }
        }
    }
}

/// The same, of the record of the partitions.
#[tokio::test(start_paused = true)]
async fn partitions_whose_call_was_dropped_do_not_come_after_later_ones() {
    let few = || Partitions::numbered(2);
    for later in [few(), Partitions::numbered(3)] {
        let simulation = Simulation::new(SimulationOptions::default());
        let first = operator(&simulation, "first").await;
        let second = operator(&simulation, "second").await;
        second.set_partitions(few()).await.expect("an answer");
        let faults = simulation.faults();
        let write = Fault::new(FaultKind::RequestLate(LATE)).of_process("first");
        faults.inject(write.on(RequestKind::Transact));
        let dropped = timeout(LATE / 2, first.set_partitions(Partitions::numbered(9))).await;
        assert!(dropped.is_err(), "{dropped:?}");
        assert_eq!(faults.waiting(), 0, "the request was sent");
        second
            .set_partitions(later.clone())
            .await
            .expect("an answer");
        sleep(LATE * 10).await;
        let status = second.status().await.expect("an answer");
        assert_eq!(status.partitions.len(), later.len());
    }
}

/// The record is long, so it has parts. They are there when the write is repeated.
#[tokio::test(start_paused = true)]
async fn long_record_is_written_though_a_request_is_lost_or_comes_after_another_record() {
    let names = || (0..5_000).map(|it| format!("tenant-number-{it:05}"));
    let faults = [
        (FaultKind::RequestLost, RequestKind::Create),
        (FaultKind::ReplyLost, RequestKind::Create),
        (FaultKind::RequestLost, RequestKind::Transact),
        (FaultKind::ReplyLost, RequestKind::Transact),
        (FaultKind::RequestLate(LATE), RequestKind::Transact),
    ];
    for (fault, request) in faults {
        let simulation = Simulation::new(SimulationOptions::default());
        let first = operator(&simulation, "first").await;
        let second = operator(&simulation, "second").await;
        let few = || second.set_partitions(Partitions::numbered(2));
        few().await.expect("an answer");
        let lost = Fault::new(fault).of_process("first").on(request);
        simulation.faults().inject(lost);
        let other = async {
            sleep(LATE / 2).await;
            match fault {
                FaultKind::RequestLate(_) => few().await,
                _ => Ok(()),
            }
        };
        let written = timeout(
            LONG,
            join(first.set_partitions(Partitions::named(names())), other),
        );
        let (written, other) = written.await.expect("in time");
        written.unwrap_or_else(|error| panic!("{fault:?} of {request:?}: {error}"));
        other.expect("an answer");
        assert_eq!(simulation.faults().waiting(), 0);
        let status = second.status().await.expect("all parts are there");
        assert_eq!(status.partitions.len(), names().count());
        let parts = simulation
            .administrator()
            .children(&format!("{PATH}/partitions"));
        assert_eq!(parts.len(), 3, "none of another record is left: {parts:?}");
    }
}
