//! Fencing in PostgreSQL: a stopped holder writes late, one row and a transaction of many rows.
//!
//! The old holder is a process of its own, and really stopped (SIGSTOP) until its session has
//! expired and another process holds. Then it continues, and writes without checking its hold.
//! PostgreSQL refuses, because the new holder's first write has claimed the row.
//!
//! `cargo run --example fencing_postgres`
//!
//! The example starts a PostgreSQL server of its own: on Debian, `apt-get install postgresql`.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use zookeeper_recipes_example_services::postgres::{Client, Postgres};
use zookeeper_recipes_examples::{Part, Playground};
use zookeeper_recipes_lock::{ExclusiveLock, FencingToken};

const PATIENCE: Duration = Duration::from_secs(30);
/// Short, so that the example does not take long.
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

/// The table of the locks, and one of those that they protect.
const TABLES: &str = "
    CREATE TABLE fence (name TEXT PRIMARY KEY, token BIGINT NOT NULL);
    CREATE TABLE report (name TEXT PRIMARY KEY, text TEXT NOT NULL);
    INSERT INTO fence VALUES ('sales', 0);
    INSERT INTO report VALUES ('january', 'empty'), ('february', 'empty');";

/// The first statement after acquiring. It changes one row, or a newer holder has claimed it.
const CLAIM: &str = "
    UPDATE fence SET token = :token WHERE name = 'sales' AND token <= :token";

/// A write of one row, by the holder that has claimed the lock's row.
const WRITE: &str = "
    UPDATE report SET text = :'text'
    FROM fence
    WHERE report.name = 'january'
      AND fence.name = 'sales' AND token = :token";

/// The first statement of each transaction that writes many rows. The claim of the next holder
/// waits for the transaction's end.
const FENCE: &str = "
    SELECT 'claimed' FROM fence
    WHERE name = 'sales' AND token = :token FOR SHARE";

const WRITE_ALL: &str = "UPDATE report SET text = :'text'";

/// What waits for the lock of another transaction.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";

/// The reports, as a holder with this token writes them.
struct Reports {
    client: Client,
    token: FencingToken,
}

impl Reports {
    fn run(&self, statement: &str, text: &str) -> anyhow::Result<String> {
        let token = self.token.to_string();
        let variables = [("token", &*token), ("text", text)];
        self.client.run(statement, &variables)
    }

    fn claim(&self) -> anyhow::Result<()> {
        let claimed = self.run(CLAIM, "")?;
        ensure!(claimed == "UPDATE 1", "a newer holder has claimed the row");
        Ok(())
    }

    fn write(&self, text: &str) -> anyhow::Result<()> {
        let written = self.run(WRITE, text)?;
        ensure!(written == "UPDATE 1", "this token has not claimed the row");
        Ok(())
    }

    /// Writes all reports in one transaction, with `before_commit` in the middle of it.
    fn write_all(
        &self,
        text: &str,
        before_commit: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let token = self.token.to_string();
        let variables = [("token", &*token), ("text", text)];
        let statements = format!("{FENCE};{WRITE_ALL}");
        let (transaction, printed) = self.client.begin(&statements, &variables)?;
        // The transaction is rolled back.
        ensure!(
            printed.starts_with("claimed"),
            "this token has not claimed the row"
        );
        before_commit()?;
        transaction.commit()
    }

    fn texts(&self) -> anyhow::Result<String> {
        self.client
            .run("SELECT text FROM report ORDER BY name DESC", &[])
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Part::of_this_process() {
        None => new_holder().await,
        Some(part) => Ok(old_holder(part).await?),
    }
}

async fn new_holder() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open_with(SESSION_TIMEOUT).await?;
    let postgres = Postgres::start()?;
    let client = || Client::new(postgres.directory());
    client()?.run(TABLES, &[])?;
    let mut old = playground.start("old holder")?;
    old.say(postgres.directory().display()).await?;
    let said = old.hear().await?;
    println!("{said}, and is stopped");
    old.stop()?;

    let session = playground.connect().await?;
    let lock = ExclusiveLock::new(&session, "/sales")?;
    let hold = lock.acquire_timeout(PATIENCE).await?;
    let token = hold.fencing_token();
    println!("its session has expired: the new holder has token {token}");
    let old_token: i64 = said.rsplit(' ').next().ok_or("no token")?.parse()?;
    let late = Reports {
        client: client()?,
        token: FencingToken::from(old_token),
    };
    let client = client()?;
    let reports = Reports { client, token };
    let read = reports.texts()?;
    late.write("late")?;
    println!("without a claim: a write with the old token is accepted");
    assert_ne!(
        reports.texts()?,
        read,
        "the new holder has read what is gone"
    );
    reports.claim()?;
    let read = reports.texts()?;
    assert_eq!(
        read, "late\nempty",
        "the write before the claim is seen after it"
    );

    println!("the old holder continues, and writes");
    old.go_on()?;
    old.say("write").await?;
    for _ in 0..3 {
        println!("  {}", old.hear().await?);
    }
    assert_eq!(reports.texts()?, read);
    reports.write("new")?;
    assert_eq!(reports.texts()?, "new\nempty");
    old.end().await?;

    hold.release().await?;
    let hold = lock.acquire_timeout(PATIENCE).await?;
    let next = Reports {
        client: Client::new(postgres.directory())?,
        token: hold.fencing_token(),
    };
    claim_in_a_transaction(&reports, &next)?;

    hold.release().await?;
    session.close().await;
    Ok(playground.close().await?)
}

/// A holder that is stopped in a transaction: the next holder's claim waits until it is committed.
fn claim_in_a_transaction(late: &Reports, next: &Reports) -> anyhow::Result<()> {
    thread::scope(|scope| {
        let mut claiming = None;
        late.write_all("whole", || {
            claiming = Some(scope.spawn(|| next.claim().and_then(|()| next.texts())));
            until_claim_waits(&late.client)
        })?;
        let claimed = claiming.context("the transaction has begun")?.join();
        let Ok(read) = claimed else {
            bail!("the claim has panicked");
        };
        ensure!(read? == "whole\nwhole", "the claim comes after the commit");
        println!("a claim waits for the commit of a transaction, and sees all of it");
        let refused = late.write_all("late", || bail!("it has begun"));
        let refused = refused.err().context("it was committed")?;
        println!("the next transaction is refused: {refused}");
        ensure!(next.texts()? == "whole\nwhole", "it is rolled back");
        Ok(())
    })
}

fn until_claim_waits(client: &Client) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while client.run(WAITING, &[])? != "1" {
        ensure!(Instant::now() < deadline, "the claim does not wait");
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

async fn old_holder(mut part: Part) -> anyhow::Result<()> {
    let directory = part.hear().await?.context("no server")?;
    let session = part.connect().await?;
    let lock = ExclusiveLock::new(&session, "/sales")?;
    let hold = lock.acquire_timeout(PATIENCE).await?;
    let token = hold.fencing_token();
    let client = Client::new(directory)?;
    let reports = Reports { client, token };
    reports.claim()?;
    reports.write("old")?;
    let said = format!("the old holder has claimed the row with token {token}");
    part.say(said).await?;

    // The process is stopped here, and does not know for how long.
    part.hear().await?;

    let late = [
        ("its write", reports.write("later")),
        ("its transaction", reports.write_all("later", || Ok(()))),
        ("its claim", reports.claim()),
    ];
    for (what, outcome) in late {
        let refused = outcome
            .err()
            .context("it was written, over what is newer")?;
        part.say(format!("{what} is refused: {refused}")).await?;
    }
    session.close().await;
    Ok(())
}
