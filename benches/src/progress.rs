//! The progress of a bench: a line for each step.

use std::io::{Write, stderr};
use std::time::Instant;

/// The progress of a bench, shown on standard error.
#[derive(Debug)]
pub struct Progress {
    steps: usize,
    begun: usize,
    step: Option<(String, Instant)>,
}

impl Progress {
    pub fn of(steps: usize) -> Progress {
        Progress {
            steps,
            begun: 0,
            step: None,
        }
    }

    /// Begins a step. The step before it is done.
    pub fn step(&mut self, name: String) {
        self.finish();
        self.begun += 1;
        self.step = Some((name, Instant::now()));
    }

    /// Ends the last step.
    pub fn finish(&mut self) {
        if let Some((name, began)) = self.step.take() {
            let took = began.elapsed().as_secs_f64();
            // A reader that has gone is no reason to stop.
            let _ = writeln!(
                stderr(),
                "{}/{} {name}: {took:.1} s",
                self.begun,
                self.steps
            );
        }
    }
}
