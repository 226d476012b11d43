//! Fencing in an object store: the first write claims the token, and each write is conditional.
//!
//! The object begins with the token of the holder that has claimed it. A put with `If-Match` takes
//! the place of a transaction. Here the store is in memory; S3, Azure and Google Cloud Storage have
//! the same call of the crate `object_store`.
//!
//! `cargo run --example fencing_object_store`

use std::error::Error;

use anyhow::{Context, bail};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutPayload, UpdateVersion};
use zookeeper_recipes_examples::Playground;
use zookeeper_recipes_lock::{ExclusiveLock, FencingToken};

/// An object that a holder has claimed, in the version that it wrote last.
struct Claimed<'a> {
    store: &'a dyn ObjectStore,
    path: &'a Path,
    token: FencingToken,
    version: UpdateVersion,
    text: String,
}

impl Claimed<'_> {
    /// Claims the object for this token. Reads it in the same step.
    async fn new<'a>(
        store: &'a dyn ObjectStore,
        path: &'a Path,
        token: FencingToken,
    ) -> anyhow::Result<Claimed<'a>> {
        loop {
            let (mode, text) = match store.get(path).await {
                Ok(found) => {
                    let (e_tag, version) = (found.meta.e_tag.clone(), found.meta.version.clone());
                    let bytes = found.bytes().await?;
                    let (by, text) = parse(std::str::from_utf8(&bytes)?)?;
                    if by > token {
                        bail!("a newer holder has claimed the object");
                    }
                    let text = text.to_owned();
                    (PutMode::Update(UpdateVersion { e_tag, version }), text)
                }
                Err(object_store::Error::NotFound { .. }) => (PutMode::Create, String::new()),
                Err(error) => return Err(error.into()),
            };
            match store
                .put_opts(path, object(token, &text), mode.into())
                .await
            {
                Ok(put) => {
                    let version = put.into();
                    return Ok(Claimed {
                        store,
                        path,
                        token,
                        version,
                        text,
                    });
                }
                // Another holder has written since the read.
                Err(
                    object_store::Error::Precondition { .. }
                    | object_store::Error::AlreadyExists { .. },
                ) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes, if nobody has claimed or written the object since.
    async fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let mode = PutMode::Update(self.version.clone());
        let put = self
            .store
            .put_opts(self.path, object(self.token, text), mode.into());
        let put = put.await.context("a newer holder has claimed the object")?;
        self.version = put.into();
        text.clone_into(&mut self.text);
        Ok(())
    }
}

fn object(token: FencingToken, text: &str) -> PutPayload {
    format!("{token}\n{text}").into()
}

fn parse(object: &str) -> anyhow::Result<(FencingToken, &str)> {
    let (token, text) = object.split_once('\n').context("no token")?;
    Ok((FencingToken::from(token.parse::<i64>()?), text))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let playground = Playground::open().await?;
    let (store, path) = (InMemory::new(), Path::from("reports/sales"));

    let paused = playground.connect().await?;
    let hold = ExclusiveLock::new(&paused, "/sales")?.acquire().await?;
    let old_token = hold.fencing_token();
    let mut old = Claimed::new(&store, &path, old_token).await?;
    old.write("first").await?;
    // The old holder is paused for too long, and then continues without a look at its hold.
    paused.close().await;

    let session = playground.connect().await?;
    let hold = ExclusiveLock::new(&session, "/sales")?.acquire().await?;
    let mut new = Claimed::new(&store, &path, hold.fencing_token()).await?;
    let refused = old.write("late").await.unwrap_err();
    println!("after the claim: the old holder's write is refused: {refused}");
    let refused = Claimed::new(&store, &path, old_token).await.err();
    println!("and its claim, too: {}", refused.context("was claimed")?);
    let text = format!("{}, second", new.text);
    new.write(&text).await?;
    let bytes = store.get(&path).await?.bytes().await?;
    assert_eq!(parse(std::str::from_utf8(&bytes)?)?.1, "first, second");

    hold.release().await?;
    session.close().await;
    Ok(playground.close().await?)
}
