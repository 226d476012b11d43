//! Nothing is lost while nothing goes wrong.

use zookeeper_recipes_core::{HoldState, HoldView};

use crate::findings::Findings;

/// While no fault happens, a holder holds to the end, for any requests of the others.
pub(crate) fn at_end(who: &str, hold: &HoldView) -> Findings {
    match hold.state() {
        HoldState::Held => Findings::new(),
        _ => vec![("undisturbed, a hold lasts", format!("{who}: {hold:?}"))],
    }
}
