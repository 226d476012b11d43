//! What was measured over one network.

use std::time::Duration;

use crate::summary::Summary;

/// The network of the goals.
const GOALS_AT: Duration = Duration::from_millis(2);

/// What was measured over one network.
pub(super) struct Measured<'p> {
    pub(super) servers: usize,
    pub(super) round_trip: Duration,
    pub(super) loss: f64,
    /// The median time to connect, in milliseconds.
    pub(super) connects_in: f64,
    /// The median time of the requests of an uncontended lock over a bare socket, in milliseconds.
    pub(super) bare_turn: f64,
    pub(super) summary: Summary<'p>,
}

impl Measured<'_> {
    /// The name in a report.
    pub(super) fn name(&self) -> String {
        format!("{}, {}", self.ensemble(), self.network())
    }

    pub(super) fn ensemble(&self) -> &'static str {
        match self.servers {
            1 => "one server",
            _ => "three servers",
        }
    }

    pub(super) fn network(&self) -> String {
        let lost = match self.loss > 0.0 {
            true => format!(", {} % lost", self.loss * 100.0),
            false => String::new(),
        };
        format!("{} ms{lost}", self.round_trip.as_secs_f64() * 1e3)
    }

    pub(super) fn is_of_the_goals(&self) -> bool {
        self.round_trip == GOALS_AT && self.loss == 0.0
    }
}
