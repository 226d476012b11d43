//! A client that uses this project's lock, and the lines that clients of every library exchange
//! with this program.
//!
//! ```text
//! client <connect string> <path> <session timeout, ms>
//! ```
//!
//! | line of the client | when | answer |
//! |---|---|---|
//! | `ready <library and version>` | once connected | `again <pause, ms>` |
//! | `read <token> <clock, ns>` | after the acquisition | `work <before the look, ms> <after it, ms>` |
//! | `look true\|false <clock, ns>` | right after the look at the lock | none |
//! | `write` | after the time that the write is under way | `again <pause, ms>`, or `stop` |
//! | `failed <why>` | in place of the others | the same |
//!
//! The clock is `CLOCK_MONOTONIC`, which all processes of the machine share. A client reads the clock
//! right after the acquisition, and right before the look. A pause before the line makes the line
//! late, and not the time in it.
//!
//! Clients of Curator and kazoo are their programs in the role `set`. A client releases the lock after
//! `write`. It ends at `stop`, and with its standard input.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::time::sleep;
use zookeeper_recipes_core::{ConnectOptions, Hold, Session};
use zookeeper_recipes_lock::ExclusiveLock;

use crate::clock;

/// How long a client waits for the lock. Clients of the other libraries wait as long.
const PATIENCE: Duration = Duration::from_secs(15);

/// Takes turns until this program says `stop`.
pub(crate) async fn run(
    connect: &str,
    path: &str,
    session_timeout: Duration,
) -> anyhow::Result<()> {
    let options = ConnectOptions::new().session_timeout(session_timeout);
    let session = Session::connect_with(connect, options).await?;
    let lock = ExclusiveLock::new(&session, path)?;
    let mut conversation = Conversation {
        answers: BufReader::new(tokio::io::stdin()).lines(),
    };
    let ready = concat!("ready zookeeper-recipes ", env!("CARGO_PKG_VERSION"));
    let mut answer = conversation.ask(ready).await?;
    while let ["again", pause] = *words(&answer) {
        sleep(milliseconds(pause)?).await;
        answer = match lock.acquire_timeout(PATIENCE).await {
            Ok(hold) => turn(hold, &mut conversation).await?,
            Err(error) => conversation.ask(&format!("failed {error}")).await?,
        };
    }
    session.close().await;
    Ok(())
}

async fn turn(hold: Hold, conversation: &mut Conversation) -> anyhow::Result<String> {
    let acquired = clock::now().as_nanos();
    let read = format!("read {} {acquired}", hold.fencing_token());
    let answer = conversation.ask(&read).await?;
    let [_, before, after] = *words(&answer) else {
        anyhow::bail!("not understood: {answer:?}");
    };
    sleep(milliseconds(before)?).await;
    let began = clock::now().as_nanos();
    let holds = hold.is_held();
    say(&format!("look {holds} {began}"))?;
    sleep(milliseconds(after)?).await;
    let answer = conversation.ask("write").await?;
    // A hold that was lost has nothing to release.
    let _ = hold.release().await;
    Ok(answer)
}

fn words(line: &str) -> Box<[&str]> {
    line.split_whitespace().collect()
}

fn milliseconds(word: &str) -> anyhow::Result<Duration> {
    Ok(Duration::from_millis(word.parse()?))
}

fn say(line: &str) -> std::io::Result<()> {
    println!("{line}");
    std::io::stdout().flush()
}

struct Conversation {
    answers: Lines<BufReader<Stdin>>,
}

impl Conversation {
    async fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        say(line)?;
        let answer = self.answers.next_line().await?;
        answer.context("the standard input has ended")
    }
}
