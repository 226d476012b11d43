//! A contest for one lock: many contenders, each with a session of its own, each one turn; checked
//! as it goes, and its cost counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::future::{join_all, try_join_all};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zookeeper_recipes_lock::common::{Refusal, ZookeeperEnsemble};
use zookeeper_recipes_lock::{
    ConnectOptions, ExclusiveLock, FencingToken, InvalidInput, LockOptions, Recipe, Session,
    SingleNodeLock, SingleNodeOptions, WaitStrategy,
};
use zookeeper_recipes_testkit::meter::{Counts, Meter, MeteredEnsemble};
use zookeeper_recipes_testkit::{Monitor, TestEnsemble};

use crate::referee::Referee;

/// Long, so that hardly a ping falls into a contest.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a contender looks that waits by looking.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often it is looked whether all contenders wait.
const LOOK: Duration = Duration::from_millis(2);

/// One way to wait for a lock.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// Whether it promises that who came first holds first.
    pub(crate) in_order: bool,
    /// Whether whoever waits has a watch set.
    pub(crate) watches: bool,
    pub(crate) recipe: MakeRecipe,
}

/// Makes the lock of one contender, from its session, the lock's path and its name.
pub(crate) type MakeRecipe = fn(&Session, &str, &str) -> Result<Box<dyn Recipe>, InvalidInput>;

/// The four ways to compare.
pub(crate) const WAYS: [Way; 4] = [
    Way {
        name: "single node",
        in_order: false,
        watches: true,
        recipe: |session, path, who| {
            let options = SingleNodeOptions::new().data(who);
            Ok(Box::new(SingleNodeLock::with_options(
                session, path, options,
            )?))
        },
    },
    Way {
        name: "poll",
        in_order: true,
        watches: false,
        recipe: |session, path, who| queued(session, path, who, WaitStrategy::Poll(POLL_INTERVAL)),
    },
    Way {
        name: "parent",
        in_order: true,
        watches: true,
        recipe: |session, path, who| queued(session, path, who, WaitStrategy::Parent),
    },
    Way {
        name: "predecessor",
        in_order: true,
        watches: true,
        recipe: |session, path, who| queued(session, path, who, WaitStrategy::Predecessor),
    },
];

fn queued(
    session: &Session,
    path: &str,
    who: &str,
    strategy: WaitStrategy,
) -> Result<Box<dyn Recipe>, InvalidInput> {
    let options = LockOptions::new().data(who).strategy(strategy);
    Ok(Box::new(ExclusiveLock::with_options(
        session, path, options,
    )?))
}

/// How large a contest is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest {
    /// How many wait behind the starter, who holds until all of them do.
    pub(crate) contenders: usize,
    /// How long each holds.
    pub(crate) hold: Duration,
}

/// One contender's turn, by its own account.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) who: String,
    pub(crate) token: FencingToken,
    /// When it asked for the lock.
    pub(crate) asked: Instant,
    /// When it had it.
    pub(crate) entered: Instant,
}

/// What a contest came to.
#[derive(Debug)]
pub(crate) struct Report {
    /// In the order of holding, without the starter's.
    pub(crate) turns: Vec<Turn>,
    /// From the starter's call of release until the last contender's release was confirmed.
    pub(crate) took: Duration,
    /// From the first contender's asking until the last one's release.
    pub(crate) all: Cost,
    /// The part of it since all were waiting.
    pub(crate) passing: Cost,
    /// How many held in another place than they had: in the server's queue where the way has
    /// one, else in the order of asking.
    pub(crate) out_of_turn: usize,
    /// What was promised and not kept, in words.
    pub(crate) violations: Vec<String>,
}

/// What something cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// By the server's own account; `None` where it does not give one.
    pub(crate) by_server: Option<Traffic>,
    /// By the clients'.
    pub(crate) by_clients: Traffic,
    /// Of the notifications: those of something that somebody else did.
    pub(crate) wake_ups: u64,
}

