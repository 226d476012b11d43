//! What the semaphore promises, on a real server.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::task::JoinHandle;
use zookeeper_recipes_core::ensemble::CreateMode;
use zookeeper_recipes_core::{Identity, NodePath, QueueOptions};
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
async fn any_holders_release_wakes_the_waiter() -> Fallible {
    let server = server().await;
    for releasing in 0..3 {
        let holding = Semaphore::new(&session(&server, QUIET).await, PATH, 3)?;
        let mut holds = Vec::new();
        for _ in 0..3 {
            holds.push(holding.acquire().await?);
        }
        let waiter = waiter(&server, 3, 1).await?;
        until_last_watches(&server, &holding, 3).await;
        holds.remove(releasing).release().await?;
        let hold = in_time("the waiter", waiter).await??;
        assert_eq!(holding.available_permits().await?, 0);
        for hold in holds.into_iter().chain([hold]) {
            hold.release().await?;
        }
        assert_nothing_left(&server).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_waiter_watches_its_window_and_gets_in_when_enough_has_gone() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&session(&server, QUIET).await, PATH, 6)?;
    let mut holds = Vec::new();
    for weight in [1, 2, 1, 1] {
        holds.push(holding.acquire_many(weight).await?);
    }
    let heavy = waiter(&server, 6, 4).await?;
    // Of the latest, those with 1, 1 and 2 are the fewest that leave too little by themselves.
    until_last_watches(&server, &holding, 3).await;
    // One permit is free. A newcomer must not take it from the waiter.
    assert!(holding.try_acquire().await?.is_none());
    holds.remove(0).release().await?;
    until_last_watches(&server, &holding, 3).await;
    holds.remove(1).release().await?;
    until_last_watches(&server, &holding, 2).await;
    assert!(!heavy.is_finished());
    holds.remove(0).release().await?;
    let hold = in_time("the heavy one", heavy).await??;
    assert_eq!(holding.available_permits().await?, 1);
    for hold in holds.into_iter().chain([hold]) {
        hold.release().await?;
    }
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_held_is_refused_and_leaves_nothing() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    assert!(Semaphore::new(&session, PATH, 0).is_err());
    let semaphore = Semaphore::new(&session, PATH, 5)?;
    let refused = async |weight| {
        let timeout = Duration::from_secs(5);
        let errors = [
            semaphore.acquire_many(weight).await.unwrap_err(),
            semaphore.try_acquire_many(weight).await.unwrap_err(),
            semaphore
                .acquire_many_timeout(weight, timeout)
                .await
                .unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, Error::InvalidInput(_)), "{error}");
            assert!(error.to_string().contains(&weight.to_string()), "{error}");
        }
    };
    // The first round comes before the number is known, the second after.
    for _ in 0..2 {
        refused(0).await;
        refused(6).await;
        refused(u32::MAX).await;
        semaphore.acquire_many(5).await?.release().await?;
        queue_length(&semaphore, 0).await;
    }
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_permits_is_refused_with_both_numbers_and_the_way_out() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let hold = Semaphore::new(&session, PATH, 5)?.acquire().await?;
    let other = Semaphore::new(&session, PATH, 8)?;
    // A look needs no agreement.
    assert_eq!(other.contenders().await?.len(), 1);
    let errors = [
        other.acquire().await.unwrap_err(),
        other.try_acquire().await.unwrap_err(),
        other.acquire_many(7).await.unwrap_err(),
        other.available_permits().await.unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(
            text.contains("\"8\" is not the 5") && text.contains(PATH) && text.contains("resize"),
            "{text}"
        );
    }
    queue_length(&Semaphore::new(&session, PATH, 5)?, 1).await;
    hold.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_up_wakes_those_who_may_hold_now() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&session(&server, QUIET).await, PATH, 2)?;
    let hold = holding.acquire_many(2).await?;
    let first = waiter(&server, 2, 1).await?;
    let second = waiter(&server, 2, 2).await?;
    let third = waiter(&server, 2, 1).await?;
    until_last_watches(&server, &holding, 1).await;
    holding.resize(5).await?;
    let first = in_time("the first", first).await??;
    let second = in_time("the second", second).await??;
    assert!(!third.is_finished());
    assert_eq!(holding.available_permits().await?, 0);
    first.release().await?;
    let third = in_time("the third", third).await??;
    // All three use the new number. A newcomer must use it, too.
    assert_eq!(holding.available_permits().await?, 0);
    let session = session(&server, QUIET).await;
    assert!(Semaphore::new(&session, PATH, 2)?.acquire().await.is_err());
    for hold in [hold, second, third] {
        hold.release().await?;
    }
    let newcomer = Semaphore::new(&session, PATH, 5)?;
    newcomer.acquire_many(5).await?.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
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
    assert_eq!(
        Semaphore::new(&session, PATH, 8)?
            .available_permits()
            .await?,
        8
    );

    let by_hand = NodePath::new("/limits/by-hand")?;
    let raw = session.server(&by_hand).await?;
    let options = QueueOptions::new();
    raw.create(
        by_hand.as_str(),
        b"",
        CreateMode::Persistent,
        options.get_acl(),
    )
    .await?;
    let semaphore = Semaphore::new(&session, by_hand.as_str(), 5)?;
    let error = semaphore.acquire().await.unwrap_err().to_string();
    assert!(
        error.contains("not a number of permits") && error.contains(by_hand.as_str()),
        "{error}"
    );
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
    assert!(strict.acquire().await.is_err());
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

