//! The opening of a ZooKeeper session.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::error::Error;
use crate::hold::open_session::OpenSession;
use crate::invalid_input::InvalidInput;
use crate::live::lease::{LeaseConfig, SessionOrigin};
use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::ensemble::{Connector, Ensemble, ServerSession};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::server::options::{ConnectOptions, SHORTEST_TIMEOUT};

/// Why no session was opened.
pub(crate) struct NotOpened {
    pub(crate) error: Error,
    /// The end of the handle, if no later attempt can open a session either.
    pub(crate) final_end: Option<SessionEnd>,
}

/// Why no session was opened, or why the session that was opened is of no use.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
enum Failure {
    Server(#[from] ServerError),
    Input(#[from] InvalidInput),
}

/// Opens the ZooKeeper sessions of a handle, one after the other.
pub(crate) struct Opener {
    pub(crate) ensemble: Arc<dyn Ensemble>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) options: ConnectOptions,
}

impl Opener {
    pub(crate) fn new(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
    ) -> Result<Opener, InvalidInput> {
        options.check()?;
        let connector = ensemble.clone().connector(&options)?;
        Ok(Opener {
            ensemble,
            connector,
            options,
        })
    }

    /// The session timeout that is asked for. `None` if the ensemble opens no session.
    pub(crate) fn asked_timeout(&self) -> Option<Duration> {
        let default = self.ensemble.facts().session_timeout?;
        Some(self.options.session_timeout.unwrap_or(default))
    }

    /// Opens a session within this time.
    pub(crate) async fn open(&self, within: Duration) -> Result<Arc<OpenSession>, NotOpened> {
        let began = Instant::now();
        let mut seen = ServerError::outcome_unknown("no server answered");
        let opened = timeout(within, self.ask(&mut seen)).await;
        let opened = opened.map(|opened| opened.and_then(|it| self.begin(it)));
        let (seen, final_end) = match opened {
            Ok(Ok(open)) => return Ok(open),
            Ok(Err(Failure::Input(error))) => {
                return Err(NotOpened {
                    error: error.into(),
                    final_end: Some(SessionEnd::InvalidOptions),
                });
            }
            Ok(Err(Failure::Server(over @ ServerError::SessionOver(end)))) => {
                (over, (end != SessionEnd::Expired).then_some(end))
            }
            Ok(Err(Failure::Server(error))) => (error, None),
            Err(_) => (seen, None),
        };
        Err(NotOpened {
            error: not_connected(&*self.ensemble, &*self.connector, began.elapsed(), seen),
            final_end,
        })
    }

    /// Begins with the session that was opened, unless no lease can be kept in it.
    fn begin(
        &self,
        (origin, server): (SessionOrigin, ServerSession),
    ) -> Result<Arc<OpenSession>, Failure> {
        let config = config(self.asked_timeout(), self.options.tick, server.timeout)?;
        let (ensemble, runtime) = (self.ensemble.clone(), Handle::current());
        let live = LiveSession::new(ensemble, Arc::new(server), config, origin, runtime);
        let maxbuffer = self.options.jute_maxbuffer;
        Ok(OpenSession::new(Arc::new(live), maxbuffer))
    }

    /// Requests a session until a definite answer comes, and notes the last failure in `seen`.
    async fn ask(&self, seen: &mut ServerError) -> Result<(SessionOrigin, ServerSession), Failure> {
        let mut backoff = Backoff::default();
        loop {
            let origin = match self.asked_timeout() {
                Some(_) => SessionOrigin::Opened(self.ensemble.now()),
                None => SessionOrigin::Earlier,
            };
            match self.connector.connect().await {
                Ok(opened) => return Ok((origin, opened)),
                Err(unknown @ ServerError::OutcomeUnknown(_)) => *seen = unknown,
                // The session was lost before it was up. The next one may come up.
                Err(over @ ServerError::SessionOver(end))
                    if end.is_followed() && self.asked_timeout().is_some() =>
                {
                    *seen = over;
                }
                Err(error) => return Err(error.into()),
            }
            backoff.wait().await;
        }
    }
}

/// The error if no session was opened for this time.
///
/// `seen` is what came of the last request for one.
pub(crate) fn not_connected(
    ensemble: &dyn Ensemble,
    connector: &dyn Connector,
    tried_for: Duration,
    seen: ServerError,
) -> Error {
    Error::Connect {
        address: ensemble.facts().address.clone(),
        tried_for,
        cause: match seen {
            // A server has answered. The obstacle names the scheme of refused credentials.
            ServerError::SessionOver(end) if end != SessionEnd::AuthenticationFailed => {
                Arc::new(seen)
            }
            _ => connector.obstacle().unwrap_or_else(|| Arc::new(seen)),
        },
    }
}

/// The configuration of the lease in a session that was granted this timeout.
///
/// `asked` is the session timeout that was asked for, if that is known.
fn config(
    asked: Option<Duration>,
    tick: Option<Duration>,
    granted: Duration,
) -> Result<LeaseConfig, Failure> {
    if granted < SHORTEST_TIMEOUT {
        let problem = format!(
            "the servers grant a session timeout of {granted:?}, and no lease can be kept with \
             less than {SHORTEST_TIMEOUT:?}"
        );
        return Err(ServerError::Refused(Refusal::Other(problem)).into());
    }
    let Some(tick) = tick else {
        let may_be_raised = asked.is_none_or(|asked| granted > asked);
        return Ok(LeaseConfig::without_tick(granted, may_be_raised));
    };
    let config = LeaseConfig::with_tick(granted, tick);
    if config.can_be_kept() {
        return Ok(config);
    }
    let problem = format!("is more than half of the session timeout, {granted:?}");
    Err(InvalidInput::new("tick", format!("{tick:?}"), problem).into())
}

#[cfg(test)]
#[path = "../../tests/unit/connect.rs"]
mod tests;
