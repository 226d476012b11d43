//! How a claim ends, and whether its slot is taken.

use zookeeper_recipes_core::{Error, Recipe, Refusal};
use zookeeper_recipes_lock::{Again, OncePerSlot, SlotClaim, SlotState};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};

use super::{Clock, MINUTE, PATH, claimed, job, last_state, ran, recorded, started};

/// A simulation whose sessions send no probe within a test, so that no loss is noticed early.
fn without_probes() -> Simulation {
    Simulation::new(SimulationOptions {
        session_timeout: MINUTE,
        max_session_timeout: Some(MINUTE),
        ..SimulationOptions::default()
    })
}

/// The claim of a process in the second slot. In the first one, another process has run the job.
async fn claim_of_the_second_slot(simulation: &Simulation) -> (SlotClaim, OncePerSlot, Clock) {
    let clock = Clock::at(0);
    let first = job(simulation, "first", &clock, Again::Never).await;
    assert!(ran(&first).await);
    clock.set(3_600);
    let one = job(simulation, "one", &clock, Again::Never).await;
    let claim = claimed(&one).await;
    let recorded = recorded(&first).await;
    let claimant = recorded.claim.expect("a claim");
    assert_eq!(claimant.state, SlotState::Claimed);
    assert_eq!(claimant.owner, one.lock().session().owner());
    assert_eq!(claimant.start, claim.slot_start());
    (claim, first, clock)
}

/// The first slot is taken still, and the second one is free.
async fn takes_no_slot(next: &OncePerSlot, clock: &Clock) {
    assert_eq!(last_state(next).await, Some(SlotState::Done));
    clock.set(0);
    assert!(!ran(next).await, "the first slot has been run");
    clock.set(3_600);
    assert!(ran(next).await, "the second slot has not");
    assert!(!ran(next).await);
}

#[tokio::test(start_paused = true)]
async fn claim_that_is_given_back_or_dropped_takes_no_slot() {
    for is_dropped in [true, false] {
        let simulation = Simulation::default();
        let (claim, next, clock) = claim_of_the_second_slot(&simulation).await;
        match is_dropped {
            true => drop(claim),
            false => claim.give_back().await.expect("it is held"),
        }
        takes_no_slot(&next, &clock).await;
    }
}

#[tokio::test(start_paused = true)]
async fn claim_of_a_process_that_is_killed_takes_no_slot() {
    let simulation = Simulation::default();
    let (claim, next, clock) = claim_of_the_second_slot(&simulation).await;
    simulation.process("one").kill();
    let waits = next.try_begin().await.expect("it is read");
    assert!(waits.is_none(), "its session has not ended");
    takes_no_slot(&next, &clock).await;
    drop(claim);
}

#[tokio::test(start_paused = true)]
async fn slot_is_taken_once_if_the_answers_to_its_writes_are_lost() {
    use FaultKind::{OutcomeHidden, ReplyLost, RequestLost};
    for kind in [ReplyLost, RequestLost, OutcomeHidden] {
        let simulation = Simulation::default();
        let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
        let hold = job.lock().acquire().await.expect("free");
        let faults = simulation.faults();
        let inject = || faults.inject(Fault::new(kind).on(RequestKind::Transact).under(PATH));
        inject();
        let claim = job.claim(hold).await.expect("asked again");
        inject();
        let run = claim.own().expect("it is free").start().await;
        inject();
        run.expect("asked again").done().await.expect("asked again");
        assert_eq!(faults.waiting(), 0);
        assert_eq!(last_state(&job).await, Some(SlotState::Done));
        assert!(!ran(&job).await);
    }
}

#[tokio::test(start_paused = true)]
async fn claim_whose_hold_is_lost_does_not_start() {
    let simulation = Simulation::default();
    let (claim, next, clock) = claim_of_the_second_slot(&simulation).await;
    let session = claim.hold().session_id();
    simulation.administrator().expire(session);
    let started = claim.start().await;
    assert!(matches!(started, Err(Error::Lost { .. })), "{started:?}");
    takes_no_slot(&next, &clock).await;
}

