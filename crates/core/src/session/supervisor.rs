//! The task behind a session handle: it runs one ZooKeeper session after another.

use std::mem::replace;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::events::TARGET;
use crate::events::keys::{EXPIRIES, OPENED};
use crate::events::meter;
use crate::hold::open_session::OpenSession;
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::{LiveSession, Status};
use crate::retry::Backoff;
use crate::server::ensemble::ConnectionState;
use crate::server::error::SessionEnd;
use crate::session::connect::{NotOpened, Opener};
use crate::session::leftovers::Leftovers;
use crate::session::probes::Prober;
use crate::session::state::SessionState;

/// The longest attempt to open a session in the background.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(600);
/// The longest pause before another session is opened.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The pauses before the next sessions, after a session that has lived for its timeout.
///
/// The next session is opened at once. Each later one comes after a pause, until one of them has
/// lived for its timeout, too: a cause that ends each session soon must not keep the servers busy.
fn new_pauses() -> Backoff {
    Backoff::up_to(LONGEST_PAUSE).skip_first(1)
}

/// The state of a handle, and its current ZooKeeper session, if one is open.
pub(crate) struct Current {
    pub(crate) state: SessionState,
    pub(crate) open: Option<Arc<OpenSession>>,
}

impl Current {
    pub(crate) fn new(open: Option<Arc<OpenSession>>) -> Current {
        let state = match &open {
            Some(open) => SessionState::Connected(open.live.id),
            None => SessionState::Opening,
        };
        Current { state, open }
    }
}

/// The task behind a [`Session`](crate::Session).
pub(crate) struct Supervisor {
    pub(crate) opener: Arc<Opener>,
    pub(crate) current: watch::Sender<Current>,
    pub(crate) asked_to_close: watch::Receiver<bool>,
}

impl Supervisor {
    /// Runs the session that is open already, if there is one, and each session after it.
    pub(crate) async fn run(mut self, opened: Option<Arc<OpenSession>>) {
        let end = self.run_each(opened).await;
        self.over(end);
    }

    /// Publishes that no further session will be opened.
    fn over(&self, end: SessionEnd) {
        self.current.send_replace(Current {
            state: SessionState::Ended(end),
            open: None,
        });
    }

    async fn run_each(&mut self, mut next: Option<Arc<OpenSession>>) -> SessionEnd {
        let (mut before, mut pauses) = (None, new_pauses());
        loop {
            let open = match next.take() {
                Some(open) => open,
                None => match self.reopen(before, &mut pauses).await {
                    Ok(open) => open,
                    Err(end) => return end,
                },
            };
            let opened_at = open.live.now();
            let end = self.run_session(&open).await;
            if open.live.now() >= opened_at + open.live.timeout {
                pauses = new_pauses();
            }
            report_end(&open.live, end);
            // `AuthenticationFailed` is not final here: the servers may accept a session without
            // the library's own identity.
            if matches!(end, SessionEnd::Closed | SessionEnd::SaslRequired) {
                return end;
            }
            self.current.send_replace(Current::new(None));
            before = Some(end);
        }
    }

    /// Opens the next session, and publishes it. The supervisor retries until none can be opened
    /// any more.
    ///
    /// `before` is the end of the session before, and `pauses` come before each attempt.
    async fn reopen(
        &mut self,
        before: Option<SessionEnd>,
        pauses: &mut Backoff,
    ) -> Result<Arc<OpenSession>, SessionEnd> {
        let mut within = self.opener.options.connection_timeout;
        loop {
            let attempt = async {
                // One cause can end the sessions of many processes at the same moment, so each pause is
                // a random share ("full jitter").
                if let Some(longest) = pauses.next_wait() {
                    let random = self.opener.ensemble.identity();
                    tokio::time::sleep(random.share_of(longest)).await;
                }
                self.opener.open(within).await
            };
            let opened = tokio::select! {
                biased;
                () = until_asked(&mut self.asked_to_close) => return Err(SessionEnd::Closed),
                opened = attempt => opened,
            };
            // A connection gives each host more time with each round, and begins anew in each attempt.
            within = within.saturating_mul(2).min(LONGEST_ATTEMPT.max(within));
            let NotOpened { error, final_end } = match opened {
                Ok(open) => {
                    self.current.send_replace(Current::new(Some(open.clone())));
                    return Ok(open);
                }
                Err(not_opened) => not_opened,
            };
            match final_end {
                None => {}
                // A client that the user has connected cannot be connected again.
                Some(SessionEnd::Closed) => return Err(before.unwrap_or(SessionEnd::Closed)),
                // The options fitted the servers before, and may fit the next server.
                Some(SessionEnd::InvalidOptions) if before.is_some() => {}
                Some(SessionEnd::AuthenticationFailed)
                    if self.opener.options.retries_refused_credentials => {}
                Some(end) => {
                    tracing::warn!(target: TARGET, %error, "no ZooKeeper session can be opened");
                    return Err(end);
                }
            }
            tracing::warn!(target: TARGET, %error, "no new ZooKeeper session could be opened yet");
        }
    }

