//! The election.

use std::sync::Arc;

use futures_core::Stream;
use zookeeper_recipes_core::{
    Error, InvalidInput, Queue, QueueOptions, Recipe, ServerError, Session, delegate_recipe,
};

use crate::backoff::Backoff;
use crate::hold::Leadership;
use crate::leader::{Leader, Participant, who_leads};
use crate::observe::observe;
use crate::rule::FirstInQueue;
use crate::run::StopWork;

/// One candidate in the election of one leader, first come, first served.
///
/// Made from a [`Session`], a path and the candidate's id. Used through [`run`](Self::run), which
/// does all that a service needs; or step by step through [`campaign`](Self::campaign); or as any
/// other recipe, through [`Recipe`]: to acquire is to campaign, the hold is the leadership, to
/// release is to resign. Whoever only wants to know who leads makes one too, and does not campaign.
///
/// Each call that campaigns is a candidate of its own, also where clones do it at the same time.
///
/// # Requests
///
/// Campaign, uncontended: a create and a list, sent together; soon a create alone, where nobody else
/// comes in between ([why that is enough](crate::common::docs::handoff)). Resign: a delete. A
/// candidate who waits sends two reads when it begins to wait, and a list when the one before it
/// has gone, unless that was the only one. A failed [`try_acquire`](Recipe::try_acquire): a list. An observer: see
/// [`observe`](Self::observe).
///
/// # Znodes
///
/// Under the path, which is created as a container znode unless it is there: one ephemeral
/// sequential znode per candidate, `_c_<uuid>-latch-<number>`, with the id as its data.
///
/// # Session loss
///
/// The leader's hold is [`Lost`](crate::HoldState::Lost); a candidate fails with
/// [`Error::SessionOver`], or campaigns anew where it was told to
/// ([`QueueOptions::after_session_loss`]). [`run`](Self::run) and [`observe`](Self::observe) go on
/// under a new session by themselves.
///
/// # Cancel safety
///
/// Dropped at any moment, a campaign leaves no znode and no watch behind, and its place in the
/// queue is lost. A [`Leadership`] that is dropped is resigned in the background.
///
/// # Example
///
/// ```
/// # use zookeeper_recipes_core::ConnectOptions;
/// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
/// use zookeeper_recipes_election::{LeaderElection, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let simulation = Simulation::new(SimulationOptions::default());
/// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
/// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
/// assert_eq!(election.leader().await?, None);
///
/// let leadership = election.campaign().await?;
/// let leader = election.leader().await?.expect("somebody leads");
/// assert_eq!(leader.id, "node-7");
/// assert_eq!(leader.fencing_token, leadership.fencing_token());
/// leadership.resign().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderElection {
    pub(crate) queue: Queue,
    pub(crate) id: Arc<str>,
    pub(crate) stop_work: StopWork,
}

impl LeaderElection {
    /// A candidate in the election at `path`, with the default options. Nothing is sent yet.
    ///
    /// The id is what the others see of this candidate. It need not be unique: what tells two
    /// leaders apart is their fencing token.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's.
    pub fn new(
        session: &Session,
        path: impl AsRef<str>,
        id: impl AsRef<str>,
    ) -> Result<LeaderElection, InvalidInput> {
        LeaderElection::with_options(session, path, id, QueueOptions::new())
    }

