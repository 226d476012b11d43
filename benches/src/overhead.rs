//! The time that the recipes add to the requests that they send.
//!
//! Recipes and raw requests are measured in turns, so that other load on the machine hits all
//! alike.

use std::time::Duration;

use crate::report::Table;
use crate::spread::Spread;
use crate::testbed::Testbed;
use crate::work::Work;

/// The time of a recipe or of raw requests, beside the time of the same raw requests.
#[derive(Clone, Debug)]
pub struct Overhead {
    /// The name of the work.
    pub name: String,
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
    /// Measures the works of one of the [comparisons](crate::comparisons), `times` times in each
    /// round.
    ///
    /// Each round begins with another work than the round before.
    ///
    /// # Panics
    ///
    /// If `rounds` is zero.
    pub fn measure(
        testbed: &Testbed,
        works: &[Work],
        warm_up: u64,
        rounds: usize,
        times: u64,
    ) -> Vec<Overhead> {
        for work in works {
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
                    name: work.name.clone(),
                    // The raw requests come first: by the client and by the interface.
                    is_recipe: place >= 2,
                    time: Duration::from_secs_f64(spread(times.clone()).median),
                    to_client: to(&took[0]),
                    to_session: to(&took[1]),
                }
            });
        of_works.collect()
    }

    /// A line for each work.
    pub fn table(overheads: &[Overhead]) -> Table {
        Table::of(
            overheads,
            &[
                ("what", &|it| it.name.as_str().into()),
                ("median [µs]", &|it| (it.time.as_secs_f64() * 1e6).into()),
                ("to the client's requests", &|it| it.to_client.median.into()),
                ("to the trait's requests", &|it| it.to_session.median.into()),
            ],
        )
    }
}
