//! Faults that never heal: of a minority of the servers, and of processes beside the healthy ones.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::sleep;
use zookeeper_recipes_simulation::{SimulatedProcess, Simulation, SimulationOptions, Way};

/// Longer than any run.
const FOR_GOOD: Duration = Duration::from_secs(1_000_000);

/// What happens to a server for good.
#[derive(Clone, Copy, Debug)]
enum OfServer {
    /// It is stopped.
    Stopped,
    /// It and the leader no longer reach each other. A leader loses all its followers.
    CutOff(Way),
    /// It and the clients no longer reach each other.
    Unheard(Way),
    /// It applies each transaction so much later.
    Lagging(Duration),
}

/// What happens to a process for good.
#[derive(Clone, Copy, Debug)]
enum OfProcess {
    Asleep,
    Killed,
    /// The runtime of its sessions is blocked.
    Blocked,
    CutOff(Way),
    /// Each of its messages takes so much longer, both ways. Its connections break then.
    FarAway(Duration),
}

/// The faults of a run that never heal, each with the time until it happens.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastingFaults {
    /// The number of all servers.
    number: usize,
    servers: Vec<(Duration, usize, OfServer)>,
    processes: Vec<(Duration, OfProcess)>,
    /// Every server answers handshakes later by this time.
    handshakes: Option<(Duration, Duration)>,
}

/// How late handshakes are answered for good, now and then by less than any first handshake may take.
fn draw_lateness(options: &SimulationOptions, rng: &mut Rng) -> Duration {
    let longest = match rng.bool() {
        true => Duration::from_millis(900),
        false => options.session_timeout.min(Duration::from_secs(5)),
    };
    Duration::from_millis(rng.u64(100..=longest.as_millis() as u64))
}

impl LastingFaults {
    pub(crate) fn draw(
        options: &SimulationOptions,
        troubled: Duration,
        rng: &mut Rng,
    ) -> LastingFaults {
        let mut servers: Vec<usize> = (0..options.servers).collect();
        rng.shuffle(&mut servers);
        servers.truncate(rng.usize(1..=(options.servers - 1) / 2));
        let longest = troubled.as_millis() as u64;
        let when = |rng: &mut Rng| Duration::from_millis(rng.u64(0..=longest));
        let mut lasting = LastingFaults {
            number: options.servers,
            servers: servers
                .into_iter()
                .map(|server| (when(rng), server, draw_of_server(options, rng)))
                .collect(),
            processes: (0..rng.usize(0..=2))
                .map(|_| (when(rng), draw_of_process(rng)))
                .collect(),
            handshakes: None,
        };
        if rng.u8(..3) == 0 {
            let longest = options.session_timeout.as_millis() as u64 / 2;
            let by = Duration::from_millis(rng.u64(1..=longest));
            lasting.processes.push((when(rng), OfProcess::FarAway(by)));
        }
        if rng.u8(..3) == 0 {
            lasting.handshakes = Some((when(rng), draw_lateness(options, rng)));
        }
        lasting
    }

    /// How late every server answers handshakes.
    pub(crate) fn lateness(&self) -> Duration {
        self.handshakes.map_or(Duration::ZERO, |(_, by)| by)
    }

    /// How long the longest handshake of any process takes.
    pub(crate) fn longest_handshake(&self) -> Duration {
        let paths = self.processes.iter().map(|(_, fault)| match fault {
            OfProcess::FarAway(by) => *by,
            _ => Duration::ZERO,
        });
        // The connection takes a round trip, and so does the session.
        self.lateness() + paths.max().unwrap_or_default() * 4
    }

    /// The names of the processes that are far away, and work all the same.
    pub(crate) fn far_away(&self) -> impl Iterator<Item = String> {
        let processes = self.processes.iter().enumerate();
        processes.filter_map(|(number, (_, fault))| match fault {
            OfProcess::FarAway(_) => Some(LastingFaults::process(number)),
            _ => None,
        })
    }

    /// How many processes are hit.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    pub(crate) fn longest_lag(&self) -> Duration {
        let lags = self.servers.iter().map(|(_, _, fault)| match fault {
            OfServer::Lagging(by) => *by,
            _ => Duration::ZERO,
        });
        lags.max().unwrap_or_default()
    }

    /// The name of the process that the fault with this number hits.
    pub(crate) fn process(number: usize) -> String {
        format!("hit{number}")
    }

    /// Whether this is a contender of a process that is hit.
    pub(crate) fn hit(who: &str) -> bool {
        who.starts_with("hit")
    }

    /// Has them happen, each at its time.
    pub(crate) async fn happen(&self, simulation: &Simulation) {
        let servers = self.servers.iter().map(|(at, server, fault)| async move {
            sleep(*at).await;
            fault.hit(simulation, *server, self.servers.len() == 1);
        });
        let processes = self.processes.iter().enumerate();
        let processes = processes.map(|(number, (at, fault))| async move {
            sleep(*at).await;
            fault.hit(&simulation.process(&LastingFaults::process(number)));
        });
        let handshakes = async {
            if let Some((at, by)) = self.handshakes {
                sleep(at).await;
                let faults = simulation.faults();
                for server in 0..self.number {
                    faults.slow_handshakes(server, by..=by, FOR_GOOD);
                    faults.disconnect_from(server);
                }
            }
        };
        let servers = futures_util::future::join_all(servers);
        let processes = futures_util::future::join_all(processes);
        tokio::join!(biased; servers, processes, handshakes);
    }
}

impl OfServer {
    fn hit(self, simulation: &Simulation, server: usize, is_alone: bool) {
        let faults = simulation.faults();
        let leads = simulation.administrator().leader() == server;
        match self {
            OfServer::CutOff(_) if leads && is_alone => faults.isolate_leader(FOR_GOOD),
            OfServer::CutOff(way) if !leads => faults.cut_off_one_way(server, way, FOR_GOOD),
            // A stop of another member would end the isolation.
            OfServer::Stopped | OfServer::CutOff(_) => faults.stop_member(server),
            OfServer::Unheard(way) => faults.cut_off_from_clients(server, way),
            OfServer::Lagging(by) => faults.lag(server, by),
        }
    }
}

impl OfProcess {
    fn hit(self, process: &SimulatedProcess) {
        match self {
            OfProcess::Asleep => process.sleep(FOR_GOOD),
            OfProcess::Killed => process.kill(),
            OfProcess::Blocked => process.block_sessions(FOR_GOOD),
            OfProcess::CutOff(way) => process.partition_one_way(way, FOR_GOOD),
            OfProcess::FarAway(by) => {
                process.lengthen_path(by, FOR_GOOD);
                process.disconnect();
            }
        }
    }
}

pub(crate) fn draw_way(rng: &mut Rng) -> Way {
    [Way::Both, Way::Up, Way::Down][rng.usize(..3)]
}

fn draw_of_server(options: &SimulationOptions, rng: &mut Rng) -> OfServer {
    match rng.u8(..5) {
        0 => OfServer::Stopped,
        1 => OfServer::CutOff(draw_way(rng)),
        2 | 3 => OfServer::Unheard(draw_way(rng)),
        _ => {
            let longest = options.session_timeout.as_millis() as u64 * 2;
            OfServer::Lagging(Duration::from_millis(rng.u64(1..=longest)))
        }
    }
}

fn draw_of_process(rng: &mut Rng) -> OfProcess {
    match rng.u8(..5) {
        0 => OfProcess::Asleep,
        1 => OfProcess::Killed,
        2 => OfProcess::Blocked,
        _ => OfProcess::CutOff(draw_way(rng)),
    }
}
