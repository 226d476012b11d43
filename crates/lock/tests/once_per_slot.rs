//! A job once in each time slot, on a simulated ensemble.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use tokio::time::sleep;
use zookeeper_recipes_core::{CreateMode, Error, InvalidInput, Queue, QueueView, Rule, Verdict};
use zookeeper_recipes_lock::{
    Again, ExclusiveLock, Hold, OncePerSlot, OncePerSlotOptions, SlotRecord, SlotState,
};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation, SimulationOptions};
use zookeeper_recipes_suite::simulated_session;

const PATH: &str = "/jobs/report";
const MINUTE: Duration = Duration::from_secs(60);
const SLOT: Duration = Duration::from_secs(3_600);

/// A clock that a test sets, in seconds after noon of some day.
#[derive(Clone)]
struct Clock(Arc<AtomicI64>);

impl Clock {
    fn at(seconds: i64) -> Clock {
        Clock(Arc::new(AtomicI64::new(seconds)))
    }

    fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::SeqCst);
    }

    fn now(&self) -> SystemTime {
        let seconds = 1_774_008_000 + self.0.load(Ordering::SeqCst);
        UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs())
    }
}

/// The job in a process with this clock.
async fn job(simulation: &Simulation, process: &str, clock: &Clock, again: Again) -> OncePerSlot {
    let session = simulated_session(simulation, process).await;
    let clock = clock.clone();
    let options = OncePerSlotOptions::new().again(again);
    let options = options.clock(move || clock.now());
    OncePerSlot::with_options(&session, PATH, SLOT, options).expect("a good job")
}

/// Runs a job that is done at once. True if it ran.
async fn ran(job: &OncePerSlot) -> bool {
    let ran = job.run(|_| async { Ok::<_, ()>(()) }).await;
    ran.expect("the session lives").is_some()
}

#[tokio::test(start_paused = true)]
async fn fleet_runs_a_quick_job_once_in_each_slot() {
    let simulation = Simulation::new(SimulationOptions::default());
    let runs = Arc::new(AtomicUsize::new(0));
    let clock = Clock::at(0);
    for slot in 0..3 {
        let mut fleet = JoinSet::new();
        for process in 0..5_i64 {
            // Each process begins a second after the one before.
            clock.set(slot * 3_600);
            let job = job(
                &simulation,
                &format!("{slot}-{process}"),
                &clock,
                Again::Never,
            )
            .await;
            let runs = runs.clone();
            fleet.spawn(async move {
                sleep(Duration::from_secs(process.unsigned_abs())).await;
                let count = async |_| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, ()>(())
                };
                job.run(count).await.expect("the session lives");
            });
        }
        fleet.join_all().await;
        assert_eq!(
            runs.load(Ordering::SeqCst),
            slot.unsigned_abs() as usize + 1
        );
    }
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_run_no_slot_twice() {
    let simulation = Simulation::new(SimulationOptions::default());
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
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_slots_ahead_costs_the_slots_between() {
    let simulation = Simulation::new(SimulationOptions::default());
    let (ahead, right) = (Clock::at(5 * 3_600), Clock::at(0));
    let wrong = job(&simulation, "ahead", &ahead, Again::Never).await;
    let job = job(&simulation, "right", &right, Again::Never).await;
    assert!(ran(&wrong).await);
    for slot in 0..=5 {
        right.set(slot * 3_600);
        assert!(!ran(&job).await, "slot {slot}");
    }
    right.set(6 * 3_600);
    assert!(ran(&job).await);
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_set_back_within_a_claim_records_no_earlier_slot() {
    let simulation = Simulation::new(SimulationOptions::default());
    let right = Clock::at(0);
    let first = job(&simulation, "right", &right, Again::Never).await;
    assert!(ran(&first).await);
    let before = first.recorded().await.expect("the session lives");
    // The first look is a slot later, and each other look a slot earlier.
    let (looks, clock) = (AtomicUsize::new(0), right.clone());
    let options = OncePerSlotOptions::new().clock(move || {
        let is_first = looks.fetch_add(1, Ordering::SeqCst) == 0;
        clock.set(if is_first { 3_600 } else { -3_600 });
        clock.now()
    });
    let session = simulated_session(&simulation, "set back").await;
    let job = OncePerSlot::with_options(&session, PATH, SLOT, options).expect("a good job");
    let hold = job.lock().acquire().await.expect("the session lives");
    let run = job.claim(hold).await.expect("the session lives");
    run.expect("the next slot")
        .done()
        .await
        .expect("it is held");
    let after = job.recorded().await.expect("the session lives");
    let start = |recorded: Option<SlotRecord>| recorded.expect("a slot has begun").start;
    assert_eq!(start(after), start(before) + SLOT);
}

/// A hold is refused, and released, that does not exclude the other runs of the job.
async fn refuses(job: &OncePerSlot, hold: Hold, what: &str) {
    let view = hold.view();
    let claimed = job.claim(hold).await;
    assert!(
        matches!(claimed, Err(Error::InvalidInput(_))),
        "{what}: {claimed:?}"
    );
    assert!(!view.is_held(), "{what}");
    let recorded = job.recorded().await.expect("the session lives");
    assert_eq!(recorded.map(|it| it.state), Some(SlotState::Failed));
}

#[tokio::test(start_paused = true)]
async fn claim_under_a_hold_that_is_not_of_its_lock_is_refused() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let options = || OncePerSlotOptions::new().again(Again::UnlessDone);
    let job = |path| OncePerSlot::with_options(&session, path, SLOT, options());
    let (report, bill) = (job(PATH).expect("good"), job("/jobs/bill").expect("good"));
    let run = report.begin().await.expect("the session lives");
    let run = run.expect("the slot is free");
    run.failed().await.expect("it is held");

    let hold = bill.lock().acquire().await.expect("free");
    refuses(&report, hold, "the lock of another job").await;
    let within = ExclusiveLock::new(&session, format!("{PATH}/part")).expect("a good path");
    let hold = within.acquire().await.expect("free");
    refuses(&report, hold, "a lock below the job's").await;
    let everybody = Queue::new(&session, PATH, Everybody).expect("a good path");
    let hold = everybody.acquire().await.expect("free");
    refuses(&report, hold, "another recipe at the job's path").await;
    let elsewhere = simulated_session(&simulation, "other").await;
    let lock = ExclusiveLock::new(&elsewhere, PATH).expect("a good path");
    let hold = lock.acquire().await.expect("free");
    refuses(&report, hold, "a lock at the job's path in another session").await;

    let hold = report.lock().clone().acquire().await.expect("free");
    let run = report.claim(hold).await.expect("it is its own");
    run.expect("the slot is free").done().await.expect("held");
}

/// A rule by which each contender holds.
#[derive(Debug)]
struct Everybody;

impl Rule for Everybody {
    fn label(&self) -> Cow<'_, str> {
        "everybody-".into()
    }

    fn decide(&self, _: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(Verdict::Hold)
    }
}

