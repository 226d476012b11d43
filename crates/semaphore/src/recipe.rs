//! The semaphore.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{Operation, TransactionError};
use zookeeper_recipes_core::{
    Contender, Error, Hold, InvalidInput, NodePath, Queue, QueueEntry, Refusal, ServerError,
    Session, delegate_recipe,
};

use crate::SemaphoreOptions;
use crate::agreement::{Agreement, refuse_zero};
use crate::rule::{WithinPermits, weight, weight_of};

/// A number of permits, acquired one or several at a time, FIFO over all processes.
///
/// Made from a [`Session`], a path and the number of permits. Cheap to clone. A semaphore
/// acquires one permit at a time. That of [`permits`](Self::permits) acquires several permits in one
/// [`Hold`].
///
/// # Order
///
/// Permits are granted in FIFO order. A contender that wants more permits than are free
/// waits. All later contenders wait behind it, even if there are enough permits for them.
///
/// # Not reentrant
///
/// If a task that holds permits acquires more of them, it is one more contender. If too few are
/// free, the task deadlocks. [`acquire_timeout`](Self::acquire_timeout) bounds the wait, and an
/// event warns at once ([events](crate::common::docs::events)).
///
/// # Wakes
///
/// A release wakes at most as many waiters as the semaphore has permits, however many wait. If each
/// contender wants one permit, the release of the oldest hold wakes one waiter, and the release of
/// the newest hold wakes as many as there are permits. A woken waiter lists the queue, and may have
/// to wait on.
///
/// # Znodes
///
/// Under the path, one ephemeral sequential znode for each contender:
/// `_c_<uuid>-permit-<weight>-<number>`. If the path does not exist, it is created as a container
/// znode, with the number of permits as its data.
///
/// # Example
///
/// ```
/// use zookeeper_recipes_semaphore::{Semaphore, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let semaphore = Semaphore::new(&session, "/limits/exports", 5)?;
/// let hold = semaphore.acquire().await?;
/// hold.release().await?;
///
/// let mistaken = Semaphore::new(&session, "/limits/exports", 8)?;
/// let error = mistaken.acquire().await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "number of permits \"8\" is not the 5 that /limits/exports is recorded with; \
///      open the semaphore with the recorded number, or resize it",
/// );
/// assert_eq!(mistaken.recorded().await?, Some(5));
///
/// // Takes the recorded number, or records this one if there is none.
/// let opened = Semaphore::open(&session, "/limits/exports", 8)?;
/// opened.acquire().await?.release().await?;
/// assert_eq!(opened.available_permits().await?, 5);
/// opened.resize(8).await?;
/// assert_eq!(opened.available_permits().await?, 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    queue: Queue,
    agreement: Arc<Agreement>,
    weight: u32,
}

