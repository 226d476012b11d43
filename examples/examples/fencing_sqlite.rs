//! Fencing in SQL: the first write after acquiring claims the token, before anything is read.
//!
//! The statements are the same for PostgreSQL. A paused holder writes late, once before the next
//! holder has claimed the row, and once after. The example `fencing_postgres` has a holder that is a
//! process of its own and is really stopped, and a transaction that writes many rows.
//!
//! `cargo run --example fencing_sqlite`

use std::error::Error;

use anyhow::ensure;
use rusqlite::{Connection, named_params};
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{ExclusiveLock, FencingToken};

const TABLE: &str = "
    CREATE TABLE report (
        name TEXT PRIMARY KEY, text TEXT NOT NULL, token BIGINT NOT NULL
    );
    INSERT INTO report VALUES ('sales', 'empty', 0);";

/// The first statement after acquiring. It changes one row, or a newer holder has claimed it.
const CLAIM: &str = "
    UPDATE report SET token = :token WHERE name = :name AND token <= :token";

/// A write of the holder that has claimed the row.
const WRITE: &str = "
    UPDATE report SET text = :text
    WHERE name = :name AND token = :token";

/// What is not enough: a write that compares, by a holder that has claimed nothing.
const COMPARE_ONLY: &str = "
    UPDATE report SET text = :text, token = :token
    WHERE name = :name AND token <= :token";

struct Store {
    sqlite: Connection,
}

impl Store {
    fn open() -> rusqlite::Result<Store> {
        let sqlite = Connection::open_in_memory()?;
        sqlite.execute_batch(TABLE)?;
        Ok(Store { sqlite })
    }

    fn claim(&self, token: FencingToken) -> anyhow::Result<()> {
        let names = named_params! { ":name": "sales", ":token": token.get() };
        let claimed = self.sqlite.execute(CLAIM, names)?;
        ensure!(claimed == 1, "a newer holder has claimed the row");
        Ok(())
    }

    fn write(&self, by: &str, token: FencingToken, text: &str) -> anyhow::Result<()> {
        let names = named_params! { ":name": "sales", ":token": token.get(), ":text": text };
        let written = self.sqlite.execute(by, names)?;
        ensure!(written == 1, "this token has not claimed the row");
        Ok(())
    }

    fn text(&self) -> rusqlite::Result<String> {
        let query = "SELECT text FROM report WHERE name = 'sales'";
        self.sqlite.query_row(query, [], |row| row.get(0))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open().await?;
    let paused = playground.connect().await?;
    let old = ExclusiveLock::new(&paused, "/sales")?.acquire().await?;
    let old_token = old.fencing_token();
    // The old holder was paused for too long. It has not written yet, and knows only its token.
    paused.close().await;

    let session = playground.connect().await?;
    let hold = ExclusiveLock::new(&session, "/sales")?.acquire().await?;
    let token = hold.fencing_token();
    assert!(token > old_token);

    let store = Store::open()?;
    // The new holder reads, and has claimed nothing.
    let read = store.text()?;
    store.write(COMPARE_ONLY, old_token, "old")?;
    println!("without a claim: the old holder's write is accepted");
    assert_ne!(
        store.text()?,
        read,
        "the new holder works with a text that is gone"
    );

    let store = Store::open()?;
    store.claim(token)?;
    let read = store.text()?;
    let refused = store.write(COMPARE_ONLY, old_token, "old").unwrap_err();
    println!("after the new holder's claim: the old holder's write is refused: {refused}");
    let refused = store.claim(old_token).unwrap_err();
    println!("and its claim, too: {refused}");
    store.write(WRITE, token, &format!("{read}, then new"))?;
    assert_eq!(store.text()?, "empty, then new");

    hold.release().await?;
    session.close().await;
    Ok(playground.close().await?)
}
