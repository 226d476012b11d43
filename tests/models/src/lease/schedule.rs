//! A schedule that the checker found, for people.

use std::fmt::Write;

use stateright::Path;

use super::{Action, Age, LeaseModel, State};

/// The steps of a path with their times, one on a line.
pub fn schedule(model: &LeaseModel, path: Path<State, Action>) -> String {
    let mut now: Age = 0;
    let mut lines = String::new();
    for (state, action) in path.into_vec() {
        match action {
            Some(Action::Pass) => now += 1,
            Some(action) => {
                let _ = writeln!(lines, "{:6.2} ticks  {action:?}", model.ticks(now));
            }
            None => {
                let _ = writeln!(lines, "{:6.2} ticks  then {state:?}", model.ticks(now));
            }
        }
    }
    lines
}
