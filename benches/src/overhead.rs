//! What the recipes add to the requests that they send, measured in turns, so that whatever else
//! happens on the machine hits all alike.

use std::time::Duration;

use crate::spread::Spread;
use crate::testbed::Testbed;
use crate::uncontended::{Comparison, Work};

/// How long something takes, and its raw requests beside it.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// What is done.
    pub name: &'static str,
    /// Whether it is a recipe, and no raw requests.
    pub is_recipe: bool,
    /// How long it takes, by the median of all rounds.
    pub time: Duration,
    /// How many times as long it takes as the requests by `zookeeper-client` itself: the median of
    /// the ratios within each round, and the least and the most of them.
    pub to_client: Spread,
    /// As many times as long as the requests through the seam that the recipes use.
    pub to_session: Spread,
}

impl Overhead {
    /// Measures all that a comparison compares, so many times in each round. Each round begins
    /// with another one than the round before.
    ///
    /// # Panics
    ///
    /// When there is no round.
    pub fn measure(
        testbed: &Testbed,
        comparison: &Comparison,
        warm_up: u64,
        rounds: usize,
        times: u64,
    ) -> Vec<Overhead> {
        let works: Vec<&Work> = comparison.works().collect();
        for work in &works {
            work.measure(testbed, warm_up);
        }
        let mut took = vec![Vec::with_capacity(rounds); works.len()];
        for round in 0..rounds {
            for place in 0..works.len() {
                let which = (round + place) % works.len();
                took[which].push(works[which].measure(testbed, times).as_secs_f64() / times as f64);
            }
        }
        let of_works = works
            .iter()
            .zip(&took)
            .enumerate()
            .map(|(place, (work, times))| {
                let spread = |values: Vec<f64>| Spread::of(values).expect("there is a round");
                let to = |raw: &[f64]| {
                    let ratios = times.iter().zip(raw).map(|(time, raw)| time / raw);
                    spread(ratios.collect())
                };
                Overhead {
                    name: work.name,
                    // The requests come first, both ways.
                    is_recipe: place >= 2,
                    time: Duration::from_secs_f64(spread(times.clone()).median),
                    to_client: to(&took[0]),
                    to_session: to(&took[1]),
                }
            });
        of_works.collect()
    }
}