/// What passed between clients and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Requests the server received, without those of the counting itself and the probes of the
    /// sessions. On the server's account, pings are among them: a session sends one when it has
    /// been idle for 9 s, so that a short contest has none.
    pub(crate) requests: u64,
    /// Notifications of watches that the server sent.
    pub(crate) notifications: u64,
}

impl Cost {
    /// By the server's account where there is one.
    pub(crate) fn traffic(&self) -> Traffic {
        self.by_server.unwrap_or(self.by_clients)
    }
}

impl Contest {
    /// How long a contest may take before it has failed.
    pub(crate) fn patience(&self) -> Duration {
        let number = u32::try_from(self.contenders).unwrap_or(u32::MAX);
        let turn = self.hold.saturating_add(Duration::from_millis(200));
        Duration::from_secs(10).saturating_add(turn.saturating_mul(number))
    }

    /// Runs the contest in one way for the lock at `path`, and calls `entered` with the name and
    /// the token of each that holds.
    ///
    /// Dropped half-way it leaves nothing behind but what its sessions give up in the background.
    ///
    /// # Errors
    ///
    /// When a contender fails, or after [`patience`](Self::patience). What went wrong between
    /// contenders is no error but in [`Report::violations`].
    pub(crate) async fn run(
        &self,
        way: &Way,
        ensemble: &TestEnsemble,
        path: &str,
        entered: impl FnMut(&str, FencingToken),
    ) -> anyhow::Result<Report> {
        let patience = self.patience();
        match tokio::time::timeout(patience, self.pass(way, ensemble, path, entered)).await {
            Ok(report) => report.with_context(|| way.name),
            Err(_) => bail!("{}: not finished after {patience:?}", way.name),
        }
    }

    async fn pass(
        &self,
        way: &Way,
        ensemble: &TestEnsemble,
        path: &str,
        mut entered: impl FnMut(&str, FencingToken),
    ) -> anyhow::Result<Report> {
        let connect = |who: String| Contender::connect(way, ensemble, path, who);
        let observer = connect("observer".to_owned()).await?;
        let starter = connect("starter".to_owned()).await?;
        let width = self.contenders.to_string().len();
        let names = (1..=self.contenders).map(|number| format!("contender {number:0width$}"));
        let contenders = try_join_all(names.map(connect)).await?;
        let mut sessions: Vec<Session> = contenders
            .iter()
            .map(|contender| contender.session.clone())
            .collect();
        sessions.push(starter.session.clone());
        sessions.push(observer.session.clone());
        let counter = Counter {
            ensemble,
            observer: &observer,
            starter: starter.meter.clone(),
            contenders: contenders
                .iter()
                .map(|contender| contender.meter.clone())
                .collect(),
        };

        let referee = Arc::new(Referee::default());
        let hold = starter.recipe.acquire_timeout(self.patience()).await?;
        referee.enter(&starter.who, hold.fencing_token());
        counter.settle(&sessions, way, |_| true).await?;
        let idle = counter.read(1).await;

        let (sender, mut holders) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for contender in contenders {
            tasks.spawn(contender.take_turn(*self, referee.clone(), sender.clone()));
        }
        drop(sender);
        counter
            .settle(&sessions, way, |counts| match way.watches {
                true => counts.watches > 0,
                // The creation of its znode and a look at the queue have been answered.
                false => counts.requests >= counts.unanswered + 2,
            })
            .await?;
        let queue = observer.recipe.contenders().await?;
        let waiting = counter.read(2).await;

        let began = Instant::now();
        referee.leave(&starter.who);
        hold.release().await.context("the starter")?;
        while let Some((who, token)) = holders.recv().await {
            entered(&who, token);
        }
        let mut turns = Vec::new();
        while let Some(turn) = tasks.join_next().await {
            turns.push(turn.context("a contender did not get to its end")??);
        }
        let took = began.elapsed();
        counter.settle(&sessions, way, |_| true).await?;
        let done = counter.read(3).await;

        turns.sort_by_key(|turn| turn.entered);
        let mut violations = referee.violations();
        if referee.entries() != self.contenders + 1 {
            let (entries, expected) = (referee.entries(), self.contenders + 1);
            violations.push(format!("{entries} holds instead of {expected}"));
        }
        let expected: Vec<(String, FencingToken)> = match way.in_order {
            true => queue
                .iter()
                .map(|entry| {
                    let who = String::from_utf8_lossy(&entry.data).into_owned();
                    (who, entry.fencing_token)
                })
                .filter(|(who, _)| *who != starter.who)
                .collect(),
            false => {
                let mut by_asking: Vec<&Turn> = turns.iter().collect();
                by_asking.sort_by_key(|turn| turn.asked);
                let by_asking = by_asking.into_iter();
                by_asking
                    .map(|turn| (turn.who.clone(), turn.token))
                    .collect()
            }
        };
        let held: Vec<(String, FencingToken)> = turns
            .iter()
            .map(|turn| (turn.who.clone(), turn.token))
            .collect();
        let out_of_turn = (0..held.len().max(expected.len()))
            .filter(|&place| held.get(place) != expected.get(place))
            .count();
        if way.in_order && out_of_turn > 0 {
            violations.push(format!(
                "order not kept: queued {expected:?}, held {held:?}"
            ));
        }
        violations.extend(left_behind(ensemble, &observer).await?);

        drop((observer, starter));
        join_all(sessions.into_iter().map(Session::close)).await;
        Ok(Report {
            turns,
            took,
            all: idle.cost_until(&done),
            passing: waiting.cost_until(&done),
            out_of_turn,
            violations,
        })
    }
}

