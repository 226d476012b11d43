//! A contest for one lock: each contender holds once, and the cost of it is counted.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_benches::passing::{Entrant, MakeRecipe, Passing};
use zookeeper_recipes_benches::way::{POLL_INTERVAL, Wakes, Way};
use zookeeper_recipes_core::{Recipe, Refusal, Session, WaitStrategy};
use zookeeper_recipes_testkit::TestEnsemble;
use zookeeper_recipes_testkit::meter::Counts;

/// The four ways to compare, each with the options that a recipe has by default.
pub(crate) const WAYS: [Way; 4] = [
    Way::SINGLE_NODE,
    Way::new(
        "poll",
        Wakes::Nobody,
        Some((WaitStrategy::Poll(POLL_INTERVAL), true)),
    ),
    Way::new(
        "parent",
        Wakes::Everybody,
        Some((WaitStrategy::Parent, true)),
    ),
    Way::new(
        "predecessor",
        Wakes::WhomItConcerns,
        Some((WaitStrategy::Predecessor, true)),
    ),
];

/// The size of a contest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest {
    /// How many contenders wait behind the starter, who holds until all of them do.
    pub(crate) contenders: usize,
    /// How long each contender holds.
    pub(crate) hold: Duration,
}

/// The cost of a part of a contest, by the contenders' counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Requests, without pings and the probes of the sessions.
    pub(crate) requests: u64,
    /// Notifications of watches.
    pub(crate) notifications: u64,
    /// The notifications of something that another session did.
    pub(crate) wake_ups: u64,
}

impl Cost {
    fn between(earlier: &Counts, later: &Counts) -> Cost {
        Cost {
            requests: later.requests - earlier.requests,
            notifications: later.told() - earlier.told(),
            wake_ups: later.wake_ups - earlier.wake_ups,
        }
    }
}

/// What a contest came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How many contenders have held, without the starter.
    pub(crate) turns: usize,
    /// From the starter's release until the last contender's release was confirmed.
    pub(crate) took: Duration,
    /// From the first contender's acquire until the last one's release.
    pub(crate) all: Cost,
    /// The part of it since all contenders waited.
    pub(crate) passing: Cost,
    /// How many contenders held in another place than the order of asking gave them.
    pub(crate) out_of_turn: usize,
}

impl Contest {
    /// The time after which a contest has failed.
    pub(crate) fn patience(&self) -> Duration {
        let number = u32::try_from(self.contenders).unwrap_or(u32::MAX);
        let turn = self.hold.saturating_add(POLL_INTERVAL * 2);
        Duration::from_secs(10).saturating_add(turn.saturating_mul(number))
    }

    /// Runs the contest in one way for the lock that `make` makes, and calls `entered` for each
    /// contender that holds.
    ///
    /// Dropped half-way, the contest leaves znodes until its sessions have given up in the
    /// background.
    ///
    /// # Errors
    ///
    /// If a promise is not kept, a contender fails, or [`patience`](Self::patience) is over.
    pub(crate) async fn run(
        &self,
        way: &Way,
        make: MakeRecipe<'_>,
        ensemble: &TestEnsemble,
        entered: impl FnMut(&Entrant),
    ) -> anyhow::Result<Outcome> {
        let patience = self.patience();
        let contest = self.pass(way, make, ensemble, entered);
        match tokio::time::timeout(patience, contest).await {
            Ok(outcome) => outcome.with_context(|| way.name),
            Err(_) => bail!("{}: not finished after {patience:?}", way.name),
        }
    }

    async fn pass(
        &self,
        way: &Way,
        make: MakeRecipe<'_>,
        ensemble: &TestEnsemble,
        mut entered: impl FnMut(&Entrant),
    ) -> anyhow::Result<Outcome> {
        // The starter is the first contender.
        let number = self.contenders + 1;
        let members = Member::connect(ensemble.connect_string(), number).await?;
        let observing = Member::connect(ensemble.connect_string(), 1).await?;
        let observing = observing.into_iter().next().context("no observer")?;
        let writes = vec![true; number];
        let mut passing = Passing::begin(way, make, &members, &observing, writes).await?;

        passing.enter(1).await?;
        let idle = passing.counts();
        passing.enter(self.contenders).await?;
        let waiting = passing.counts();

        let began = Instant::now();
        let mut held = Vec::new();
        let (_, mut next) = passing.release(0).await?;
        while let Some(entrant) = next.pop() {
            entered(&entrant);
            held.push(entrant.who);
            passing.rest(self.hold).await?;
            (_, next) = passing.release(entrant.who).await?;
        }
        let took = began.elapsed();
        passing.settle().await?;
        let done = passing.counts();

        let turns = held.len();
        ensure!(turns == self.contenders, "{turns} holds of {self:?}");
        let observer = make(&observing.session, "observer", true)?;
        ensure_nothing_left(ensemble, &observing.session, &*observer).await?;
        Member::close(members).await;
        Member::close(vec![observing]).await;
        Ok(Outcome {
            turns,
            took,
            all: Cost::between(&idle, &done),
            passing: Cost::between(&waiting, &done),
            out_of_turn: (1..)
                .zip(&held)
                .filter(|(place, who)| place != *who)
                .count(),
        })
    }
}

