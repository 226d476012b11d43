//! The throughput of a contended lock beside a viewer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use zookeeper_recipes_benches::Testbed;
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_overview::Overview;

use crate::looks::viewer;
use crate::tree::{PAUSE, ROOT};

/// How many sessions contend for the lock.
pub(crate) const CONTENDING: usize = 8;

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Viewer {
    Nobody,
    /// What keeps an overview up to date.
    Watch,
    /// Whole looks, one each second.
    Looks,
}

impl Viewer {
    pub(crate) const ALL: [Viewer; 3] = [Viewer::Nobody, Viewer::Watch, Viewer::Looks];
}

/// The handoffs a second beside a viewer, in each round.
pub(crate) struct Effect {
    pub(crate) viewer: Viewer,
    pub(crate) rounds: Vec<f64>,
}

/// Measures beside each viewer in turn, so that a drift of the machine is in all of them.
pub(crate) async fn measure(
    testbed: &Testbed,
    rounds: u32,
    time: Duration,
) -> anyhow::Result<Vec<Effect>> {
    let address = testbed.server().connect_string();
    let members = Member::connect(&address, CONTENDING).await?;
    let viewing = viewer(&address).await?;
    let turns = Arc::new(AtomicU64::new(0));
    let mut contending = JoinSet::new();
    for member in &members {
        let lock = ExclusiveLock::new(&member.session, format!("{ROOT}/contended"))?;
        let turns = turns.clone();
        contending.spawn(async move {
            loop {
                lock.acquire().await?.release().await?;
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut effects: Vec<Effect> = Viewer::ALL
        .map(|viewer| Effect {
            viewer,
            rounds: Vec::new(),
        })
        .into();
    let measured = async {
        // The first round warms up.
        for round in 0..=rounds {
            for effect in &mut effects {
                let speed = beside(effect.viewer, &viewing, &turns, time).await?;
                if round > 0 {
                    effect.rounds.push(speed);
                }
            }
        }
        anyhow::Ok(())
    };
    tokio::select! {
        measured = measured => measured?,
        Some(failed) = contending.join_next() => {
            let failed: anyhow::Result<()> = failed?;
            failed?;
        }
    }
    contending.shutdown().await;
    Member::close(members).await;
    viewing.close().await;
    Ok(effects)
}

/// The handoffs a second while this viewer looks.
async fn beside(
    viewer: Viewer,
    session: &Session,
    turns: &AtomicU64,
    time: Duration,
) -> anyhow::Result<f64> {
    let kept = match viewer {
        Viewer::Watch => Some(Overview::watch(session, ROOT, PAUSE).await?),
        Viewer::Nobody | Viewer::Looks => None,
    };
    let looks = async {
        match viewer {
            Viewer::Looks => look_again(session).await,
            Viewer::Nobody | Viewer::Watch => std::future::pending().await,
        }
    };
    let (before, began) = (turns.load(Ordering::Relaxed), Instant::now());
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        Err(failed) = looks => return Err(failed),
    }
    let turns = turns.load(Ordering::Relaxed) - before;
    drop(kept);
    Ok(turns as f64 / began.elapsed().as_secs_f64())
}

async fn look_again(session: &Session) -> anyhow::Result<Infallible> {
    loop {
        Overview::below(session, ROOT).await?;
        tokio::time::sleep(PAUSE).await;
    }
}
