//! What an election promises, on real servers.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_election::{
    ConnectOptions, Error, FencingToken, Leader, LeaderElection, LeaderState, Refusal, RunError,
    Session, SessionId, StopWork,
};
use zookeeper_recipes_suite::{
    ELECTION, Judge, assert_no_watch_left, proxy, queue_length, server_with,
};
use zookeeper_recipes_testkit::proxy::Proxy;
use zookeeper_recipes_testkit::{Server, ServerOptions};

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const DIRECTORY: &str = "/app/leader";
const PATIENCE: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(200);
const SHORT_SESSION: Duration = Duration::from_millis(1500);

async fn server() -> Result<Server> {
    Ok(server_with(ServerOptions::new().tick_time(TICK)).await)
}

async fn session(server: &Server) -> Result<Session> {
    Ok(Session::connect(&server.connect_string()).await?)
}

async fn short_session(connect_string: &str) -> Result<Session> {
    let options = ConnectOptions::new()
        .session_timeout(SHORT_SESSION)
        .tick(TICK);
    Ok(Session::connect_with(connect_string, options).await?)
}

/// Cuts all connections until new ones are accepted.
fn cut(proxy: &Proxy) {
    proxy.refuse_connections();
    proxy.cut();
}

async fn soon<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(timeout(PATIENCE, future).await?)
}

/// The leader after the next change, or none.
async fn next(watched: &mut watch::Receiver<LeaderState>) -> Result<Option<Leader>> {
    soon(watched.changed()).await??;
    match watched.borrow_and_update().clone() {
        LeaderState::Leader(leader) => Ok(Some(leader)),
        LeaderState::Nobody => Ok(None),
        other => Err(format!("{other:?}").into()),
    }
}

/// Waits until the watch shows this leader.
async fn until_leader(watched: &mut watch::Receiver<LeaderState>, token: FencingToken) -> Result {
    let leads = |state: &LeaderState| state.leader().map(|it| it.fencing_token) == Some(token);
    soon(watched.wait_for(leads)).await??;
    Ok(())
}

/// Waits until no candidate is left, and no watch.
async fn nothing_is_left(server: &Server, election: &LeaderElection) -> Result {
    queue_length(election, 0).await;
    assert_no_watch_left(server).await;
    Ok(())
}

/// A candidate that runs in a task of its own, and says what becomes of it.
struct Running {
    terms: mpsc::UnboundedReceiver<Term>,
    shut_down: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), RunError<Infallible>>>,
}

/// One term of a leader, as its work sees it.
struct Term {
    token: FencingToken,
    session_id: SessionId,
    /// When the work was dropped.
    stopped: oneshot::Receiver<Instant>,
}

struct NotifyWhenDropped(Option<oneshot::Sender<Instant>>);

impl Drop for NotifyWhenDropped {
    fn drop(&mut self) {
        if let Some(stopped) = self.0.take() {
            // Nobody listens where the test has no use for it.
            let _ = stopped.send(Instant::now());
        }
    }
}

impl Running {
    /// Leads until it is stopped.
    fn start(election: LeaderElection) -> Running {
        let (terms, begun) = mpsc::unbounded_channel();
        let (shut_down, shutdown) = oneshot::channel();
        let shutdown = async {
            let _ = shutdown.await;
        };
        let task = tokio::spawn(async move {
            let work = async |leadership: zookeeper_recipes_election::Term| {
                let (sender, stopped) = oneshot::channel();
                let _notify = NotifyWhenDropped(Some(sender));
                let _ = terms.send(Term {
                    token: leadership.fencing_token(),
                    session_id: leadership.view().session_id(),
                    stopped,
                });
                pending().await
            };
            election.run(shutdown, work).await
        });
        Running {
            terms: begun,
            shut_down: Some(shut_down),
            task,
        }
    }

    async fn next_term(&mut self) -> Result<Term> {
        Ok(soon(self.terms.recv())
            .await?
            .ok_or("the candidate has ended")?)
    }

