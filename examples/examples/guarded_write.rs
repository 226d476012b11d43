//! A holder that was paused for too long writes: unguarded, guarded, and with a fencing token.
//!
//! The old holder is a process of its own, and really stopped (SIGSTOP) until its session has
//! expired and another process holds. Then it continues, and writes without checking its hold.
//!
//! `cargo run --example guarded_write`

use std::error::Error;
use std::time::Duration;

use anyhow::bail;
use zookeeper_recipes_examples::{Part, Playground};
use zookeeper_recipes_lock::common::ensemble::{CreateMode, Operation};
use zookeeper_recipes_lock::common::{NodePath, ServerError};
use zookeeper_recipes_lock::{ExclusiveLock, FencingToken, Hold, Session};

const PATIENCE: Duration = Duration::from_secs(30);
/// Short, so that the example does not take long.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Part::of_this_process() {
        None => new_holder().await,
        Some(part) => Ok(old_holder(part).await?),
    }
}

/// The wrong way: it does not ask whether the hold still lasts, and repeats a write without an
/// answer, if need be in the next session.
async fn write_unguarded(session: &Session, text: &str) -> anyhow::Result<()> {
    loop {
        let server = session.server(&NodePath::new("/unguarded")?).await?;
        let write = Operation::set_data("/unguarded", text);
        match server
            .transact(&[write])
            .await
            .map_err(|failure| failure.error)
        {
            Ok(_) => return Ok(()),
            Err(ServerError::Refused(refusal)) => bail!("{refusal}"),
            Err(ServerError::SessionOver(_) | ServerError::OutcomeUnknown(_)) => {}
        }
    }
}

/// The right way in ZooKeeper: the server writes only while the holder's znode exists.
async fn write_guarded(hold: &Hold, text: &str) -> anyhow::Result<()> {
    let write = hold.transaction().set_data("/guarded", text.as_bytes());
    write.commit().await?;
    Ok(())
}

/// The right way elsewhere: a store that has seen a newer token refuses an older one.
#[derive(Debug, Default)]
struct Store {
    newest: Option<FencingToken>,
    text: String,
}

impl Store {
    fn write(&mut self, token: FencingToken, text: &str) -> Result<(), String> {
        if let Some(newest) = self.newest.filter(|newest| *newest > token) {
            return Err(format!("token {token} is older than {newest}"));
        }
        self.newest = Some(token);
        self.text = text.to_owned();
        Ok(())
    }
}

async fn new_holder() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open_with(SESSION_TIMEOUT).await?;
    let session = playground.connect().await?;
    let server = session.server(&NodePath::new("/guarded")?).await?;
    let mut store = Store::default();

    let mut old = playground.start("old holder")?;
    let old_token = token(&old.hear().await?)?;
    println!("the old holder has token {old_token}, and is stopped");
    old.stop()?;

    let hold = ExclusiveLock::new(&session, "/lock")?
        .acquire_timeout(PATIENCE)
        .await?;
    println!(
        "its session has expired: the new holder has token {}",
        hold.fencing_token()
    );
    assert!(hold.fencing_token() > old_token);
    hold.transaction()
        .create("/unguarded", b"new", CreateMode::Persistent)
        .create("/guarded", b"new", CreateMode::Persistent)
        .commit()
        .await?;
    store.write(hold.fencing_token(), "new")?;

    println!("the old holder continues, and writes");
    old.go_on()?;
    old.say("write").await?;

    println!("  without a guard: {}", old.hear().await?);
    let (data, _) = server.get("/unguarded").await?;
    assert_eq!(data, b"old", "what the new holder wrote is lost");

    println!("  under guard: {}", old.hear().await?);
    let (data, _) = server.get("/guarded").await?;
    assert_eq!(data, b"new");

    let refusal = store.write(token(&old.hear().await?)?, "old");
    println!(
        "  with its token: {}",
        refusal.err().ok_or("was written")?.as_str()
    );
    assert_eq!(store.text, "new");

    old.end().await?;
    hold.release().await?;
    drop(server);
    session.close().await;
    Ok(playground.close().await?)
}

async fn old_holder(mut part: Part) -> anyhow::Result<()> {
    let session = part.connect().await?;
    let hold = ExclusiveLock::new(&session, "/lock")?
        .acquire_timeout(PATIENCE)
        .await?;
    part.say(hold.fencing_token()).await?;

    // The process is stopped here, and does not know for how long.
    part.hear().await?;

    for written in [
        write_unguarded(&session, "old").await,
        write_guarded(&hold, "old").await,
    ] {
        match written {
            Ok(()) => part.say("written, over what is newer").await?,
            Err(error) => part.say(format!("refused: {error}")).await?,
        }
    }
    part.say(hold.fencing_token()).await?;
    session.close().await;
    Ok(())
}

fn token(line: &str) -> Result<FencingToken, Box<dyn Error>> {
    Ok(FencingToken::from(line.parse::<i64>()?))
}
