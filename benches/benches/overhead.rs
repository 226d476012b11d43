//! What the recipes add to the requests that they send: an uncontended acquire and release against
//! the same requests alone, in turns, so that whatever else happens on the machine hits all alike.
//!
//! Each round measures each of them, beginning with another one than the round before. The ratios
//! are taken within a round; the medians are those of all rounds.

use std::time::Duration;

use zookeeper_recipes_benches::{Comparison, Testbed, Work, measures};

const ROUNDS: usize = 100;
const TIMES: u64 = 100;

fn main() {
    let (warm_up, rounds, times) = match measures() {
        true => (10 * ROUNDS, ROUNDS, TIMES),
        false => (0, 1, 1),
    };
    let testbed = Testbed::start();
    for comparison in Comparison::all(&testbed) {
        let works: Vec<&Work> = comparison.works().collect();
        for work in &works {
            work.measure(&testbed, warm_up as u64);
        }
        let mut took = vec![Vec::with_capacity(rounds); works.len()];
        for round in 0..rounds {
            for place in 0..works.len() {
                let which = (round + place) % works.len();
                took[which]
                    .push(works[which].measure(&testbed, times).as_secs_f64() / times as f64);
            }
        }
        if measures() {
            print(&works, &took);
        }
    }
}

fn print(works: &[&Work], took: &[Vec<f64>]) {
    println!();
    println!(
        "{:>10} {:>12} {:>12}",
        "median", "to client's", "to session's"
    );
    for (work, times) in works.iter().zip(took) {
        let to = |raw: &Vec<f64>| {
            let ratios = times.iter().zip(raw).map(|(time, raw)| time / raw);
            median(ratios.collect())
        };
        println!(
            "{:>10} {:>12.3} {:>12.3}  {}",
            format!("{:.1?}", Duration::from_secs_f64(median(times.clone()))),
            to(&took[0]),
            to(&took[1]),
            work.name,
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
