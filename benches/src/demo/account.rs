//! The cost of a contest, by the server's account and by the clients'.

use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_testkit::meter::Counts;
use zookeeper_recipes_testkit::{Monitor, TestEnsemble};

/// The cost of a part of a contest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// By the server's account; `None` if the server gives none.
    pub(crate) by_server: Option<Traffic>,
    pub(crate) by_clients: Traffic,
    /// The notifications of something that another session did.
    pub(crate) wake_ups: u64,
}

/// What passed between clients and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Requests, without those of the counting and the probes of the sessions.
    ///
    /// The server counts pings too. A session sends one when it has been idle for 9 s, so that a
    /// short contest has none.
    pub(crate) requests: u64,
    /// Notifications of watches.
    pub(crate) notifications: u64,
}

impl Cost {
    /// By the server's account if there is one.
    pub(crate) fn traffic(&self) -> Traffic {
        self.by_server.unwrap_or(self.by_clients)
    }
}

/// Reads the counts of the servers and of the clients.
pub(crate) struct Account<'a> {
    ensemble: &'a TestEnsemble,
    /// Its requests are no part of the cost.
    observing: &'a Member,
}

/// All counts at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    server: Option<ServerReading>,
    /// Of the contenders together.
    clients: Counts,
    observer: Counts,
}

#[derive(Clone, Copy, Debug)]
struct ServerReading {
    packets_received: u64,
    /// How many of the packets asked for this reading and those before it.
    questions: u64,
    notifications: u64,
}

impl<'a> Account<'a> {
    pub(crate) fn new(ensemble: &'a TestEnsemble, observing: &'a Member) -> Account<'a> {
        Account {
            ensemble,
            observing,
        }
    }

    /// Takes the `number`th reading, with these counts of the contenders.
    ///
    /// The servers are read last: between the two, nothing is under way but polling.
    pub(crate) async fn read(&self, clients: Counts, number: u64) -> Reading {
        let observer = self.observing.meter.read();
        let server = match self.ensemble.monitors().await {
            Ok(monitors) => ServerReading::of(&monitors, number),
            // Not every server answers `mntr`. The clients' account is left.
            Err(_) => None,
        };
        Reading {
            server,
            clients,
            observer,
        }
    }
}

impl ServerReading {
    fn of(monitors: &[Monitor], number: u64) -> Option<ServerReading> {
        let mut reading = ServerReading {
            packets_received: 0,
            questions: 0,
            notifications: 0,
        };
        for monitor in monitors {
            reading.packets_received += monitor.packets_received;
            reading.questions += number;
            reading.notifications += monitor.notifications()?;
        }
        Some(reading)
    }
}

impl Reading {
    /// The cost from this reading until a later one.
    pub(crate) fn cost_until(&self, later: &Reading) -> Cost {
        let requests = later.clients.requests - self.clients.requests;
        let uncounted = (later.clients.probes - self.clients.probes)
            + (later.observer.probes - self.observer.probes)
            + (later.observer.requests - self.observer.requests);
        let by_server = self.server.zip(later.server).map(|(first, last)| Traffic {
            requests: last
                .packets_received
                .saturating_sub(first.packets_received)
                .saturating_sub(last.questions - first.questions)
                .saturating_sub(uncounted),
            notifications: last.notifications.saturating_sub(first.notifications),
        });
        Cost {
            by_server,
            by_clients: Traffic {
                requests,
                notifications: later.clients.told() - self.clients.told(),
            },
            wake_ups: later.clients.wake_ups - self.clients.wake_ups,
        }
    }
}
