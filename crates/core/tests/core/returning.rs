//! A session returns to the member that it has lost, on a simulated ensemble.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use zookeeper_recipes_core::{ConnectOptions, HoldState, Queue, Session};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::{eventually, in_time};

use crate::support::First;

const AWAY: Duration = Duration::from_secs(5);

fn simulation(seed: u64) -> Simulation {
    Simulation::new(SimulationOptions {
        seed,
        servers: 3,
        session_timeout: Duration::from_secs(6),
        tick: Duration::from_secs(2),
        ..SimulationOptions::default()
    })
}

async fn returning(simulation: &Simulation, name: &str) -> Session {
    let process = simulation.process(name).with_return_after(AWAY);
    let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
    session.expect("a session opens")
}

fn server(simulation: &Simulation, session: &Session) -> Option<usize> {
    simulation.administrator().server_of(session.id()?)
}

fn queue(session: &Session, path: &str) -> Queue {
    Queue::new(session, path, First).expect("a good path")
}

/// Stops the member of a session until the session has another one, and starts it again.
async fn loses_its_member(simulation: &Simulation, session: &Session) -> usize {
    let member = server(simulation, session).expect("connected");
    simulation.faults().stop_member(member);
    let is_elsewhere = async || {
        let now = server(simulation, session);
        session.is_connected() && now.is_some_and(|now| now != member)
    };
    eventually("another member", is_elsewhere).await;
    simulation.faults().start_member(member);
    member
}

/// Takes turns until it is stopped, and counts them.
fn take_turns(
    tasks: &mut JoinSet<()>,
    session: &Session,
    stopped: &Arc<AtomicBool>,
    turns: &Arc<AtomicUsize>,
) {
    let busy = queue(session, "/busy");
    let (stopped, turns) = (stopped.clone(), turns.clone());
    tasks.spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            let hold = busy.acquire().await.expect("no request is in doubt");
            turns.fetch_add(1, Ordering::Relaxed);
            hold.release().await.expect("the session lasts");
        }
    });
}

#[tokio::test(start_paused = true)]
async fn session_returns_to_its_member_and_loses_no_hold_and_no_turn() {
    for seed in 0..20 {
        let simulation = simulation(seed);
        let one = returning(&simulation, "one").await;
        let other = returning(&simulation, "other").await;
        let held = queue(&one, "/held").acquire().await.expect("it is free");
        let before = queue(&other, "/wanted").acquire().await;
        let before = before.expect("it is free");
        let wanted = queue(&one, "/wanted");
        let waits = tokio::spawn(async move { wanted.acquire().await });
        let (stopped, turns) = (Arc::default(), Arc::default());
        let mut tasks = JoinSet::new();
        for session in [&one, &other] {
            take_turns(&mut tasks, session, &stopped, &turns);
        }
        let (id, member) = (one.id(), loses_its_member(&simulation, &one).await);

        let is_back = async || {
            assert!(!matches!(held.state(), HoldState::Lost(_)), "{seed}");
            server(&simulation, &one) == Some(member) && one.is_connected()
        };
        eventually("it is back", is_back).await;
        let counted = turns.load(Ordering::Relaxed);
        let goes_on = async || turns.load(Ordering::Relaxed) > counted + 10;
        eventually("both have turns", goes_on).await;
        assert!(held.is_held() && one.id() == id, "{seed}");
        assert!(!waits.is_finished(), "{seed}");
        before.release().await.expect("it is held");
        let turn = in_time("its turn", waits).await.expect("no panic");
        assert!(turn.is_ok_and(|hold| hold.is_held()), "{seed}");
        stopped.store(true, Ordering::Relaxed);
        in_time("they stop", tasks.join_all()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn session_loses_no_hold_to_a_returned_member_that_hangs() {
    for seed in 0..20 {
        let simulation = simulation(seed);
        let session = returning(&simulation, "one").await;
        let held = queue(&session, "/held").acquire().await;
        let held = held.expect("it is free");
        let member = loses_its_member(&simulation, &session).await;
        // It accepts connections, and answers nothing.
        simulation.faults().pause_server(member, 6 * AWAY);
        let began = simulation.now();
        while simulation.now() < began + 6 * AWAY {
            assert!(!matches!(held.state(), HoldState::Lost(_)), "{seed}");
            sleep(Duration::from_millis(10)).await;
        }
        let is_back = async || server(&simulation, &session) == Some(member);
        eventually("it is back", is_back).await;
        assert!(held.is_held(), "{seed}");
    }
}

/// The member that it has lost lags, too, and closes the connection of a session that has seen more.
/// So each move ends at the present server, over a new connection.
#[tokio::test(start_paused = true)]
async fn session_leaves_a_follower_that_lags_although_it_moves_again_and_again() {
    let mut left = 0;
    for seed in 0..20 {
        let simulation = simulation(seed);
        let process = simulation.process("one");
        let process = process.with_return_after(Duration::from_secs(1));
        let session = Session::open(process.ensemble(), ConnectOptions::new()).await;
        let session = session.expect("a session opens");
        let member = loses_its_member(&simulation, &session).await;
        let present = server(&simulation, &session).expect("connected");
        if present == simulation.administrator().leader() {
            continue;
        }
        simulation.faults().lag(member, Duration::from_secs(3));
        simulation
            .faults()
            .lag(present, Duration::from_millis(1_500));
        let administrator = simulation.administrator();
        let writes = async {
            loop {
                administrator.set_data("/", b"").expect("it exists");
                sleep(Duration::from_millis(50)).await;
            }
        };
        let acquires = async {
            sleep(2 * AWAY).await;
            let held = queue(&session, "/held").acquire().await;
            held.expect("it is free").is_held()
        };
        let held = tokio::select! {
            never = writes => never,
            held = tokio::time::timeout(8 * AWAY, acquires) => held,
        };
        assert!(held.is_ok_and(|is_held| is_held), "{seed}");
        assert_ne!(server(&simulation, &session), Some(present), "{seed}");
        left += 1;
    }
    assert!(left > 0, "each had the leader");
}
