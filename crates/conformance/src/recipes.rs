//! The recipes that are checked.

use clap::ValueEnum;
use zookeeper_recipes_core::{InvalidInput, Recipe, Session};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;
use zookeeper_recipes_testkit::conformance::{Conformance, RunningEnsemble};

/// How many hold a semaphore together.
const PERMITS: u32 = 2;

/// A recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckedRecipe {
    /// The exclusive lock.
    Lock,
    /// The lock that is one znode.
    SingleNodeLock,
    /// The readers of a read/write lock, with a writer.
    ReadLock,
    /// The writers of a read/write lock.
    WriteLock,
    /// A semaphore with two permits.
    Semaphore,
    /// A leader election.
    Election,
    /// Partitions that are assigned to workers, which has promises of its own.
    Assignment,
}

impl CheckedRecipe {
    /// Its name, as on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |it| it.get_name().to_owned())
    }

    /// The check of the recipe on these servers, in a directory of its own. `None` for the
    /// assignment, which is no recipe of one hold.
    pub(crate) fn on(self, servers: &RunningEnsemble) -> Option<Conformance<'_>> {
        let of = |make: Make| Conformance::new(servers, make);
        let conformance = match self {
            CheckedRecipe::Lock => {
                of(|session, path| Box::new(made(ExclusiveLock::new(session, path))))
            }
            CheckedRecipe::SingleNodeLock => {
                of(|session, path| Box::new(made(SingleNodeLock::new(session, path)))).unordered()
            }
            CheckedRecipe::ReadLock => {
                of(|session, path| Box::new(made(RwLock::new(session, path)).read().clone()))
                    .shared(write_lock)
            }
            CheckedRecipe::WriteLock => of(write_lock),
            CheckedRecipe::Semaphore => {
                of(|session, path| Box::new(made(Semaphore::new(session, path, PERMITS))))
                    .holders(PERMITS as usize)
            }
            CheckedRecipe::Election => of(|session, path| {
                Box::new(made(LeaderElection::new(session, path, "conformance")))
            }),
            CheckedRecipe::Assignment => return None,
        };
        let directory = format!("{}/{}", servers.directory(), self.name());
        Some(conformance.directory(&directory))
    }
}

/// Makes a recipe at this path, which is below the path of the checked recipe.
type Make = fn(&Session, &str) -> Box<dyn Recipe>;

fn write_lock(session: &Session, path: &str) -> Box<dyn Recipe> {
    Box::new(made(RwLock::new(session, path)).write().clone())
}

fn made<R>(recipe: Result<R, InvalidInput>) -> R {
    recipe.expect("the names below a valid path are valid")
}
