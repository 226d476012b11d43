//! A planned restart: a process leaves its session and its lock to its successor.
//!
//! The old process holds a lock, and ends for an upgrade. It writes what it leaves to a file that
//! only its user can read. The new process reads the file, and holds the lock by the same znode. A
//! process of another service waits all the time, and holds only after the release.
//!
//! `cargo run --example planned_restart`

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use zookeeper_recipes_core::DetachedSession;
use zookeeper_recipes_examples::{Part, Playground};
use zookeeper_recipes_lock::ExclusiveLock;

const PATIENCE: Duration = Duration::from_secs(30);
const OLD: &str = "old process";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Part::of_this_process() {
        None => restart().await,
        Some(part) if part.name() == OLD => Ok(old_process(part).await?),
        Some(part) => Ok(new_process(part).await?),
    }
}

async fn restart() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open().await?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("detached");
    let mut old = playground.start(OLD)?;
    println!("the old process holds: token {}", old.hear().await?);

    // Another service wants the lock, too.
    let session = playground.connect().await?;
    let lock = ExclusiveLock::new(&session, "/report")?;
    let mut waiting = Box::pin(lock.acquire_timeout(PATIENCE));
    let until_it_waits = async {
        while lock.contenders().await?.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        _ = &mut waiting => return Err("the old process holds the lock".into()),
        waits = until_it_waits => waits?,
    }

    old.say(file.display()).await?;
    println!("the old process {}", old.hear().await?);
    old.end().await?;
    let mut new = playground.start("new process")?;
    new.say(file.display()).await?;
    println!("the new process holds: token {}", new.hear().await?);
    assert_eq!(lock.contenders().await?.len(), 2, "the other one waits");

    new.end().await?;
    let hold = waiting.await?;
    println!(
        "released: the other service holds, with token {}",
        hold.fencing_token()
    );
    hold.release().await?;
    session.close().await;
    Ok(playground.close().await?)
}

async fn old_process(mut part: Part) -> anyhow::Result<()> {
    let session = part.connect().await?;
    let hold = ExclusiveLock::new(&session, "/report")?.acquire().await?;
    part.say(hold.fencing_token()).await?;
    let file = part.hear().await?.context("no file is named")?;
    // From here on this process holds nothing.
    let detached = session.detach([hold]).await?;
    write_secret(Path::new(&file), &detached.to_secret())?;
    part.say("has left its session and its lock").await
}

async fn new_process(mut part: Part) -> anyhow::Result<()> {
    let file = part.hear().await?.context("no file is named")?;
    let detached = DetachedSession::from_secret(&std::fs::read_to_string(&file)?)?;
    std::fs::remove_file(file)?;
    let session = part.resume(&detached).await?;
    // If the session has expired, this is a new one, and the lock is acquired as always.
    ensure!(
        session.id() == Some(detached.session_id()),
        "it has expired"
    );
    let hold = ExclusiveLock::new(&session, "/report")?.acquire().await?;
    part.say(hold.fencing_token()).await?;
    while part.hear().await?.is_some() {}
    hold.release().await?;
    session.close().await;
    Ok(())
}

/// Writes a file that only the user of this process can read: it holds the session's password.
fn write_secret(file: &Path, secret: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    Ok(options.open(file)?.write_all(secret.as_bytes())?)
}
