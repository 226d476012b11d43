//! A holder that was paused for too long writes: unguarded, guarded, and with a fencing token.
//!
//! The old holder is a process of its own, and really stopped (SIGSTOP) until its session has
//! expired and somebody else holds. Then it goes on, and writes without looking.
//!
//! `cargo run --example guarded_write`

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, stdin};
use tokio::process::{ChildStdout, Command};
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::core::ensemble::{CreateMode, Operation};
use zookeeper_recipes_lock::core::{NodePath, ServerError};
use zookeeper_recipes_lock::{ConnectOptions, ExclusiveLock, FencingToken, Hold, Recipe, Session};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        None => new_holder().await,
        Some(zookeeper) => old_holder(&zookeeper).await,
    }
}

async fn connect(zookeeper: &str) -> Result<Session, Box<dyn Error>> {
    // Short, so that the example does not take long.
    let options = ConnectOptions::new().session_timeout(Duration::from_secs(2));
    Ok(Session::connect_with(zookeeper, options).await?)
}

/// The wrong way: nobody asks whether the hold still stands, and what does not get through is tried
/// again, in the next session where it must be.
async fn write_unguarded(session: &Session, text: &str) -> Result<(), Box<dyn Error>> {
    loop {
        let server = session.server(&NodePath::new("/unguarded")?).await?;
        let write = Operation::SetData {
            path: "/unguarded".to_owned(),
            data: text.into(),
            version: None,
        };
        match server
            .transact(&[write])
            .await
            .map_err(|failure| failure.error)
        {
            Ok(_) => return Ok(()),
            Err(ServerError::Refused(refusal)) => return Err(refusal.to_string().into()),
            Err(ServerError::SessionOver(_) | ServerError::OutcomeUnknown(_)) => {}
        }
    }
}

/// The right way in ZooKeeper: the server writes only while the holder's znode stands.
async fn write_guarded(hold: &Hold, text: &str) -> Result<(), Box<dyn Error>> {
    let write = hold
        .transaction()
        .set_data("/guarded", text.as_bytes(), None);
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
    let playground = Playground::open().await?;
    let session = connect(playground.connect_string()).await?;
    let server = session.server(&NodePath::new("/guarded")?).await?;
    let mut store = Store::default();

    let mut child = Command::new(std::env::current_exe()?)
        .arg(playground.connect_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut says = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let mut told = child.stdin.take().ok_or("no stdin")?;
    let id = i32::try_from(child.id().ok_or("it has ended already")?)?;
    let process = Pid::from_raw(id).ok_or("no process has this id")?;

    let old_token = token(&line(&mut says).await?)?;
    println!("the old holder has token {old_token}, and is stopped");
    kill_process(process, Signal::STOP)?;

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

    println!("the old holder goes on, and writes");
    kill_process(process, Signal::CONT)?;
    told.write_all(b"write\n").await?;

    println!("  without a guard: {}", line(&mut says).await?);
    let (data, _) = server.get("/unguarded").await?;
    assert_eq!(data, b"old", "what the new holder wrote is lost");

    println!("  under guard: {}", line(&mut says).await?);
    let (data, _) = server.get("/guarded").await?;
    assert_eq!(data, b"new");

    let refusal = store.write(token(&line(&mut says).await?)?, "old");
    println!(
        "  with its token: {}",
        refusal.err().ok_or("was written")?.as_str()
    );
    assert_eq!(store.text, "new");

    if !child.wait().await?.success() {
        return Err("the old holder failed".into());
    }
    hold.release().await?;
    drop(server);
    session.close().await;
    playground.close().await
}

async fn old_holder(zookeeper: &str) -> Result<(), Box<dyn Error>> {
    let session = connect(zookeeper).await?;
    let hold = ExclusiveLock::new(&session, "/lock")?
        .acquire_timeout(PATIENCE)
        .await?;
    println!("{}", hold.fencing_token());

    // Stopped here, it does not know how long.
    let mut go_on = String::new();
    BufReader::new(stdin()).read_line(&mut go_on).await?;

    for written in [
        write_unguarded(&session, "old").await,
        write_guarded(&hold, "old").await,
    ] {
        match written {
            Ok(()) => println!("written, over what is newer"),
            Err(error) => println!("refused: {error}"),
        }
    }
    println!("{}", hold.fencing_token());
    session.close().await;
    Ok(())
}

async fn line(says: &mut Lines<BufReader<ChildStdout>>) -> Result<String, Box<dyn Error>> {
    let line = tokio::time::timeout(PATIENCE, says.next_line()).await??;
    Ok(line.ok_or("the old holder has ended")?)
}

fn token(line: &str) -> Result<FencingToken, Box<dyn Error>> {
    Ok(FencingToken::from(line.parse::<i64>()?))
}
