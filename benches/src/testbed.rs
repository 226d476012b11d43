//! Servers of the bench's own, and sessions with them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Runtime;
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_testkit::{Compiler, Ensemble, Server, ServerOptions};

/// The session timeout of all clients. The timeout is long, so that hardly a ping or a probe falls
/// into a measurement.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(60);

/// These options with those of a bench.
///
/// All tiers of the Java compiler are on, so that the server gets faster while it warms up.
pub fn as_in_production(options: ServerOptions) -> ServerOptions {
    options
        .compiler(Compiler::Full)
        .tick_time(Duration::from_secs(2))
        .heap_mebibytes(512)
}

/// A ZooKeeper server or an ensemble for one bench, and a tokio runtime for its clients.
///
/// A server runs [`as_in_production`], except that its data are on tmpfs if the system has it: no
/// commit waits for a disk. The runtime has a worker for each processor.
///
/// A bench needs its server, so every failure here panics.
#[derive(Debug)]
pub struct Testbed {
    runtime: Runtime,
    ensemble: Ensemble,
    directories: AtomicUsize,
}

impl Testbed {
    /// Starts one server, and returns when it serves.
    pub fn start() -> Testbed {
        Testbed::of(1, ServerOptions::new())
    }

    /// Starts this many servers as one ensemble, with these options and those of a bench.
    pub fn of(servers: usize, options: ServerOptions) -> Testbed {
        Testbed::with_options(servers, as_in_production(options))
    }

    /// Starts one server with a heap for many znodes.
    pub fn with_heap(mebibytes: u32) -> Testbed {
        let options = as_in_production(ServerOptions::new());
        Testbed::with_options(1, options.heap_mebibytes(mebibytes))
    }

    fn with_options(servers: usize, options: ServerOptions) -> Testbed {
        let runtime = Runtime::new().expect("a tokio runtime");
        let ensemble = runtime
            .block_on(Ensemble::start(servers, options))
            .unwrap_or_else(|error| panic!("a bench needs a ZooKeeper server: {error}"));
        Testbed {
            runtime,
            ensemble,
            directories: AtomicUsize::new(0),
        }
    }

    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The server; of an ensemble, the first.
    pub fn server(&self) -> &Server {
        &self.ensemble.members()[0]
    }

    pub fn ensemble(&self) -> &Ensemble {
        &self.ensemble
    }

    /// A new session, whose tasks run in this runtime.
    pub fn session_in(&self, runtime: &Runtime) -> Session {
        let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
        let address = self.server().connect_string();
        let session = runtime.block_on(Session::connect_with(&address, options));
        session.expect("the server serves")
    }

    pub fn make(&self, directory: &str) {
        let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
        let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
        let address = self.server().connect_string();
        let created = self.runtime.block_on(async {
            let client = connector.connect(&address).await?;
            client.create(directory, b"", &options).await
        });
        created.expect("the path is new");
    }

    /// A path that no other measurement has used. All paths have the same length.
    pub fn directory(&self) -> String {
        format!(
            "/bench-{:04}",
            self.directories.fetch_add(1, Ordering::Relaxed)
        )
    }

    /// Waits until `sessions` sessions watch one znode below this directory.
    pub async fn until_watched(&self, directory: &str, sessions: usize) {
        loop {
            let watches = self.server().watches().await.expect("the server serves");
            let below = watches
                .iter()
                .filter(|(path, _)| path.starts_with(directory));
            if below.map(|(_, by)| by.len()).max() >= Some(sessions) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
