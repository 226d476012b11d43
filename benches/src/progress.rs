//! How far a bench has got: a bar in a terminal, elsewhere a line for each step.

use std::io::{IsTerminal, Write, stderr};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of a bench, shown on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    step: Option<(String, Instant)>,
}

impl Progress {
    /// The progress of a bench of this many steps.
    pub fn of(steps: usize) -> Progress {
        let bar = stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
            let template = "{elapsed_precise} {bar:32} {pos}/{len} {wide_msg}";
            // The template is well formed. A plain bar would do as well.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Progress { bar, step: None }
    }

    /// Begins a step. The step before it is done.
    pub fn step(&mut self, name: String) {
        self.end_step();
        if let Some(bar) = &self.bar {
            bar.set_message(name.clone());
        }
        self.step = Some((name, Instant::now()));
    }

    /// Shows how far the step has got.
    pub fn within(&self, how_far: impl FnOnce() -> String) {
        if let (Some(bar), Some((name, _))) = (&self.bar, &self.step) {
            bar.set_message(format!("{name}: {}", how_far()));
        }
    }

    fn end_step(&mut self) {
        let Some((name, began)) = self.step.take() else {
            return;
        };
        match &self.bar {
            Some(bar) => bar.inc(1),
            None => {
                let took = began.elapsed().as_secs_f64();
                // A reader that has gone is no reason to stop.
                let _ = writeln!(stderr(), "{name}: {took:.1} s");
            }
        }
    }

    /// Ends the last step.
    pub fn finish(mut self) {
        self.end_step();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