#[tokio::test(flavor = "multi_thread")]
async fn resizes_at_once_leave_all_with_the_same_number() -> Fallible {
    let server = server().await;
    let mut semaphores = Vec::new();
    for _ in 0..4 {
        let semaphore = Semaphore::new(&session(&server, QUIET).await, PATH, 4)?;
        semaphore.acquire().await?.release().await?;
        semaphores.push(semaphore);
    }
    let resizes = semaphores
        .iter()
        .zip(5..)
        .map(|(semaphore, number)| semaphore.resize(number));
    try_join_all(resizes).await?;
    let mut available = Vec::new();
    for semaphore in &semaphores {
        available.push(semaphore.available_permits().await?);
    }
    assert!((5..9).contains(&available[0]), "{available:?}");
    assert!(
        available.iter().all(|number| *number == available[0]),
        "{available:?}"
    );
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_znodes_with_absurd_weights_stand_in_nobodys_way() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let semaphore = Semaphore::new(&session, PATH, 5)?;
    semaphore.acquire().await?.release().await?;
    let raw = session.server(&NodePath::new(PATH)?).await?;
    let options = QueueOptions::new();
    let mut foreign = Vec::new();
    for weight in [
        "0",
        "4294967296",
        "99999999999999999999999",
        "-1",
        "+1",
        "01",
        "",
        "x",
    ] {
        let name = Identity::random().name(&format!("permit-{weight}-"));
        let path = format!("{PATH}/{name}");
        let mode = CreateMode::EphemeralSequential;
        foreign.push(raw.create(&path, b"", mode, options.get_acl()).await?.path);
    }
    assert_eq!(semaphore.available_permits().await?, 5);
    let hold = semaphore.acquire_many(5).await?;
    assert_eq!(semaphore.contenders().await?.len(), 1);
    hold.release().await?;

    // One that could be a holder from before the number was lowered counts, until it goes.
    let name = Identity::random().name("permit-4294967295-");
    let path = format!("{PATH}/{name}");
    let mode = CreateMode::EphemeralSequential;
    let heavy = raw.create(&path, b"", mode, options.get_acl()).await?.path;
    assert_eq!(semaphore.available_permits().await?, 0);
    let waiter = waiter(&server, 5, 1).await?;
    until_last_watches(&server, &semaphore, 1).await;
    raw.delete(&heavy).await?;
    in_time("the waiter", waiter).await??.release().await?;
    for path in foreign {
        raw.delete(&path).await?;
    }
    drop(raw);
    assert_nothing_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_that_gives_up_lets_those_behind_in() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&session(&server, QUIET).await, PATH, 5)?;
    let waiting = Semaphore::new(&session(&server, QUIET).await, PATH, 5)?;
    let hold = holding.acquire_many(3).await?;
    let heavy = waiter(&server, 5, 5).await?;
    let light = waiter(&server, 5, 2).await?;
    until_last_watches(&server, &holding, 1).await;
    heavy.abort();
    let light = in_time("the light one", light).await??;
    let soon = Duration::from_millis(50);
    let error = waiting.acquire_many_timeout(1, soon).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineElapsed { .. }), "{error}");
    hold.release().await?;
    light.release().await?;
    assert_nothing_left(&server).await;
    Ok(())
}
