//! The verbs, each in a file of its own.

pub(crate) mod assignment;
pub(crate) mod completions;
pub(crate) mod deadlocks;
#[cfg(feature = "dev-server")]
pub(crate) mod dev_server;
pub(crate) mod doctor;
pub(crate) mod evict;
pub(crate) mod leader;
#[cfg(unix)]
pub(crate) mod lock;
pub(crate) mod locks;
#[cfg(unix)]
pub(crate) mod once;
pub(crate) mod resize;
#[cfg(unix)]
pub(crate) mod semaphore;
pub(crate) mod serve;
pub(crate) mod watch;
pub(crate) mod who;

use clap::{Command, Subcommand};

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to do. Each verb is documented at its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[cfg(unix)]
    Lock(lock::Lock),
    #[cfg(unix)]
    Semaphore(semaphore::Semaphore),
    #[cfg(unix)]
    Once(once::Once),
    #[cfg(unix)]
    Lead(crate::run::Lead),
    Who(who::Who),
    Locks(locks::Locks),
    Deadlocks(deadlocks::Deadlocks),
    Watch(watch::Watch),
    Serve(serve::Serve),
    Leader(leader::Leader),
    Evict(evict::Evict),
    Resize(resize::Resize),
    Assignment(assignment::Assignment),
    Doctor(doctor::Doctor),
    #[cfg(feature = "dev-server")]
    DevServer(dev_server::DevServer),
    Completions(completions::Completions),
    Man(completions::Man),
}

impl Verb {
    /// True if the verb uses this option of [`Connection`].
    #[cfg_attr(not(feature = "dev-server"), expect(unused_variables))]
    pub(crate) fn uses(&self, option: &str) -> bool {
        match self {
            #[cfg(feature = "dev-server")]
            Verb::DevServer(_) => option == "tick",
            Verb::Completions(_) | Verb::Man(_) => false,
            _ => true,
        }
    }

    /// Does what the command line says. `zkr` describes all of it.
    pub(crate) fn run(self, connection: &Connection, zkr: Command) -> Result<Exit, Failure> {
        match self {
            #[cfg(unix)]
            Verb::Lock(lock) => in_runtime(lock.run(connection)),
            #[cfg(unix)]
            Verb::Semaphore(semaphore) => in_runtime(semaphore.run(connection)),
            #[cfg(unix)]
            Verb::Once(once) => in_runtime(once.run(connection)),
            #[cfg(unix)]
            Verb::Lead(lead) => in_runtime(lead.run(connection)),
            Verb::Who(who) => in_runtime(who.run(connection)),
            Verb::Locks(locks) => in_runtime(locks.run(connection)),
            Verb::Deadlocks(deadlocks) => in_runtime(deadlocks.run(connection)),
            Verb::Watch(watch) => in_runtime(watch.run(connection)),
            Verb::Serve(serve) => in_runtime(serve.run(connection)),
            Verb::Leader(leader) => in_runtime(leader.run(connection)),
            Verb::Evict(evict) => in_runtime(evict.run(connection)),
            Verb::Resize(resize) => in_runtime(resize.run(connection)),
            Verb::Assignment(assignment) => in_runtime(assignment.run(connection)),
            Verb::Doctor(doctor) => in_runtime(doctor.run(connection)),
            #[cfg(feature = "dev-server")]
            Verb::DevServer(server) => in_runtime(server.run(connection)),
            Verb::Completions(completions) => completions.run(zkr),
            Verb::Man(man) => man.run(zkr),
        }
    }
}

fn in_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::internal("cannot start", error))?;
    runtime.block_on(work)
}
