//! Transfers of the leadership, candidates on standby, and proclamations, on a simulated ensemble.

use std::sync::Mutex;

use zookeeper_recipes_core::{CreateMode, Session};
use zookeeper_recipes_election::{LossReason, QueueEntry};

use crate::*;

const PATH: &str = "/leader";
/// Much longer than any handoff, and shorter than a session lives.
const SOON: Duration = Duration::from_secs(5);
/// Much longer than a session lives.
const LONG: Duration = Duration::from_secs(60);

fn on_standby(election: LeaderElection) -> LeaderElection {
    election.standby().expect("a good name")
}

/// Candidates that run for leader, each in a process of its own.
struct Fleet {
    simulation: Simulation,
    /// The ids of the leaders, in the order in which their work began.
    led: Arc<Mutex<Vec<String>>>,
    /// The election of an operator, who does not campaign.
    operator: LeaderElection,
}

struct Member {
    process: SimulatedProcess,
    running: JoinHandle<Result<(), RunError<Error>>>,
    end: watch::Sender<bool>,
}

impl Fleet {
    async fn new() -> Fleet {
        let simulation = simulation();
        let session = open(&simulation.process("operator")).await;
        Fleet {
            simulation,
            led: Arc::default(),
            operator: election(&session, ""),
        }
    }

    /// Lets a candidate run, and waits until it is in the queue.
    async fn join(&self, id: &str) -> Member {
        self.join_by(id, |election| election).await
    }

    async fn join_all<const N: usize>(&self, ids: [&str; N]) -> Vec<Member> {
        let mut members = Vec::new();
        for id in ids {
            members.push(self.join(id).await);
        }
        members
    }

    async fn join_by(
        &self,
        id: &str,
        adjust: impl FnOnce(LeaderElection) -> LeaderElection,
    ) -> Member {
        let process = self.simulation.process(id);
        let session = open(&process).await;
        let election = adjust(election(&session, id));
        let (end, mut ended) = watch::channel(false);
        let led = self.led.clone();
        let running = tokio::spawn(async move {
            let shutdown = async {
                let _ = ended.wait_for(|ended| *ended).await;
            };
            let work = async |term: Term| {
                led.lock().expect("no panic").push(term.id().to_owned());
                std::future::pending().await
            };
            election.run(shutdown, work).await
        });
        self.until(|ids| ids.iter().any(|queued| queued == id))
            .await;
        Member {
            process,
            running,
            end,
        }
    }

    /// Has a candidate lead that runs nothing, with its session.
    async fn lead(&self, id: &str) -> (Session, Leadership) {
        let session = open(&self.simulation.process(id)).await;
        let leadership = election(&session, id).acquire().await;
        (session, leadership.expect("nobody leads"))
    }

    async fn ids(&self) -> Vec<String> {
        let contenders = self.operator.contenders().await.expect("an answer");
        let ids = contenders.into_iter().map(|it| String::from_utf8(it.data));
        ids.collect::<Result<_, _>>().expect("ids are text")
    }