/// What is left at the lock's path when everybody has released, and of their watches; in words.
async fn left_behind(ensemble: &TestEnsemble, observer: &Contender) -> anyhow::Result<Vec<String>> {
    let path = observer.recipe.path();
    let mut left = Vec::new();
    let contenders = observer.recipe.contenders().await?;
    if !contenders.is_empty() {
        left.push(format!("contenders left at {path}: {contenders:?}"));
    }
    let server = observer.session.server(path).await?;
    match server.list(path.as_str()).await {
        Ok(children) if children.is_empty() => {}
        Ok(children) => left.push(format!("left under {path}: {children:?}")),
        Err(error) if error.is(Refusal::NoNode) => {}
        Err(error) => return Err(error.into()),
    }
    // All sessions are open still, so that a watch that was left is there.
    if let Some(server) = ensemble.server() {
        let watches = server.monitor().await?.watches;
        if watches > 0 {
            left.push(format!("watches left: {watches}"));
        }
    }
    Ok(left)
}

/// One who wants the lock, with a session and a lock of its own.
struct Contender {
    who: String,
    session: Session,
    meter: Meter,
    recipe: Box<dyn Recipe>,
}

impl Contender {
    async fn connect(
        way: &Way,
        ensemble: &TestEnsemble,
        path: &str,
        who: String,
    ) -> anyhow::Result<Contender> {
        let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        let zookeeper = ZookeeperEnsemble::new(ensemble.connect_string(), options.clone())?;
        let meter = Meter::default();
        let metered = MeteredEnsemble::new(Arc::new(zookeeper), meter.clone());
        let session = Session::open(Arc::new(metered), options).await?;
        let recipe = (way.recipe)(&session, path, &who)?;
        Ok(Contender {
            who,
            session,
            meter,
            recipe,
        })
    }

    async fn take_turn(
        self,
        contest: Contest,
        referee: Arc<Referee>,
        entered: mpsc::UnboundedSender<(String, FencingToken)>,
    ) -> anyhow::Result<Turn> {
        let turn = self.hold_once(contest, &referee, &entered).await;
        turn.with_context(|| self.who)
    }

