//! The opening of a ZooKeeper session.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::hold::open_session::OpenSession;
use crate::invalid_input::InvalidInput;
use crate::live::lease::{SessionOrigin, Terms};
use crate::live::live_session::{LiveSession, ServerFeatures};
use crate::retry::Backoff;
use crate::server::ensemble::{Ensemble, ServerSession};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::server::options::{ConnectOptions, SHORTEST_TIMEOUT};
use crate::session::claim::claim;
use crate::session::detached_session::DetachedSession;

/// Why no session was opened.
pub(crate) struct NotOpened {
    pub(crate) error: Error,
    /// The end of the handle, if no later attempt can open a session either.
    pub(crate) final_end: Option<SessionEnd>,
}

impl From<InvalidInput> for NotOpened {
    fn from(error: InvalidInput) -> NotOpened {
        NotOpened {
            error: error.into(),
            final_end: Some(SessionEnd::InvalidOptions),
        }
    }
}

/// Why no session was opened, or why the session that was opened is of no use.
#[derive(Debug)]
enum Failure {
    Server(ServerError),
    Input(InvalidInput),
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Failure {
        Failure::Server(error)
    }
}

/// Opens the ZooKeeper sessions of a handle, one after the other.
pub(crate) struct Opener {
    pub(crate) ensemble: Arc<dyn Ensemble>,
    pub(crate) options: ConnectOptions,
    /// What the earlier sessions have learned.
    features: ServerFeatures,
}

impl Opener {
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
    ) -> Result<Opener, InvalidInput> {
        options.check()?;
        let ensemble = ensemble
            .with_options(&options.connections)?
            .unwrap_or(ensemble);
        Ok(Opener {
            ensemble,
            options,
            features: ServerFeatures::default(),
        })
    }

    /// Opens a session within the connection timeout, or resumes one that was left open.
    pub(crate) async fn open(
        &self,
        resumed: Option<&DetachedSession>,
    ) -> Result<Arc<OpenSession>, NotOpened> {
        let Opener {
            ensemble, options, ..
        } = self;
        let began = Instant::now();
        let failed = |seen: ServerError, final_end| NotOpened {
            error: Error::Connect {
                address: ensemble.address(),
                tried_for: began.elapsed(),
                cause: match seen {
                    // A server has answered.
                    ServerError::SessionOver(_) => Arc::new(seen),
                    _ => ensemble.obstacle().unwrap_or_else(|| Arc::new(seen)),
                },
            },
            final_end,
        };
        let mut seen = ServerError::outcome_unknown("no server answered");
        let connecting = self.connect(resumed, &mut seen);
        let connected = timeout(options.connection_timeout, connecting).await;
        let (origin, server, terms) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(Failure::Input(error))) => return Err(error.into()),
            Ok(Err(Failure::Server(ServerError::Refused(Refusal::BadArguments(problem))))) => {
                let problem = format!("cannot be used: {problem}");
                let error = InvalidInput::new("connect string", ensemble.address(), problem);
                return Err(error.into());
            }
            Ok(Err(Failure::Server(ServerError::SessionOver(end)))) => {
                let is_final = end != SessionEnd::Expired || resumed.is_some();
                let final_end = is_final.then_some(end);
                return Err(failed(ServerError::SessionOver(end), final_end));
            }
            Ok(Err(Failure::Server(error))) => return Err(failed(error, None)),
            Err(_) => return Err(failed(seen, None)),
        };
        server.limit_requests(options.jute_maxbuffer);
        let live = LiveSession::new(
            ensemble.clone(),
            server,
            terms,
            origin,
            self.features.clone(),
            Handle::current(),
        );
        Ok(OpenSession::new(Arc::new(live)))
    }

    /// Opens a session, or resumes and claims one that was left open.
    async fn connect(
        &self,
        resumed: Option<&DetachedSession>,
        seen: &mut ServerError,
    ) -> Result<(SessionOrigin, Arc<dyn ServerSession>, Terms), Failure> {
        let (origin, server) = self.ask(resumed, seen).await?;
        let opened_with = resumed.map(|resumed| resumed.session.opened_with);
        let terms = terms(
            &*self.ensemble,
            &self.options,
            server.timeout(),
            opened_with,
        );
        let Some(resumed) = resumed else {
            return Ok((origin, server, terms?));
        };
        if terms.is_err() {
            // Another call, with other options, may resume the session.
            server.detach();
        }
        let terms = terms?;
        let claimant = resumed.claimant.take(&*self.ensemble);
        let server = claim(server, &resumed.ticket, &claimant.name).await?;
        claimant.use_up();
        Ok((origin, server, terms))
    }

    /// Requests a session until a definite answer comes, and notes the last failure in `seen`.
    async fn ask(
        &self,
        resumed: Option<&DetachedSession>,
        seen: &mut ServerError,
    ) -> Result<(SessionOrigin, Arc<dyn ServerSession>), ServerError> {
        let ensemble = &self.ensemble;
        let mut backoff = Backoff::default();
        loop {
            let asked_at = ensemble.now();
            let (origin, connecting) = match resumed {
                Some(resumed) => (
                    SessionOrigin::Resumed(asked_at),
                    ensemble.resume(resumed.session.clone()),
                ),
                None if ensemble.opens_sessions() => {
                    (SessionOrigin::Opened(asked_at), ensemble.connect())
                }
                None => (SessionOrigin::Earlier, ensemble.connect()),
            };
            match connecting.await {
                Ok(server) => return Ok((origin, server)),
                Err(unknown @ ServerError::OutcomeUnknown(_)) => *seen = unknown,
                Err(error) => return Err(error),
            }
            backoff.wait().await;
        }
    }
}

/// The terms of the lease in a session that was granted this timeout.
fn terms(
    ensemble: &dyn Ensemble,
    options: &ConnectOptions,
    granted: Duration,
    opened_with: Option<Duration>,
) -> Result<Terms, Failure> {
    if granted < SHORTEST_TIMEOUT {
        let problem = format!(
            "the servers grant a session timeout of {granted:?}, and no lease can be kept with \
             less than {SHORTEST_TIMEOUT:?}"
        );
        return Err(ServerError::Refused(Refusal::Other(problem)).into());
    }
    let Some(tick) = options.tick else {
        let asked = options.connections.asked_timeout();
        // What the process that opened the session asked for is not known here.
        let is_of_opening = opened_with.is_some_and(|opened_with| opened_with < asked);
        let may_be_raised = !ensemble.opens_sessions() || granted > asked || is_of_opening;
        return Ok(Terms::without_tick(granted, may_be_raised));
    };
    let terms = Terms::with_tick(granted, tick);
    if terms.can_be_kept() {
        return Ok(terms);
    }
    let problem = format!("is more than half of the session timeout, {granted:?}");
    let error = InvalidInput::new("tick", format!("{tick:?}"), problem);
    Err(Failure::Input(error))
}

#[cfg(test)]
#[path = "../../tests/unit/connect.rs"]
mod tests;
