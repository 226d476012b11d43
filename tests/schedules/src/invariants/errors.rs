//! An attempt fails only for a reason.

use std::time::Duration;

use zookeeper_recipes_core::{Error, Refusal, SessionEnd, SessionId};

use crate::findings::Findings;
use crate::lasting_faults::LastingFaults;
use crate::state::State;

/// What an attempt has asked for, and since when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) since: Duration,
    pub(crate) weight: u64,
    /// The capacity that the recipe was made with, unless the capacity has been found to be right
    /// since.
    pub(crate) given: Option<u64>,
    /// Whether it looks before it writes, and so may see what a server that lags behind has.
    pub(crate) looks_first: bool,
}

impl Asked {
    /// How much could be held in all, each that it may have read.
    pub(crate) fn capacities<'a>(&self, state: &'a State) -> impl Iterator<Item = u64> + 'a {
        let Asked {
            since, looks_first, ..
        } = *self;
        let ends = state.capacities.iter().skip(1).map(|(at, _)| Some(*at));
        state
            .capacities
            .iter()
            .zip(ends.chain([None]))
            .filter(move |(_, end)| looks_first || end.is_none_or(|end| end >= since))
            .map(|((_, capacity), _)| *capacity)
    }

    /// Whether it had to be refused by a capacity that it may have read.
    fn could_be_refused(&self, state: &State) -> bool {
        self.capacities(state).any(|capacity| {
            self.weight > capacity || self.given.is_some_and(|given| given != capacity)
        })
    }
}

/// Whether there was the reason that the error reports.
pub(crate) fn at_failure(
    state: &State,
    who: &str,
    asked: Option<&Asked>,
    error: &Error,
) -> Findings {
    let justified = match error {
        // A session that is over is named so.
        Error::ContenderDeleted { path, session, .. } => {
            let has_gone = state.gone.contains(path) || state.revived.contains(session);
            has_gone || state.history.disregards(path)
        }
        // A client that was cut off for too long knows better than the server.
        Error::SessionOver {
            session, reason, ..
        } => {
            may_be_refused(state, session, *reason)
                || matches!(reason, SessionEnd::Expired | SessionEnd::Closed)
        }
        Error::DeadlineElapsed { .. } | Error::NoSession { .. } => true,
        Error::Lost { .. } => true,
        // All others find a server that grants leases.
        Error::NoLease { .. } => LastingFaults::hit(who),
        Error::Connect { .. } | Error::Disconnected { .. } => true,
        Error::Refused { refusal, .. } => is_said(state, refusal),
        Error::InvalidInput(_) if state.recipe.resizes => {
            asked.is_some_and(|asked| asked.could_be_refused(state))
        }
        _ => false,
    };
    found(justified, "an attempt fails only for a reason", who, error)
}

/// As [`at_failure`], for a change of how much can be held.
pub(crate) fn at_resize(state: &State, who: &str, asked: &Asked, error: &Error) -> Findings {
    let justified = match error {
        // No answer came, and nobody waits for one that long.
        Error::Disconnected { .. } | Error::OutcomeUnknown { .. } => true,
        // It acquires and releases when there is nothing yet.
        Error::ContenderDeleted { .. } | Error::Lost { .. } => true,
        Error::NoLease { .. } => LastingFaults::hit(who),
        Error::SessionOver {
            session, reason, ..
        } => may_be_refused(state, session, *reason) || *reason == SessionEnd::Expired,
        Error::InvalidInput(_) => asked.could_be_refused(state),
        Error::Refused { refusal, .. } => is_said(state, refusal),
        _ => false,
    };
    found(justified, "a resize fails only for a reason", who, error)
}

/// Whether the servers have lost data since the session was opened, or the session is over: a
/// server that stops or loses its quorum when it is asked closes the connection, too. A network that
/// breaks it is no reason.
fn may_be_refused(state: &State, session: &SessionId, reason: SessionEnd) -> bool {
    let is_older = state.lost_by.is_some() && !state.opened.contains(session);
    let has_reason = is_older || state.ended.contains_key(session);
    reason == SessionEnd::Refused && has_reason
}

/// Whether a server may have said so.
pub(crate) fn is_said(state: &State, refusal: &Refusal) -> bool {
    match refusal {
        Refusal::Throttled => true,
        Refusal::NoAuth | Refusal::NoPermission(_) => state.withholds,
        _ => false,
    }
}

fn found(justified: bool, promise: &'static str, who: &str, error: &Error) -> Findings {
    match justified {
        true => Findings::new(),
        false => vec![(promise, format!("{who}: {error:?}"))],
    }
}
