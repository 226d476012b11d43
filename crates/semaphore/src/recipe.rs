//! The semaphore.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{Operation, TransactionError};
use zookeeper_recipes_core::{
    Contender, Error, Hold, InvalidInput, NodePath, Queue, QueueOptions, Recipe, Refusal,
    ServerError, Session, delegate_recipe,
};

use crate::agreement::{Agreement, refuse_zero};
use crate::rule::{WithinPermits, weight, weight_of};

/// A number of permits, which are acquired one or several at a time, first come, first served.
///
/// Made from a [`Session`], a path and the number of permits; cheap to clone. Used through
/// [`Recipe`], where acquiring means one permit, and through [`acquire_many`](Self::acquire_many)
/// and its like; [`permits`](Self::permits) makes a [`Recipe`] of several permits.
///
/// # Fair
///
/// Permits are granted in the order of arrival. Whoever wants more than are free waits, and all
/// who come later wait behind, also those for whom there would be enough.
///
/// # Requests
///
/// Acquire, uncontended: a create, a list and a read of the number of permits, sent together; soon
/// without the list, where nobody else comes in between ([why that is
/// enough](crate::common::docs::handoff)). Release: a delete. A waiter sends a read each for its own znode, the directory and those it
/// waits on when it begins to wait, and a list and a read of the number when one of those it waits
/// on has gone or the number has changed. A failed [`try_acquire`](Recipe::try_acquire): a list
/// and a read of the number.
///
/// # Who is woken
///
/// A release wakes at most as many waiters as there are permits, however many wait. If each wants
/// one permit, the release of the holder that came first wakes one waiter, and the release of the
/// holder that came last wakes as many as there are permits. A waiter that is woken lists the
/// contenders, also if it is not its turn yet.
///
/// # Znodes
///
/// Under the path, which is created as a container znode with the number as its data unless it is
/// there: one ephemeral sequential znode per contender, `_c_<uuid>-permit-<weight>-<number>`.
///
/// # Session loss
///
/// The holder's hold is [`Lost`](crate::HoldState::Lost), and then its permits are free again; a
/// waiter fails with [`Error::SessionOver`], or queues anew where it was told to
/// ([`QueueOptions::after_session_loss`]).
///
/// # Cancel safety
///
/// Dropped at any moment, an attempt leaves no znode and no watch behind, and its place in the
/// queue is lost. A [`Hold`] that is dropped is released in the background.
///
/// # Example
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_semaphore::{Recipe, Semaphore, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let semaphore = Semaphore::new(&session, "/limits/exports", 5)?;
/// let hold = semaphore.acquire().await?;
/// hold.release().await?;
///
/// let mistaken = Semaphore::new(&session, "/limits/exports", 8)?;
/// let error = mistaken.acquire().await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"number of permits "8" is not the 5 that /limits/exports is recorded with"#,
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    one: Permits,
}

delegate_recipe!(Semaphore, one);

