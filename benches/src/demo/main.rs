//! One lock, many contenders, four ways to wait, and what each of them costs.
//!
//! `cargo xtask demo` installs what it needs and runs it.

mod contest;
mod ensemble;
mod interrupts;
mod output;
mod summary;

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use zookeeper_recipes_benches::passing::Entrant;
use zookeeper_recipes_benches::way::Subject;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_testkit::{CONNECT_VARIABLE, TestEnsemble};

use crate::contest::{Contest, WAYS};
use crate::ensemble::Choice;
use crate::interrupts::until_interrupted;
use crate::output::say;

/// Watch contenders pass a lock on a real server in four ways, and see what each way costs.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask demo")]
struct Arguments {
    /// How many contenders wait for the lock, each with a session of its own.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    contenders: u16,

    /// How long each contender holds the lock, as in 50ms or 1s.
    #[arg(long, default_value = "50ms", value_parser = duration)]
    hold: Duration,

    /// An ensemble to use (host:port,host:port/chroot) instead of a server in this process. Without
    /// it, the variable ZOOKEEPER_CONNECT may name the ensemble.
    #[arg(long)]
    connect: Option<String>,

    /// Starts Apache's server for the demo, instead of a server in this process.
    #[arg(long, conflicts_with = "connect")]
    server: bool,
}

/// Runs the demo, and cleans up after it, also after an interrupt.
fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let named = || std::env::var(CONNECT_VARIABLE).ok();
    let connect = arguments.connect.clone().or_else(named);
    let choice = match connect.filter(|value| !value.is_empty()) {
        _ if arguments.server => Choice::Apache,
        Some(connect_string) => Choice::Named(connect_string),
        None => Choice::Embedded,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(async {
        let (ensemble, _embedded) = until_interrupted(ensemble::open(choice)).await?;
        let directory = TestEnsemble::directory("recipes-demo");
        let shown = show(&arguments, &ensemble, &directory);
        let shown = until_interrupted(shown).await;
        // A second interrupt ends the cleaning too.
        let cleaned = until_interrupted(ensemble::clean(&ensemble, &directory)).await;
        let cleaned = cleaned.with_context(|| format!("cannot remove {directory}"));
        match (shown, cleaned) {
            (Ok(()), Ok(())) => {
                say("Left behind: nothing. Every directory was empty and has been removed.");
                Ok(())
            }
            (Ok(()), Err(error)) | (Err(error), Ok(())) => Err(error),
            (Err(error), Err(cleaning)) => {
                Err(anyhow::anyhow!("{error:#}\nand then: {cleaning:#}"))
            }
        }
    })
}

/// Runs all contests, and says what they came to.
async fn show(
    arguments: &Arguments,
    ensemble: &TestEnsemble,
    directory: &str,
) -> anyhow::Result<()> {
    let contest = Contest {
        contenders: usize::from(arguments.contenders),
        hold: arguments.hold,
    };
    say(&format!(
        "{} contenders wait for a lock that each then holds for {:?}.\n",
        contest.contenders, contest.hold
    ));
    let began = Instant::now();
    let (all, width) = (contest.contenders, contest.contenders.to_string().len());
    let mut outcomes = Vec::new();
    for way in &WAYS {
        let path = format!("{directory}/{}", way.name.replace(' ', "-"));
        let mut held = 0;
        let entered = |entrant: &Entrant| {
            held += 1;
            let Entrant { who, token, .. } = entrant;
            let holds = format!("contender {who:0width$} holds, token {token}");
            say(&format!("{:<11} {held:>4}/{all} {holds}", way.name));
        };
        let make = |session: &Session, name: &str, writes| {
            way.recipe(Subject::Lock, session, &path, name, writes)
        };
        let outcome = contest.run(way, &make, ensemble, entered).await?;
        let took = outcome.took.as_secs_f64();
        say(&format!("{:<11} passed in {took:.2} s", way.name));
        outcomes.push(outcome);
    }
    say("");
    say(&summary::table(&outcomes));
    say(&summary::legend(&contest));
    for line in summary::verdict(&outcomes) {
        say(&line);
    }
    say(&format!("All of it took {:.1?}.", began.elapsed()));
    Ok(())
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let number: u64 = digits
        .parse()
        .map_err(|_| "not a whole number with a unit, as in 50ms or 1s".to_owned())?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        unit => Err(format!("unknown unit {unit:?}: the units are ms and s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(duration("0ms"), Ok(Duration::ZERO));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for bad in ["", "50", "ms", "1h", "-1s", "1.5s", "5 0ms"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