    async fn hold_once(
        &self,
        contest: Contest,
        referee: &Referee,
        entered: &mpsc::UnboundedSender<(String, FencingToken)>,
    ) -> anyhow::Result<Turn> {
        let asked = Instant::now();
        let hold = self.recipe.acquire_timeout(contest.patience()).await?;
        let token = hold.fencing_token();
        referee.enter(&self.who, token);
        let turn = Turn {
            who: self.who.clone(),
            token,
            asked,
            entered: Instant::now(),
        };
        // Nobody listens any more where the contest has failed already.
        let _ = entered.send((self.who.clone(), token));
        let lost = tokio::select! {
            biased;
            reason = hold.lost() => Some(reason),
            () = tokio::time::sleep(contest.hold) => None,
        };
        referee.leave(&self.who);
        if let Some(reason) = lost {
            return Err(reason.into());
        }
        hold.release().await?;
        Ok(turn)
    }
}

/// Reads the figures of the server and of the clients.
struct Counter<'a> {
    ensemble: &'a TestEnsemble,
    /// Looks on; what it asks is no part of the cost.
    observer: &'a Contender,
    starter: Meter,
    contenders: Vec<Meter>,
}

/// All figures at one moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    server: Option<ServerReading>,
    /// Of the contenders and the starter, summed up.
    clients: Counts,
    /// What the observer asked.
    observer: Counts,
}

#[derive(Clone, Copy, Debug)]
struct ServerReading {
    packets_received: u64,
    /// How many of the packets asked for this reading and those before it.
    questions: u64,
    notifications: u64,
}