/// Checks that no znode and no watch is left once all contenders have released.
async fn ensure_nothing_left(
    ensemble: &TestEnsemble,
    session: &Session,
    recipe: &dyn Recipe,
) -> anyhow::Result<()> {
    let path = recipe.path();
    let contenders = recipe.contenders().await?;
    ensure!(
        contenders.is_empty(),
        "contenders left at {path}: {contenders:?}"
    );
    let server = session.server(path).await?;
    match server.list(path.as_str()).await {
        Ok(children) => ensure!(children.is_empty(), "left under {path}: {children:?}"),
        Err(error) if error.is(Refusal::NoNode) => {}
        Err(error) => return Err(error.into()),
    }
    // All sessions are open still, so that a watch that was left is on the server.
    if let Some(server) = ensemble.server() {
        let watches = server.monitor().await?.watches;
        ensure!(watches == 0, "watches left: {watches}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use zookeeper_recipes_benches::way::Subject;
    use zookeeper_recipes_core::{InvalidInput, Queue, QueueOptions, QueueView, Rule, Verdict};
    use zookeeper_recipes_testkit::ServerOptions;

    use super::*;

    const SMALL: Contest = Contest {
        contenders: 5,
        hold: Duration::from_millis(50),
    };

    async fn run(way: &Way, ensemble: &TestEnsemble) -> anyhow::Result<Outcome> {
        let path = format!("/{}", way.name.replace(' ', "-"));
        let make = |session: &Session, name: &str, writes| {
            way.recipe(Subject::Lock, session, &path, name, writes)
        };
        SMALL.run(way, &make, ensemble, |_| {}).await
    }

    /// The error of a contest whose lock breaks a promise.
    fn complaint(outcome: anyhow::Result<Outcome>) -> String {
        let error = outcome.expect_err("a promise is not kept");
        format!("{error:#}")
    }

    #[derive(Debug)]
    struct TwoAtATime;

    impl Rule for TwoAtATime {
        fn label(&self) -> Cow<'_, str> {
            "lock-".into()
        }

        fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
            Ok(match view.place() {
                0 | 1 => Verdict::Hold,
                place => Verdict::Wait {
                    on: vec![place - 2, place - 1],
                },
            })
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_that_lets_two_in_is_found_out() -> anyhow::Result<()> {
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        let path = "/two-at-a-time";
        let make = |session: &Session, name: &str, _writes: bool| {
            let options = QueueOptions::new().data(name);
            let queue = Queue::with_options(session, path, TwoAtATime, options)?;
            Ok(Box::new(queue) as Box<dyn Recipe>)
        };
        for way in [Way::POLL, Way::PREDECESSOR] {
            let outcome = SMALL.run(&way, &make, &ensemble, |_| {}).await;
            let complaint = complaint(outcome);
            assert!(complaint.contains("Entered"), "{complaint}");
        }
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_that_holds_in_another_order_than_its_queue_is_found_out() -> anyhow::Result<()> {
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        let way = Way::PREDECESSOR;
        // Two contenders have each other's name.
        let make = |session: &Session, name: &str, writes| {
            let name = match name {
                "00001" => "00002",
                "00002" => "00001",
                name => name,
            };
            way.recipe(Subject::Lock, session, "/swapped", name, writes)
        };
        let outcome = SMALL.run(&way, &make, &ensemble, |_| {}).await;
        let complaint = complaint(outcome);
        assert!(complaint.contains("should"), "{complaint}");
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn znodes_and_watches_that_are_left_are_found() -> anyhow::Result<()> {
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        let way = &WAYS[3];
        let other = Session::connect(ensemble.connect_string()).await?;
        let recipe = way.recipe(Subject::Lock, &other, "/predecessor/left", "other", true)?;
        let hold = recipe.acquire().await?;
        let server = other.server(recipe.path()).await?;
        let left = complaint(run(way, &ensemble).await);
        assert!(
            left.contains("left under /predecessor: [\"left\"]"),
            "{left}"
        );
        hold.release().await?;
        server.delete("/predecessor/left").await?;

        let (_, watch) = server.list_and_watch("/").await?;
        let left = complaint(run(way, &ensemble).await);
        assert!(left.contains("watches left: 1"), "{left}");
        drop(watch);
        Ok(())
    }
}
