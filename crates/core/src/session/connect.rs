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

    /// Waits for a random share of the next pause between two sessions ("full jitter").
    ///
    /// One cause can end the sessions of many processes at the same moment.
    pub(crate) async fn pause(&self, pauses: &mut Backoff) {
        if let Some(longest) = pauses.next_wait() {
            tokio::time::sleep(self.ensemble.identity().share_of(longest)).await;
        }
    }

    /// Opens a session within this time.
    pub(crate) async fn open(&self, within: Duration) -> Result<Arc<OpenSession>, NotOpened> {
        let Opener {
            ensemble, options, ..
        } = self;
        let began = Instant::now();
        let mut seen = ServerError::outcome_unknown("no server answered");
        let connected = timeout(within, self.connect(&mut seen)).await;
        let (seen, final_end) = match connected {
            Ok(Ok((origin, server, config))) => {
                let (ensemble, runtime) = (ensemble.clone(), Handle::current());
                let live = LiveSession::new(ensemble, server, config, origin, runtime);
                return Ok(OpenSession::new(Arc::new(live), options.jute_maxbuffer));
            }
            Ok(Err(Failure::Input(error))) => return Err(error.into()),
            Ok(Err(Failure::Server(over @ ServerError::SessionOver(end)))) => {
                (over, (end != SessionEnd::Expired).then_some(end))
            }
            Ok(Err(Failure::Server(error))) => (error, None),
            Err(_) => (seen, None),
        };
        Err(NotOpened {
            error: not_connected(&**ensemble, &*self.connector, began.elapsed(), seen),
            final_end,
        })
    }

    /// Opens a session, and returns the configuration of its lease.
    async fn connect(
        &self,
        seen: &mut ServerError,
    ) -> Result<(SessionOrigin, Arc<ServerSession>, LeaseConfig), Failure> {
        let (origin, opened) = self.ask(seen).await?;
        let config = config(self.asked_timeout(), self.options.tick, opened.timeout)?;
        Ok((origin, Arc::new(opened), config))
    }

    /// Requests a session until a definite answer comes, and notes the last failure in `seen`.
    async fn ask(
        &self,
        seen: &mut ServerError,
    ) -> Result<(SessionOrigin, ServerSession), ServerError> {
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
                Err(error) => return Err(error),
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
    let error = InvalidInput::new("tick", format!("{tick:?}"), problem);
    Err(Failure::Input(error))
}

#[cfg(test)]
#[path = "../../tests/unit/connect.rs"]
mod tests;
