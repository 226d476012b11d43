//! Nothing is lost while nothing goes wrong.

use zookeeper_recipes_core::{HoldState, HoldView};

use crate::findings::Findings;

/// While no fault happens, a holder holds to the end, for any requests of the others.
///
/// A session that `returns` moves to a server that it has lost. Its holds are suspended meanwhile.
pub(crate) fn at_end(who: &str, hold: &HoldView, returns: bool) -> Findings {
    match hold.state() {
        HoldState::Held => Findings::new(),
        HoldState::Suspended if returns => Findings::new(),
        _ => vec![("undisturbed, a hold lasts", format!("{who}: {hold:?}"))],
    }
}
