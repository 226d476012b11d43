//! A process: sessions, one after the other, and the contenders in them.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::{join, join_all};
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::{ConnectOptions, DetachedSession, Ensemble, Error, Hold, Session};

use crate::contender::{Contender, Shared, SharedRecipe};
use crate::crowd;
use crate::holding::AtTheEnd;
use crate::schedule::Crowd;
use crate::setting::Setting;

/// Runs a process to its end; its last session is still open then.
pub(crate) async fn run(
    setting: &Setting,
    name: &str,
    ensemble: Arc<dyn Ensemble>,
    contenders: usize,
    mut rng: Rng,
) -> Session {
    let mut detached = None;
    loop {
        let (session, twin) = begin(setting, name, &ensemble, detached.take(), &mut rng).await;
        let at_the_end = AtTheEnd::default();
        let longest = if setting.leaves { 4_000 } else { 15_000 };
        let lasts = Duration::from_millis(rng.u64(500..=longest));
        let until = Instant::now() + lasts;
        let is_last = until >= setting.quiet_from || (rng.bool() && !setting.leaves);
        {
            let sessions = (&session, twin.as_ref());
            let all = contend(setting, name, sessions, contenders, &at_the_end, &mut rng);
            if is_last {
                all.await;
            } else {
                // What they were about is dropped wherever it is.
                let _ = tokio::time::timeout_at(until, all).await;
            }
        }
        if is_last {
            return session;
        }
        if setting.leaves && rng.u8(..4) > 0 {
            detached = leave(setting, name, session, at_the_end.into_inner()).await;
            let pause = rng.u64(0..=setting.longest_stay.as_millis() as u64 / 4);
            sleep(Duration::from_millis(pause)).await;
            continue;
        }
        drop(at_the_end);
        if rng.bool() {
            setting.ledger.remark(format!("{name} closes its session"));
            session.close().await;
        } else {
            setting.ledger.remark(format!("{name} drops its session"));
            drop(session);
        }
    }
}

/// All contenders of a process, and one in the session of its twin.
async fn contend(
    setting: &Setting,
    name: &str,
    (session, twin): (&Session, Option<&Session>),
    contenders: usize,
    at_the_end: &AtTheEnd,
    rng: &mut Rng,
) {
    let weights = setting.recipe.weights;
    let shared: Shared = weights
        .iter()
        .map(|weight| {
            let shared = SharedRecipe::new(setting, session, *weight, rng);
            (*weight, shared)
        })
        .collect();
    let nothing_shared = Shared::new();
    let own = (0..contenders).map(|number| (format!("{number}"), session, &shared));
    let of_twin = twin.map(|twin| ("twin".to_owned(), twin, &nothing_shared));
    let contenders = join_all(own.chain(of_twin).map(|(number, session, shared)| {
        let contender = Contender {
            who: format!("{name}.{number}"),
            setting,
            session,
            shared,
            at_the_end,
            rng: rng.fork(),
            leftover: Vec::new(),
        };
        contender.run()
    }));
    let is_first = name == "p0" && setting.crowd != Crowd::default();
    let crowd = async {
        if is_first {
            let process = setting.ledger.process(name);
            crowd::run(setting, &process, session, rng.fork()).await;
        }
    };
    tokio::join!(biased; contenders, crowd);
}

/// Leaves the session with what is held in it to the next process.
async fn leave(
    setting: &Setting,
    name: &str,
    session: Session,
    mut holds: Vec<Hold>,
) -> Option<DetachedSession> {
    let id = session.id();
    holds.retain(|hold| hold.is_held() && Some(hold.session_id()) == id);
    if holds.is_empty() {
        session.close().await;
        return None;
    }
    setting.ledger.remark(format!("{name} leaves its session"));
    match session.detach(holds).await {
        Ok(detached) => {
            setting.ledger.count(|figures| figures.left += 1);
            Some(detached)
        }
        // No server has answered for long.
        Err(Error::OutcomeUnknown { .. }) => None,
        Err(error) => {
            setting.ledger.failed(name, None, &error);
            None
        }
    }
}

/// Opens a session, or resumes the one that was left, now and then twice at once.
async fn begin(
    setting: &Setting,
    name: &str,
    ensemble: &Arc<dyn Ensemble>,
    detached: Option<DetachedSession>,
    rng: &mut Rng,
) -> (Session, Option<Session>) {
    match detached {
        None => (open(setting, name, ensemble).await, None),
        Some(detached) if rng.bool() => {
            let resume = || resume(setting, name, ensemble, &detached);
            let (session, twin) = join(resume(), resume()).await;
            (session, Some(twin))
        }
        Some(detached) => (resume(setting, name, ensemble, &detached).await, None),
    }
}

async fn resume(
    setting: &Setting,
    name: &str,
    ensemble: &Arc<dyn Ensemble>,
    detached: &DetachedSession,
) -> Session {
    let resumed = || Session::resume_in(ensemble.clone(), connect_options(setting), detached);
    let session = until_open(setting, name, resumed).await;
    if session.id() == Some(detached.session_id()) {
        setting.ledger.count(|figures| figures.resumed += 1);
    }
    session
}

/// How a process connects: with the servers' tick set.
pub(crate) fn connect_options(setting: &Setting) -> ConnectOptions {
    ConnectOptions::new()
        .connection_timeout(Duration::from_secs(5))
        .tick(setting.tick)
}

/// Opens a session, again and again until one opens.
pub(crate) async fn open(setting: &Setting, name: &str, ensemble: &Arc<dyn Ensemble>) -> Session {
    let opened = || Session::open(ensemble.clone(), connect_options(setting));
    until_open(setting, name, opened).await
}

async fn until_open(
    setting: &Setting,
    name: &str,
    open: impl AsyncFn() -> Result<Session, Error>,
) -> Session {
    loop {
        match open().await {
            Ok(session) => return session,
            Err(error) => setting.ledger.failed(name, None, &error),
        }
    }
}