    /// A candidate in the election at `path`. Nothing is sent yet.
    ///
    /// The data of the candidate's znode is its id, whatever [`QueueOptions::data`] says.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] when the path cannot be a recipe's, or an option makes no sense.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        id: impl AsRef<str>,
        options: QueueOptions,
    ) -> Result<LeaderElection, InvalidInput> {
        let id: Arc<str> = Arc::from(id.as_ref());
        let options = options.data(id.as_bytes());
        let queue = Queue::with_options(session, path, FirstInQueue, options)?;
        Ok(LeaderElection {
            queue,
            id,
            stop_work: StopWork::default(),
        })
    }

    /// When [`run`](Self::run) takes the work away from a leader that may be losing its
    /// leadership: by default, as soon as no answer comes from the server.
    #[must_use]
    pub fn stop_work(mut self, when: StopWork) -> LeaderElection {
        self.stop_work = when;
        self
    }

    /// The id of this candidate.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until this candidate leads.
    ///
    /// It is [`Recipe::acquire`] by the name it has in an election: with its errors, its cost, and
    /// its cancel safety: dropped at any moment, it leaves no candidate behind.
    ///
    /// # Errors
    ///
    /// As for [`Recipe::acquire`].
    pub async fn campaign(&self) -> Result<Leadership, Error> {
        let hold = self.queue.acquire().await?;
        Ok(Leadership::new(hold, self.id.clone()))
    }

    /// Who leads at this moment, or `None` where nobody does.
    ///
    /// The leader is the first candidate. After its connection was broken, or its session opened, up
    /// to a third of the session timeout may pass before it holds, and its work begins.
    ///
    /// A list of the candidates' names and one read, whether or not this candidate campaigns. Where
    /// no server answers, it waits for one. Sets no watch; see [`observe`](Self::observe) for that.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], such as without the permission to read; [`Error::NoSession`] once the
    /// session has been closed. That nothing is there yet is no error.
    ///
    /// # Cancel safety
    ///
    /// Leaves nothing behind.
    ///
    /// # Session loss
    ///
    /// Asks again under the new session.
    pub async fn leader(&self) -> Result<Option<Leader>, Error> {
        let directory = self.path();
        let mut backoff = Backoff::new();
        loop {
            let server = self.queue.session().server(directory).await?;
            match who_leads(&*server, directory).await {
                Ok(leader) => return Ok(leader),
                Err(error @ ServerError::Refused(_)) => {
                    return Err(Error::at(directory.as_str(), server.id(), error));
                }
                Err(ServerError::OutcomeUnknown(_) | ServerError::SessionOver(_)) => {}
            }
            drop(server);
            backoff.wait().await;
        }
    }

    /// All who lead or campaign at this moment, in the order in which they will lead.
    ///
    /// Two requests: the names, then all their data in one read.
    ///
    /// # Errors, cancel safety
    ///
    /// As for [`Recipe::contenders`].
    pub async fn participants(&self) -> Result<Vec<Participant>, Error> {
        let contenders = self.queue.contenders().await?;
        Ok(contenders.into_iter().map(Participant::new).collect())
    }

    /// Who leads: the present state first, then each change, with `None` while nobody does.
    ///
    /// In order: a leader's token is newer than that of every leader told of before. A leadership
    /// that began and ended within the time of a round trip may be skipped, but never the present
    /// one. The path need not exist yet.
    ///
    /// The stream goes on as long as the caller wants: it stays silent while no server answers,
    /// tells then what has changed meanwhile, and goes on under a new session. Its errors are:
    ///
    /// * [`Error::Refused`], such as without the permission to read: told once, and then tried
    ///   again, at least once a second, until it works.
    /// * [`Error::NoSession`] once the session has been closed: the end of the stream.
    ///
    /// The news is as old as the way from the server. It is for finding the leader, and not for
    /// being it: who leads asks its own [`Leadership`].
    ///
    /// # Cost
    ///
    /// One watch: on the leader's znode, or on the directory while nobody leads. A candidate who
    /// comes or goes behind the leader costs an observer nothing. A change costs a list of the
    /// candidates' names and a read; a new session one `sync` more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is missed when the wait for the next item is dropped and begun again. With the
    /// stream, its watch is dropped. It keeps the session open until then.
    ///
    /// ```
    /// # use zookeeper_recipes_core::ConnectOptions;
    /// # use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
    /// use futures_util::StreamExt;
    /// use zookeeper_recipes_election::{LeaderElection, Session};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let simulation = Simulation::new(SimulationOptions::default());
    /// # let session = Session::open(simulation.ensemble("docs"), ConnectOptions::new()).await?;
    /// let election = LeaderElection::new(&session, "/app/leader", "node-7")?;
    /// let mut leaders = election.observe();
    /// assert_eq!(leaders.next().await.transpose()?, Some(None));
    ///
    /// let leadership = election.campaign().await?;
    /// let Some(Some(leader)) = leaders.next().await.transpose()? else {
    ///     panic!("somebody leads");
    /// };
    /// assert_eq!(leader.id, "node-7");
    /// leadership.resign().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(
        &self,
    ) -> impl Stream<Item = Result<Option<Leader>, Error>> + Send + Unpin + 'static + use<> {
        observe(self.queue.session().clone(), self.path().clone())
    }
}

delegate_recipe!(LeaderElection, queue);
