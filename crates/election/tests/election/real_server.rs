//! What an election promises, on real servers.

use std::future::pending;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_election::{FencingToken, Leader, Refusal, SessionId};
use zookeeper_recipes_suite::{assert_no_watch_left, proxy, queue_length, server_with};
use zookeeper_recipes_testkit::proxy::Proxy;
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::*;

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
    let options = ConnectOptions::new().session_timeout(SHORT_SESSION);
    let options = options.tick(TICK);
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
async fn leader_is_stopped_before_the_next_leads_when_its_session_expires() -> Result {
    let server = server().await?;
    let proxy = proxy(&server).await;
    let old = short_session(&proxy.connect_string()).await?;
    let new = session(&server).await?;
    let (cautious, late) = (StopWork::WhenSuspended, StopWork::WhenLost);
    for (path, stop_work) in [("/cautious", cautious), ("/late", late)] {
        let election = LeaderElection::new(&old, path, "old")?;
        let mut leader = Running::start(election.stop_work(stop_work));
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
        assert!(stopped < won, "{stop_work:?}: {:?} late", stopped - won);
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
async fn without_permission_run_ends_and_a_watch_reports_it_once_and_continues() -> Result {
    let server = server().await?;
    let session = session(&server).await?;
    let owner = Client::connector()
        .with_auth("digest", b"owner:secret")
        .connect(&server.connect_string())
        .await?;
    let closed = CreateMode::Persistent.with_acls(Acls::creator_all());
    owner.create("/closed", b"", &closed).await?;
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