#[tokio::test(start_paused = true)]
async fn job_gets_the_slot_that_it_runs_in() {
    let simulation = Simulation::new(SimulationOptions::default());
    let clock = Clock::at(0);
    let job = job(&simulation, "one", &clock, Again::Never).await;
    for slot in 1..3 {
        // The job begins in the middle of its slot.
        clock.set(slot * 3_600 + 1_800);
        let ran = job.run(async |slot| {
            assert!(slot.hold().is_held());
            Ok::<_, ()>(slot.start())
        });
        let ran = ran.await.expect("the session lives");
        let recorded = job.recorded().await.expect("the session lives");
        let start = recorded.map(|recorded| recorded.start);
        assert_eq!(start, Some(clock.now() - Duration::from_secs(1_800)));
        assert_eq!(ran.and_then(Result::ok), start);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_job_begins_again_if_that_is_wanted() {
    for (again, repeats) in [
        (Again::Never, false),
        (Again::AfterFailure, true),
        (Again::UnlessDone, true),
    ] {
        let simulation = Simulation::new(SimulationOptions::default());
        let job = job(&simulation, "one", &Clock::at(0), again).await;
        let failed = job.run(|_| async { Err::<(), _>("failed") }).await;
        assert_eq!(failed.expect("the session lives"), Some(Err("failed")));
        let recorded = job.recorded().await.expect("the session lives");
        assert_eq!(recorded.map(|it| it.state), Some(SlotState::Failed));
        assert_eq!(ran(&job).await, repeats, "{again:?}");
        assert!(!ran(&job).await, "{again:?}: it is done");
    }
}

#[tokio::test(start_paused = true)]
async fn run_without_a_recorded_end_begins_again_unless_done_only() {
    for (again, repeats) in [
        (Again::Never, false),
        (Again::AfterFailure, false),
        (Again::UnlessDone, true),
    ] {
        let simulation = Simulation::new(SimulationOptions::default());
        let clock = Clock::at(0);
        let dies = job(&simulation, "dies", &clock, again).await;
        let next = job(&simulation, "next", &clock, again).await;
        let run = dies.begin().await.expect("the session lives");
        let run = run.expect("the slot is free");
        assert!(next.try_begin().await.expect("it is read").is_none());
        simulation.administrator().expire(run.hold().session_id());
        let ended = run.done().await;
        assert!(
            matches!(ended, Err(Error::Lost { .. } | Error::SessionOver { .. })),
            "{ended:?}"
        );
        assert_eq!(ran(&next).await, repeats, "{again:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn slot_is_taken_once_if_the_answers_to_its_writes_are_lost() {
    for kind in [FaultKind::ReplyLost, FaultKind::RequestLost] {
        let simulation = Simulation::new(SimulationOptions::default());
        let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
        job.lock()
            .acquire()
            .await
            .expect("free")
            .release()
            .await
            .expect("held");
        let faults = simulation.faults();
        faults.inject(Fault::new(kind).on(RequestKind::Transact).under(PATH));
        let run = job.begin().await.expect("asked again").expect("it is free");
        faults.inject(Fault::new(kind).on(RequestKind::Transact).under(PATH));
        run.done().await.expect("asked again");
        assert_eq!(faults.waiting(), 0);
        let recorded = job.recorded().await.expect("the session lives");
        assert_eq!(recorded.map(|it| it.state), Some(SlotState::Done));
        assert!(!ran(&job).await);
    }
}

#[tokio::test(start_paused = true)]
async fn waiter_takes_over_as_soon_as_the_run_before_it_fails() {
    let simulation = Simulation::new(SimulationOptions::default());
    let clock = Clock::at(0);
    let first = job(&simulation, "one", &clock, Again::AfterFailure).await;
    let next = job(&simulation, "other", &clock, Again::AfterFailure).await;
    let run = first.begin().await.expect("it lives").expect("it is free");
    let waiting = tokio::spawn(async move { ran(&next).await });
    sleep(MINUTE).await;
    assert!(!waiting.is_finished());
    run.failed().await.expect("it is held");
    assert!(waiting.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn data_that_is_no_record_is_refused_and_kept() {
    let simulation = Simulation::new(SimulationOptions::default());
    let administrator = simulation.administrator();
    for path in ["/jobs", PATH] {
        let created = administrator.create(path, b"5", CreateMode::Persistent);
        created.expect("it is new");
    }
    let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
    let refused = job.begin().await.expect_err("it records no slot");
    assert!(matches!(refused, Error::InvalidInput(_)), "{refused}");
    let tree = administrator.tree();
    let kept = tree.iter().find(|znode| znode.path == PATH);
    assert!(kept.is_some_and(|znode| znode.data == b"5" && znode.stat.num_children == 0));
}

#[tokio::test(start_paused = true)]
async fn record_outlasts_a_time_in_which_nobody_contends() {
    let simulation = Simulation::new(SimulationOptions::default());
    let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
    assert!(ran(&job).await);
    assert!(simulation.administrator().reap_containers().is_empty());
    assert!(!ran(&job).await);
}

/// What a process with a wrong clock records, the others read: its slot is ahead of theirs.
#[tokio::test(start_paused = true)]
async fn clock_after_the_year_9999_leaves_a_record_that_each_process_reads() {
    let simulation = Simulation::new(SimulationOptions::default());
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

/// An operator lets the slot be forgotten in the middle of its job.
/// The answer to the write would have said that the znode of the hold is gone.
#[tokio::test(start_paused = true)]
async fn run_whose_slot_another_process_has_taken_is_lost_though_its_write_has_no_outcome() {
    // The first probe comes later than all this.
    let simulation = Simulation::new(SimulationOptions {
        session_timeout: MINUTE,
        ..SimulationOptions::default()
    });
    let clock = Clock::at(0);
    let job_of = |process| job(&simulation, process, &clock, Again::UnlessDone);
    let (one, other) = (job_of("one").await, job_of("other").await);
    let run = one.begin().await.expect("an answer").expect("free");
    let administrator = simulation.administrator();
    administrator.delete(run.hold().node_path()).expect("there");
    let theirs = other.begin().await.expect("an answer").expect("free");
    let hidden = Fault::new(FaultKind::OutcomeHidden).on(RequestKind::Transact);
    simulation.faults().inject(hidden.of_process("one"));
    assert!(run.hold().is_held(), "no event has come");
    let done = run.done().await;
    assert!(matches!(done, Err(Error::Lost { .. })), "{done:?}");
    theirs.done().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn run_whose_end_is_not_recorded_does_not_say_that_it_is() {
    let simulation = Simulation::new(SimulationOptions::default());
    let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
    let run = job.begin().await.expect("the session lives");
    let run = run.expect("the slot is free");
    simulation
        .administrator()
        .set_data(PATH, b"")
        .expect("it exists");
    let done = run.done().await;
    let recorded = job.recorded().await.expect("the session lives");
    let is_recorded = recorded.is_some_and(|recorded| recorded.state == SlotState::Done);
    assert!(
        done.is_err() || is_recorded,
        "{done:?}, and nothing is recorded"
    );
}
