//! Contenders that use this project's recipes.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::task::JoinSet;
use zookeeper_client::Client;
use zookeeper_recipes_adapter::ClientEnsemble;
use zookeeper_recipes_core::{ConnectOptions, Recipe, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_interop::{Conversation, OVER_THE_ADAPTER};
use zookeeper_recipes_lock::{ExclusiveLock, LockOptions};
use zookeeper_recipes_rwlock::{RwLock, RwLockOptions};

#[derive(Clone)]
struct Arguments {
    connect_string: String,
    path: String,
    referee: String,
    session_timeout: Duration,
    turns: usize,
    stay: Duration,
    /// Each with the number of its contenders.
    modes: Vec<(String, usize)>,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Arguments> {
        let mut next = |what: &'static str| words.next().context(what);
        let milliseconds = |word: String| anyhow::Ok(Duration::from_millis(word.parse()?));
        Ok(Arguments {
            connect_string: next("no connect string")?,
            session_timeout: milliseconds(next("no session timeout")?)?,
            path: match &*next("no role")? {
                "contend" => next("no path")?,
                role => bail!("no such role: {role}"),
            },
            referee: next("no address of a referee")?,
            turns: next("no number of turns")?.parse()?,
            stay: milliseconds(next("no time to stay")?)?,
            modes: words
                .map(|word| {
                    let (mode, count) = word.split_once(':').context("no <mode>:<count>")?;
                    Ok((mode.to_owned(), count.parse()?))
                })
                .collect::<anyhow::Result<_>>()?,
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    // A thread ends the process even if the tasks are blocked.
    std::thread::spawn(|| {
        // An error means that the input has ended, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(1);
    });
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let mut contenders = JoinSet::new();
    for (mode, count) in &arguments.modes {
        for number in 0..*count {
            contenders.spawn(contend(arguments.clone(), mode.clone(), number));
        }
    }
    let mut code = ExitCode::SUCCESS;
    while let Some(outcome) = contenders.join_next().await {
        if let Err(error) = outcome? {
            eprintln!("{error:#}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

async fn contend(arguments: Arguments, mode: String, number: usize) -> anyhow::Result<()> {
    let over_the_adapter = std::env::var_os(OVER_THE_ADAPTER).is_some();
    let whose = if over_the_adapter { "adapter" } else { "ours" };
    let name = format!("{whose}-{mode}-{number}");
    let mut referee = Conversation::connect(&arguments.referee).await?;
    let session = match over_the_adapter {
        true => over_a_client(&arguments).await?,
        false => {
            let options = ConnectOptions::new().session_timeout(arguments.session_timeout);
            Session::connect_with(&arguments.connect_string, options).await?
        }
    };
    let (recipe, downgrading) = contended(&mode, &session, &arguments.path, &name)?;
    let kind = if mode == "read" {
        "shared"
    } else {
        "exclusive"
    };

    referee.report(&format!("ready {name}")).await?;
    for turn in 0..arguments.turns {
        let entered = |node: &str| format!("enter {name} {kind} {}", znode(node));
        let hold = match &downgrading {
            None => {
                let hold = recipe.acquire().await?;
                referee.report(&entered(hold.node_path())).await?;
                hold
            }
            Some(lock) => {
                let hold = lock.write().acquire().await?;
                referee.report(&entered(hold.node_path())).await?;
                referee.report(&format!("downgrade {name}")).await?;
                hold.downgrade().await?
            }
        };
        if turn % 5 == 0 {
            let mut seen = format!("sees {name}");
            for contender in recipe.contenders().await? {
                seen.push(' ');
                seen.push_str(std::str::from_utf8(&contender.data)?);
            }
            referee.report(&seen).await?;
        }
        tokio::time::sleep(arguments.stay).await;
        referee.report(&format!("leave {name}")).await?;
        hold.release().await?;
        tokio::time::sleep(pause(number, turn)).await;
    }
    session.close().await;
    Ok(())
}

/// A session over a client of the crate `zookeeper-client`.
async fn over_a_client(arguments: &Arguments) -> anyhow::Result<Session> {
    let connector = Client::connector().with_session_timeout(arguments.session_timeout);
    let client = connector.connect(&arguments.connect_string).await?;
    let ensemble = Arc::new(ClientEnsemble::new(client));
    Ok(Session::open(ensemble, ConnectOptions::new()).await?)
}

/// The recipe of a mode, and the lock of a contender that downgrades each of its holds.
fn contended(
    mode: &str,
    session: &Session,
    path: &str,
    name: &str,
) -> anyhow::Result<(Box<dyn Recipe>, Option<RwLock>)> {
    let options = RwLockOptions::new().data(name.as_bytes());
    let shared = RwLock::with_options(session, path, options)?;
    let recipe: Box<dyn Recipe> = match mode {
        "lock" => {
            let options = LockOptions::new().data(name.as_bytes());
            Box::new(ExclusiveLock::with_options(session, path, options)?)
        }
        "read" => Box::new(shared.read().clone()),
        "write" | "downgrade" => Box::new(shared.write().clone()),
        "latch" => Box::new(LeaderElection::new(session, path, name)?),
        _ => bail!("no such mode: {mode}"),
    };
    Ok((recipe, (mode == "downgrade").then_some(shared)))
}

/// Different each time, so that the contenders do not queue in the same order for ever.
fn pause(number: usize, turn: usize) -> Duration {
    Duration::from_millis(((7 * number + 13 * turn) % 40) as u64)
}

fn znode(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