impl Counter<'_> {
    fn clients(&self) -> Counts {
        let meters = self.contenders.iter().chain([&self.starter]);
        meters
            .map(Meter::read)
            .fold(Counts::default(), Counts::plus)
    }

    /// Waits until each contender is as it should be, and nothing is under way between any of the
    /// sessions and the server. Where waiting is polling, something always is.
    async fn settle(
        &self,
        sessions: &[Session],
        way: &Way,
        is_ready: impl Fn(&Counts) -> bool,
    ) -> anyhow::Result<()> {
        let path = self.observer.recipe.path();
        loop {
            let before = self.clients();
            // Whatever the server had sent to a session is there before the answer to this.
            try_join_all(sessions.iter().map(async |session| {
                session.server(path).await?.sync("/").await?;
                anyhow::Ok(())
            }))
            .await?;
            let ready = self.contenders.iter().all(|meter| is_ready(&meter.read()));
            let after = self.clients();
            let quiet = after.unanswered == 0
                && (after.requests, after.told()) == (before.requests, before.told());
            if ready && (quiet || !way.watches) {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Takes the `number`th reading.
    async fn read(&self, number: u64) -> Reading {
        // The clients' first: in the moment between, nothing is under way but polling.
        let clients = self.clients();
        let observer = self.observer.meter.read();
        let server = match self.ensemble.monitors().await {
            Ok(monitors) => ServerReading::of(&monitors, number),
            // It does not answer `mntr` to everybody; the clients' own account is left.
            Err(_) => None,
        };
        Reading {
            server,
            clients,
            observer,
        }
    }
}

impl ServerReading {
    fn of(monitors: &[Monitor], number: u64) -> Option<ServerReading> {
        let mut reading = ServerReading {
            packets_received: 0,
            questions: 0,
            notifications: 0,
        };
        for monitor in monitors {
            reading.packets_received += monitor.packets_received;
            reading.questions += number;
            reading.notifications += monitor.notifications()?;
        }
        Some(reading)
    }
}

impl Reading {
    fn cost_until(&self, later: &Reading) -> Cost {
        let requests = later.clients.requests - self.clients.requests;
        let uncounted = (later.clients.probes - self.clients.probes)
            + (later.observer.probes - self.observer.probes)
            + (later.observer.requests - self.observer.requests);
        let by_server = self.server.zip(later.server).map(|(first, last)| Traffic {
            requests: last
                .packets_received
                .saturating_sub(first.packets_received)
                .saturating_sub(last.questions - first.questions)
                .saturating_sub(uncounted),
            notifications: last.notifications.saturating_sub(first.notifications),
        });
        Cost {
            by_server,
            by_clients: Traffic {
                requests,
                notifications: later.clients.told() - self.clients.told(),
            },
            wake_ups: later.clients.wake_ups - self.clients.wake_ups,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use zookeeper_recipes_lock::common::{Contender as Place, Queue, QueueOptions, Rule, Verdict};
    use zookeeper_recipes_testkit::ServerOptions;

    use super::*;

    const SMALL: Contest = Contest {
        contenders: 5,
        hold: Duration::from_millis(50),
    };

    async fn run(way: &Way, ensemble: &TestEnsemble) -> anyhow::Result<Report> {
        let path = format!("/{}", way.name.replace(' ', "-"));
        SMALL.run(way, ensemble, &path, |_, _| {}).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn all_ways_keep_their_promise_and_clients_and_server_count_alike() -> anyhow::Result<()>
    {
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        for way in &WAYS {
            let report = run(way, &ensemble).await?;
            assert!(report.violations.is_empty(), "{report:?}");
            assert_eq!(report.turns.len(), SMALL.contenders);
            assert!(report.took >= SMALL.hold * 5, "{report:?}");
            assert_eq!(
                report.all.by_server,
                Some(report.all.by_clients),
                "{}",
                way.name
            );
        }
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn release_wakes_one_with_the_predecessor_and_all_in_a_herd() -> anyhow::Result<()> {
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        for way in &WAYS {
            let woken = run(way, &ensemble).await?.passing.wake_ups;
            // Of five waiters: five, four, three, two, one, as long as each has set its next watch
            // before the next release.
            let expected = match way.name {
                "poll" => 0..=0,
                "predecessor" => 5..=5,
                _ => 11..=15,
            };
            assert!(expected.contains(&woken), "{}: {woken}", way.name);
        }
        Ok(())
    }

    #[derive(Debug)]
    struct TwoAtATime;

    impl Rule for TwoAtATime {
        fn label(&self) -> Cow<'_, str> {
            "lock-".into()
        }

        fn decide(&self, _queue: &[Place], me: usize) -> Verdict {
            match me {
                0 | 1 => Verdict::Hold,
                _ => Verdict::Wait {
                    on: vec![me - 2, me - 1],
                },
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_that_lets_two_in_is_found_out() -> anyhow::Result<()> {
        let broken = Way {
            name: "two at a time",
            in_order: true,
            watches: false,
            recipe: |session, path, who| {
                let options = QueueOptions::new().data(who);
                let queue = Queue::with_options(session, path, TwoAtATime, options)?;
                Ok(Box::new(queue))
            },
        };
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        let violations = run(&broken, &ensemble).await?.violations;
        let overlap = violations.iter().find(|found| found.contains("while"));
        assert!(overlap.is_some(), "{violations:?}");
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lock_without_order_that_promises_one_is_found_out() -> anyhow::Result<()> {
        let boastful = Way {
            in_order: true,
            ..WAYS[0]
        };
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        let violations = run(&boastful, &ensemble).await?.violations;
        let disorder = violations
            .iter()
            .find(|found| found.contains("order not kept"));
        assert!(disorder.is_some(), "{violations:?}");
        Ok(())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_left_behind_is_found() -> anyhow::Result<()> {
        let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
        let way = &WAYS[3];
        let other = Contender::connect(way, &ensemble, "/predecessor/left", "other".into()).await?;
        let hold = other.recipe.acquire().await?;
        let server = other.session.server(other.recipe.path()).await?;
        let (_, watch) = server.list_and_watch("/predecessor/left").await?;

        let violations = run(way, &ensemble).await?.violations;
        let left = |what: &str| violations.iter().any(|found| found.contains(what));
        assert!(
            left("left under /predecessor: [\"left\"]"),
            "{violations:?}"
        );
        assert!(left("watches left: 1"), "{violations:?}");
        drop(watch);
        hold.release().await?;
        Ok(())
    }
}
