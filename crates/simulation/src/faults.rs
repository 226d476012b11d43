//! What a test breaks.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::SessionId;

use crate::chance::injected::Fault;
use crate::chance::rates::FaultRates;
use crate::chance::way::Way;
use crate::client::action::Action;
use crate::options::ServerSettings;
use crate::run::shared::Shared;

/// Breaks a simulation: servers and sessions now, chosen requests when they are sent, all by chance.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use zookeeper_recipes_simulation::{FaultRates, Simulation, SimulationOptions};
///
/// let simulation = Simulation::new(SimulationOptions { servers: 3, ..Default::default() });
/// let session = simulation.ensemble("worker").connect().await?;
///
/// simulation.faults().elect(1, Duration::from_secs(1)); // the leader falls
/// tokio::time::sleep(Duration::from_secs(2)).await;
/// assert_eq!(simulation.administrator().leader(), 1);
///
/// simulation.faults().set_rates(FaultRates {
///     reply_lost: 0.1,
///     late_by: Duration::from_secs(1),
///     request_late: 0.2,
///     ..Default::default()
/// });
/// // ... what is tested, and:
/// simulation.faults().stop();
/// session.sync("/").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Faults {
    pub(crate) shared: Arc<Shared>,
}

impl Faults {
    /// Injects a fault, which befalls the next request that it describes.
    pub fn inject(&self, fault: Fault) {
        self.shared.with(|world| world.faults.add(fault));
    }

    /// How many injected faults still wait for their request.
    pub fn waiting(&self) -> usize {
        self.shared.with(|world| world.faults.len())
    }

    /// Sets the rates of faults that happen by chance.
    pub fn set_rates(&self, rates: FaultRates) {
        self.shared.with(|world| {
            let any = rates.any_per_second();
            world.kernel().rates = rates;
            if any && !world.dice_armed {
                world.dice_armed = true;
                world.after(Duration::ZERO, Action::RollDice);
            }
        });
    }

    /// Ends all faults: drops the injected ones and sets all rates to zero.
    ///
    /// Does not mend what is broken already: that ends when its time is over.
    pub fn stop(&self) {
        self.shared.with(|world| {
            world.faults.clear();
            world.kernel().rates = FaultRates::default();
        });
    }

    /// Breaks a session's connection. What is in flight may or may not arrive.
    pub fn disconnect(&self, session: SessionId) {
        self.shared.with(|world| {
            if let Some(connection) = world.connection_of_session(session) {
                world.cut(connection);
            }
        });
    }

    /// Breaks all connections to a server. What is in flight may or may not arrive.
    pub fn disconnect_from(&self, server: usize) {
        self.shared.with(|world| {
            for connection in world.servers.network.connections_to(server) {
                world.cut(connection);
            }
        });
    }

    /// Has the next reconnect of a session answered with a new session, though the old one may
    /// live on: see [`forgets_sessions`](crate::SimulationOptions::forgets_sessions).
    pub fn forget(&self, session: SessionId) {
        self.shared
            .with(|world| world.servers.forgotten.insert(session.0));
    }

    /// Cuts a follower off from the leader. It goes on answering reads and pings; writes and
    /// syncs hang, until it is back or gives up its leader after
    /// [`sync_limit`](crate::SimulationOptions::sync_limit) ticks. With no quorum left nothing is
    /// committed. Nothing happens where the server is the leader.
    pub fn cut_off_from_leader(&self, server: usize, duration: Duration) {
        self.cut_off_one_way(server, Way::Both, duration);
    }

    /// Cuts a follower off from the leader, one way: nothing that it sends arrives, or nothing
    /// that is sent to it. The leader gives it up all the same.
    pub fn cut_off_one_way(&self, server: usize, way: Way, duration: Duration) {
        self.shared
            .with(|world| world.servers.cut_off(server, way, duration));
    }

    /// Cuts the leader off from all its followers, of which there must be two at least. It goes on
    /// answering reads, pings and syncs of its own clients, and tells them that their sessions
    /// live, until it notices that it has no quorum: within
    /// [`sync_limit`](crate::SimulationOptions::sync_limit) ticks and one. Meanwhile the followers give it
    /// up and elect another. Nothing happens where one is cut off already.
    pub fn isolate_leader(&self, duration: Duration) {
        self.shared.with(|world| world.servers.isolate(duration));
    }

    /// Stops a server, as SIGKILL does. Its connections break, and it refuses others.
    ///
    /// Its data and what it has acknowledged are kept, as on a disk. If it leads, the others elect
    /// another leader within a fifth of a tick. If no quorum is left, no server serves, and no
    /// session expires. An isolation of the leader ends first.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn stop_member(&self, server: usize) {
        self.shared.with(|world| world.stop_member(server));
    }

    /// Starts a server that was [stopped](Self::stop_member), on the same port.
    ///
    /// It catches up with its leader before it serves.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn start_member(&self, server: usize) {
        self.shared.with(|world| world.start_member(server));
    }

    /// Whether a server is [stopped](Self::stop_member).
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn is_stopped(&self, server: usize) -> bool {
        self.shared.with(|world| world.servers.is_stopped(server))
    }

    /// Has a server apply each transaction so much later than the leader, until this is called
    /// with zero.
    ///
    /// Its clients read what was there before, and a `sync` waits until the server has caught up.
    /// Has no effect while the server leads.
    ///
    /// # Panics
    ///
    /// If there is no such server.
    pub fn lag(&self, server: usize, by: Duration) {
        self.shared
            .with(|world| world.servers.members[server].lag = by);
    }

    /// Has nothing committed for so long, as where all servers wait for their disks. Reads, pings,
    /// and syncs behind which nothing waits to be committed are answered.
    pub fn stall_commits(&self, duration: Duration) {
        self.shared.with(|world| world.servers.stall(duration));
    }

    /// Has a server stand still for so long, but for less than the time after which the other
    /// servers give it up: what is sent to it waits.
    pub fn pause_server(&self, server: usize, duration: Duration) {
        self.shared
            .with(|world| world.servers.pause_server(server, duration));
    }

    /// Restarts all members with other settings: every connection breaks, and after a while one of
    /// them leads.
    pub fn restart(&self, settings: ServerSettings, duration: Duration) {
        self.shared.with(|world| {
            let server = world.servers.leader;
            world.servers.elect(server, duration);
            world.servers.restart = Some(settings);
        });
    }

    /// The leader falls, every connection with it; after a while `server` leads.
    pub fn elect(&self, server: usize, duration: Duration) {
        self.shared
            .with(|world| world.servers.elect(server, duration));
    }
}