    /// Waits until the ids in the queue are such.
    async fn until(&self, is_so: impl Fn(&[String]) -> bool) {
        let so = async {
            while !is_so(&self.ids().await) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let so = timeout(LONG, so).await;
        assert!(so.is_ok(), "the queue is {:?}", self.ids().await);
    }

    /// Waits until these have led in this order, and no other.
    async fn have_led(&self, ids: &[&str], within: Duration) {
        self.until_led(|led| led == ids, within).await;
    }

    /// Waits until `is_so` accepts the ids of the candidates that have led.
    async fn until_led(&self, is_so: impl Fn(&[String]) -> bool, within: Duration) {
        let so = async {
            while !is_so(&self.led.lock().expect("no panic")) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let so = timeout(within, so).await;
        assert!(so.is_ok(), "led: {:?}", self.led.lock());
    }
}

impl Member {
    async fn end(self) {
        self.end.send_replace(true);
        let ended = timeout(LONG, self.running).await.expect("in time");
        ended.expect("no panic").expect("it resigned");
    }
}

#[tokio::test(start_paused = true)]
async fn transfer_makes_the_named_candidate_lead_and_nobody_between() {
    let fleet = Fleet::new().await;
    let first = fleet.join("first").await;
    let between = fleet.join_all(["second", "third", "fourth"]).await;
    let _chosen = fleet.join("chosen").await;
    let _behind = fleet.join("behind").await;
    fleet.have_led(&["first"], SOON).await;

    fleet.operator.transfer_to("chosen").await.expect("named");
    fleet.have_led(&["first", "chosen"], SOON).await;
    // The candidates that have stepped back are behind the last one.
    fleet.until(|ids| ids.len() == 6).await;
    let ids = fleet.ids().await;
    assert_eq!(ids[..2], ["chosen", "behind"]);

    sleep(LONG).await;
    fleet.have_led(&["first", "chosen"], SOON).await;
    first.end().await;
    for member in between {
        member.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn transfer_that_is_over_makes_nobody_step_back_later() {
    let fleet = Fleet::new().await;
    let first = fleet.join("first").await;
    let second = fleet.join("second").await;
    fleet.have_led(&["first"], SOON).await;
    fleet.operator.transfer_to("second").await.expect("named");
    fleet.have_led(&["first", "second"], SOON).await;
    fleet.until(|ids| ids == ["second", "first"]).await;
    // The first waits, with the second as the named successor before it.
    sleep(Duration::from_secs(2)).await;

    let requests = || {
        let counters = fleet.simulation.counters();
        [RequestKind::List, RequestKind::Create].map(|kind| counters.requests(kind))
    };
    let [lists, creates] = requests();
    second.process.kill();
    fleet.until_led(|led| led.len() == 3, LONG).await;
    assert_eq!(requests(), [lists + 1, creates]);
    first.end().await;
}

#[tokio::test(start_paused = true)]
async fn next_candidate_leads_if_the_named_one_is_killed_while_the_others_step_back() {
    for moment in 0..40 {
        let fleet = Fleet::new().await;
        let _before = fleet.join_all(["first", "second", "third"]).await;
        let chosen = fleet.join("chosen").await;
        fleet.have_led(&["first"], SOON).await;
        fleet.operator.transfer_to("chosen").await.expect("named");
        sleep(Duration::from_millis(moment)).await;
        chosen.process.kill();
        sleep(LONG).await;
        let led = fleet.led.lock().expect("no panic").clone();
        assert_eq!(led[0], "first");
        assert!(led.len() > 1, "{moment} ms: {led:?}");
        let leader = fleet.operator.leader().await.expect("an answer");
        let leader = leader.expect("somebody leads");
        assert_eq!(Some(&leader.id), led.last(), "{moment} ms: {led:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_that_was_cut_off_during_a_transfer_steps_back_when_it_is_connected_again() {
    let fleet = Fleet::new().await;
    let _first = fleet.join("first").await;
    let second = fleet.join("second").await;
    let _chosen = fleet.join("chosen").await;
    fleet.have_led(&["first"], SOON).await;
    second.process.partition(Duration::from_secs(4));
    fleet.operator.transfer_to("chosen").await.expect("named");
    // The second learns of both, the successor and the deletion, once it is connected again.
    fleet.have_led(&["first", "chosen"], LONG).await;
}

#[tokio::test(start_paused = true)]
async fn leader_transfers_from_its_work() {
    let fleet = Fleet::new().await;
    let session = open(&fleet.simulation.process("first")).await;
    let first = election(&session, "first");
    let (ready, is_ready) = watch::channel(false);
    let running = tokio::spawn(async move {
        let work = async |term: Term| {
            let _ = is_ready.clone().wait_for(|ready| *ready).await;
            term.transfer_to("chosen").await?;
            std::future::pending::<Result<(), Error>>().await
        };
        first.run(std::future::pending(), work).await
    });
    fleet.until(|ids| ids == ["first"]).await;
    let _second = fleet.join("second").await;
    let _chosen = fleet.join("chosen").await;
    ready.send_replace(true);
    fleet.have_led(&["chosen"], SOON).await;
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn transfer_to_nobody_is_an_error_at_once_and_changes_nothing() {
    let fleet = Fleet::new().await;
    let _first = fleet.join("first").await;
    let _second = fleet.join("second").await;
    fleet.have_led(&["first"], SOON).await;
    let error = fleet.operator.transfer_to("nobody").await;
    let error = error.expect_err("nobody has this id");
    assert!(matches!(error, Error::InvalidInput(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("\"nobody\" does not campaign at /leader"),
        "{error}"
    );
    // The leader is the first with its id: nothing to do.
    fleet.operator.transfer_to("first").await.expect("it leads");
    sleep(LONG).await;
    fleet.have_led(&["first"], SOON).await;
}

#[tokio::test(start_paused = true)]
async fn data_of_another_program_is_not_overwritten() {
    let fleet = Fleet::new().await;
    let administrator = fleet.simulation.administrator();
    let created = administrator.create(PATH, b"10.0.0.7", CreateMode::Persistent);
    created.expect("it is free");
    let (_session, leadership) = fleet.lead("first").await;
    let _second = fleet.join("second").await;
    for refused in [
        fleet.operator.transfer_to("second").await,
        leadership.transfer_to("second").await,
        leadership.proclaim("ready").await,
    ] {
        let error = refused.expect_err("it is not ours");
        assert!(matches!(error, Error::InvalidInput(_)), "{error}");
        assert!(error.to_string().contains("another program"), "{error}");
    }
    let tree = administrator.tree();
    let directory = tree
        .iter()
        .find(|node| node.path == PATH)
        .expect("it is there");
    assert_eq!(directory.data, b"10.0.0.7");
    leadership.release().await.expect("it resigns");
    fleet.have_led(&["second"], SOON).await;
}

#[tokio::test(start_paused = true)]
async fn former_leader_names_nobody_and_proclaims_nothing() {
    let fleet = Fleet::new().await;
    let (_session, leadership) = fleet.lead("first").await;
    let _second = fleet.join("second").await;
    // What the operator has named before, a former leader does not name either.
    fleet.operator.transfer_to("second").await.expect("named");
    let administrator = fleet.simulation.administrator();
    administrator
        .delete(leadership.node_path())
        .expect("it is there");
    for refused in [
        leadership.transfer_to("second").await,
        leadership.proclaim("x").await,
    ] {
        let error = refused.expect_err("it no longer leads");
        let is_lost = matches!(
            error,
            Error::Lost {
                reason: LossReason::Deleted,
                ..
            }
        );
        assert!(is_lost, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_on_standby_leads_only_while_no_other_campaigns() {
    let fleet = Fleet::new().await;
    let _standby = fleet.join_by("standby", on_standby).await;
    fleet.have_led(&["standby"], SOON).await;
    let other_standby = fleet.join_by("other standby", on_standby).await;
    sleep(LONG).await;
    fleet.have_led(&["standby"], SOON).await;

    let regular = fleet.join("regular").await;
    fleet.have_led(&["standby", "regular"], SOON).await;
    fleet
        .until(|ids| ids.len() == 3 && ids[0] == "regular")
        .await;
    let contenders = fleet.operator.contenders().await.expect("an answer");
    let is_standby = |entry: &QueueEntry| entry.name.contains("standby-latch");
    let standby: Vec<bool> = contenders.iter().map(is_standby).collect();
    assert_eq!(standby, [false, true, true]);

    // The next regular one comes last, and leads next.
    let next = fleet.join("next").await;
    regular.end().await;
    fleet.have_led(&["standby", "regular", "next"], SOON).await;
    next.end().await;
    // One of the two leads.
    fleet.until_led(|led| led.len() == 4, SOON).await;
    sleep(LONG).await;
    assert_eq!(fleet.led.lock().expect("no panic").len(), 4);
    other_standby.end().await;
}

/// All candidates have the same number, so each reads the others before it decides. The regular
/// candidate comes, and the leader leaves, between the two reads of the candidate on standby.
#[tokio::test(start_paused = true)]
async fn candidate_on_standby_leads_before_no_other_that_came_as_it_looked() {
    for seed in 0..40 {
        let mut fleet = Fleet::new().await;
        fleet.simulation = Simulation::with(|it| {
            it.seed = seed;
            it.network_delay = Duration::from_millis(2)..=Duration::from_millis(9);
        });
        let administrator = fleet.simulation.administrator();
        let (_session, leadership) = fleet.lead("before").await;
        leadership.release().await.expect("it leads");
        let counted = administrator.set_create_counter(PATH, i32::MAX);
        counted.expect("the directory is there");
        let (_session, leadership) = fleet.lead("first").await;
        let [standby, regular] = ["standby", "regular"].map(|id| fleet.simulation.process(id));
        let standby = on_standby(election(&open(&standby).await, "standby"));
        let regular = election(&open(&regular).await, "regular");
        let standby = tokio::spawn(async move { standby.acquire().await });
        sleep(Duration::from_millis(seed)).await;
        let regular = tokio::spawn(async move { regular.acquire().await });
        while administrator.children(PATH).len() < 3 {
            sleep(Duration::from_millis(1)).await;
        }
        let gone = administrator.delete(leadership.node_path());
        gone.expect("it exists");
        let led = timeout(LONG, regular).await;
        assert!(led.is_ok() && !standby.is_finished(), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn proclamation_is_seen_by_all_who_ask_and_ends_with_the_leadership() {
    let fleet = Fleet::new().await;
    let (_session, leadership) = fleet.lead("first").await;
    let _second = fleet.join("second").await;
    let mut watched = fleet.operator.watch_leader();
    let mut next = async || {
        let changed = timeout(SOON, watched.changed()).await.expect("in time");
        changed.expect("the session is open");
        let state = watched.borrow_and_update();
        state.leader().expect("one leads").clone()
    };
    assert_eq!(next().await.proclaimed, None);
    for said in ["starting", "ready at 10.0.0.7:80\nsince 12:00", ""] {
        leadership.proclaim(said).await.expect("proclaimed");
        let leader = next().await;
        assert_eq!(
            (&*leader.id, leader.proclaimed.as_deref()),
            ("first", Some(said))
        );
        let asked = fleet.operator.leader().await.expect("an answer");
        assert_eq!(asked.expect("one leads").proclaimed.as_deref(), Some(said));
    }
    // A successor is named beside it.
    leadership.transfer_to("second").await.expect("named");
    let asked = fleet.operator.leader().await.expect("an answer");
    assert_eq!(asked.expect("one leads").proclaimed.as_deref(), Some(""));
    leadership.release().await.expect("it resigns");
    let leader = next().await;
    assert_eq!((&*leader.id, leader.proclaimed), ("second", None));
}

#[tokio::test(start_paused = true)]
async fn leader_whose_session_has_expired_is_not_asked_to_resign() {
    let fleet = Fleet::new().await;
    let (session, leadership) = fleet.lead("first").await;
    let asked = leadership.asked_to_resign();
    let mut asked = std::pin::pin!(asked);
    let early = timeout(Duration::from_millis(100), &mut asked).await;
    assert!(early.is_err(), "nobody has asked");
    let _second = fleet.join("second").await;
    let _chosen = fleet.join("chosen").await;
    let expired = session.id().expect("it is open");
    fleet.simulation.administrator().expire(expired);
    fleet.have_led(&["second"], SOON).await;
    // In the new session of the first, the candidates that the second steps back for are there.
    fleet.operator.transfer_to("chosen").await.expect("named");
    let late = timeout(LONG, asked).await;
    assert!(late.is_err(), "it no longer leads");
    fleet.have_led(&["second", "chosen"], SOON).await;
}

/// Transfers to a candidate, to one on standby, and back, with others between.
async fn transfers_succeed(fleet: &Fleet) {
    let _before = fleet.join_all(["first", "second"]).await;
    let _standby = fleet.join_by("standby", on_standby).await;
    let _behind = fleet.join_all(["third", "fourth"]).await;
    let mut led = vec!["first"];
    fleet.have_led(&led, SOON).await;
    for next in ["third", "standby", "second"] {
        fleet.until(|ids| ids.len() == 5).await;
        fleet.operator.transfer_to(next).await.expect("named");
        led.push(next);
        fleet.have_led(&led, SOON).await;
    }
    sleep(LONG).await;
    fleet.have_led(&led, SOON).await;
}

#[tokio::test(start_paused = true)]
async fn transfers_succeed_where_the_count_ends() {
    let creates = [-9, -5, -2, -1, 0, 1, 4].map(|from_the_end| i32::MAX.wrapping_add(from_the_end));
    for creates in creates.into_iter().chain([-4, -1]) {
        let fleet = Fleet::new().await;
        let administrator = fleet.simulation.administrator();
        let created = administrator.create(PATH, b"", CreateMode::Persistent);
        created.expect("it is free");
        let counter = administrator.set_create_counter(PATH, creates);
        counter.expect("it is there");
        transfers_succeed(&fleet).await;
    }
}

/// The leader has read the directory before the successor was named, and writes to it after that.
#[tokio::test(start_paused = true)]
async fn proclamation_that_is_written_late_erases_no_named_successor() {
    let fleet = Fleet::new().await;
    let (_session, leadership) = fleet.lead("first").await;
    let _second = fleet.join("second").await;
    let faults = fleet.simulation.faults();
    let late = Fault::new(FaultKind::RequestLate(SOON / 5)).on(RequestKind::Transact);
    faults.inject(late.of_process("first"));
    let name_it = async {
        while faults.waiting() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        fleet.operator.transfer_to("second").await
    };
    let (proclaimed, named) = tokio::join!(leadership.proclaim("ready"), name_it);
    named.expect("it is named");
    proclaimed.expect("it still leads");
    let asked = timeout(SOON, leadership.asked_to_resign()).await;
    asked.expect("the successor is still named");
    leadership.release().await.expect("it resigns");
    fleet.have_led(&["second"], SOON).await;
}