/// Whichever of two claimants comes first to the server starts, and the other does not.
#[tokio::test(start_paused = true)]
async fn claim_that_another_process_has_taken_over_does_not_start() {
    for takeover_starts in [true, false] {
        for hides_outcome in [true, false] {
            let simulation = without_probes();
            let clock = Clock::at(0);
            let one = job(&simulation, "one", &clock, Again::UnlessDone).await;
            let other = job(&simulation, "other", &clock, Again::UnlessDone).await;
            let claim = claimed(&one).await;
            let administrator = simulation.administrator();
            let node = claim.hold().node_path().to_owned();
            administrator.delete(&node).expect("it is there");
            let theirs = claimed(&other).await;
            let theirs = match takeover_starts {
                true => Ok(theirs.start().await.expect("it is held")),
                false => Err(theirs),
            };
            if hides_outcome {
                // The answer would have said that the znode of the hold is gone.
                let hidden = Fault::new(FaultKind::OutcomeHidden).on(RequestKind::Transact);
                simulation.faults().inject(hidden.of_process("one"));
            }
            assert!(claim.hold().is_held(), "no event has come");
            let started = claim.start().await;
            assert!(matches!(started, Err(Error::Lost { .. })), "{started:?}");
            let run = match theirs {
                Ok(run) => run,
                Err(claim) => claim.start().await.expect("it is held"),
            };
            run.done().await.expect("it is held");
        }
    }
}

/// The version alone would have to do if the guard did not.
#[tokio::test(start_paused = true)]
async fn start_is_refused_if_another_client_has_written_meanwhile() {
    let simulation = Simulation::default();
    let (claim, next, _) = claim_of_the_second_slot(&simulation).await;
    let administrator = simulation.administrator();
    administrator.set_data(PATH, b"").expect("it is there");
    let refused = claim.start().await.expect_err("the record is another");
    assert!(
        matches!(
            refused,
            Error::Refused {
                refusal: Refusal::BadVersion,
                ..
            }
        ),
        "{refused:?}"
    );
    let kept = next.recorded().await.expect("the session lives");
    assert_eq!(kept, None);
    assert!(ran(&next).await, "its hold is released");
}

#[tokio::test(start_paused = true)]
async fn job_that_could_not_start_gives_the_slot_back() {
    let simulation = Simulation::default();
    let (claim, next, clock) = claim_of_the_second_slot(&simulation).await;
    let run = claim.start().await.expect("it is held");
    assert!(!ran(&next).await, "it may be running");
    run.give_back().await.expect("it is held");
    takes_no_slot(&next, &clock).await;
}

#[tokio::test(start_paused = true)]
async fn first_job_that_could_not_start_gives_the_slot_back() {
    let simulation = Simulation::default();
    let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
    let run = started(&job).await;
    run.give_back().await.expect("it is held");
    assert_eq!(last_state(&job).await, None);
    assert!(ran(&job).await);
}

#[tokio::test(start_paused = true)]
async fn run_without_a_recorded_end_begins_again_unless_done_only() {
    for (again, repeats) in [
        (Again::Never, false),
        (Again::AfterFailure, false),
        (Again::UnlessDone, true),
    ] {
        let simulation = Simulation::default();
        let clock = Clock::at(0);
        let dies = job(&simulation, "dies", &clock, again).await;
        let next = job(&simulation, "next", &clock, again).await;
        let run = started(&dies).await;
        let tried = next.try_begin().await.expect("it is read");
        assert!(tried.is_none_or(|tried| tried.own().is_none()));
        simulation.administrator().expire(run.hold().session_id());
        let ended = run.done().await;
        assert!(
            matches!(ended, Err(Error::Lost { .. } | Error::SessionOver { .. })),
            "{ended:?}"
        );
        assert_eq!(last_state(&next).await, Some(SlotState::Started));
        assert_eq!(ran(&next).await, repeats, "{again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_that_is_dropped_and_job_that_panics_keep_the_slot() {
    let simulation = Simulation::default();
    let clock = Clock::at(0);
    let job = job(&simulation, "one", &clock, Again::Never).await;
    drop(started(&job).await);
    assert_eq!(last_state(&job).await, Some(SlotState::Started));
    assert!(!ran(&job).await);

    clock.set(3_600);
    let panics = job.clone();
    let run = async move {
        let job = panics.run(|_| async { panic!("a fault of the job") as Result<(), ()> });
        job.await.map(drop)
    };
    assert!(tokio::spawn(run).await.is_err());
    assert_eq!(last_state(&job).await, Some(SlotState::Started));
    assert!(!ran(&job).await);
}

#[tokio::test(start_paused = true)]
async fn end_of_a_job_does_not_overwrite_what_another_client_has_written() {
    let simulation = Simulation::default();
    let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
    for data in [&b""[..], b"slots 3600000 0\n"] {
        let run = started(&job).await;
        let administrator = simulation.administrator();
        administrator.set_data(PATH, data).expect("it is there");
        let done = run.done().await;
        assert!(matches!(done, Err(Error::Refused { .. })), "{done:?}");
        let tree = administrator.tree();
        let kept = tree.iter().find(|znode| znode.path == PATH);
        assert!(kept.is_some_and(|znode| znode.data == data), "{kept:?}");
    }
    assert!(ran(&job).await, "the slot is forgotten, and the hold gone");
}
