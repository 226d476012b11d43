//! Works that are measured beside each other: time, processor time, switches.

use std::time::Instant;

use zookeeper_recipes_core::Recipe;

use crate::median::median;
use crate::report::Table;
use crate::threads::Threads;

/// Work that can be done any number of times, one after the other.
#[allow(missing_debug_implementations, reason = "a function has none")]
pub struct Work<'a> {
    pub name: &'static str,
    /// Does it so many times.
    pub run: Box<dyn FnMut(u64) + 'a>,
}

/// One acquisition and its release.
pub async fn turn(recipe: &impl Recipe) {
    let hold = recipe.acquire().await.expect("no other contender wants it");
    hold.release().await.expect("it has been held until now");
}

/// What a work costs, beside the first work of its group: the medians of all rounds.
#[derive(Clone, Debug)]
pub struct Overhead {
    name: &'static str,
    /// The time of one turn, the processor time of this process for it, both in seconds, and how often
    /// a thread of this process has gone to sleep.
    costs: [f64; 3],
    /// The ratios of the two times to those of the first work, within each round.
    to_first: [f64; 2],
}

impl Overhead {
    /// Measures works, `times` times in each round.
    ///
    /// Each round begins with another work than the round before, so that other load on the machine
    /// hits all alike.
    ///
    /// # Panics
    ///
    /// If `rounds` is zero.
    pub fn measure(
        works: &mut [Work<'_>],
        warm_up: u64,
        rounds: usize,
        times: u64,
    ) -> Vec<Overhead> {
        for work in &mut *works {
            (work.run)(warm_up);
        }
        let mut costs = vec![Vec::with_capacity(rounds); works.len()];
        for round in 0..rounds {
            for place in 0..works.len() {
                let which = (round + place) % works.len();
                let (began, before) = (Instant::now(), Threads::now());
                (works[which].run)(times);
                let (took, spent) = (began.elapsed(), Threads::now() - before);
                let costs_of_all = [
                    took.as_secs_f64(),
                    spent.processor.as_secs_f64(),
                    spent.switches as f64,
                ];
                costs[which].push(costs_of_all.map(|cost| cost / times as f64));
            }
        }
        let of_works = works.iter().zip(&costs).map(|(work, rounds)| {
            let median_of = |of: usize| median(rounds.iter().map(|cost| cost[of]));
            let to_first = |of: usize| {
                let ratios = rounds.iter().zip(&costs[0]);
                median(ratios.map(|(own, first)| own[of] / first[of]))
            };
            Overhead {
                name: work.name,
                costs: [0, 1, 2].map(|of| median_of(of).expect("there is a round")),
                to_first: [0, 1].map(|of| to_first(of).expect("there is a round")),
            }
        });
        of_works.collect()
    }

    pub fn table(overheads: &[Overhead]) -> Table {
        Table::of(
            overheads,
            &[
                ("what", &|it| it.name.into()),
                ("time [µs]", &|it| (it.costs[0] * 1e6).into()),
                ("to the first", &|it| it.to_first[0].into()),
                ("processor [µs]", &|it| (it.costs[1] * 1e6).into()),
                ("to the first one's", &|it| it.to_first[1].into()),
                ("switches", &|it| it.costs[2].into()),
            ],
        )
    }
}
