//! The health of a session, as this process knows it.

use std::fmt;
use std::time::Duration;

use crate::session::handle::Session;
use crate::session::state::SessionState;

/// The health of a [`Session`], for health checks and for operators.
///
/// Made by [`Session::health`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionHealth {
    /// The state of the session.
    pub state: SessionState,
    /// True if a ZooKeeper session is open and its server answers.
    pub is_connected: bool,
    /// How long the holds of the session last if no server answers any more.
    ///
    /// Zero if no ZooKeeper session is open.
    pub lease_left: Duration,
    /// How long ago a server last answered through the leader.
    ///
    /// At most a tenth of the session timeout and a round trip while all is well. `None` if no
    /// ZooKeeper session is open, or no answer has come in it yet.
    pub last_answer: Option<Duration>,
}

impl Session {
    /// The health of the session at this moment. Looks at the clock, and sends nothing.
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use zookeeper_recipes_core::Session;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
    /// let health = session.health();
    /// assert!(health.is_connected && !health.lease_left.is_zero());
    /// println!("{health}"); // connected in session 0x1, ...
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> SessionHealth {
        let state = self.state();
        let open = self.present();
        SessionHealth {
            state,
            is_connected: matches!(state, SessionState::Connected(_)),
            lease_left: open
                .as_ref()
                .map_or(Duration::ZERO, |open| open.live.remaining()),
            last_answer: open.and_then(|open| open.live.last_answer()),
        }
    }
}

impl fmt::Display for SessionHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SessionHealth {
            state, lease_left, ..
        } = self;
        write!(formatter, "{state}, {lease_left:.1?} of the lease left")?;
        match self.last_answer {
            Some(ago) => write!(formatter, ", last answer {ago:.1?} ago"),
            None => formatter.write_str(", no answer yet"),
        }
    }
}