impl Semaphore {
    /// A semaphore of this many permits at `path`, with the default options. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's, or there are no permits.
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        permits: u32,
    ) -> Result<Semaphore, InvalidInput> {
        Semaphore::with_options(session, path, permits, QueueOptions::new())
    }

    /// A semaphore of this many permits at `path`. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's, there are no permits, or an option
    /// makes no sense: [`QueueOptions::local`] does not, since it would let a process hold one
    /// permit at a time.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        permits: u32,
        options: QueueOptions,
    ) -> Result<Semaphore, InvalidInput> {
        if let Some(handovers_in_a_row) = options.get_local() {
            let problem = "is for exclusive locks: a process may hold several permits";
            let value = handovers_in_a_row.to_string();
            return Err(InvalidInput::new(
                "queue within the process",
                value,
                problem,
            ));
        }
        let path = NodePath::new(path.as_ref())?;
        let agreement = Arc::new(Agreement::new(path.clone(), permits)?);
        let rule = WithinPermits::by(&agreement, 1)?;
        let one = Permits {
            queue: Queue::with_options(session, path, rule, options)?,
            agreement,
            weight: 1,
        };
        Ok(Semaphore { one })
    }

    /// The recipe of acquiring `weight` permits together.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the weight is zero, or above the number of permits that was given and
    /// nothing has been acquired yet. Later on, the number may have been raised, and whether the
    /// weight is above it shows when it is acquired.
    pub fn permits(&self, weight: u32) -> Result<Permits, InvalidInput> {
        let agreement = self.one.agreement.clone();
        let rule = WithinPermits::by(&agreement, weight)?;
        Ok(Permits {
            queue: self.one.queue.by(rule),
            agreement,
            weight,
        })
    }

    /// Waits until `weight` permits are held, all in one [`Hold`].
    ///
    /// Otherwise as [`Recipe::acquire`].
    ///
    /// # Errors
    ///
    /// Those of [`Recipe::acquire`], and [`Error::InvalidInput`], with nothing left behind: when
    /// the weight is zero or above the number of permits, also when that falls below the weight
    /// while one waits; and when the number this semaphore was made with is not the recorded one.
    pub async fn acquire_many(&self, weight: u32) -> Result<Hold, Error> {
        self.permits(weight)?.acquire().await
    }

    /// Waits until `weight` permits are held, for at most `timeout`.
    ///
    /// Otherwise as [`Recipe::acquire_timeout`].
    ///
    /// # Errors
    ///
    /// [`Error::DeadlineElapsed`], and those of [`acquire_many`](Self::acquire_many).
    pub async fn acquire_many_timeout(
        &self,
        weight: u32,
        timeout: Duration,
    ) -> Result<Hold, Error> {
        self.permits(weight)?.acquire_timeout(timeout).await
    }

    /// Holds `weight` permits if that is possible at once; `None` where fewer are
    /// [available](Self::available).
    ///
    /// Otherwise as [`Recipe::try_acquire`].
    ///
    /// # Errors
    ///
    /// Those of [`acquire_many`](Self::acquire_many).
    pub async fn try_acquire_many(&self, weight: u32) -> Result<Option<Hold>, Error> {
        self.permits(weight)?.try_acquire().await
    }

    /// How many permits could be acquired at once by somebody who came now: the number of permits
    /// less those that are held and those that are waited for.
    ///
    /// Costs what [`Recipe::contenders`] does, and a read of the number of permits. It is a look at
    /// one moment.
    ///
    /// # Errors
    ///
    /// Those of [`Recipe::contenders`], and [`Error::InvalidInput`] when the number that this
    /// semaphore was made with is not the recorded one.
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    pub async fn available(&self) -> Result<u32, Error> {
        let contenders = self.contenders().await?;
        let permits = u64::from(self.recorded().await?);
        let taken: u64 = contenders
            .iter()
            .filter_map(|entry| Contender::parse(&entry.name, |label| weight(label).is_some()))
            .map(|contender| u64::from(weight_of(&contender)))
            .sum();
        // It is at most the number of permits.
        Ok(u32::try_from(permits.saturating_sub(taken)).unwrap_or(u32::MAX))
    }

    /// The number of permits that the directory records; that of this value if there is none.
    async fn recorded(&self) -> Result<u32, Error> {
        let agreement = &self.one.agreement;
        let path = agreement.path();
        let server = self.one.queue.session().server(path).await?;
        match server.get(path.as_str()).await {
            Ok((data, _)) => Ok(agreement.learn(&data)?),
            Err(error) if error.is(Refusal::NoNode) => Ok(agreement.permits()),
            Err(error) => Err(Error::at(path.as_str(), server.id(), error)),
        }
    }

    /// Changes the number of permits, for all who use the semaphore.
    ///
    /// Whoever waits and may now hold is woken. Nobody who holds loses anything: when the number is
    /// lowered below what is held, nobody new gets in until enough of it has been released. Whoever
    /// waits for more permits than there are now can never hold, and fails with
    /// [`Error::InvalidInput`].
    ///
    /// Semaphores that have been used go on with the new number. One that is made from now on, or
    /// that was made but not used before, must have been given the new number.
    ///
    /// Three requests: a `sync` and a read of the number, sent together, and a write on condition
    /// that it has not changed meanwhile, else all of it again. Where there is no directory yet, it
    /// is created first, by acquiring a permit and releasing it. Where the directory's data is
    /// empty, since it was created by hand, the number is recorded.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] when there would be no permits, when the number that this semaphore
    /// was made with is not the recorded one, or when what is recorded is no number.
    /// [`Error::Refused`] when the server would not let the data be read or written;
    /// [`Error::SessionOver`] when the session ended: nothing was changed in these cases.
    /// [`Error::OutcomeUnknown`] when no answer came: it may have been changed or not, and it does
    /// no harm to call this again.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, the number may have been changed or not.
    pub async fn resize(&self, permits: u32) -> Result<(), Error> {
        refuse_zero("number of permits", permits)?;
        let agreement = &self.one.agreement;
        let path = agreement.path();
        loop {
            let server = self.one.queue.session().server(path).await?;
            let at = |error| Error::at(path.as_str(), server.id(), error);
            // A server that lags behind would let nobody write what it has not yet seen.
            let synced = server.sync(path.as_str());
            let read = server.get(path.as_str());
            synced.await.map_err(at)?;
            let (data, stat) = match read.await {
                Ok(read) => read,
                Err(error) if error.is(Refusal::NoNode) => {
                    if let Some(hold) = self.try_acquire().await? {
                        hold.release().await?;
                    }
                    continue;
                }
                Err(error) => return Err(at(error)),
            };
            if !data.is_empty() && agreement.learn(&data)? == permits {
                return Ok(());
            }
            let write = Operation::SetData {
                path: path.to_string(),
                data: permits.to_string().into_bytes(),
                version: Some(stat.version),
            };
            match server.transact(&[write]).await {
                Ok(_) => {
                    agreement.recorded(permits);
                    return Ok(());
                }
                Err(TransactionError {
                    error: ServerError::Refused(Refusal::BadVersion | Refusal::NoNode),
                    ..
                }) => {}
                Err(failure) => return Err(at(failure.error)),
            }
        }
    }
}

/// Several permits of a [`Semaphore`], acquired together: a [`Recipe`].
///
/// Made by [`Semaphore::permits`]; what it costs and leaves, see [`Semaphore`].
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_semaphore::{Recipe, Semaphore, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let semaphore = Semaphore::new(&session, "/limits/exports", 5)?;
/// let large: Box<dyn Recipe> = Box::new(semaphore.permits(3)?);
/// let hold = large.acquire().await?;
/// assert_eq!(semaphore.available().await?, 2);
/// # hold.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Permits {
    queue: Queue,
    agreement: Arc<Agreement>,
    weight: u32,
}

impl Permits {
    /// How many permits are acquired.
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

delegate_recipe!(Permits, queue);
