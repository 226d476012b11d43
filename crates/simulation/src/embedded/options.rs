//! The options of an embedded server.

use std::time::Duration;

use crate::options::SimulationOptions;

/// The options of an [`EmbeddedServer`](super::EmbeddedServer).
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = EmbeddedOptions {
///     znodes: vec![("/app/config".to_owned(), b"v1".to_vec())],
///     ..Default::default()
/// };
/// let options = EmbeddedOptions {
///     simulation: SimulationOptions {
///         tick: Duration::from_millis(200),
///         ..options.simulation
///     },
///     ..options
/// };
/// let server = EmbeddedServer::start_with(options)?;
/// assert_eq!(server.administrator().children("/app"), ["config"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EmbeddedOptions {
    /// How many members the ensemble has. With one it is a standalone server.
    pub members: usize,
    /// The port on 127.0.0.1 of the first member. The other members have the ports after it. With 0
    /// the system chooses a free port for each.
    pub port: u16,
    /// The port on 127.0.0.1 that takes [faults over HTTP](super::EmbeddedServer#faults-over-http).
    /// With 0 the system chooses a free one. By default there is none.
    #[cfg(feature = "admin")]
    pub admin_port: Option<u16>,
    /// The znodes that exist from the beginning, with their data. Missing parents are created.
    pub znodes: Vec<(String, Vec<u8>)>,
    /// True if the server closes the connection at a request of an unknown type.
    ///
    /// ClickHouse Keeper does so. Apache's server answers such a request first.
    pub closes_at_unknown_requests: bool,
    /// How many bytes may wait for a client that does not read.
    ///
    /// If more bytes wait, the server closes the connection.
    pub queue_limit: usize,
    /// The ensemble behind it: the tick, the version, the delays.
    ///
    /// Its number of servers does not count: [`members`](Self::members) does.
    ///
    /// By default nothing is delayed, a tick is 500 ms, a session lasts from 1 s to 60 s, and
    /// nothing is recorded.
    pub simulation: SimulationOptions,
}

impl Default for EmbeddedOptions {
    fn default() -> EmbeddedOptions {
        let none = Duration::ZERO..=Duration::ZERO;
        EmbeddedOptions {
            members: 1,
            port: 0,
            #[cfg(feature = "admin")]
            admin_port: None,
            znodes: Vec::new(),
            closes_at_unknown_requests: false,
            queue_limit: 64 << 20,
            simulation: SimulationOptions {
                tick: Duration::from_millis(500),
                max_session_timeout: Some(Duration::from_secs(60)),
                network_delay: none.clone(),
                commit_delay: none.clone(),
                follower_lag: none,
                trace_limit: 0,
                ..SimulationOptions::default()
            },
        }
    }
}
