//! The thread of an embedded server, with the runtime of all its tasks.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::CreateMode;

#[cfg(feature = "admin")]
use super::admin;
use super::error::StartError;
use super::member::Member;
use super::options::EmbeddedOptions;
use super::port::{MemberPort, accept, address_of, listen};
use crate::engine::shared::Shared;
use crate::simulation::Simulation;

type Started = Result<Served, StartError>;

/// The thread of an embedded server. Dropping it ends all that the server has.
#[derive(Debug)]
pub(super) struct ServerThread {
    pub(super) served: Served,
    stop: Option<oneshot::Sender<()>>,
    pauses: UnboundedSender<Pause>,
    /// The standstill ends when this is dropped.
    standstill: Mutex<Option<mpsc::Sender<()>>>,
    thread: Option<JoinHandle<()>>,
}

/// The simulation that the thread serves, and its addresses.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) simulation: Simulation,
    /// The addresses of the members.
    pub(super) addresses: Vec<SocketAddr>,
    /// The address of the admin port, if there is one.
    #[cfg(feature = "admin")]
    pub(super) admin: Option<SocketAddr>,
}

impl ServerThread {
    /// Starts the members, and returns when they take connections.
    pub(super) fn start(options: EmbeddedOptions) -> Result<Self, StartError> {
        let (report, started) = mpsc::channel::<Started>();
        let (stop, stopped) = oneshot::channel();
        let (pauses, paused) = unbounded_channel();
        let thread = thread::Builder::new()
            .name("embedded-zookeeper".to_owned())
            .spawn(move || run(options, &report, stopped, paused))
            .map_err(StartError::Thread)?;
        match started.recv() {
            Ok(Ok(served)) => Ok(ServerThread {
                served,
                stop: Some(stop),
                pauses,
                standstill: Mutex::default(),
                thread: Some(thread),
            }),
            Ok(Err(error)) => Err(error),
            Err(mpsc::RecvError) => {
                let ended = std::io::Error::other("the thread has ended at once");
                Err(StartError::Thread(ended))
            }
        }
    }

    /// Has the whole thread pause, and returns when it does.
    pub(super) fn pause(&self) {
        let mut standstill = self.standstill();
        if standstill.is_some() {
            return;
        }
        let (begun, begins) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        if self.pauses.send((begun, ended)).is_ok() {
            *standstill = Some(end);
            // An error means that the thread has ended: it pauses for ever.
            let _ = begins.recv();
        }
    }

    pub(super) fn resume(&self) {
        drop(self.standstill().take());
    }

    fn standstill(&self) -> MutexGuard<'_, Option<mpsc::Sender<()>>> {
        self.standstill
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.resume();
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so itself.
            let _ = thread.join();
        }
    }
}

/// Runs the server until it is to stop.
fn run(
    options: EmbeddedOptions,
    report: &mpsc::Sender<Started>,
    stopped: oneshot::Receiver<()>,
    pauses: UnboundedReceiver<Pause>,
) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            // Nobody waits for the answer any more only if the caller has panicked.
            let _ = report.send(Err(StartError::Thread(error)));
            return;
        }
    };
    runtime.block_on(async {
        let started = start(&options);
        let serves = started.is_ok();
        let _ = report.send(started);
        if serves {
            tokio::spawn(stand_still(pauses));
            // The sender is dropped to stop the server.
            let _ = stopped.await;
        }
    });
}

/// Starts the simulation and all that listens for its clients.
fn start(options: &EmbeddedOptions) -> Started {
    let members = options.members.max(1);
    let mut listeners = Vec::new();
    for member in 0..members as u16 {
        let port = match options.port {
            0 => 0,
            port => port.saturating_add(member),
        };
        listeners.push(listen(port)?);
    }
    let mut simulated = options.simulation.clone();
    simulated.servers = members;
    let shared = Shared::start(simulated);
    let simulation = Simulation::of(&shared);
    set_the_time(&shared);
    create(&simulation, &options.znodes)?;
    let (mut addresses, mut served) = (Vec::new(), Vec::new());
    for (server, listener) in listeners.into_iter().enumerate() {
        let address = address_of(&listener)?;
        addresses.push(address);
        let member = Member::new(Arc::clone(&shared), server, address, options.clone());
        let member = Arc::new(member);
        served.push(Arc::clone(&member));
        let port = Arc::new(MemberPort::new(listener, address.port()));
        let weak = Arc::downgrade(&port);
        shared.with(|world| world.ports.insert(server, weak));
        tokio::spawn(accept(port, member));
    }
    tracing::info!(
        ?addresses,
        "an embedded ZooKeeper for development and tests serves, in memory only: \
         all data is gone when it stops"
    );
    Ok(Served {
        #[cfg(feature = "admin")]
        admin: admin::start(options.admin_port, simulation.clone(), served)?,
        simulation,
        addresses,
    })
}

/// Gives the simulation the time of the wall clock, and session ids that no earlier server had.
fn set_the_time(shared: &Shared) {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since_1970.unwrap_or_default().as_millis() as i64;
    shared.with(|world| {
        let servers = &mut world.servers;
        servers.began_at = now;
        servers.keeps_history = false;
        servers.next_session = ((now << 24) as u64 >> 8) as i64;
    });
}

/// Creates the znodes to begin with, and their parents.
fn create(simulation: &Simulation, znodes: &[(String, Vec<u8>)]) -> Result<(), StartError> {
    let administrator = simulation.administrator();
    for (path, data) in znodes {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.filter(|end| *end > 0) {
            // The create below reports what is wrong with the path.
            let _ = administrator.create(&path[..end], b"", CreateMode::Persistent);
        }
        let created = administrator.create(path, data, CreateMode::Persistent);
        let created = match created {
            Err(Refusal::NodeExists) => administrator.set_data(path, data),
            other => other.map(drop),
        };
        created.map_err(|refusal| StartError::Znode {
            path: path.clone(),
            refusal,
        })?;
    }
    Ok(())
}

/// A standstill: the thread sends when it begins, and waits until the other end is dropped.
type Pause = (mpsc::Sender<()>, mpsc::Receiver<()>);

/// Blocks the thread whenever it is to pause.
pub(super) async fn stand_still(mut pauses: UnboundedReceiver<Pause>) {
    while let Some((begun, ended)) = pauses.recv().await {
        let _ = begun.send(());
        // The sender is dropped when the thread may continue.
        let _ = ended.recv();
    }
}
