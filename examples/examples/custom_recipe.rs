//! A recipe of your own: a bridge of one lane, for two directions. Any number may cross at a time,
//! if all go the same way. First come, first served, so that neither side waits for ever.
//!
//! `cargo run --example custom_recipe`. `tests/custom_rules.rs` tests that it keeps what every
//! recipe promises.

use std::borrow::Cow;
use std::time::Duration;

use zookeeper_recipes_core::{Error, Hold, InvalidInput, Queue, QueueView, Recipe, Rule, Verdict};
use zookeeper_recipes_examples::Playground;

/// The rule of the contenders that go this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Northwards.
    North,
    /// Southwards.
    South,
}

impl Direction {
    fn written(self) -> &'static str {
        match self {
            Direction::North => "north-",
            Direction::South => "south-",
        }
    }
}

impl Rule for Direction {
    /// The part of the znode's name before its number.
    fn label(&self) -> Cow<'_, str> {
        self.written().into()
    }

    fn counts(&self, label: &str) -> bool {
        matches!(label, "north-" | "south-")
    }

    /// A contender holds once no contender before it goes the other way. The last such contender is
    /// in the way until it leaves, so one watch is enough.
    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let mut before = view.before().iter();
        let oncoming = before.rposition(|one| one.label() != view.me().label());
        Ok(oncoming.map_or(Verdict::Hold, Verdict::wait_on))
    }
}

/// Takes any recipe: a queue is one.
async fn cross(bridge: &dyn Recipe) -> Result<Hold, Error> {
    bridge.acquire_timeout(Duration::from_secs(10)).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let playground = Playground::open().await?;
    let session = playground.connect().await?;
    let north = Queue::new(&session, "/bridge", Direction::North)?;
    let south = Queue::new(&session, "/bridge", Direction::South)?;

    let (one, another) = (cross(&north).await?, cross(&north).await?);
    assert!(one.is_held() && another.is_held());
    println!("two go north together");

    let oncoming = tokio::spawn(async move { cross(&south).await });
    while north.contenders().await?.len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(north.try_acquire().await?.is_none());
    println!("a southbound contender waits, and a northbound one would wait behind it");

    one.release().await?;
    another.release().await?;
    let oncoming = oncoming.await??;
    assert!(oncoming.is_held());
    println!("the bridge is clear, and the southbound contender crosses");

    oncoming.release().await?;
    session.close().await;
    Ok(playground.close().await?)
}
