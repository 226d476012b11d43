//! A process: sessions, one after the other, and the contenders in them.

use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::Instant;
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_simulation::SimulatedProcess;

use crate::contender::{Contender, Shared, SharedRecipe};
use crate::crowd;
use crate::schedule::Crowd;
use crate::setting::Setting;

/// Runs a process to its end; its last session is still open then.
pub(crate) async fn run(setting: &Setting, process: &SimulatedProcess, mut rng: Rng) -> Session {
    let name = process.name();
    loop {
        let session = open(setting, process).await;
        let lasts = Duration::from_millis(rng.u64(500..=15_000));
        let until = Instant::now() + lasts;
        let is_last = until >= setting.quiet_from || rng.bool();
        {
            let all = contend(setting, process, &session, &mut rng);
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
async fn contend(setting: &Setting, process: &SimulatedProcess, session: &Session, rng: &mut Rng) {
    let (name, schedule) = (process.name(), &setting.schedule);
    let weights = setting.recipe.weights;
    let shared: Shared = weights
        .iter()
        .map(|weight| {
            let shared = SharedRecipe::new(setting, session, *weight, rng);
            (*weight, shared)
        })
        .collect();
    let contenders = join_all((0..schedule.contenders).map(|number| {
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
    let is_first = name == "p0" && schedule.crowd != Crowd::default();
    let crowd = async {
        if is_first {
            crowd::run(setting, process, session, rng.fork()).await;
        }
    };
    tokio::join!(biased; contenders, crowd);
}

/// How a process connects: with the servers' tick set.
pub(crate) fn connect_options(setting: &Setting) -> ConnectOptions {
    ConnectOptions::new()
        .connection_timeout(setting.schedule.connects_within())
        .tick(setting.schedule.options.tick)
}

/// Opens a session, again and again until one opens.
pub(crate) async fn open(setting: &Setting, process: &SimulatedProcess) -> Session {
    loop {
        match Session::open(process.ensemble(), connect_options(setting)).await {
            Ok(session) => return session,
            Err(error) => setting.ledger.failed(process.name(), None, &error),
        }
    }
}
