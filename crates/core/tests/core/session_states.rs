//! What a session says of its connection, on a simulated ensemble.

use std::pin::pin;
use std::task::{Context, Wake, Waker};

use futures_util::StreamExt;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn session_is_connected_again_when_a_server_answers_and_never_once_it_is_closed() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    assert!(session.is_connected(), "{}", session.state());
    simulation.process("one").partition(Duration::from_secs(60));
    let mut states = session.states();
    let connected = SessionState::Connected(session.id().expect("it is open"));
    assert_eq!(states.next().await, Some(connected));
    while session.is_connected() {
        states.next().await;
    }
    session.wait_connected().await.expect("a server answers");
    assert!(session.is_connected(), "{}", session.state());
    session.clone().close().await;
    let over = session.wait_connected().await.expect_err("it is closed");
    assert!(!over.is_retryable() && !over.is_timeout(), "{over}");
    assert_eq!(over.kind(), ErrorKind::SessionOver);
    let closed = SessionState::Ended(SessionEnd::Closed);
    let states: Vec<_> = states.collect().await;
    assert_eq!(states.last(), Some(&closed));
}

/// Records the state of a session when it is woken. Another thread may look at that moment.
struct AtWake {
    session: Session,
    state: Mutex<Option<SessionState>>,
}

impl Wake for AtWake {
    fn wake(self: Arc<Self>) {
        let state = self.session.state();
        self.state.lock().expect("no panic").get_or_insert(state);
    }
}

/// Another thread finds the session over while the session's own task is at work.
#[tokio::test(start_paused = true)]
async fn suspended_session_that_is_found_over_is_not_connected_again() {
    let simulation = Simulation::default();
    let (before_sync, is_over) = (Call::default(), Arc::<AtomicBool>::default());
    let (call, over) = (before_sync.clone(), is_over.clone());
    let session = altered(&simulation, "one", move |raw, request| match &request {
        RequestBody::GetChildren(_) if over.load(Ordering::Relaxed) => {
            fails(RequestError::Ended(SessionEnd::Expired))
        }
        RequestBody::Sync(_) => {
            call.make();
            raw.send(request)
        }
        _ => raw.send(request),
    });
    let session = session.await;
    simulation.faults().stop_member(0);
    eventually("it is suspended", async || !session.is_connected()).await;
    let queue = lock(&session, "/locks/a");
    before_sync.set(move || {
        is_over.store(true, Ordering::Relaxed);
        let found = queue.contenders().boxed().now_or_never();
        assert!(matches!(found, Some(Err(Error::SessionOver { .. }))));
    });
    let at_wake = Arc::new(AtWake {
        session: session.clone(),
        state: Mutex::default(),
    });
    let waker = Waker::from(at_wake.clone());
    let mut connected = pin!(session.wait_connected());
    let polled = connected.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let suspended = session.state();
    eventually("it is over", async || session.state() != suspended).await;
    let state = at_wake.state.lock().expect("no panic").take();
    assert_eq!(state, Some(SessionState::Opening));
}

#[tokio::test(start_paused = true)]
async fn states_say_in_words_if_a_server_answers() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let id = session.id().expect("it is open");
    let connected = format!("connected in session {id}");
    assert_eq!(session.state().to_string(), connected);
    let health = session.health().to_string();
    let starts_so = health.starts_with(&format!("{connected}, "));
    assert!(
        starts_so && health.contains("of the lease left"),
        "{health}"
    );
    let suspended = SessionState::Suspended(id).to_string();
    assert_eq!(suspended, format!("no server answers in session {id}"));
    let opening = SessionState::Opening.to_string();
    assert_eq!(opening, "a session is being opened");
    session.clone().close().await;
    let ended = session.state().to_string();
    assert!(
        ended.starts_with("no session will be opened any more: "),
        "{ended}"
    );
}
