//! The health of a candidate, for a health check of its service.

use std::fmt;
use std::time::Duration;

use zookeeper_recipes_core::HoldView;

use crate::recipe::LeaderElection;

/// The health of a candidate, which [`LeaderElection::health`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ElectionHealth {
    /// True if this candidate leads.
    pub leads: bool,
    /// How long this process has kept a leadership that it has lost.
    ///
    /// `None` if this candidate leads, or has released the lost leadership.
    pub overdue: Option<Duration>,
    /// The longest [`overdue`](Self::overdue) that is healthy.
    pub grace: Duration,
}

impl ElectionHealth {
    /// False if this process has kept a lost leadership for longer than the grace.
    pub fn is_healthy(&self) -> bool {
        self.overdue.is_none_or(|overdue| overdue <= self.grace)
    }
}

impl fmt::Display for ElectionHealth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.leads, self.overdue) {
            (true, _) => formatter.write_str("leads"),
            (false, None) => formatter.write_str("does not lead"),
            (false, Some(overdue)) => {
                write!(
                    formatter,
                    "lost the leadership {overdue:.1?} ago, and keeps it"
                )
            }
        }
    }
}

impl LeaderElection {
    /// Whether this process releases a lost leadership in time. The call sends nothing.
    ///
    /// A liveness check may use it: restart a process that is unhealthy. Such a process has lost the
    /// leadership, and has kept its [`Leadership`](crate::Leadership) for longer than `grace`. Its
    /// work has blocked its thread, or does not ask whether it is held. Another candidate may lead
    /// in parallel with that work.
    ///
    /// A candidate that does not lead is healthy. If no server answers, the candidate is healthy,
    /// too: a restart would not help, and [`Session::health`](crate::Session::health) reports the
    /// silence. client-go's health check for leader election gives the same answers.
    ///
    /// A clone shares the answer, as for [`is_leader`](Self::is_leader). If the process was paused,
    /// the time counts from the moment when its session notices the loss.
    ///
    /// ```
    /// use std::time::Duration;
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let leadership = election.acquire().await?;
    /// let health = election.health(Duration::from_secs(5));
    /// assert!(health.is_healthy());
    /// assert_eq!(health.to_string(), "leads");
    /// # leadership.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self, grace: Duration) -> ElectionHealth {
        let own = self.own_leadership();
        ElectionHealth {
            leads: own.as_ref().is_some_and(HoldView::is_held),
            overdue: own.and_then(|view| view.kept_after_loss()),
            grace,
        }
    }
}
