//! A recipe of your own: a lock with priorities, where urgent work goes first.
//!
//! `cargo run --example priorities`. `services/tests/services/custom_rule.rs` tests that it keeps the
//! promises of all recipes.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, Queue, QueueView, Rule, Verdict};
use zookeeper_recipes_examples::Playground;

/// The rule of a contender with this priority. The highest one goes first.
///
/// A waiter whose turn comes leaves the queue if a contender of a higher priority is behind it, and
/// enters the queue again at its end. Each waiter with a lower priority does so once for each such
/// contender at most. A holder keeps its hold.
///
/// A waiter that leaves loses its place: a waiter of its own priority that came later can go first.
/// If urgent work never ends, work with a lower priority never holds.
#[derive(Clone, Copy, Debug)]
pub struct Priority(pub u8);

/// The priority of a contender with this label.
fn priority(label: &str) -> Option<u8> {
    let number = label.strip_prefix("priority-")?.strip_suffix('-')?;
    number.parse().ok()
}

impl Rule for Priority {
    fn label(&self) -> Cow<'_, str> {
        format!("priority-{}-", self.0).into()
    }

    fn counts(&self, label: &str) -> bool {
        priority(label).is_some()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let mine = priority(view.me().label());
        let mut behind = view.behind().iter();
        Ok(match view.place().checked_sub(1) {
            Some(predecessor) => Verdict::wait_on(predecessor),
            None if behind.any(|other| priority(other.label()) > mine) => Verdict::StepBack,
            None => Verdict::Hold,
        })
    }

    fn looks_behind(&self) -> bool {
        true
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let session = playground.connect().await?;
    let queue = |priority| Queue::new(&session, "/press", Priority(priority));
    let press = queue(0)?;
    let hold = press.acquire().await?;

    let (printed, mut order) = tokio::sync::mpsc::unbounded_channel();
    let mut waiters = 1;
    for (name, priority) in [("a book", 1), ("a poster", 0), ("today's paper", 9)] {
        let (turns, printed) = (queue(priority)?, printed.clone());
        tokio::spawn(async move {
            let hold = turns.acquire().await?;
            let _ = printed.send(name);
            hold.release().await
        });
        // Each waiter enters the queue before the next one.
        waiters += 1;
        while press.contenders().await?.len() < waiters {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
    drop(printed);
    hold.release().await?;
    let mut names = Vec::new();
    while let Some(name) = order.recv().await {
        names.push(name);
    }
    println!("printed: {}", names.join(", "));

    session.close().await;
    Ok(playground.close().await?)
}
