//! What the semaphore promises, on a real server.

use tokio::task::JoinHandle;
use zookeeper_recipes_core::ensemble::CreateMode;
use zookeeper_recipes_core::{NodePath, QueueOptions};
use zookeeper_recipes_semaphore::{Error, Hold, Semaphore, Session};
use zookeeper_recipes_suite::{
    QUIET, assert_nothing_left, eventually, in_time, queue_length, server, session,
};
use zookeeper_recipes_testkit::Server;

const PATH: &str = "/limits/exports";

type Fallible = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A waiter in a session of its own, once its znode is in the queue.
async fn waiter(
    server: &Server,
    permits: u32,
    weight: u32,
) -> Result<JoinHandle<Result<Hold, Error>>, Error> {
    let session = session(server, QUIET).await;
    let semaphore = Semaphore::new(&session, PATH, permits)?;
    let before = semaphore.contenders().await?.len();
    let task = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire_many(weight).await }
    });
    queue_length(&semaphore, before + 1).await;
    Ok(task)
}

/// Waits until the waiter that came last watches so many others, its own znode and the directory
/// not counted: then it has looked, and sleeps.
async fn until_last_watches(server: &Server, semaphore: &Semaphore, others: usize) {
    let queue = semaphore.contenders().await.expect("a look");
    let last = queue.last().expect("a waiter");
    let own = format!("{PATH}/{}", last.name);
    eventually("the waiter watches", async || {
        let watches = server.watches().await.expect("wchp");
        let watched = watches
            .iter()
            .filter(|(path, sessions)| **path != own && sessions.contains(&last.session_id.0));
        watched.filter(|(path, _)| *path != PATH).count() == others
            && watches.contains_key(PATH)
            && watches.contains_key(&own)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_down_revokes_nobody_and_lets_nobody_in_until_it_fits() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&session(&server, QUIET).await, PATH, 5)?;
    let waiting = Semaphore::new(&session(&server, QUIET).await, PATH, 5)?;
    let large = holding.acquire_many(3).await?;
    let small = holding.acquire().await?;
    waiting.acquire().await?.release().await?;
    let too_heavy = waiter(&server, 5, 4).await?;
    let fits = waiter(&server, 5, 2).await?;
    until_last_watches(&server, &holding, 1).await;

    waiting.resize(3).await?;
    let error = in_time("the one too heavy", too_heavy).await?.unwrap_err();
    let text = error.to_string();
    assert!(text.contains('4') && text.contains('3'), "{text}");
    queue_length(&waiting, 3).await;
    assert!(large.is_held() && small.is_held());
    assert_eq!(holding.available_permits().await?, 0);
    // The holders exceed the new number, so no waiter fits.
    until_last_watches(&server, &holding, 2).await;
    assert!(!fits.is_finished());
    assert!(holding.try_acquire().await?.is_none());
    small.release().await?;
    until_last_watches(&server, &holding, 1).await;
    assert!(!fits.is_finished());
    large.release().await?;
    let fits = in_time("the waiter that fits", fits).await??;
    assert_eq!(holding.available_permits().await?, 1);
    assert!(holding.acquire_many(4).await.is_err());
    fits.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_records_the_number_where_there_is_none() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    assert!(Semaphore::new(&session, PATH, 5)?.resize(0).await.is_err());
    Semaphore::new(&session, PATH, 5)?.resize(8).await?;
    let eight = Semaphore::new(&session, PATH, 8)?;
    assert_eq!(eight.available_permits().await?, 8);

    let by_hand = NodePath::new("/limits/by-hand")?;
    let raw = session.server(&by_hand).await?;
    let (mode, options) = (CreateMode::Persistent, QueueOptions::new());
    raw.create(by_hand.as_str(), b"", mode, options.get_acl())
        .await?;
    let semaphore = Semaphore::new(&session, by_hand.as_str(), 5)?;
    let error = semaphore.acquire().await.unwrap_err().to_string();
    assert!(error.contains("not a number of permits"), "{error}");
    assert!(error.contains(by_hand.as_str()), "{error}");
    semaphore.resize(5).await?;
    assert_eq!(raw.get(by_hand.as_str()).await?.0, b"5");
    semaphore.acquire_many(5).await?.release().await?;
    drop(raw);
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_that_opens_with_an_old_number_works_by_the_recorded_one() -> Fallible {
    let server = server().await;
    let first = Semaphore::open(&session(&server, QUIET).await, PATH, 2)?;
    assert_eq!(first.recorded().await?, None);
    first.acquire_many(2).await?.release().await?;
    assert_eq!(first.recorded().await?, Some(2));
    first.resize(3).await?;

    let late = Semaphore::open(&session(&server, QUIET).await, PATH, 2)?;
    let hold = late.acquire_many(3).await?;
    assert_eq!(late.available_permits().await?, 0);
    // A number that is raised later counts for the same value, and for its waiters.
    let waiting = Semaphore::open(&session(&server, QUIET).await, PATH, 2)?;
    let waiter = tokio::spawn(async move { waiting.acquire_many(4).await });
    let error = in_time("the one too heavy", waiter).await?.unwrap_err();
    assert!(error.to_string().contains("more than the 3"), "{error}");
    let strict = Semaphore::new(&session(&server, QUIET).await, PATH, 2)?;
    let errors = [
        strict.acquire().await.unwrap_err(),
        strict.try_acquire().await.unwrap_err(),
        strict.acquire_many(2).await.unwrap_err(),
        strict.available_permits().await.unwrap_err(),
    ];
    for error in errors.map(|error| error.to_string()) {
        let says = ["\"2\" is not the 3", PATH, "resize"];
        assert!(says.iter().all(|it| error.contains(it)), "{error}");
    }
    assert_eq!(strict.recorded().await?, Some(3));
    hold.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_needs_no_old_number() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&session(&server, QUIET).await, PATH, 5)?;
    let hold = holding.acquire_many(4).await?;
    let other = Semaphore::new(&session(&server, QUIET).await, PATH, 8)?;
    other.resize(12).await?;
    assert_eq!(holding.available_permits().await?, 8);
    // The value that resized uses its number, though it was made with another.
    other.acquire_many(8).await?.release().await?;
    let again = Semaphore::new(&session(&server, QUIET).await, PATH, 8)?;
    again.resize(12).await?;
    assert_eq!(again.available_permits().await?, 8);
    hold.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}
