//! Running for leader: campaign, work while leading, stop in time, campaign again.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep, sleep_until};
use zookeeper_recipes_core::{HoldState, HoldView};
use zookeeper_recipes_election::{LeaderElection, RunError, StopWork, Term};
use zookeeper_recipes_suite::candidate;

use crate::contender::{Contender, commit, guarded, options};
use crate::holding::Holding;
use crate::invariants::work;
use crate::place::UNDER_TEST;
use crate::setting::Setting;

/// What a leader's work fails with.
#[derive(Debug)]
struct Failed;

/// A term that has begun. It is noted when its work is dropped, just before the leader resigns.
struct Led<'a> {
    hold: HoldView,
    /// The holds, each with the time when its lease ran out if it was not renewed meanwhile.
    noted: &'a RefCell<Vec<(HoldView, Instant)>>,
}

impl Drop for Led<'_> {
    fn drop(&mut self) {
        let lasts = self.hold.remaining();
        // Clocks of processes run fast or slow.
        let until = Instant::now() + lasts * 49 / 50;
        self.noted.borrow_mut().push((self.hold.clone(), until));
    }
}

impl Contender<'_> {
    /// Campaigns until it is ordered to end, or dropped.
    pub(crate) async fn lead(&mut self) {
        let setting = self.setting;
        let stop = match self.rng.bool() {
            true => StopWork::WhenSuspended,
            false => StopWork::WhenLost,
        };
        let options = options(&mut self.rng).data(self.who.as_bytes());
        let mut candidate = candidate(self.session, UNDER_TEST.path, options)
            .expect("the options are good")
            .stop_work(stop);
        if self.rng.u8(..5) == 0 {
            candidate = candidate.standby().expect("a good name");
        }
        let elects = candidate.clone();
        let lasts = Duration::from_millis(self.rng.u64(0..=10_000));
        let until = (Instant::now() + lasts).min(setting.quiet_from);
        let dropped = self.rng.u8(..4) == 0;
        let patience = self.draw_patience();
        let who = self.who.as_str();

        let was_told = Cell::new(false);
        let shutdown = async {
            sleep_until(until).await;
            was_told.set(true);
        };
        let noted = RefCell::default();
        let rng = &mut self.rng;
        let work = |term: Term| {
            let led = Led {
                hold: term.view(),
                noted: &noted,
            };
            let serve = serve(setting, who, stop, rng.fork(), (&elects, term));
            async move {
                let _led = led;
                serve.await
            }
        };
        let run = candidate.run(shutdown, work);
        let result = match dropped {
            true => tokio::time::timeout(patience, run).await.ok(),
            false => Some(run.await),
        };
        match result {
            // It resigns in the background.
            None => return setting.count(|figures| figures.aborted += 1),
            Some(Ok(())) if was_told.get() => {}
            Some(Err(RunError::Work(Failed))) => {}
            Some(other) => {
                let text = format!("{who}: {other:?}");
                let promise = "a campaign ends only when ordered to, or as the work fails";
                setting.violated(promise, text);
            }
        }
        self.check_resigned(noted.into_inner()).await;
    }

    /// Checks that no znode remains of the terms that it has resigned from.
    async fn check_resigned(&self, led: Vec<(HoldView, Instant)>) {
        let ledger = &self.setting.ledger;
        let now = Instant::now();
        // What was lost is given up in the background. If the lease has run out during a release, the
        // release continues there, too.
        let resigned = |(hold, lease_ends): &(HoldView, Instant)| {
            hold.state() == HoldState::Released && now < *lease_ends
        };
        let led = led.into_iter().filter(resigned);
        let led = led.map(|(hold, _)| (hold.node_path().to_owned(), hold.session_id()));
        let remaining = ledger.remaining(led.collect());
        if !remaining.is_empty() {
            // Until the session knows that it is over, if it is.
            sleep(Duration::from_millis(1)).await;
            for hold in remaining {
                ledger.report(work::at_end(&self.who, self.session.id(), &hold));
            }
        }
    }
}

/// Works as the leader for a term, and then returns, fails, or works for ever.
async fn serve(
    setting: &Setting,
    who: &str,
    stop: StopWork,
    mut rng: Rng,
    (candidate, term): (&LeaderElection, Term),
) -> Result<(), Failed> {
    setting.count(|figures| figures.terms += 1);
    let holding = Holding::of_another(&setting.ledger, who, 1, &term.view());
    let number = holding.number();
    let lasts = Duration::from_millis(rng.u64(0..=1_500));
    let steps = rng.u32(1..=6);
    let ending = rng.u8(..4);
    let writes = rng.bool();
    let transfers = rng.u8(..4) == 0;
    let steps = async {
        for _ in 0..steps {
            sleep(lasts / steps).await;
            if writes {
                write(setting, who, &term.view(), number).await;
            }
        }
        if transfers {
            let text = format!("{who} proclaims: {:?}", term.proclaim(who).await);
            setting.ledger.remark(text);
            let chosen = somebody(candidate, &mut rng).await;
            let text = format!("{who} transfers: {:?}", term.transfer_to(&chosen).await);
            setting.ledger.remark(text);
        }
        match ending {
            0 => Ok(()),
            1 => Err(Failed),
            _ => std::future::pending().await,
        }
    };
    watched(setting, number, stop, steps).await
}

/// The id of any candidate, or of none.
pub(crate) async fn somebody(candidate: &LeaderElection, rng: &mut Rng) -> String {
    let contenders = candidate.contenders().await.unwrap_or_default();
    let chosen = rng.choice(contenders).and_then(|chosen| chosen.owner);
    chosen.unwrap_or_else(|| "nobody".to_owned())
}

async fn write(setting: &Setting, who: &str, hold: &HoldView, number: u64) {
    let write = guarded(UNDER_TEST, hold, 1);
    commit(&setting.ledger, who, write, number).await;
}

/// Has the ledger look at each step that the work takes.
async fn watched<F: Future>(setting: &Setting, number: u64, stop: StopWork, work: F) -> F::Output {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        setting
            .ledger
            .look(|state| work::at_step(state, number, stop));
        work.as_mut().poll(context)
    })
    .await
}
