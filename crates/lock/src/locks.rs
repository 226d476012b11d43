//! One value for many locks.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use zookeeper_recipes_core::{InvalidInput, NodePath, Session};

use crate::LockOptions;
use crate::recipe::ExclusiveLock;
use crate::task_mutex::TaskMutex;

/// The least number of calls between two looks for idle locks.
const CALLS: usize = 64;

/// An exclusive lock for each name, such as one for each customer.
///
/// All tasks of the process that lock a name share one [`ExclusiveLock`]. So they queue within the
/// process, behind one contender in ZooKeeper. Clones of a `Locks` are one value. Two values that
/// are *made* with the same path do not share their locks: their tasks exclude each other by
/// ZooKeeper alone.
///
/// # Memory
///
/// The value keeps a lock while a task has it, waits for it, holds it or releases it. It forgets
/// the others after a while, so any number of names can be used one after the other. It keeps at
/// most twice as many locks as were in use at the last look, and 65 more. A look follows after as
/// many calls of [`lock`](Self::lock) as locks were in use at the last one, and after 64 at least.
///
/// # Many tasks for one name
///
/// Each hold has a znode and a [token](crate::FencingToken) of its own. If many tasks of a process
/// want one name, its [`mutex`](Self::mutex) passes one hold from task to task without a request.
///
/// # Two names at once
///
/// Two tasks that acquire two locks in opposite order can deadlock. `AllOf` of the crate `zookeeper-recipes` acquires several locks in one order.
///
/// # Znodes
///
/// `path/name` is the directory of each lock, a container znode with the contenders of
/// [`ExclusiveLock`]. The servers delete empty directories at a limited rate: see
/// [what can go wrong](crate::common::docs::failures#many-directories).
///
/// # Example
///
/// ```
/// use zookeeper_recipes_lock::{Locks, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let customers = Locks::new(&session, "/customers")?;
/// let hold = customers.lock("4711")?.acquire().await?;
/// assert_eq!(customers.lock("4711")?.path().as_str(), "/customers/4711");
/// assert!(customers.lock("4711")?.try_acquire().await?.is_none());
/// assert!(customers.lock("4712")?.try_acquire().await?.is_some());
/// hold.release().await?;
///
/// let error = customers.lock("47/11").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"name "47/11" has a '/' in it: it must be a single segment"#,
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Locks {
    shared: Arc<Shared>,
}

struct Shared {
    session: Session,
    path: NodePath,
    options: LockOptions,
    /// How many locks the names share. `None` if each name has its own.
    stripes: Option<u32>,
    kept: Mutex<Kept>,
}

/// The locks by the last segment of their paths.
#[derive(Default)]
struct Kept {
    locks: HashMap<Box<str>, TaskMutex>,
    /// The calls until the next look for idle locks.
    calls_left: usize,
}

