//! Shows who holds: in a terminal as bars, elsewhere as lines.

use std::io::{IsTerminal, stdout};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use zookeeper_recipes_benches::passing::Entrant;
use zookeeper_recipes_benches::way::Way;

use crate::contest::{Contest, Outcome, WAYS};
use crate::output::say;

/// The holders of all ways.
pub(crate) struct Board {
    contenders: usize,
    /// A bar for each way, if this is a terminal.
    bars: Option<Vec<ProgressBar>>,
}

impl Board {
    pub(crate) fn new(contest: &Contest) -> Board {
        let bars = stdout().is_terminal().then(|| bars(contest.contenders));
        Board {
            contenders: contest.contenders,
            bars,
        }
    }

    /// Shows a new holder, the `held`th of its way.
    pub(crate) fn holds(&self, way: usize, held: usize, entrant: &Entrant) {
        let width = self.contenders.to_string().len();
        let Entrant { who, token, .. } = entrant;
        let holds = format!("contender {who:0width$} holds, token {token}");
        match &self.bars {
            Some(bars) => {
                bars[way].set_message(holds);
                bars[way].set_position(held as u64);
            }
            None => {
                let (name, contenders) = (WAYS[way].name, self.contenders);
                say(&format!("{name:<11} {held:>4}/{contenders} {holds}"));
            }
        }
    }

    /// Shows that all contenders of a way have held.
    pub(crate) fn passed(&self, way: usize, outcome: &Outcome) {
        let passed = format!("passed in {:.2} s", outcome.took.as_secs_f64());
        match &self.bars {
            Some(bars) => bars[way].finish_with_message(passed),
            None => say(&format!("{:<11} {passed}", WAYS[way].name)),
        }
    }
}

fn bars(contenders: usize) -> Vec<ProgressBar> {
    let style = ProgressStyle::with_template("{prefix:<11} {bar:30} {pos:>4}/{len} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
    let bar = |way: &Way| {
        let bar = bars.add(ProgressBar::new(contenders as u64));
        bar.set_style(style.clone());
        bar.set_prefix(way.name);
        bar.tick();
        bar
    };
    WAYS.iter().map(bar).collect()
}

impl Drop for Board {
    fn drop(&mut self) {
        // The bars of an interrupted demo stay as they are.
        let bars = self.bars.iter().flatten();
        for bar in bars.filter(|bar| !bar.is_finished()) {
            bar.abandon();
        }
    }
}
