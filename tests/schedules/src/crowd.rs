//! Now and then there are many: waiters by the hundred, and a session with holds by the thousand.

use std::time::Duration;

use fastrand::Rng;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, sleep, timeout_at};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_simulation::SimulatedProcess;
use zookeeper_recipes_suite::RecipeOptions;

use crate::contender::draw_weight;
use crate::holding::Holding;
use crate::place::UNDER_TEST;
use crate::setting::Setting;

/// Has a session hold and wait, until the quiet begins.
pub(crate) async fn run(
    setting: &Setting,
    process: &SimulatedProcess,
    session: &Session,
    mut rng: Rng,
) {
    let crowd = setting.schedule.crowd;
    let mut holds: FuturesUnordered<_> = (0..crowd.holds)
        .map(|number| {
            let pause = Duration::from_millis(rng.u64(0..=2_000));
            process.in_turn(async move {
                setting.pause_for(pause).await;
                hold(setting, session, number).await;
            })
        })
        .collect();
    let mut waiters: FuturesUnordered<_> = (0..crowd.waiters)
        .map(|number| {
            let rng = rng.fork();
            process.in_turn(wait(setting, session, number, rng))
        })
        .collect();
    let holds = async { while holds.next().await.is_some() {} };
    let waiters = async { while waiters.next().await.is_some() {} };
    tokio::join!(biased; holds, waiters);
}

async fn hold(setting: &Setting, session: &Session, number: usize) {
    let path = format!("/recipe/crowd/{number:04}");
    let lock = ExclusiveLock::new(session, &path).expect("the path is good");
    let held = timeout_at(setting.quiet_from, lock.acquire()).await;
    if let Ok(Ok(hold)) = held {
        let left = setting.quiet_from.saturating_duration_since(Instant::now());
        sleep(left).await;
        drop(hold);
    }
}

async fn wait(setting: &Setting, session: &Session, number: usize, mut rng: Rng) {
    let who = format!("crowd.{number}");
    setting.pause(&mut rng, 2_000).await;
    let capacity = setting.ledger.capacity();
    let weight = draw_weight(&setting.recipe, capacity, &mut rng);
    let recipe = setting.recipe.of(capacity);
    let recipe = recipe
        .make(session, UNDER_TEST.path, weight, RecipeOptions::new())
        .expect("the options are good");
    // Contenders whose turn does not come leave, all at once.
    let acquired = timeout_at(setting.quiet_from, recipe.acquire()).await;
    if let Ok(Ok(hold)) = acquired {
        let holding = Holding::new(&setting.ledger, &who, weight, hold);
        setting.pause(&mut rng, 30).await;
        drop(holding.let_go());
    }
}
