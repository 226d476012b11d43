//! An observer: it asks who leads.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, timeout};
use zookeeper_recipes_election::LeaderState;
use zookeeper_recipes_simulation::SimulatedProcess;
use zookeeper_recipes_suite::{RecipeOptions, candidate};

use crate::leading::somebody;
use crate::place::UNDER_TEST;
use crate::process;
use crate::setting::Setting;

/// Observes who leads, for good; while things go wrong, it begins anew now and then.
pub(crate) async fn run(setting: &Setting, process: &SimulatedProcess, mut rng: Rng) -> Infallible {
    let (ledger, who) = (&*setting.ledger, process.name());
    let session = process::open(setting, process).await;
    let candidate = candidate(&session, UNDER_TEST.path, RecipeOptions::new());
    let candidate = candidate.expect("the options are good");
    loop {
        let until = Instant::now() + Duration::from_millis(rng.u64(1_000..=20_000));
        let is_last = until >= setting.quiet_from;
        ledger.observes(who, &session);
        let mut leader = candidate.watch_leader();
        while is_last || Instant::now() < until {
            let patience = Duration::from_millis(rng.u64(1..=3_000));
            match timeout(patience, leader.changed()).await {
                Ok(Ok(())) => {
                    let state = leader.borrow_and_update().clone();
                    if !matches!(state, LeaderState::Leader(_) | LeaderState::Nobody) {
                        ledger.violated(
                            "who leads is known from then on",
                            format!("{who}: {state:?}"),
                        );
                    }
                    ledger.told(who, state.leader().map(|leader| leader.fencing_token));
                }
                // A wait that is dropped and begun again misses no change.
                Err(_) if !setting.is_quiet() && rng.u8(..4) == 0 => {
                    let chosen = somebody(&candidate, &mut rng).await;
                    let asked = candidate.transfer_to(&chosen).await;
                    ledger.remark(format!("{who} asks for {chosen} to lead: {asked:?}"));
                }
                Err(_) => {}
                Ok(other) => {
                    let text = format!("{who}: {other:?}");
                    ledger.violated(
                        "a watch of the leader continues for any length of time",
                        text,
                    );
                    return pending().await;
                }
            }
        }
    }
}
