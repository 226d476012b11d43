//! Clocks that differ from each other and from the ensemble's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use zookeeper_recipes_core::Error;
use zookeeper_recipes_lock::{Again, OncePerSlot, OncePerSlotOptions, SlotRecord};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions, Way};
use zookeeper_recipes_suite::simulated_session;

use super::{Clock, MINUTE, PATH, SLOT, job, options, ran, recorded};

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_run_no_slot_twice() {
    let simulation = Simulation::default();
    let (ahead, behind) = (Clock::at(3_590 + 30), Clock::at(3_590 - 30));
    let early = job(&simulation, "ahead", &ahead, Again::Never).await;
    let late = job(&simulation, "behind", &behind, Again::Never).await;
    assert!(ran(&early).await, "the next slot, 20 s early");
    assert!(!ran(&late).await, "its own slot has passed");
    behind.set(3_600 + 5);
    assert!(!ran(&late).await, "it was taken early");
    // A clock that is set back brings no slot again.
    ahead.set(10);
    assert!(!ran(&early).await);
    behind.set(2 * 3_600);
    assert!(ran(&late).await);
    // A clock that is slots ahead costs the slots between.
    ahead.set(7 * 3_600);
    assert!(ran(&early).await);
    for slot in 3..=7 {
        behind.set(slot * 3_600);
        assert!(!ran(&late).await, "slot {slot}");
    }
    behind.set(8 * 3_600);
    assert!(ran(&late).await);
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_set_back_within_a_claim_records_no_earlier_slot() {
    let simulation = Simulation::default();
    let right = Clock::at(0);
    let first = job(&simulation, "right", &right, Again::Never).await;
    assert!(ran(&first).await);
    let before = recorded(&first).await;
    // The first look is a slot later, and each other look a slot earlier.
    let (looks, clock) = (AtomicUsize::new(0), right.clone());
    let options = options(&right).clock(move || {
        let is_first = looks.fetch_add(1, Ordering::SeqCst) == 0;
        clock.set(if is_first { 3_600 } else { -3_600 });
        clock.now()
    });
    let session = simulated_session(&simulation, "set back").await;
    let job = OncePerSlot::with_options(&session, PATH, SLOT, options).expect("a good job");
    let hold = job.lock().acquire().await.expect("the session lives");
    let claim = job.claim(hold).await.expect("the session lives").own();
    let run = claim.expect("the next slot").start().await;
    run.expect("it is held").done().await.expect("it is held");
    let (before, after) = (before.last_run, recorded(&job).await.last_run);
    let start = |run: Option<SlotRecord>| run.expect("a run").start;
    assert_eq!(start(after), start(before) + SLOT);
}

/// What a process with a wrong clock records, the others read: its slot is ahead of theirs.
#[tokio::test(start_paused = true)]
async fn clock_after_the_year_9999_leaves_a_record_that_each_process_reads() {
    let simulation = Simulation::default();
    let wrong = Clock::at(253_402_300_800 - 1_774_008_000);
    let wrong = job(&simulation, "wrong", &wrong, Again::Never).await;
    let refused = wrong.run(|_| async { Ok::<_, ()>(()) }).await;
    let good = job(&simulation, "good", &Clock::at(0), Again::Never).await;
    let read = good.recorded().await;
    assert!(
        read.is_ok(),
        "the wrong clock: {refused:?}; the others: {read:?}"
    );
}

/// The job of a process whose clock differs by so many seconds from the ensemble's.
async fn differing(simulation: &Simulation, process: &str, seconds: i64) -> OncePerSlot {
    let session = simulated_session(simulation, process).await;
    let ensemble = simulation.clone();
    let difference = Duration::from_secs(seconds.unsigned_abs());
    let options = OncePerSlotOptions::new().clock(move || match seconds >= 0 {
        true => ensemble.system_time() + difference,
        false => ensemble.system_time() - difference,
    });
    OncePerSlot::with_options(&session, PATH, SLOT, options).expect("a good job")
}

#[tokio::test(start_paused = true)]
async fn wrong_clock_is_refused_and_takes_no_slot() {
    const YEAR: i64 = 365 * 86_400;
    let simulation = Simulation::default();
    for (process, seconds, side) in [
        ("ahead", YEAR, "31536000.0s ahead of the ensemble's"),
        ("behind", -YEAR, "31536000.0s behind the ensemble's"),
        ("a little ahead", 62, "ahead of the ensemble's"),
        ("a little behind", -62, "behind the ensemble's"),
    ] {
        let wrong = differing(&simulation, process, seconds).await;
        let run = wrong.run(|_| async { Ok::<_, ()>(()) }).await;
        let Err(Error::InvalidInput(refused)) = run else {
            panic!("{process}: {run:?}");
        };
        assert_eq!(refused.subject(), "clock of this process");
        let text = refused.to_string();
        assert!(text.contains(side) && text.contains("by 60s"), "{text}");
        assert_eq!(recorded(&wrong).await.last_run, None, "{process}");
    }
    let right = differing(&simulation, "right", 0).await;
    assert!(ran(&right).await, "no wrong clock has taken the slot");
}

#[tokio::test(start_paused = true)]
async fn clock_within_the_limit_claims_the_slot() {
    for seconds in [58, -58] {
        let simulation = Simulation::default();
        let job = differing(&simulation, "one", seconds).await;
        assert!(ran(&job).await, "{seconds}");
    }
}

/// The times of the request and of the answer say nothing about the clock.
#[tokio::test(start_paused = true)]
async fn claim_whose_answer_comes_late_is_not_taken_for_a_wrong_clock() {
    for way in [Way::Up, Way::Down] {
        let simulation = Simulation::new(SimulationOptions {
            session_timeout: 10 * MINUTE,
            max_session_timeout: Some(10 * MINUTE),
            ..SimulationOptions::default()
        });
        let session = simulated_session(&simulation, "one").await;
        let (looks, ensemble) = (AtomicUsize::new(0), simulation.clone());
        let options = OncePerSlotOptions::new().clock(move || {
            // At the second look, the claim is written next.
            if looks.fetch_add(1, Ordering::SeqCst) == 1 {
                let process = ensemble.process("one");
                process.partition_one_way(way, 2 * MINUTE);
            }
            ensemble.system_time()
        });
        let job = OncePerSlot::with_options(&session, PATH, SLOT, options).expect("good");
        let claim = job.begin().await.expect("it is held");
        assert!(simulation.now() > 2 * MINUTE, "{:?}", simulation.now());
        let run = claim.own().expect("free").start().await.expect("held");
        run.done().await.expect("it is held");
    }
}
