//! The recipes under random schedules of faults, on a simulated ensemble.
//!
//! A seed decides everything: how many servers and processes there are, who contends when and how,
//! what breaks, who meddles. [`Subject::run`] runs one to its end, and reports which promises were not kept:
//! each has a file under `invariants`. The same seed gives the same run again, to the last request.

mod assignment;
mod contender;
mod crowd;
mod data_loss;
mod exhaustive;
mod faults_met;
mod figures;
mod findings;
mod group;
mod holding;
mod interference;
mod invariants;
mod lasting_faults;
mod leading;
mod ledger;
mod neglect;
mod observer;
mod overview;
mod pairs;
mod place;
mod process;
mod progress;
mod resizing;
mod run;
mod schedule;
mod setting;
mod slots;
mod state;
mod steps;
mod subject;
mod tally;
mod together;
mod trial;

pub use exhaustive::{Case, Exhausted, exhaust};
pub use faults_met::FaultsMet;
pub use figures::Figures;
pub use findings::Violation;
pub use run::{Report, Variant};
pub use subject::Subject;
pub use tally::Tally;