impl Locks {
    /// Locks below `path`, with the default options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<Locks, InvalidInput> {
        Locks::with_options(session, path, LockOptions::new())
    }

    /// Locks below `path`, each with these options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or an option has a value that cannot
    /// work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: LockOptions,
    ) -> Result<Locks, InvalidInput> {
        // A lock at the path itself shows whether the options can work.
        let sample = ExclusiveLock::with_options(session, path, options.clone())?;
        let path = sample.path().clone();
        Ok(Locks::of(session.clone(), path, options, None))
    }

    /// The same locks, with one lock for many names: `stripes` locks in all. The call sends
    /// nothing.
    ///
    /// Use it if there are more names than the ensemble is to have znodes. Two names of the same
    /// stripe exclude each other: a task that holds one of them and waits for the other deadlocks.
    /// Compare [`ExclusiveLock::path`] first.
    ///
    /// Any text is a name, because no znode has it. The stripe is `path/<number>-of-<stripes>`,
    /// and its number is the 64-bit FNV-1a hash of the name's UTF-8 bytes, modulo `stripes`.
    ///
    /// All processes must use the same number. Processes with different numbers use different
    /// znodes, and **do not exclude each other**. To change the number, end all processes with the
    /// old one first.
    ///
    /// ```
    /// use zookeeper_recipes_lock::{Locks, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
    /// let files = Locks::new(&session, "/files")?.striped(256)?;
    /// let lock = files.lock("reports/2026/march.csv")?;
    /// assert_eq!(lock.path().as_str(), "/files/229-of-256");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `stripes` is zero.
    pub fn striped(&self, stripes: u32) -> Result<Locks, InvalidInput> {
        if stripes == 0 {
            return Err(InvalidInput::new(
                "number of stripes",
                "0",
                "must not be zero",
            ));
        }
        let shared = &self.shared;
        let (session, path) = (shared.session.clone(), shared.path.clone());
        Ok(Locks::of(
            session,
            path,
            shared.options.clone(),
            Some(stripes),
        ))
    }

    fn of(session: Session, path: NodePath, options: LockOptions, stripes: Option<u32>) -> Locks {
        Locks {
            shared: Arc::new(Shared {
                session,
                path,
                options,
                stripes,
                kept: Mutex::default(),
            }),
        }
    }

    /// The lock of this name. The call sends nothing.
    ///
    /// The lock is the one that the other tasks of the process have, if one of them uses it. Its
    /// methods list their costs.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | this call | 0 | 0 | 0 |
    /// | to acquire | as [`ExclusiveLock::acquire`] | | |
    /// | a name that is used for the first time, or whose directory the servers have deleted since | 1 or 3 more | 0 or 1 more | 0 |
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the name cannot be a segment of a path: it is empty, `.` or `..`, or has
    /// a slash or a character that ZooKeeper refuses. A name is never encoded, so that programs in
    /// other languages find the lock at the same path. Encode such names yourself, or use
    /// [`striped`](Self::striped) locks.
    pub fn lock(&self, name: impl AsRef<str>) -> Result<ExclusiveLock, InvalidInput> {
        self.mutex(name).map(|mutex| mutex.lock().clone())
    }

    /// The mutex of this name, whose tasks share one hold of its lock: see [`TaskMutex`]. The call
    /// sends nothing.
    ///
    /// All tasks of the process that ask for the name have one mutex.
    ///
    /// # Errors
    ///
    /// Those of [`lock`](Self::lock).
    pub fn mutex(&self, name: impl AsRef<str>) -> Result<TaskMutex, InvalidInput> {
        let shared = &self.shared;
        let segment = match shared.stripes {
            None => Cow::Borrowed(name.as_ref()),
            Some(stripes) => Cow::Owned(stripe(name.as_ref(), stripes)),
        };
        let mut kept = shared.kept();
        kept.forget_idle();
        if let Some(mutex) = kept.locks.get(&*segment) {
            return Ok(mutex.clone());
        }
        let path = shared.path.join(&segment)?;
        let options = shared.options.clone();
        let lock = ExclusiveLock::with_options(&shared.session, path, options)?;
        let mutex = TaskMutex::new(lock);
        kept.locks.insert(segment.into(), mutex.clone());
        Ok(mutex)
    }

    /// The path that the names are below.
    pub fn path(&self) -> &NodePath {
        &self.shared.path
    }
}

impl Shared {
    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // A poisoned map is usable, because each change of it is one call.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Forgets the idle locks, if as many calls have passed as there were locks at the last look.
    ///
    /// Each call then costs the look at one or two locks. No lock that is forgotten comes to use
    /// meanwhile: the only way to it is the map, which the caller has.
    fn forget_idle(&mut self) {
        if let Some(left) = self.calls_left.checked_sub(1) {
            self.calls_left = left;
            return;
        }
        self.locks.retain(|_, mutex| !mutex.is_idle());
        self.locks.shrink_to(2 * self.locks.len());
        self.calls_left = self.locks.len().max(CALLS);
    }
}

/// The last segment of the path of a name's stripe.
fn stripe(name: &str, stripes: u32) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = name.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    format!("{}-of-{stripes}", hash % u64::from(stripes))
}

impl fmt::Debug for Locks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Locks")
            .field("path", &self.shared.path)
            .field("stripes", &self.shared.stripes)
            .field("kept", &self.shared.kept().locks.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "../tests/unit/locks.rs"]
mod tests;
