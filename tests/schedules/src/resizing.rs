//! Changing how much can be held, while it is held and waited for.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::sleep;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_suite as suite;

use crate::invariants::errors::Asked;
use crate::ledger::Ledger;
use crate::place::UNDER_TEST;
use crate::setting::Setting;

/// Asks for another capacity than the present one.
pub(crate) async fn resize(ledger: &Ledger, who: &str, session: &Session, to: u64) {
    let asked = Asked {
        since: ledger.now(),
        weight: 1,
        given: None,
        looks_first: false,
    };
    let result = suite::resize(session, UNDER_TEST.path, to).await;
    ledger.resized(who, &asked, to, result);
}

/// Asks for another capacity again and again.
pub(crate) async fn run(setting: &Setting, session: &Session, mut rng: Rng) {
    loop {
        sleep(Duration::from_millis(rng.u64(100..=2_500))).await;
        let to = rng.u64(1..=setting.recipe.capacity);
        resize(&setting.ledger, "calm", session, to).await;
    }
}
