//! One lock, many contenders, four ways to wait, and what each of them costs: `cargo xtask demo`.
//!
//! The server is in this process, in memory.

use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Parser;
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_benches::passing::Passing;
use zookeeper_recipes_benches::report::Table;
use zookeeper_recipes_benches::way::{POLL_INTERVAL, Wakes, Way};
use zookeeper_recipes_core::WaitStrategy;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::meter::Counts;

/// The four ways to compare, each with the options that a recipe has by default.
const WAYS: [Way; 4] = [
    Way::SINGLE_NODE,
    Way::new(
        "poll",
        Wakes::Nobody,
        Some((WaitStrategy::Poll(POLL_INTERVAL), true)),
    ),
    Way::new(
        "parent",
        Wakes::Everybody,
        Some((WaitStrategy::Parent, true)),
    ),
    Way::new(
        "predecessor",
        Wakes::WhomItConcerns,
        Some((WaitStrategy::Predecessor, true)),
    ),
];

/// Watch contenders pass a lock in four ways, and see what each way costs.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask demo")]
struct Arguments {
    /// How many contenders wait for the lock, each with a session of its own.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    contenders: u16,

    /// For how many milliseconds each contender holds the lock.
    #[arg(long, default_value_t = 50, value_name = "MS")]
    hold: u64,
}

/// What a contest came to: the order of the holders without the first, the time, and the counts
/// before the first waiter, once all wait, and at the end.
struct Outcome {
    held: Vec<usize>,
    took: Duration,
    counts: [Counts; 3],
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { contenders, hold } = Arguments::parse();
    let (contenders, hold) = (usize::from(contenders), Duration::from_millis(hold));
    let server = EmbeddedServer::start()?;
    println!("{contenders} contenders wait for a lock that each then holds for {hold:?}.\n");
    let mut outcomes = Vec::new();
    for way in &WAYS {
        let outcome = contest(way, contenders, hold, &server.connect_string()).await?;
        println!(
            "{:<11} passed in {:.2} s",
            way.name,
            outcome.took.as_secs_f64()
        );
        outcomes.push(outcome);
    }
    println!("\n{}", table(&outcomes).to_markdown());
    println!(
        "requests, notifications: from the first acquire to the last release, without pings and \
         probes.\nper release: since all of them waited. Woken: notifications to other sessions than \
         the releasing one.\nA poller is woken by no release: it looks every {POLL_INTERVAL:?}.\n"
    );
    let holds = outcomes.len() * contenders;
    println!("Never two at once: {holds} holds, each with a newer token than the one before.");
    for (way, outcome) in WAYS.iter().zip(&outcomes) {
        let places = (1..).zip(&outcome.held);
        let out_of_turn = places.filter(|(place, who)| place != *who).count();
        let name = way.name;
        match way.has_queue() {
            true => {
                println!("Order kept, {name}: all {contenders} held in the order of the queue.")
            }
            false => println!(
                "Order not promised, {name}: {out_of_turn} of {contenders} held out of turn."
            ),
        }
    }
    Ok(())
}

/// Lets each contender hold once, while all others wait. [`Passing`] checks each step.
async fn contest(
    way: &Way,
    contenders: usize,
    hold: Duration,
    connect: &str,
) -> anyhow::Result<Outcome> {
    // The first one holds until all others wait.
    let members = Member::connect(connect, contenders + 1).await?;
    let observing = Member::connect(connect, 1).await?.remove(0);
    let path = format!("/{}", way.name.replace(' ', "-"));
    let mut passing = Passing::begin(way, &path, &members, &observing, contenders + 1).await?;
    passing.enter(1).await?;
    let idle = passing.counts();
    passing.enter(contenders).await?;
    let waiting = passing.counts();
    let began = Instant::now();
    let mut held = Vec::new();
    let (_, mut next) = passing.release(0).await?;
    while let Some(entrant) = next.pop() {
        held.push(entrant.who);
        let (place, who, token) = (held.len(), entrant.who, entrant.token);
        println!(
            "{:<11} {place:>4}/{contenders} contender {who} holds, token {token}",
            way.name
        );
        passing.rest(hold).await?;
        (_, next) = passing.release(entrant.who).await?;
    }
    let took = began.elapsed();
    passing.settle().await?;
    let counts = [idle, waiting, passing.counts()];
    ensure!(held.len() == contenders, "{held:?} of {contenders}");
    passing.end().await?;
    Member::close(members).await;
    Member::close(vec![observing]).await;
    Ok(Outcome { held, took, counts })
}

/// The figures, a line for each way.
fn table(outcomes: &[Outcome]) -> Table {
    let all = |it: &Outcome, of: fn(&Counts) -> u64| of(&it.counts[2]) - of(&it.counts[0]);
    let each = |it: &Outcome, of: fn(&Counts) -> u64| {
        let passing = of(&it.counts[2]) - of(&it.counts[1]);
        passing as f64 / it.held.len().max(1) as f64
    };
    Table::of(
        WAYS.iter().zip(outcomes),
        &[
            ("way to wait", &|(way, _)| way.name.into()),
            ("time for all [s]", &|(_, it)| it.took.as_secs_f64().into()),
            ("requests", &|(_, it)| all(it, |of| of.requests).into()),
            ("notifications", &|(_, it)| all(it, Counts::told).into()),
            ("requests per release", &|(_, it)| {
                each(it, |of| of.requests).into()
            }),
            ("woken per release", &|(_, it)| {
                each(it, |of| of.wake_ups).into()
            }),
        ],
    )
}
