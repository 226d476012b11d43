//! Progress beside faults that never heal: each call comes through within a bound.

use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use zookeeper_recipes_core::Session;

use crate::contender::draw;
use crate::holding::Holding;
use crate::invariants::barring::{self, Barring};
use crate::setting::Setting;

/// How often each contender acquires.
const ROUNDS: usize = 4;

/// The promise that is broken if a call takes longer.
pub(crate) const PROMISE: &str = "who is not hit comes through, whatever never heals";

/// The processes that are not hit acquire and release, again and again.
pub(crate) async fn progress(setting: &Setting, sessions: &[Session]) {
    let schedule = &setting.schedule;
    let mut rng = Rng::with_seed(schedule.options.seed);
    let bound = schedule.comes_through_within();
    let all = sessions.iter().enumerate().flat_map(|(process, session)| {
        let numbers = 0..schedule.contenders;
        numbers.map(move |number| (format!("p{process}.{number}"), session))
    });
    join_all(all.map(|(who, session)| {
        let mut rng = rng.fork();
        async move {
            for _ in 0..ROUNDS {
                sleep(Duration::from_millis(rng.u64(0..=300))).await;
                let began = Instant::now();
                let round = round(setting, &who, session, &mut rng);
                if timeout(bound, round).await.is_err() {
                    let contenders = setting.ledger.contenders();
                    let text = format!("{who}: nothing for {bound:?}; the queue is {contenders:?}");
                    return setting.violated(PROMISE, text);
                }
                setting.ledger.count_share(began.elapsed(), bound);
            }
        }
    }))
    .await;
}

/// Looks, for good, whether what is lost bars others for too long, once the faults that heal have
/// mended. The call returns if it does.
pub(crate) async fn nobody_is_barred(setting: &Setting) {
    let schedule = &setting.schedule;
    sleep_until(setting.quiet_from + schedule.mends_within()).await;
    let mut barring = Barring::new();
    while setting.ledger.is_clean() {
        let patience = schedule.bars_at_most();
        let now = setting.ledger.now();
        let ledger = &setting.ledger;
        ledger.look(|state| barring::at(state, now, patience, &mut barring));
        sleep(Duration::from_millis(50)).await;
    }
}

/// Acquires until it holds, and releases.
async fn round(setting: &Setting, who: &str, session: &Session, rng: &mut Rng) {
    let ledger = &*setting.ledger;
    loop {
        let (recipe, asked) = draw(setting, session, rng);
        match recipe.acquire().await {
            Ok(hold) => {
                let holding = Holding::new(ledger, who, asked.weight, hold);
                sleep(Duration::from_millis(rng.u64(0..=200))).await;
                if let Some(hold) = holding.let_go() {
                    drop(hold.release().await);
                }
                return;
            }
            Err(error) => ledger.failed(who, Some(&asked), &error),
        }
    }
}
