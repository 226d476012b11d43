//! What the semaphore promises, on a real server.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::task::{JoinHandle, JoinSet};
use zookeeper_recipes_core::ensemble::CreateMode;
use zookeeper_recipes_core::{Identity, NodePath, QueueOptions};
use zookeeper_recipes_semaphore::{
    ConnectOptions, Error, Hold, Semaphore, SemaphoreOptions, Session, WaitStrategy,
};
use zookeeper_recipes_testkit::{Server, ServerOptions};

const PATH: &str = "/limits/exports";

/// Long enough for everything that is waited for, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

type Fallible = Result<(), Box<dyn std::error::Error + Send + Sync>>;

async fn server() -> Server {
    Server::start(ServerOptions::new()).await.expect("a server")
}

/// A session that does not speak up by itself as long as a test runs.
async fn quiet_session(server: &Server) -> Result<Session, Error> {
    let options = ConnectOptions::new().session_timeout(Duration::from_secs(60));
    Session::connect_with(&server.connect_string(), options).await
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("not within {PATIENCE:?}: {what}"),
    }
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    within(what, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn until_queue_has(semaphore: &Semaphore, contenders: usize) {
    eventually("the queue has so many", async || {
        semaphore.contenders().await.expect("a look").len() == contenders
    })
    .await;
}

async fn assert_nothing_is_left(server: &Server) {
    eventually("no znode and no watch is left", async || {
        let ephemerals = server.ephemerals().await.expect("dump");
        let watches = server.watches().await.expect("wchp");
        ephemerals.is_empty() && watches.is_empty()
    })
    .await;
}

/// Somebody who waits, in a session of its own, once its znode is in the queue.
async fn waiter(
    server: &Server,
    permits: u32,
    weight: u32,
) -> Result<JoinHandle<Result<Hold, Error>>, Error> {
    let session = quiet_session(server).await?;
    let semaphore = Semaphore::new(&session, PATH, permits)?;
    let before = semaphore.contenders().await?.len();
    let task = tokio::spawn({
        let semaphore = semaphore.clone();
        async move { semaphore.acquire_many(weight).await }
    });
    until_queue_has(&semaphore, before + 1).await;
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

/// What those who hold have noted: the weight of each in the order of the queue, and who has gone.
struct Ledger {
    permits: u32,
    weights: Vec<u32>,
    places: Mutex<Vec<Noted>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Noted {
    Waits,
    Holds,
    Gone,
}

impl Ledger {
    fn holds(&self, place: usize) {
        let mut places = self.places.lock().unwrap();
        places[place] = Noted::Holds;
        let weigh = |keep: &dyn Fn(usize) -> bool| -> u32 {
            let kept = (0..self.weights.len()).filter(|&place| keep(place));
            kept.map(|place| self.weights[place]).sum()
        };
        let held = weigh(&|place| places[place] == Noted::Holds);
        assert!(held <= self.permits, "{held} held");
        // Whoever came before and is not in yet could be as well: nobody was overtaken.
        let up_to_here = weigh(&|other| other <= place && places[other] != Noted::Gone);
        assert!(
            up_to_here <= self.permits,
            "place {place} overtook somebody"
        );
    }

    fn goes(&self, place: usize) {
        self.places.lock().unwrap()[place] = Noted::Gone;
    }
}

/// A hundred waiters with weights from 1 to 5 on a semaphore of 5.
async fn hundred_waiters(server: &Server, options: &SemaphoreOptions) -> Fallible {
    let sessions = try_join_all((0..5).map(|_| quiet_session(server))).await?;
    let semaphores: Vec<Semaphore> = sessions
        .iter()
        .map(|session| Semaphore::with_options(session, PATH, 5, options.clone()))
        .collect::<Result<_, _>>()?;
    let door = semaphores[0].acquire_many(5).await?;
    let weights: Vec<u32> = (0..100)
        .map(|place| (place * 7 + place / 3) % 5 + 1)
        .collect();
    let ledger = Arc::new(Ledger {
        permits: 5,
        places: Mutex::new(vec![Noted::Waits; weights.len()]),
        weights,
    });
    let mut waiters: JoinSet<Result<(), Error>> = JoinSet::new();
    for (place, &weight) in ledger.weights.iter().enumerate() {
        let (semaphore, ledger) = (semaphores[place % 5].clone(), ledger.clone());
        waiters.spawn(async move {
            let hold = semaphore.acquire_many(weight).await?;
            ledger.holds(place);
            tokio::task::yield_now().await;
            ledger.goes(place);
            hold.release().await
        });
        until_queue_has(&semaphores[0], place + 2).await;
    }
    assert_eq!(semaphores[1].unclaimed().await?, 0);
    door.release().await?;
    for finished in within("all the waiters", waiters.join_all()).await {
        finished?;
    }
    assert_eq!(semaphores[1].unclaimed().await?, 5);
    assert_nothing_is_left(server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_waiters_are_served_in_order_and_never_hold_too_much() -> Fallible {
    hundred_waiters(&server().await, &SemaphoreOptions::new()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn other_ways_to_wait_serve_in_order_as_well() -> Fallible {
    let server = server().await;
    let poll = WaitStrategy::Poll(Duration::from_millis(10));
    for strategy in [WaitStrategy::Parent, poll] {
        hundred_waiters(&server, &SemaphoreOptions::new().strategy(strategy)).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn any_holders_release_wakes_the_waiter() -> Fallible {
    let server = server().await;
    for releasing in 0..3 {
        let holding = Semaphore::new(&quiet_session(&server).await?, PATH, 3)?;
        let mut holds = Vec::new();
        for _ in 0..3 {
            holds.push(holding.acquire().await?);
        }
        let waiter = waiter(&server, 3, 1).await?;
        until_last_watches(&server, &holding, 3).await;
        holds.remove(releasing).release().await?;
        let hold = within("the waiter", waiter).await??;
        assert_eq!(holding.unclaimed().await?, 0);
        for hold in holds.into_iter().chain([hold]) {
            hold.release().await?;
        }
        assert_nothing_is_left(&server).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_sends_six_requests_to_wait_and_three_when_it_is_woken() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&quiet_session(&server).await?, PATH, 1)?;
    let hold = holding.acquire().await?;
    let waiting = Semaphore::new(&quiet_session(&server).await?, PATH, 1)?;
    // What is asked of the server here are packets, too.
    let mut looks = 0;
    let mut until_watched = async |znodes| {
        eventually("so many znodes are watched", async || {
            looks += 1;
            server.watches().await.expect("wchp").len() == znodes
        })
        .await;
    };
    // Each session sends a probe as it opens, which is not to be counted.
    eventually("the sessions are quiet", async || {
        let received = async || server.monitor().await.expect("mntr").packets_received;
        let first = received().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        received().await == first + 1
    })
    .await;
    let before = server.monitor().await?.packets_received;
    let waiter = tokio::spawn(async move { waiting.acquire().await });
    until_watched(3).await;
    hold.release().await?;
    let hold = within("the waiter", waiter).await??;
    // Its own znode's.
    until_watched(1).await;
    let received = server.monitor().await?.packets_received - before - 1 - looks;
    // A create, a list and a read of the number; a watch on its own znode, the directory and the
    // holder; the holder's delete; a list and a read of the number; a watch taken off.
    assert_eq!(received, 6 + 1 + 3);
    hold.release().await?;
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_waiter_watches_its_window_and_gets_in_when_enough_has_gone() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&quiet_session(&server).await?, PATH, 6)?;
    let mut holds = Vec::new();
    for weight in [1, 2, 1, 1] {
        holds.push(holding.acquire_many(weight).await?);
    }
    let heavy = waiter(&server, 6, 4).await?;
    // Of the latest, those with 1, 1 and 2 are the fewest that leave too little by themselves.
    until_last_watches(&server, &holding, 3).await;
    // There is one free, which a newcomer must not take from the one that waits.
    assert!(holding.try_acquire().await?.is_none());
    holds.remove(0).release().await?;
    until_last_watches(&server, &holding, 3).await;
    holds.remove(1).release().await?;
    until_last_watches(&server, &holding, 2).await;
    assert!(!heavy.is_finished());
    holds.remove(0).release().await?;
    let hold = within("the heavy one", heavy).await??;
    assert_eq!(holding.unclaimed().await?, 1);
    for hold in holds.into_iter().chain([hold]) {
        hold.release().await?;
    }
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_holders_permits_come_back() -> Fallible {
    let server = server().await;
    let killed = Session::connect(&server.connect_string()).await?;
    let lost = Semaphore::new(&killed, PATH, 5)?.acquire_many(4).await?;
    let waiter = waiter(&server, 5, 5).await?;
    server.expire_session(lost.session_id().0).await?;
    let hold = within("the waiter", waiter).await??;
    within("the loss", lost.lost()).await;
    drop(lost);
    hold.release().await?;
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_held_is_refused_and_leaves_nothing() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    assert!(Semaphore::new(&session, PATH, 0).is_err());
    for path in ["", "limits", "/"] {
        assert!(Semaphore::new(&session, path, 5).is_err(), "{path:?}");
    }

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
    // Before and after the number is known.
    for _ in 0..2 {
        refused(0).await;
        refused(6).await;
        refused(u32::MAX).await;
        semaphore.acquire_many(5).await?.release().await?;
        until_queue_has(&semaphore, 0).await;
    }
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_permits_is_refused_with_both_numbers() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    let hold = Semaphore::new(&session, PATH, 5)?.acquire().await?;
    let other = Semaphore::new(&session, PATH, 8)?;
    // To look needs no agreement.
    assert_eq!(other.contenders().await?.len(), 1);
    let errors = [
        other.acquire().await.unwrap_err(),
        other.try_acquire().await.unwrap_err(),
        other.acquire_many(7).await.unwrap_err(),
        other.unclaimed().await.unwrap_err(),
        other.resize(8).await.unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(
            text.contains('5') && text.contains('8') && text.contains(PATH),
            "{text}"
        );
    }
    until_queue_has(&Semaphore::new(&session, PATH, 5)?, 1).await;
    hold.release().await?;
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_up_wakes_those_who_may_hold_now() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&quiet_session(&server).await?, PATH, 2)?;
    let hold = holding.acquire_many(2).await?;
    let first = waiter(&server, 2, 1).await?;
    let second = waiter(&server, 2, 2).await?;
    let third = waiter(&server, 2, 1).await?;
    until_last_watches(&server, &holding, 1).await;
    holding.resize(5).await?;
    let first = within("the first", first).await??;
    let second = within("the second", second).await??;
    assert!(!third.is_finished());
    assert_eq!(holding.unclaimed().await?, 0);
    first.release().await?;
    let third = within("the third", third).await??;
    // All three go by the new number; whoever comes now must come with it.
    assert_eq!(holding.unclaimed().await?, 0);
    let session = quiet_session(&server).await?;
    assert!(Semaphore::new(&session, PATH, 2)?.acquire().await.is_err());
    for hold in [hold, second, third] {
        hold.release().await?;
    }
    let newcomer = Semaphore::new(&session, PATH, 5)?;
    newcomer.acquire_many(5).await?.release().await?;
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_down_revokes_nobody_and_lets_nobody_in_until_it_fits() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&quiet_session(&server).await?, PATH, 5)?;
    let waiting = Semaphore::new(&quiet_session(&server).await?, PATH, 5)?;
    let large = holding.acquire_many(3).await?;
    let small = holding.acquire().await?;
    waiting.acquire().await?.release().await?;
    let too_heavy = waiter(&server, 5, 4).await?;
    let fits = waiter(&server, 5, 2).await?;
    until_last_watches(&server, &holding, 1).await;

    waiting.resize(3).await?;
    let error = within("the one too heavy", too_heavy).await?.unwrap_err();
    let text = error.to_string();
    assert!(text.contains('4') && text.contains('3'), "{text}");
    until_queue_has(&waiting, 3).await;
    assert!(large.is_held() && small.is_held());
    assert_eq!(holding.unclaimed().await?, 0);
    // Whatever one of them held before, it fits no more.
    until_last_watches(&server, &holding, 2).await;
    assert!(!fits.is_finished());
    assert!(holding.try_acquire().await?.is_none());
    small.release().await?;
    until_last_watches(&server, &holding, 1).await;
    assert!(!fits.is_finished());
    large.release().await?;
    let fits = within("the one that fits", fits).await??;
    assert_eq!(holding.unclaimed().await?, 1);
    assert!(holding.acquire_many(4).await.is_err());
    fits.release().await?;
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resize_records_the_number_where_there_is_none() -> Fallible {
    let server = server().await;
    let session = Session::connect(&server.connect_string()).await?;
    assert!(Semaphore::new(&session, PATH, 5)?.resize(0).await.is_err());
    Semaphore::new(&session, PATH, 5)?.resize(8).await?;
    assert_eq!(Semaphore::new(&session, PATH, 8)?.unclaimed().await?, 8);

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
        error.contains("no number of permits") && error.contains(by_hand.as_str()),
        "{error}"
    );
    semaphore.resize(5).await?;
    assert_eq!(raw.get(by_hand.as_str()).await?.0, b"5");
    semaphore.acquire_many(5).await?.release().await?;
    drop(raw);
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn resizes_at_once_leave_all_with_the_same_number() -> Fallible {
    let server = server().await;
    let mut semaphores = Vec::new();
    for _ in 0..4 {
        let semaphore = Semaphore::new(&quiet_session(&server).await?, PATH, 4)?;
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
        available.push(semaphore.unclaimed().await?);
    }
    assert!((5..9).contains(&available[0]), "{available:?}");
    assert!(
        available.iter().all(|number| *number == available[0]),
        "{available:?}"
    );
    assert_nothing_is_left(&server).await;
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
    assert_eq!(semaphore.unclaimed().await?, 5);
    let hold = semaphore.acquire_many(5).await?;
    assert_eq!(semaphore.contenders().await?.len(), 1);
    hold.release().await?;

    // One that could be a holder from before the number was lowered counts, until it goes.
    let name = Identity::random().name("permit-4294967295-");
    let path = format!("{PATH}/{name}");
    let mode = CreateMode::EphemeralSequential;
    let heavy = raw.create(&path, b"", mode, options.get_acl()).await?.path;
    assert_eq!(semaphore.unclaimed().await?, 0);
    let waiter = waiter(&server, 5, 1).await?;
    until_last_watches(&server, &semaphore, 1).await;
    raw.delete(&heavy).await?;
    within("the waiter", waiter).await??.release().await?;
    for path in foreign {
        raw.delete(&path).await?;
    }
    drop(raw);
    assert_nothing_is_left(&server).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_that_gives_up_lets_those_behind_in() -> Fallible {
    let server = server().await;
    let holding = Semaphore::new(&quiet_session(&server).await?, PATH, 5)?;
    let waiting = Semaphore::new(&quiet_session(&server).await?, PATH, 5)?;
    let hold = holding.acquire_many(3).await?;
    let heavy = waiter(&server, 5, 5).await?;
    let light = waiter(&server, 5, 2).await?;
    until_last_watches(&server, &holding, 1).await;
    heavy.abort();
    let light = within("the light one", light).await??;
    let soon = Duration::from_millis(50);
    let error = waiting.acquire_many_timeout(1, soon).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineElapsed { .. }), "{error}");
    hold.release().await?;
    light.release().await?;
    assert_nothing_is_left(&server).await;
    Ok(())
}