    async fn shut_down(mut self) -> Result {
        drop(self.shut_down.take());
        Ok(soon(self.task).await???)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_ten_candidates_leads_once_and_watches_show_every_change_in_order() -> Result {
    let server = server().await?;
    let watching = session(&server).await?;
    let election = LeaderElection::new(&watching, DIRECTORY, "watching")?;
    let seen = Arc::new(watch::Sender::new([0_i64; 2]));
    let mut watches = Vec::new();
    for place in 0..2 {
        let mut watched = election.watch_leader();
        let seen = seen.clone();
        watches.push(tokio::spawn(async move {
            let mut shown = Vec::new();
            while shown.len() < 10 {
                if let Some(leader) = next(&mut watched).await.expect("it is known") {
                    seen.send_modify(|seen| seen[place] = leader.fencing_token.get());
                    shown.push(leader);
                }
            }
            shown
        }));
    }
    let judge = Arc::new(Judge::of(ELECTION));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut candidates = Vec::new();
    for number in 0..10 {
        let session = session(&server).await?;
        let election = LeaderElection::new(&session, DIRECTORY, format!("node-{number}"))?;
        let (judge, order) = (judge.clone(), order.clone());
        let mut seen = seen.subscribe();
        candidates.push(tokio::spawn(async move {
            let leadership = election.acquire().await?;
            let granted = judge.granted(number, 1, &leadership.view());
            let token = leadership.fencing_token().get();
            let entry = (leadership.id().to_owned(), token);
            order.lock().expect("nobody panicked").push(entry);
            // A watch skips a leadership that ends before the read.
            let _ = seen.wait_for(|seen| *seen == [token; 2]).await;
            judge.letting_go(granted);
            leadership.release().await
        }));
    }
    for candidate in candidates {
        soon(candidate).await???;
    }
    let order = std::mem::take(&mut *order.lock().expect("nobody panicked"));
    assert_eq!(order.len(), 10);
    assert!(order.is_sorted_by(|one, next| one.1 < next.1), "{order:?}");
    for watched in watches {
        let shown = soon(watched).await??;
        assert!(shown.is_sorted_by(|one, next| one.since <= next.since));
        let shown: Vec<(String, i64)> = shown
            .into_iter()
            .map(|leader| (leader.id, leader.fencing_token.get()))
            .collect();
        assert_eq!(shown, order);
    }
    nothing_is_left(&server, &election).await
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_is_stopped_before_the_next_leads_when_its_session_expires() -> Result {
    let server = server().await?;
    let proxy = proxy(&server).await;
    let old = short_session(&proxy.connect_string()).await?;
    let new = session(&server).await?;
    for (path, stop_work) in [
        ("/cautious", StopWork::WhenSuspended),
        ("/late", StopWork::WhenLost),
    ] {
        let mut leader =
            Running::start(LeaderElection::new(&old, path, "old")?.stop_work(stop_work));
        let term = leader.next_term().await?;
        let next = LeaderElection::new(&new, path, "new")?;
        let won = tokio::spawn(async move {
            let leadership = next.acquire().await;
            (leadership, Instant::now())
        });
        cut(&proxy);
        let cut = Instant::now();
        let stopped = soon(term.stopped).await??;
        let (leadership, won) = soon(won).await??;
        let leadership = leadership?;
        assert!(
            stopped < won,
            "{stop_work:?}: stopped {:?} late",
            stopped - won
        );
        assert!(leadership.fencing_token() > term.token);
        match stop_work {
            StopWork::WhenSuspended => assert!(stopped - cut < SHORT_SESSION / 5),
            StopWork::WhenLost => assert!(stopped - cut > SHORT_SESSION / 5),
        }
        proxy.accept_connections();
        leadership.release().await?;
        let again = leader.next_term().await?;
        assert_ne!(again.session_id, term.session_id);
        leader.shut_down().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_campaigns_again_when_the_session_expires_while_it_waits() -> Result {
    let server = server().await?;
    let (one, other) = (session(&server).await?, session(&server).await?);
    let first = LeaderElection::new(&one, DIRECTORY, "first")?;
    let leadership = first.acquire().await?;
    let second = LeaderElection::new(&other, DIRECTORY, "second")?;
    let mut waiting = Running::start(second.clone());
    let waits = async |than: Option<FencingToken>| -> Result<FencingToken> {
        soon(async {
            loop {
                let contenders = first.contenders().await?;
                if let [_, waiter] = &contenders[..] {
                    if Some(waiter.fencing_token) != than {
                        assert_eq!(
                            (waiter.owner.as_deref(), waiter.holds),
                            (Some("second"), false)
                        );
                        return Ok(waiter.fencing_token);
                    }
                }
            }
        })
        .await?
    };
    let before = waits(None).await?;
    let id = other.id().ok_or("no session")?;
    server.expire_session(id.0).await?;
    let after = waits(Some(before)).await?;

    // So it does when somebody deletes its znode.
    let client = Client::connect(&server.connect_string()).await?;
    let name = second.contenders().await?.swap_remove(1).name;
    client.delete(&format!("{DIRECTORY}/{name}"), None).await?;
    let last = waits(Some(after)).await?;

    leadership.release().await?;
    assert_eq!(waiting.next_term().await?.token, last);
    waiting.shut_down().await?;
    nothing_is_left(&server, &first).await
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_fails_or_panics_or_is_shut_down_has_resigned() -> Result {
    let server = server().await?;
    let session = session(&server).await?;
    let election = LeaderElection::new(&session, DIRECTORY, "node-7")?;

    let failed = election
        .run(pending(), async |_leadership| Err("the work's own error"))
        .await;
    assert!(matches!(
        failed,
        Err(RunError::Work("the work's own error"))
    ));
    // Confirmed by the server by then, not some time later.
    assert_eq!(election.contenders().await?, []);

    let panicking = election.clone();
    let panicked = tokio::spawn(async move {
        let work = async |_leadership| -> Result<(), Infallible> { panic!("on purpose") };
        panicking.run(pending(), work).await
    });
    let panicked = soon(panicked).await?;
    assert!(panicked.is_err_and(|error| error.is_panic()));
    nothing_is_left(&server, &election).await?;

    let mut leader = Running::start(election.clone());
    let term = leader.next_term().await?;
    let waiting = Running::start(election.clone());
    queue_length(&election, 2).await;
    // Shut down while it campaigns, and while it leads.
    waiting.shut_down().await?;
    // It has resigned when the server says so, and not before.
    server.pause()?;
    let mut ending = Box::pin(leader.shut_down());
    assert!(timeout(TICK, &mut ending).await.is_err());
    soon(term.stopped).await??;
    server.resume()?;
    ending.await?;
    assert_eq!(election.leader().await?, None);
    nothing_is_left(&server, &election).await?;

    let mut dropped = Running::start(election.clone());
    dropped.next_term().await?;
    dropped.task.abort();
    nothing_is_left(&server, &election).await
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_whose_work_is_done_take_turns() -> Result {
    let server = server().await?;
    let (sender, mut terms) = mpsc::unbounded_channel();
    let mut tasks = Vec::new();
    let done = watch::Sender::new(false);
    for id in ["one", "other"] {
        let session = session(&server).await?;
        let election = LeaderElection::new(&session, DIRECTORY, id)?;
        let (sender, listing) = (sender.clone(), election.clone());
        let mut done = done.subscribe();
        tasks.push(tokio::spawn(async move {
            let shutdown = async {
                let _ = done.wait_for(|done| *done).await;
            };
            let work = async |leadership: zookeeper_recipes_election::Term| {
                // Both are there before a term ends, or one could have several in a row.
                while listing.contenders().await?.len() < 2 {}
                let _ = sender.send((leadership.id().to_owned(), leadership.fencing_token()));
                Ok::<_, Error>(())
            };
            election.run(shutdown, work).await
        }));
    }
    let mut seen = Vec::new();
    while seen.len() < 10 {
        seen.push(soon(terms.recv()).await?.ok_or("both have ended")?);
    }
    assert!(
        seen.is_sorted_by(|one, next| one.0 != next.0 && one.1 < next.1),
        "{seen:?}"
    );
    done.send_replace(true);
    for task in tasks {
        soon(task).await???;
    }
    let session = session(&server).await?;
    nothing_is_left(&server, &LeaderElection::new(&session, DIRECTORY, "")?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_blocks_its_thread_delays_the_election_and_does_not_end_it() -> Result {
    let server = server().await?;
    let (one, other) = (session(&server).await?, session(&server).await?);
    let election = LeaderElection::new(&one, DIRECTORY, "blocked")?;
    let (sender, mut terms) = mpsc::unbounded_channel();
    let (unblock, blocked) = std::sync::mpsc::channel();
    let (shut_down, shutdown) = oneshot::channel::<()>();
    // A blocked thread can keep a whole runtime from its sockets, so the work has its own.
    let campaign = async move {
        let shutdown = async {
            let _ = shutdown.await;
        };
        let blocked = std::sync::Mutex::new(blocked);
        let work = async |leadership: zookeeper_recipes_election::Term| {
            let _ = sender.send(leadership.view().session_id());
            // Until something is sent, or can be no more.
            let _ = blocked.lock().expect("nobody panicked").recv();
            let _ = sender.send(leadership.view().session_id());
            tokio::task::yield_now().await;
            panic!("the work continued after it had been unblocked");
        };
        let finished: Result<(), RunError<Infallible>> = election.run(shutdown, work).await;
        finished
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let task = tokio::task::spawn_blocking(move || runtime.block_on(campaign));
    let first = soon(terms.recv()).await?.ok_or("it has ended")?;
    server.expire_session(first.0).await?;
    let next = LeaderElection::new(&other, DIRECTORY, "next")?;
    let leadership = soon(next.acquire()).await??;
    soon(async {
        while one.id() == Some(first) || one.id().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await?;
    unblock.send(())?;
    assert_eq!(soon(terms.recv()).await?, Some(first));
    leadership.release().await?;
    let second = soon(terms.recv()).await?.ok_or("it has ended")?;
    assert_ne!(second, first);
    // Shut down first, so that the work is not polled again.
    drop(shut_down);
    drop(unblock);
    soon(task).await???;
    nothing_is_left(&server, &next).await
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnection_stops_the_cautious_and_leaves_the_others_alone() -> Result {
    let server = server().await?;
    let proxy = proxy(&server).await;
    let cut_off = Session::connect(&proxy.connect_string()).await?;
    let cautious = LeaderElection::new(&cut_off, "/cautious", "cautious")?;
    let steady = LeaderElection::new(&cut_off, "/steady", "steady")?;
    let mut stopping = Running::start(cautious.clone());
    let mut staying = Running::start(steady.clone().stop_work(StopWork::WhenLost));
    let first = stopping.next_term().await?;
    let mut only = staying.next_term().await?;
    cut(&proxy);
    soon(first.stopped).await??;
    proxy.accept_connections();
    let second = stopping.next_term().await?;
    // The same session, and yet it had resigned: this is another znode.
    assert_eq!(second.session_id, first.session_id);
    assert!(second.token > first.token);
    let contenders = cautious.contenders().await?;
    assert_eq!(contenders.len(), 1, "{contenders:?}");
    assert_eq!(contenders[0].fencing_token, second.token);
    assert!(only.stopped.try_recv().is_err());
    let leader = steady.leader().await?.ok_or("nobody leads")?;
    assert_eq!(leader.fencing_token, only.token);
    stopping.shut_down().await?;
    staying.shut_down().await?;
    nothing_is_left(&server, &cautious).await
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_waits_for_a_path_that_is_not_there_and_comes_and_goes() -> Result {
    let options = ServerOptions::new()
        .tick_time(TICK)
        .container_check_interval(Duration::from_millis(50));
    let server = Server::start(options).await?;
    let session = session(&server).await?;
    let election = LeaderElection::new(&session, DIRECTORY, "node-7")?;
    let client = Client::connect(&server.connect_string()).await?;
    let mut watched = election.watch_leader();
    assert_eq!(next(&mut watched).await?, None);
    for _ in 0..2 {
        assert!(client.check_stat(DIRECTORY).await?.is_none());
        let leadership = election.acquire().await?;
        let leader = next(&mut watched).await?.ok_or("nobody leads")?;
        assert_eq!(leader.fencing_token, leadership.fencing_token());
        leadership.release().await?;
        assert_eq!(next(&mut watched).await?, None);
        // The server removes the empty container, which changes nothing for the watch.
        soon(async {
            while client.check_stat(DIRECTORY).await?.is_some() {}
            Ok::<_, zookeeper_client::Error>(())
        })
        .await??;
    }
    drop(watched);
    nothing_is_left(&server, &election).await
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_of_the_leader_is_two_znodes_and_candidates_behind_do_not_wake_it() -> Result {
    let server = server().await?;
    let (one, watching) = (session(&server).await?, session(&server).await?);
    let election = LeaderElection::new(&one, DIRECTORY, "leader")?;
    let leadership = election.acquire().await?;
    let observing = LeaderElection::new(&watching, DIRECTORY, "watching")?;
    let mut watched = observing.watch_leader();
    until_leader(&mut watched, leadership.fencing_token()).await?;
    let watched_znodes = async || -> Result<Vec<String>> {
        let id = watching.id().ok_or("no session")?.0;
        let watches = server.watches().await?.into_iter();
        Ok(watches
            .filter_map(|(path, sessions)| sessions.contains(&id).then_some(path))
            .collect())
    };
    assert_eq!(watched_znodes().await?, [DIRECTORY, leadership.node_path()]);
    for _ in 0..3 {
        let waiting = Running::start(election.clone());
        queue_length(&election, 2).await;
        waiting.shut_down().await?;
        queue_length(&election, 1).await;
    }
    assert_eq!(watched_znodes().await?, [DIRECTORY, leadership.node_path()]);
    leadership.release().await?;
    // The first change since: the other candidates changed nothing.
    assert_eq!(next(&mut watched).await?, None);
    assert_eq!(server.monitor().await?.watches, 1);
    drop(watched);
    nothing_is_left(&server, &election).await
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_ends_with_its_session() -> Result {
    let server = server().await?;
    let session = session(&server).await?;
    let election = LeaderElection::new(&session, DIRECTORY, "node-7")?;
    let mut watched = election.watch_leader();
    assert_eq!(next(&mut watched).await?, None);
    let closing = Instant::now();
    soon(session.close()).await?;
    assert!(
        closing.elapsed() < Duration::from_secs(2),
        "the watch kept it open"
    );
    assert!(soon(watched.changed()).await?.is_err());
    let reason = election.leader().await;
    assert!(matches!(reason, Err(Error::NoSession { .. })), "{reason:?}");
    let ended = soon(election.run(pending(), async |_leadership| Ok::<_, Infallible>(()))).await?;
    assert!(matches!(
        ended,
        Err(RunError::Election(Error::NoSession { .. }))
    ));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_children_are_no_candidates_and_foreign_ids_are_readable() -> Result {
    let server = server().await?;
    let session = session(&server).await?;
    let client = Client::connect(&server.connect_string()).await?;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let sequential = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    client.mkdir(DIRECTORY, &persistent).await?;
    let identity = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10";
    for name in ["0", "config", "latch-0000000000"] {
        client
            .create(&format!("{DIRECTORY}/{name}"), b"", &persistent)
            .await?;
    }
    client
        .create(&format!("{DIRECTORY}/{identity}-seat-"), b"", &sequential)
        .await?;
    let election = LeaderElection::new(&session, DIRECTORY, "naïve")?;
    assert_eq!(election.leader().await?, None);
    let mut watched = election.watch_leader();
    assert_eq!(next(&mut watched).await?, None);

    let path = format!("{DIRECTORY}/{identity}-latch-");
    let (stat, sequence) = client.create(&path, b"\xffnode", &sequential).await?;
    let leader = next(&mut watched).await?.ok_or("nobody leads")?;
    assert_eq!(leader.id, "\u{fffd}node");
    assert_eq!(leader.fencing_token.get(), stat.czxid);
    assert_eq!(leader.session_id.0, client.session_id().0);
    assert!(election.try_acquire().await?.is_none());
    // Somebody gives it another id.
    client
        .set_data(&format!("{path}{sequence}"), b"renamed", None)
        .await?;
    let renamed = next(&mut watched).await?.ok_or("nobody leads")?;
    assert_eq!(
        (renamed.id.as_str(), renamed.since),
        ("renamed", leader.since)
    );

    let campaigning = election.clone();
    let campaign = tokio::spawn(async move { campaigning.acquire().await });
    queue_length(&election, 2).await;
    client.delete(&format!("{path}{sequence}"), None).await?;
    let leadership = soon(campaign).await???;
    assert_eq!(next(&mut watched).await?.ok_or("nobody leads")?.id, "naïve");
    let (data, _) = client.get_data(leadership.node_path()).await?;
    assert_eq!(data, "naïve".as_bytes());
    drop((leadership, watched));
    nothing_is_left(&server, &election).await
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_at_the_end_of_the_count_lead_in_the_order_they_came() -> Result {
    let server = server().await?;
    let session = session(&server).await?;
    let client = Client::connect(&server.connect_string()).await?;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    client.mkdir(DIRECTORY, &persistent).await?;
    // By their names, the first candidate would be the last. Newer servers give out either number
    // there.
    for (digit, number) in [
        ("f", "-2147483648"),
        ("8", "2147483647"),
        ("0", "2147483647"),
    ] {
        let uuid = format!("{}-9d3b-4f57-8a41-0c9d5e7b2f10", digit.repeat(8));
        let path = format!("{DIRECTORY}/_c_{uuid}-latch-{number}");
        client.create(&path, digit.as_bytes(), &ephemeral).await?;
    }
    let election = LeaderElection::new(&session, DIRECTORY, "")?;
    let contenders = election.contenders().await?;
    let ids: Vec<_> = contenders.iter().map(|it| &it.data[..]).collect();
    assert_eq!(ids, [b"f", b"8", b"0"]);
    assert_eq!(election.leader().await?.ok_or("nobody leads")?.id, "f");
    assert_eq!(
        next(&mut election.watch_leader())
            .await?
            .ok_or("nobody leads")?
            .id,
        "f"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_permission_run_ends_and_a_watch_reports_it_once_and_continues() -> Result {
    let server = server().await?;
    let session = session(&server).await?;
    let owner = Client::connector()
        .with_auth("digest", b"owner:secret")
        .connect(&server.connect_string())
        .await?;
    owner
        .create(
            "/closed",
            b"",
            &CreateMode::Persistent.with_acls(Acls::creator_all()),
        )
        .await?;
    let election = LeaderElection::new(&session, "/closed", "node-7")?;
    let ended = soon(election.run(pending(), async |_leadership| Ok::<_, Infallible>(()))).await?;
    assert!(
        matches!(&ended, Err(RunError::Election(Error::Refused { path, .. })) if path.starts_with("/closed")),
        "{ended:?}"
    );
    let mut watched = election.watch_leader();
    soon(watched.changed()).await??;
    let refused = LeaderState::Refused(Refusal::NoAuth);
    assert_eq!(*watched.borrow_and_update(), refused);
    let again = timeout(TICK, watched.changed()).await;
    assert!(again.is_err(), "reported twice");
    owner.delete("/closed", None).await?;
    assert_eq!(next(&mut watched).await?, None);
    Ok(())
}
