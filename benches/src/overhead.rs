//! The time that the recipes add to the requests that they send.
//!
//! Recipes and raw requests are measured in turns, so that other load on the machine hits all
//! alike.

use std::time::Duration;

use crate::spread::Spread;
use crate::testbed::Testbed;
use crate::uncontended::Comparison;
use crate::work::Work;

/// The time of a recipe or of raw requests, beside the time of the same raw requests.
#[derive(Clone, Copy, Debug)]
pub struct Overhead {
    /// The name of the work.
    pub name: &'static str,
    /// Whether the work is a recipe, and not raw requests.
    pub is_recipe: bool,
    /// The time of one turn: the median of all rounds.
    pub time: Duration,
    /// The ratio to the time of the requests by `zookeeper-client` itself: the median of the ratios
    /// within each round, and the least and the most of them.
    pub to_client: Spread,
    /// The same ratio to the requests through the interface that the recipes use.
    pub to_session: Spread,
}

impl Overhead {
    /// Measures all works of a comparison, `times` times in each round.
    ///
    /// Each round begins with another work than the round before.
    ///
    /// # Panics
    ///
    /// If `rounds` is zero.
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
                    // The raw requests come first: by the client and by the interface.
                    is_recipe: place >= 2,
                    time: Duration::from_secs_f64(spread(times.clone()).median),
                    to_client: to(&took[0]),
                    to_session: to(&took[1]),
                }
            });
        of_works.collect()
    }
}
