//! Works that are measured beside each other: time, processor time, switches.

use std::fmt;
use std::time::{Duration, Instant};

use zookeeper_recipes_core::Recipe;

use crate::report::Table;
use crate::spread::Spread;
use crate::testbed::Testbed;
use crate::threads::Threads;

/// Work that can be done any number of times, one after the other.
pub struct Work<'a> {
    name: String,
    run: Box<dyn FnMut(u64) + 'a>,
}

impl<'a> Work<'a> {
    /// Work of this name. `run` does it so many times.
    pub fn new(name: impl Into<String>, run: impl FnMut(u64) + 'a) -> Work<'a> {
        Work {
            name: name.into(),
            run: Box::new(run),
        }
    }

    /// Work that does `once` in a task of the testbed's runtime.
    pub(crate) fn in_tasks<Done: Future<Output = ()> + Send>(
        testbed: &'a Testbed,
        name: impl Into<String>,
        once: impl Fn() -> Done + Clone + Send + Sync + 'static,
    ) -> Work<'a> {
        Work::new(name, move |times| {
            let once = once.clone();
            testbed.run(async move {
                for _ in 0..times {
                    once().await;
                }
            });
        })
    }
}

impl fmt::Debug for Work<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Work").field(&self.name).finish()
    }
}

/// One acquisition and its release.
pub async fn turn(recipe: &impl Recipe) {
    let hold = recipe.acquire().await.expect("no other contender wants it");
    hold.release().await.expect("it has been held until now");
}

/// What a work costs, beside the first work of its group.
#[derive(Clone, Debug)]
pub struct Overhead {
    pub name: String,
    /// The time of one turn: the median of all rounds.
    pub time: Duration,
    /// The processor time of this process for one turn, in seconds: the median of all rounds.
    processor: f64,
    /// How often a thread of this process has gone to sleep, for one turn.
    switches: f64,
    /// The ratio to the time of the first work: the median of the ratios within each round, and the
    /// least and the most of them.
    pub to_first: Spread,
    processor_to_first: Spread,
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
        let spread = |values: Vec<f64>| Spread::of(values).expect("there is a round");
        let of_works = works.iter().zip(&costs).map(|(work, rounds)| {
            let median = |of: usize| spread(rounds.iter().map(|cost| cost[of]).collect()).median;
            let to_first = |of: usize| {
                let ratios = rounds.iter().zip(&costs[0]);
                spread(ratios.map(|(own, first)| own[of] / first[of]).collect())
            };
            Overhead {
                name: work.name.clone(),
                time: Duration::from_secs_f64(median(0)),
                processor: median(1),
                switches: median(2),
                to_first: to_first(0),
                processor_to_first: to_first(1),
            }
        });
        of_works.collect()
    }

    pub fn table(overheads: &[Overhead]) -> Table {
        Table::of(
            overheads,
            &[
                ("what", &|it| it.name.as_str().into()),
                ("time [µs]", &|it| (it.time.as_secs_f64() * 1e6).into()),
                ("to the first", &|it| it.to_first.median.into()),
                ("processor [µs]", &|it| (it.processor * 1e6).into()),
                ("to the first one's", &|it| {
                    it.processor_to_first.median.into()
                }),
                ("switches", &|it| it.switches.into()),
            ],
        )
    }
}
