//! A process: sessions, one after the other, and the contenders in them.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::Instant;
use zookeeper_recipes_core::{ConnectOptions, Ensemble, Session};

use crate::contender::{Contender, Shared, SharedRecipe};
use crate::crowd;
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
    loop {
        let session = open(setting, name, &ensemble).await;
        let lasts = Duration::from_millis(rng.u64(500..=15_000));
        let until = Instant::now() + lasts;
        let is_last = until >= setting.quiet_from || rng.bool();
        {
            let all = contend(setting, name, &session, contenders, &mut rng);
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
        if rng.bool() {
            setting.ledger.remark(format!("{name} closes its session"));
            session.close().await;
        } else {
            setting.ledger.remark(format!("{name} drops its session"));
            drop(session);
        }
    }
}

/// All contenders of a process.
async fn contend(
    setting: &Setting,
    name: &str,
    session: &Session,
    contenders: usize,
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
    let contenders = join_all((0..contenders).map(|number| {
        let contender = Contender {
            who: format!("{name}.{number}"),
            setting,
            session,
            shared: &shared,
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

/// How a process connects: with the servers' tick set.
pub(crate) fn connect_options(setting: &Setting) -> ConnectOptions {
    ConnectOptions::new()
        .connection_timeout(setting.connects_within)
        .tick(setting.tick)
}

/// Opens a session, again and again until one opens.
pub(crate) async fn open(setting: &Setting, name: &str, ensemble: &Arc<dyn Ensemble>) -> Session {
    loop {
        match Session::open(ensemble.clone(), connect_options(setting)).await {
            Ok(session) => return session,
            Err(error) => setting.ledger.failed(name, None, &error),
        }
    }
}
