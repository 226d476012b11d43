//! The health of a session, as this process knows it.

use std::fmt;
use std::time::Duration;

use crate::session::handle::Session;
use crate::session::state::SessionState;

/// The health of a [`Session`], for health checks and for operators.
///
/// [`Session::health`] makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionHealth {
    /// The state of the session.
    pub state: SessionState,
    /// How long the holds of the session last if no server answers any more.
    ///
    /// It is zero if no ZooKeeper session is open.
    pub lease_left: Duration,
    /// How long ago a server last answered through the leader.
    ///
    /// At most a tenth of the session timeout and a round trip while all is well. `None` if no
    /// ZooKeeper session is open, or no answer has come in it yet.
    pub last_answer: Option<Duration>,
}

impl Session {
    /// The health of the session at this moment. The call sends nothing.
    ///
    /// ```
    /// use zookeeper_recipes_core::Session;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// let health = session.health();
    /// assert!(!health.lease_left.is_zero());
    /// println!("{health}"); // connected in session 0x1, ...
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> SessionHealth {
        let open = self.current();
        SessionHealth {
            state: self.state(),
            lease_left: open
                .as_ref()
                .map_or(Duration::ZERO, |open| open.live.remaining()),
            last_answer: open.and_then(|open| open.live.last_answer()),
        }
    }

    /// The longest single silence of the servers that ends no hold of this session.
    ///
    /// `None` if no ZooKeeper session is open.
    ///
    /// A silence is a time in which no server answers: a broken network, an election, a long pause
    /// of the leader. It is counted from when the probe after the last answer was due. The figure
    /// is for the worst moment, and for answers that come at once: a round trip shortens it by
    /// itself. A silence that is longer can end the holds, and a silence of the session timeout
    /// ends them all. The call sends nothing.
    ///
    /// | session timeout | [`tick`](crate::ConnectOptions::tick) | tolerated silence |
    /// |---|---|---|
    /// | 4 s | not set | 0.5 s |
    /// | 4 s | 500 ms | 2.45 s |
    /// | 10 s | not set | 3.25 s |
    /// | 10 s | 500 ms | 7.25 s |
    /// | 30 s | not set | 9.75 s |
    ///
    /// A silence that follows another one too soon can end the holds although it is shorter.
    /// Between the two the servers must answer for the wait of [the lease](crate::docs::lease) and
    /// two tenths of the session timeout. Silences of up to two fifths of the figure end no hold,
    /// however soon they follow each other.
    ///
    /// [The lease](crate::docs::lease) says why it is shorter than the session timeout.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zookeeper_recipes_core::Session;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// if session.tolerated_silence() < Some(Duration::from_secs(3)) {
    ///     eprintln!("set the tick of the servers, or a longer session timeout");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn tolerated_silence(&self) -> Option<Duration> {
        self.current().map(|open| open.live.tolerated_silence)
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
