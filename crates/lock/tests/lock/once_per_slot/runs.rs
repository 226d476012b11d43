//! What is run, and by whom.

use std::borrow::Cow;
use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_core::{
    CreateMode, Error, InvalidInput, Queue, QueueView, Recipe, Rule, Verdict,
};
use zookeeper_recipes_lock::{Again, ExclusiveLock, Hold, OncePerSlot, SlotOutcome, SlotState};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

use super::{Clock, MINUTE, PATH, SLOT, job, last_state, options, ran, recorded, started};

/// A hold is refused, and released, that does not exclude the other runs of the job.
async fn refuses(job: &OncePerSlot, hold: Hold, what: &str) {
    let view = hold.view();
    let claimed = job.claim(hold).await;
    assert!(
        matches!(claimed, Err(Error::InvalidInput(_))),
        "{what}: {claimed:?}"
    );
    assert!(!view.is_held(), "{what}");
    assert_eq!(last_state(job).await, Some(SlotState::Failed));
}

#[tokio::test(start_paused = true)]
async fn claim_under_a_hold_that_is_not_of_its_lock_is_refused() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let options = || options(&Clock::at(0)).again(Again::UnlessDone);
    let job = |path| OncePerSlot::with_options(&session, path, SLOT, options());
    let (report, bill) = (job(PATH).expect("good"), job("/jobs/bill").expect("good"));
    let run = started(&report).await;
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
    let claim = report.claim(hold).await.expect("it is its own");
    let run = claim.own().expect("the slot is free").start().await;
    run.expect("held").done().await.expect("held");
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
    let simulation = Simulation::default();
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
        let start = recorded(&job).await.last_run.map(|run| run.start);
        assert_eq!(start, Some(clock.now() - Duration::from_secs(1_800)));
        assert_eq!(ran.own().and_then(Result::ok), start);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_job_begins_again_if_that_is_wanted() {
    for (again, repeats) in [
        (Again::Never, false),
        (Again::AfterFailure, true),
        (Again::UnlessDone, true),
    ] {
        let simulation = Simulation::default();
        let job = job(&simulation, "one", &Clock::at(0), again).await;
        let failed = job.run(|_| async { Err::<(), _>("failed") }).await;
        let failed = failed.expect("the session lives");
        assert_eq!(failed, SlotOutcome::Own(Err("failed")));
        assert_eq!(last_state(&job).await, Some(SlotState::Failed));
        assert_eq!(ran(&job).await, repeats, "{again:?}");
        assert!(!ran(&job).await, "{again:?}: it is done");
    }
}

#[tokio::test(start_paused = true)]
async fn waiter_takes_over_as_soon_as_the_run_before_it_fails() {
    let simulation = Simulation::default();
    let clock = Clock::at(0);
    let first = job(&simulation, "one", &clock, Again::AfterFailure).await;
    let next = job(&simulation, "other", &clock, Again::AfterFailure).await;
    let run = started(&first).await;
    let waiting = tokio::spawn(async move { ran(&next).await });
    sleep(MINUTE).await;
    assert!(!waiting.is_finished());
    run.failed().await.expect("it is held");
    assert!(waiting.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn data_that_is_no_record_is_refused_and_kept() {
    let simulation = Simulation::default();
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
    let simulation = Simulation::default();
    let job = job(&simulation, "one", &Clock::at(0), Again::Never).await;
    assert!(ran(&job).await);
    assert!(simulation.administrator().reap_containers().is_empty());
    assert!(!ran(&job).await);
}

#[tokio::test(start_paused = true)]
async fn other_slots_than_those_of_the_record_are_refused() {
    const DAY: Duration = Duration::from_secs(86_400);
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let job = |every, offset| {
        let options = options(&Clock::at(0)).offset(offset);
        OncePerSlot::with_options(&session, PATH, every, options).expect("a good job")
    };
    let (quarter, minute) = (DAY / 4, MINUTE);
    assert!(ran(&job(DAY, Duration::ZERO)).await);
    for (every, offset, problem) in [
        (
            quarter,
            Duration::ZERO,
            "length of a slot \"21600s\" is not the 86400s",
        ),
        (DAY, minute, "offset of a slot \"60s\" is not the 0ns"),
    ] {
        let other = job(every, offset);
        let refused = [
            other.run(|_| async { Ok::<_, ()>(()) }).await.map(drop),
            other.taken().await.map(drop),
            other
                .claim(other.lock().acquire().await.expect("free"))
                .await
                .map(drop),
        ];
        for refused in refused {
            let text = refused.expect_err("refused").to_string();
            assert!(text.starts_with(problem) && text.contains(PATH), "{text}");
        }
        assert!(other.recorded().await.expect("it is read").is_some());
    }
    // An offset of a whole slot is none.
    assert!(!ran(&job(DAY, DAY)).await);
}

/// Nobody is bound by what has not run.
#[tokio::test(start_paused = true)]
async fn slots_of_a_claim_that_did_not_start_do_not_count() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let job = |every| {
        OncePerSlot::with_options(&session, PATH, every, options(&Clock::at(0))).expect("good")
    };
    let claim = job(MINUTE).begin().await.expect("it lives").own();
    claim.expect("free").give_back().await.expect("held");
    assert!(ran(&job(SLOT)).await);
    assert_eq!(recorded(&job(SLOT)).await.every, SLOT);
}

#[tokio::test(start_paused = true)]
async fn process_that_finds_the_slot_taken_learns_who_ran_it_and_how_it_ended() {
    let simulation = Simulation::default();
    let clock = Clock::at(60);
    let one = job(&simulation, "one", &clock, Again::Never).await;
    let other = job(&simulation, "other", &clock, Again::Never).await;
    let taken = async || match other.begin().await.expect("it lives") {
        SlotOutcome::Taken(run) => run,
        SlotOutcome::Own(claim) => panic!("{claim:?}"),
    };
    let (claimed_at, run) = (clock.now(), started(&one).await);
    let token = run.hold().fencing_token();
    let runs = taken().await;
    assert_eq!(runs.state, SlotState::Started);
    assert_eq!((runs.claimed_at, runs.ended_at), (claimed_at, None));
    assert_eq!(runs.fencing_token, token);
    assert_eq!(runs.owner, one.lock().session().owner());

    clock.set(70);
    run.failed().await.expect("held");
    let ended = taken().await;
    assert_eq!(ended.state, SlotState::Failed);
    assert_eq!(ended.claimed_at, claimed_at);
    assert_eq!(ended.ended_at, Some(clock.now()));
}
