//! The time that the recipes add to the requests that they send.
//!
//! An uncontended acquire and release is measured beside the same requests alone, which are the
//! first row of each table. The ratios are taken within a round; the medians are those of all rounds.

use zookeeper_recipes_benches::{Overhead, Testbed, comparisons, measures};

const ROUNDS: usize = 100;
const TIMES: u64 = 100;

fn main() {
    let (warm_up, rounds, times) = match measures() {
        true => (10 * ROUNDS as u64, ROUNDS, TIMES),
        false => (0, 1, 1),
    };
    let testbed = Testbed::start();
    for mut works in comparisons(&testbed) {
        let overheads = Overhead::measure(&mut works, warm_up, rounds, times);
        if measures() {
            println!("\n{}", Overhead::table(&overheads).to_markdown());
        }
    }
}