    /// Runs one ZooKeeper session until its end, and publishes its state.
    async fn run_session(&mut self, open: &Arc<OpenSession>) -> SessionEnd {
        let live = &open.live;
        let Ok(server) = live.server() else {
            return live.ended().await;
        };
        let mut states = server.states();
        // The task does not keep the `ServerSession` open.
        drop(server);
        let (session, timeout) = (live.id, live.timeout);
        tracing::info!(target: TARGET, %session, ?timeout, "session opened");
        meter::count(OPENED, None, None);
        let mut prober = Prober::new(open);
        let mut epoch = LeaseEpoch::default();
        let end = loop {
            tokio::select! {
                biased;
                () = until_asked(&mut self.asked_to_close) => break SessionEnd::Closed,
                end = live.ended() => break end,
                state = states.next() => match state {
                    Some(ConnectionState::Ended(end)) => break end,
                    Some(state) => prober.handle_state(state),
                    None => break SessionEnd::Closed,
                },
                () = prober.handle_next() => {}
                () = until_lapse(live, epoch) => {}
            }
            epoch = live.count_lapse().epoch;
            if let Err(end) = self.publish_status(live) {
                break end;
            }
            open.delete_lost(epoch);
        };
        let ended_at = live.now();
        drop(prober);
        match open.end(end) {
            // The attempts of the session send nothing more, so no other znode can come.
            Some(server) => Leftovers::of(open, server).delete_all().await,
            None if end == SessionEnd::Closed => confirmed(live, ended_at, &mut states).await,
            None => {}
        }
        end
    }

    /// Publishes whether a server answers. The error is the end of a session that is over.
    fn publish_status(&self, live: &LiveSession) -> Result<(), SessionEnd> {
        let session = live.id;
        let state = match live.status() {
            Status::Connected => SessionState::Connected(session),
            Status::Suspended => SessionState::Suspended(session),
            // A request has found the session over. A session that is over does not resume.
            Status::Ended(end) => return Err(end),
        };
        let publish = |now: &mut Current| replace(&mut now.state, state) != state;
        match (self.current.send_if_modified(publish), state) {
            (false, _) => {}
            (true, SessionState::Suspended(_)) => {
                tracing::info!(target: TARGET, %session, "session suspended");
            }
            (true, _) => tracing::info!(target: TARGET, %session, "session resumed"),
        }
        Ok(())
    }
}

impl Drop for Supervisor {
    /// Ends the session if the task is dropped, because its runtime shuts down.
    ///
    /// All waiters of the session are notified, even in other runtimes.
    fn drop(&mut self) {
        let (state, open) = {
            let current = self.current.borrow();
            (current.state, current.open.clone())
        };
        if let SessionState::Ended(_) = state {
            return;
        }
        if let Some(open) = open {
            let left_open = open.end(SessionEnd::Closed);
            drop(left_open.map(|server| Leftovers::of(&open, server)));
        }
        self.over(SessionEnd::Closed);
    }
}

fn report_end(live: &LiveSession, reason: SessionEnd) {
    let session = live.id;
    match reason {
        // An operator has to know.
        SessionEnd::Refused | SessionEnd::SaslRequired => {
            tracing::warn!(target: TARGET, %session, %reason, "session refused");
        }
        _ => tracing::info!(target: TARGET, %session, %reason, "session over"),
    }
    if reason == SessionEnd::Expired {
        meter::count(EXPIRIES, None, None);
    }
}

/// Waits until the server has confirmed the close, for at most the session timeout.
async fn confirmed(
    live: &LiveSession,
    ended_at: Duration,
    states: &mut BoxStream<'static, ConnectionState>,
) {
    // The stream ends after the end of the session.
    let ended = async { while states.next().await.is_some() {} };
    let is_in_time = timeout(live.timeout, ended).await.is_ok();
    // The connection gives up in the same moment, and its stream ends, too.
    if !is_in_time || live.now() - ended_at >= live.timeout {
        let session = live.id;
        tracing::warn!(target: TARGET, %session, "the server did not confirm the close in time");
    }
}

/// Waits until the lease has lapsed more often than this, and counts the lapse.
///
/// A hold that looks at its state may count it first.
async fn until_lapse(live: &LiveSession, known: LeaseEpoch) {
    loop {
        match live.count_lapse() {
            now if now.epoch > known => return,
            now if now.has_lapsed => return std::future::pending().await,
            _ => tokio::time::sleep(live.remaining()).await,
        }
    }
}

/// Resolves if the user closes the session, or drops the last handle.
async fn until_asked(asked_to_close: &mut watch::Receiver<bool>) {
    // An error means that the last handle was dropped.
    let _ = asked_to_close.wait_for(|asked| *asked).await;
}

#[cfg(test)]
#[path = "../../tests/unit/supervisor.rs"]
mod tests;
