//! What becomes of the members of the ensemble.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::sync::watch;
use tokio::time::sleep;
use zookeeper_recipes_suite::eventually;
use zookeeper_recipes_testkit::Ensemble;

use crate::contender::Phase;
use crate::journal::Journal;
use crate::settings::{MEMBERS, SESSION_TIMEOUT};

/// How soon everybody must have come to work again once the ensemble has.
const GOES_ON_WITHIN: Duration = Duration::from_secs(30);

/// Long enough for every session to be over that is silent all the while.
const LONGER_THAN_A_SESSION: Duration = Duration::from_secs(SESSION_TIMEOUT.as_secs() + 1);

/// The moments that matter about a fault's end.
struct Mended {
    /// From then on contenders can hold that could not during the fault.
    from: Instant,
    /// Here the ensemble was seen to serve.
    serves: Instant,
}

impl Mended {
    fn now() -> Mended {
        let now = Instant::now();
        Mended {
            from: now,
            serves: now,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    LeaderKilled,
    FollowerPaused,
    MembersRestarted,
    QuorumLost,
    LeaderPaused,
}

pub(crate) struct FaultInjector<'a> {
    pub(crate) ensemble: Ensemble,
    pub(crate) journals: &'a [Arc<Journal>],
    pub(crate) phase: watch::Sender<Phase>,
    pub(crate) rng: Rng,
    pub(crate) began: Instant,
}

impl FaultInjector<'_> {
    /// Lets every fault strike, and continues with all of them in another order until this time
    /// has passed. Then lets the contenders end.
    pub(crate) async fn run(mut self, lasts: Duration) -> Ensemble {
        let mut faults = vec![
            Fault::LeaderKilled,
            Fault::FollowerPaused,
            Fault::MembersRestarted,
            Fault::QuorumLost,
        ];
        self.work_continues("begun", Mended::now()).await;
        self.rng.shuffle(&mut faults);
        for fault in faults.clone() {
            self.strike(fault).await;
        }
        faults.push(Fault::LeaderPaused);
        while self.began.elapsed() < lasts {
            self.rng.shuffle(&mut faults);
            for fault in &faults {
                if self.began.elapsed() < lasts {
                    self.strike(*fault).await;
                }
            }
        }
        self.say("nothing goes wrong any more");
        self.phase.send_replace(Phase::Quiet);
        self.ensemble
    }

    fn say(&self, what: &str) {
        println!("{:6.2} s  {what}", self.began.elapsed().as_secs_f64());
    }

    async fn strike(&mut self, fault: Fault) {
        let leader = self.leader().await;
        self.say(&format!("{fault:?}: member {leader} leads"));
        let followers: Vec<usize> = (0..MEMBERS).filter(|member| *member != leader).collect();
        let follower = *self.rng.choice(&followers).expect("one of two");
        let mended = match fault {
            Fault::LeaderKilled => self.kill(leader).await,
            Fault::LeaderPaused => self.pause(leader).await,
            Fault::FollowerPaused => self.pause(follower).await,
            Fault::MembersRestarted => self.restart_all().await,
            Fault::QuorumLost => self.kill_both(leader, follower).await,
        };
        self.work_continues(&format!("{fault:?}"), mended).await;
        let all = self.ensemble.wait_until_all_serve().await;
        all.expect("all members serve");
    }

    async fn leader(&self) -> usize {
        self.ensemble.leader().await.expect("a leader")
    }

    /// Waits until a contender of every recipe holds, and stays until it has lost: any contender,
    /// or one in a session that knows this member only.
    async fn let_some_stay(&self, member: Option<usize>) {
        self.phase.send_replace(Phase::Staying(member));
        for journal in self.journals {
            eventually("somebody stays", || async { journal.staying() > 0 }).await;
        }
    }

    fn let_all_go(&self) {
        self.phase.send_replace(Phase::Busy);
    }

    async fn kill(&mut self, leader: usize) -> Mended {
        self.let_some_stay(None).await;
        self.say(&format!("member {leader} is killed"));
        self.ensemble.members_mut()[leader]
            .kill()
            .await
            .expect("it is killed");
        let next = self.leader().await;
        self.let_all_go();
        let mended = Mended::now();
        self.say(&format!("member {next} leads"));
        self.ensemble.restart(leader).await.expect("it starts");
        mended
    }

    /// While sessions that know only this member hold of every recipe, and lose it.
    async fn pause(&mut self, member: usize) -> Mended {
        let losses: Vec<u64> = self
            .journals
            .iter()
            .map(|journal| journal.losses())
            .collect();
        self.let_some_stay(Some(member)).await;
        self.say(&format!("member {member} is paused"));
        self.ensemble.members()[member]
            .pause()
            .expect("it is paused");
        let paused = Instant::now();
        for (journal, losses) in self.journals.iter().zip(losses) {
            eventually("what is held by way of it is lost", || async move {
                journal.staying() == 0 && journal.losses() > losses
            })
            .await;
            let lost = Instant::now();
            eventually("others continue without it", || async move {
                journal.first_grant_after(lost).is_some()
            })
            .await;
        }
        sleep(LONGER_THAN_A_SESSION.saturating_sub(paused.elapsed())).await;
        self.let_all_go();
        self.say(&format!("member {member} continues"));
        self.ensemble.members()[member]
            .resume()
            .expect("it continues");
        Mended::now()
    }

    async fn restart_all(&mut self) -> Mended {
        let mut members: Vec<usize> = (0..MEMBERS).collect();
        self.rng.shuffle(&mut members);
        for member in members {
            self.say(&format!("member {member} is restarted"));
            self.ensemble.restart(member).await.expect("it starts");
        }
        Mended::now()
    }

    async fn kill_both(&mut self, leader: usize, follower: usize) -> Mended {
        self.let_some_stay(None).await;
        self.say(&format!("members {leader} and {follower} are killed"));
        for member in [leader, follower] {
            self.ensemble.members_mut()[member]
                .kill()
                .await
                .expect("it is killed");
        }
        // At times so long that the clients give up their sessions, and at others only their holds.
        let longer = self.rng.u32(0..=1_000);
        sleep(LONGER_THAN_A_SESSION + SESSION_TIMEOUT * longer / 2_000).await;
        for journal in self.journals {
            eventually("all is lost", || async { journal.staying() == 0 }).await;
        }
        self.let_all_go();
        self.say(&format!("members {leader} and {follower} are started"));
        let from = Instant::now();
        self.ensemble.restart(leader).await.expect("it starts");
        let serves = Instant::now();
        self.say("a quorum serves");
        self.ensemble.restart(follower).await.expect("it starts");
        Mended { from, serves }
    }

    /// Waits until a contender of every recipe has come to hold since the fault was mended, and
    /// says how long after the ensemble was seen to serve.
    async fn work_continues(&self, what: &str, mended: Mended) {
        let mut text = format!("{what}, next grant of");
        for journal in self.journals {
            eventually("work continues", || async {
                journal.first_grant_after(mended.from).is_some()
            })
            .await;
            let first = journal.first_grant_after(mended.from).expect("it was seen");
            let after = first.saturating_duration_since(mended.serves);
            assert!(
                after < GOES_ON_WITHIN,
                "{what}: {} only after {after:?}",
                journal.recipe().name,
            );
            text += &format!(" {} {:.2} s,", journal.recipe().name, after.as_secs_f64());
        }
        self.say(text.trim_end_matches(','));
    }
}