impl Semaphore {
    /// A semaphore of exactly this many permits at `path`, with the default options. The call sends
    /// nothing.
    ///
    /// If another number is recorded, each acquisition fails. [`open`](Self::open) takes the
    /// recorded number.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or `permits` is zero.
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        permits: u32,
    ) -> Result<Semaphore, InvalidInput> {
        Semaphore::with_options(session, path, permits, SemaphoreOptions::new())
    }

    /// A semaphore of exactly this many permits at `path`. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], `permits` is zero, or an option has
    /// a value that cannot work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        permits: u32,
        options: SemaphoreOptions,
    ) -> Result<Semaphore, InvalidInput> {
        let path = NodePath::new(path.as_ref())?;
        Semaphore::of(session, Agreement::strict(path, permits)?, options)
    }

    /// A semaphore at `path` with the number of permits that is recorded there, with the default
    /// options. The call sends nothing.
    ///
    /// If no number is recorded, the first acquisition records `permits`. So a worker that is
    /// configured with an old number works after a [`resize`](Self::resize), by the new number.
    ///
    /// | | [`new`](Self::new) | `open` |
    /// |---|---|---|
    /// | no number is recorded | records `permits` | records `permits` |
    /// | `permits` is recorded | uses it | uses it |
    /// | another number is recorded | [`Error::InvalidInput`], which names both | uses the recorded one |
    /// | requests | none more | none more |
    ///
    /// If the server deletes the empty directory, the next acquisition records the last number that
    /// its value knows. [`Directories::Persistent`](crate::Directories::Persistent) keeps the
    /// recorded number.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or `permits` is zero.
    pub fn open(
        session: &Session,
        path: impl AsRef<str>,
        permits: u32,
    ) -> Result<Semaphore, InvalidInput> {
        Semaphore::open_with_options(session, path, permits, SemaphoreOptions::new())
    }

    /// A semaphore at `path` with the number of permits that is recorded there, as
    /// [`open`](Self::open). The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], `permits` is zero, or an option has
    /// a value that cannot work.
    pub fn open_with_options(
        session: &Session,
        path: impl AsRef<str>,
        permits: u32,
        options: SemaphoreOptions,
    ) -> Result<Semaphore, InvalidInput> {
        let path = NodePath::new(path.as_ref())?;
        Semaphore::of(session, Agreement::open(path, permits)?, options)
    }

    fn of(
        session: &Session,
        agreement: Agreement,
        options: SemaphoreOptions,
    ) -> Result<Semaphore, InvalidInput> {
        let path = agreement.path().clone();
        let agreement = Arc::new(agreement);
        let rule = WithinPermits::by(&agreement, 1)?;
        options.refuse(
            &["strategy", "mark_release", "one_contender"],
            "a semaphore",
        )?;
        Ok(Semaphore {
            queue: Queue::with_options(session, path, rule, options)?,
            agreement,
            weight: 1,
        })
    }

    /// Waits until the permits are held.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | enough permits are free: a create, a list and a read of the number of permits | 3 | 1 | 0 |
    /// | alone in the queue from the third time on, and no other contender came in between: a create and the read | 2 | 1 | 0 |
    /// | the same, but one came in between: a create and the read, then a list and the read | 4 | 2 | 0 |
    /// | first use of the path | see [there](crate::Recipe#first-use-of-a-path) | | |
    /// | to wait: a read of the own znode, of the number, and of each contender that it waits on | 2 more, and 1 for each | 1 more | 2, and 1 for each |
    /// | to look again, after one of these contenders has gone or the number has changed: a list and the read | 2 more | 1 more | |
    ///
    /// The number of the new znode shows if another contender came in between: see
    /// [the proof](crate::common::docs::handoff#coming-back-to-where-one-was-alone).
    ///
    /// A waiter that wants `w` of `n` permits waits on at most `n - w + 1` contenders. A release
    /// costs one request.
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// [`Error::InvalidInput`] if the semaphore was made with another number of permits than is
    /// recorded (not after [`open`](Self::open)), or if it has fewer permits than are wanted. The
    /// number may be lowered during the wait. The rest is that of
    /// [`Recipe::acquire`](crate::Recipe::acquire).
    pub async fn acquire(&self) -> Result<Hold, Error> {
        self.queue.acquire().await
    }

    /// Waits until the permits are held, for at most `timeout`.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`acquire`](Self::acquire) | 2 to 4, and more to wait | 1 or 2, and more to wait | 0, or 3 and more |
    /// | the timeout elapses: a delete in the background | 1 more | 0 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// [`Error::DeadlineElapsed`] after `timeout`. The rest is that of [`acquire`](Self::acquire).
    pub async fn acquire_timeout(&self, timeout: Duration) -> Result<Hold, Error> {
        self.queue.acquire_timeout(timeout).await
    }

    /// Acquires the permits if enough permits are free; otherwise `None`, with nothing written.
    ///
    /// Permits that waiters want are not free. [`Error::Disconnected`] if no server answers.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | too few are free: a list and a read of the number of permits | 2 | 1 | 0 |
    /// | enough are free: the same, and the rows of [`acquire`](Self::acquire) | 4 to 6 | 2 or 3 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Hold>, Error> {
        self.queue.try_acquire().await
    }

    /// The same semaphore, of which each acquisition takes `weight` permits together. Sends nothing.
    ///
    /// ```
    /// # use zookeeper_recipes_semaphore::{Error, Semaphore};
    /// # async fn example(semaphore: Semaphore) -> Result<(), Error> {
    /// let large = semaphore.permits(3)?;
    /// large.acquire().await?.release().await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `weight` is zero. Also if `weight` is above the number of permits that
    /// [`new`](Self::new) was given, and this semaphore has acquired nothing yet. Otherwise another
    /// process may have raised the number, so the acquisition checks the weight.
    pub fn permits(&self, weight: u32) -> Result<Semaphore, InvalidInput> {
        let rule = WithinPermits::by(&self.agreement, weight)?;
        Ok(Semaphore {
            queue: self.queue.by(rule)?,
            agreement: self.agreement.clone(),
            weight,
        })
    }

    /// The number of permits that are acquired together.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// Waits until `weight` permits are held together: [`permits`](Self::permits), and
    /// [`acquire`](Self::acquire) of that.
    ///
    /// # Costs, errors, cancel safety, session loss
    ///
    /// Those of the two.
    pub async fn acquire_many(&self, weight: u32) -> Result<Hold, Error> {
        self.permits(weight)?.acquire().await
    }

    /// Acquires `weight` permits if so many are [available](Self::available_permits):
    /// [`permits`](Self::permits), and [`try_acquire`](Self::try_acquire) of that.
    ///
    /// # Costs, errors, cancel safety, session loss
    ///
    /// Those of the two.
    pub async fn try_acquire_many(&self, weight: u32) -> Result<Option<Hold>, Error> {
        self.permits(weight)?.try_acquire().await
    }

    /// Lists the contenders, holders included, in the order of the queue.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names and the number of permits, then all the data in one read | 3 | 2 | 0 |
    /// | the queue is empty: the names and the number | 2 | 1 | 0 |
    ///
    /// # Errors, cancel safety, session loss
    ///
    /// Those of [`Recipe::contenders`](crate::Recipe::contenders).
    pub async fn contenders(&self) -> Result<Vec<QueueEntry>, Error> {
        self.queue.contenders().await
    }

    /// The directory of the contenders' znodes. A holder's is [`HoldView::node_path`](crate::HoldView::node_path).
    pub fn path(&self) -> &NodePath {
        self.queue.path()
    }

    /// The number of permits that no contender holds or waits for.
    ///
    /// A newcomer could acquire this many at once. A free permit that a waiter wants does not
    /// count. The number is what the server knew at one moment.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a list and a read of the number of permits | 2 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if the semaphore was made with another number of permits than is
    /// recorded; [`Error::OutcomeUnknown`] if the connection breaks before the server answers;
    /// [`Error::Refused`], [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::SessionOver`] if the session expires before the server answers.
    pub async fn available_permits(&self) -> Result<u32, Error> {
        let agreement = &self.agreement;
        let path = agreement.path();
        let server = self.queue.session().server(path).await?;
        let names = server.list(path.as_str());
        let data = server.get(path.as_str());
        let answers = async { Ok((names.await?, data.await?.0)) };
        let (names, data) = match answers.await {
            Ok(answers) => answers,
            Err(error) if ServerError::is(&error, Refusal::NoNode) => {
                return Ok(agreement.permits());
            }
            Err(error) => return Err(Error::at(path.as_str(), server.id, error)),
        };
        let permits = u64::from(agreement.learn(&data)?);
        let claimed: u64 = names
            .iter()
            .filter_map(|name| Contender::parse(name, |label| weight(label).is_some()))
            .map(|contender| u64::from(weight_of(&contender)))
            .sum();
        // At most the number of permits, which is a u32.
        Ok(u32::try_from(permits.saturating_sub(claimed)).unwrap_or(u32::MAX))
    }

    /// The number of permits that the directory records. `None` if there is no directory, or if it
    /// is empty.
    ///
    /// The number that this semaphore was made with does not matter. The answer is what the server
    /// knew at one moment.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a read of the number of permits | 1 | 1 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] if what is recorded is not a number; [`Error::OutcomeUnknown`] if
    /// the connection breaks before the server answers; [`Error::Refused`],
    /// [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::SessionOver`] if the session expires before the server answers.
    pub async fn recorded(&self) -> Result<Option<u32>, Error> {
        let agreement = &self.agreement;
        let path = agreement.path();
        let server = self.queue.session().server(path).await?;
        match server.get(path.as_str()).await {
            Ok((data, _)) if data.is_empty() => Ok(None),
            Ok((data, _)) => Ok(Some(agreement.read(&data)?)),
            Err(error) if error.is(Refusal::NoNode) => Ok(None),
            Err(error) => Err(Error::at(path.as_str(), server.id, error)),
        }
    }

    /// Changes the number of permits, for all processes that use the semaphore.
    ///
    /// The number that this semaphore was made with does not matter. It need not be the recorded
    /// one.
    ///
    /// The call wakes the waiters that may now hold. No holder loses its permits: if more permits
    /// are held than the new number, no waiter holds until enough are released. A waiter that wants
    /// more permits than the new number fails with [`Error::InvalidInput`].
    ///
    /// Does not stop a grant that is under way: a waiter that has read the old number before may
    /// hold by it soon after this call returns. More permits than the new number are then held until
    /// enough are released.
    ///
    /// The number lasts as long as the directory. If the servers delete the empty directory, the
    /// next acquisition records the number of its own value.
    /// [`Directories::Persistent`](crate::Directories::Persistent) keeps the directory.
    ///
    /// All values follow, in all processes, but one kind: a value of [`new`](Self::new) that was
    /// made with another number and has not acquired yet fails.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a `sync` and a read, then a write on condition that the number is unchanged | 3 | 2 | 0 |
    /// | the number was changed meanwhile: all again | 3 more | 2 more | 0 |
    /// | the path does not exist: a permit is acquired and released first | 5 or more | 4 or more | 0 |
    ///
    /// If the directory was created by hand and is empty, the number is recorded.
    ///
    /// # Errors
    ///
    /// * Nothing was changed: [`Error::InvalidInput`] if `permits` is zero, or if what is recorded
    ///   is not a number; [`Error::Refused`] if the server does not let the data be read or written;
    ///   [`Error::SessionOver`], [`Error::NoSession`], [`Error::Disconnected`].
    /// * The number may have been changed: [`Error::OutcomeUnknown`]. Call again: that does no
    ///   harm.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the number may have been changed or not.
    ///
    /// # Session loss
    ///
    /// The call fails with [`Error::SessionOver`].
    pub async fn resize(&self, permits: u32) -> Result<(), Error> {
        refuse_zero("number of permits", permits)?;
        let agreement = &self.agreement;
        let path = agreement.path();
        loop {
            let server = self.queue.session().server(path).await?;
            let at = |error| Error::at(path.as_str(), server.id, error);
            // A server that lags behind would let nobody write what it has not yet seen.
            let synced = server.sync(path.as_str());
            let read = server.get(path.as_str());
            synced.await.map_err(at)?;
            let (data, stat) = match read.await {
                Ok(read) => read,
                Err(error) if error.is(Refusal::NoNode) => {
                    self.record_first(permits).await?;
                    continue;
                }
                Err(error) => return Err(at(error)),
            };
            if !data.is_empty() && agreement.read(&data)? == permits {
                agreement.note(permits);
                return Ok(());
            }
            let write = Operation::set_data(path.as_str(), permits.to_string());
            let write = [write.at_version(stat.version)];
            match server.transact(&write).await {
                Ok(_) => {
                    agreement.note(permits);
                    return Ok(());
                }
                Err(TransactionError {
                    error: ServerError::Refused(Refusal::BadVersion | Refusal::NoNode),
                    ..
                }) => {}
                Err(failure) => {
                    let (path, session) = (path.as_str(), server.id);
                    return Err(Error::at_transaction(path, session, failure, &write));
                }
            }
        }
    }

    /// Creates the missing directory with this number, by an acquisition.
    ///
    /// If another process has recorded a number meanwhile, the acquisition is by that number.
    async fn record_first(&self, permits: u32) -> Result<(), Error> {
        let path = self.agreement.path().clone();
        let agreement = Arc::new(Agreement::open(path, permits)?);
        let queue = self.queue.by(WithinPermits::by(&agreement, 1)?)?;
        if let Some(hold) = queue.try_acquire().await? {
            hold.release().await?;
        }
        Ok(())
    }
}

delegate_recipe!(Semaphore, queue);
