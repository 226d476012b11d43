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
}

impl CheckedRecipe {
    pub(crate) const ALL: [CheckedRecipe; 6] = [
        CheckedRecipe::Lock,
        CheckedRecipe::SingleNodeLock,
        CheckedRecipe::ReadLock,
        CheckedRecipe::WriteLock,
        CheckedRecipe::Semaphore,
        CheckedRecipe::Election,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            CheckedRecipe::Lock => "lock",
            CheckedRecipe::SingleNodeLock => "single-node-lock",
            CheckedRecipe::ReadLock => "read-lock",
            CheckedRecipe::WriteLock => "write-lock",
            CheckedRecipe::Semaphore => "semaphore",
            CheckedRecipe::Election => "election",
        }
    }

    /// The check of the recipe on these servers, in a directory of its own.
    pub(crate) fn on(self, servers: &RunningEnsemble) -> Conformance<'_> {
        let conformance = Conformance::new(servers, move |session, path| self.at(session, path));
        let conformance = match self {
            CheckedRecipe::SingleNodeLock => conformance.unordered(),
            CheckedRecipe::ReadLock => {
                conformance.shared(|session, path| CheckedRecipe::WriteLock.at(session, path))
            }
            CheckedRecipe::Semaphore => conformance.holders(PERMITS as usize),
            _ => conformance,
        };
        conformance.directory(&format!("{}/{}", servers.directory(), self.name()))
    }

    /// The recipe at this path, which is below the path of the checked recipe.
    fn at(self, session: &Session, path: &str) -> Box<dyn Recipe> {
        match self {
            CheckedRecipe::Lock => Box::new(made(ExclusiveLock::new(session, path))),
            CheckedRecipe::SingleNodeLock => Box::new(made(SingleNodeLock::new(session, path))),
            CheckedRecipe::ReadLock => Box::new(made(RwLock::new(session, path)).read().clone()),
            CheckedRecipe::WriteLock => Box::new(made(RwLock::new(session, path)).write().clone()),
            CheckedRecipe::Semaphore => Box::new(made(Semaphore::new(session, path, PERMITS))),
            CheckedRecipe::Election => {
                Box::new(made(LeaderElection::new(session, path, "conformance")))
            }
        }
    }
}

fn made<R>(recipe: Result<R, InvalidInput>) -> R {
    recipe.expect("the names below a valid path are valid")
}
