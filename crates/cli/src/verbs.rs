//! The verbs, each in a file of its own.

pub(crate) mod completions;
#[cfg(feature = "dev-server")]
pub(crate) mod dev_server;
pub(crate) mod doctor;
pub(crate) mod evict;
#[cfg(unix)]
pub(crate) mod lead;
pub(crate) mod leader;
#[cfg(unix)]
pub(crate) mod lock;
pub(crate) mod resize;
#[cfg(unix)]
pub(crate) mod semaphore;
pub(crate) mod watch;
pub(crate) mod who;

use clap::CommandFactory;

use crate::arguments::{Arguments, Verb};
use crate::exit::Exit;
use crate::failure::Failure;

/// Does what the command line says.
pub(crate) fn run(arguments: Arguments) -> Result<Exit, Failure> {
    let connection = &arguments.connection;
    match arguments.verb {
        #[cfg(unix)]
        Verb::Lock(lock) => in_runtime(lock.run(connection)),
        #[cfg(unix)]
        Verb::Semaphore(semaphore) => in_runtime(semaphore.run(connection)),
        #[cfg(unix)]
        Verb::Lead(lead) => in_runtime(lead.run(connection)),
        Verb::Who(who) => in_runtime(who.run(connection)),
        Verb::Watch(watch) => in_runtime(watch.run(connection)),
        Verb::Leader(leader) => in_runtime(leader.run(connection)),
        Verb::Evict(evict) => in_runtime(evict.run(connection)),
        Verb::Resize(resize) => in_runtime(resize.run(connection)),
        Verb::Doctor(doctor) => in_runtime(doctor.run(connection)),
        #[cfg(feature = "dev-server")]
        Verb::DevServer(server) => in_runtime(server.run(connection)),
        Verb::Completions(completions) => completions.run(Arguments::command()),
        Verb::Man(man) => man.run(Arguments::command()),
    }
}

fn in_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::internal("cannot start", error))?;
    runtime.block_on(work)
}
