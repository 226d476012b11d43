//! A queue: what its clones share, and the directory as one ZooKeeper session reads it.

use std::iter::zip;
use std::sync::{Arc, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::contender::{Contender, Identity, Sequence, order, ordered_by_czxid, recipe_of};
use crate::error::Error;
use crate::events::RecipeInfo;
use crate::hold::Hold;
use crate::hold::grant::Grant;
use crate::hold::open_session::OpenSession;
use crate::invalid_input::InvalidInput;
use crate::live::last_connection::LastConnection;
use crate::live::lease::LeaseEpoch;
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::queue::options::QueueOptions;
use crate::recipe::QueueEntry;
use crate::retry::retry;
use crate::rule::{QueueView, Rule};
use crate::server::ensemble::{Node, Pending, ServerSession};
use crate::server::error::{ServerError, if_there};
use crate::session::handle::Session;
use crate::sync::{Mutex, lock};

/// What the clones of a queue share.
pub(crate) struct SharedQueue {
    pub(crate) session: Session,
    pub(crate) directory: NodePath,
    pub(crate) rule: Arc<dyn Rule>,
    /// The label of the contenders that the queue creates.
    pub(crate) label: String,
    pub(crate) options: QueueOptions,
    /// `None` if each attempt is a contender.
    pub(crate) turns: Option<Turns>,
    pub(crate) info: Arc<RecipeInfo>,
}

impl SharedQueue {
    /// Notes that the hold has the turn, if there are turns.
    pub(crate) fn note_turn(&self, hold: &Hold) {
        if let Some(turns) = &self.turns {
            *lock(&turns.last) = Arc::downgrade(&hold.view.grant);
        }
    }
}

/// The turns of the tasks that share one contender of the process.
pub(crate) struct Turns {
    /// One permit, which the tasks take first in, first out.
    permit: Arc<Semaphore>,
    /// The grant whose hold had the last turn.
    last: Mutex<Weak<Grant>>,
}

/// The turn of an attempt, until the znode of its hold takes it. `None` if the queue has no turns.
pub(crate) type Turn = Option<OwnedSemaphorePermit>;

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            permit: Arc::new(Semaphore::new(1)),
            last: Mutex::default(),
        }
    }
}

impl Turns {
    /// The turn, if no other task has it or waits for it.
    pub(crate) fn take_now(&self) -> Turn {
        self.permit.clone().try_acquire_owned().ok()
    }

    pub(crate) async fn wait(&self) -> Turn {
        let turn = self.take_now();
        if turn.is_some() {
            return turn;
        }
        let last = lock(&self.last).upgrade();
        if let Some(grant) = last {
            grant.warn_of_own_wait("a task without a znode");
        }
        let turn = self.permit.clone().acquire_owned().await;
        Some(turn.expect("nobody closes the semaphore"))
    }

    /// True if no task waits or has the turn.
    pub(crate) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.permit) == 1
    }
}

/// A queue as one attempt reads it, in one ZooKeeper session.
pub(crate) struct SessionQueue<'a> {
    pub(crate) shared: &'a SharedQueue,
    pub(crate) open: &'a Arc<OpenSession>,
    pub(crate) live: &'a Arc<LiveSession>,
    pub(crate) server: Arc<ServerSession>,
    /// The connection over which the queue was last read.
    read_over: LastConnection,
}

/// The children of the directory, and its data.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The children that the rule counts, in any order.
    pub(crate) contenders: Vec<Contender>,
    /// The number of all children.
    pub(crate) children: usize,
    /// A child that is another recipe's contender, and that recipe's name.
    pub(crate) other_recipe: Option<(String, &'static str)>,
    /// The directory's data, if it was asked for and there is a directory.
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) is_missing: bool,
}

impl Listing {
    pub(crate) fn missing() -> Listing {
        Listing {
            is_missing: true,
            ..Listing::default()
        }
    }
}

impl<'a> SessionQueue<'a> {
    pub(crate) fn new(
        shared: &'a SharedQueue,
        open: &'a Arc<OpenSession>,
    ) -> Result<SessionQueue<'a>, Error> {
        let live = &open.live;
        let server = live
            .server()
            .map_err(|error| Error::at(shared.directory.as_str(), live.id, error))?;
        Ok(SessionQueue {
            shared,
            open,
            live,
            server,
            read_over: LastConnection::default(),
        })
    }

    /// The epoch of a grant by what was read of the queue. `None` if the lease does not allow it, or if
    /// the session has reconnected since the read: the queue is listed again.
    ///
    /// Servers that have lost their data may have lost the contender, too.
    pub(crate) fn grant_epoch(&self) -> Option<LeaseEpoch> {
        let is_last = self.read_over.is_last(&self.server);
        is_last.then(|| self.live.grant_epoch()).flatten()
    }

    pub(crate) fn failed(&self, error: ServerError) -> Error {
        Error::at(self.directory(), self.live.id, error)
    }

    pub(crate) fn directory(&self) -> &str {
        self.shared.directory.as_str()
    }

    pub(crate) fn name<'p>(&self, path: &'p str) -> &'p str {
        self.shared.directory.child_name(path).unwrap_or_default()
    }

    pub(crate) fn child(&self, name: &str) -> String {
        [self.directory(), "/", name].concat()
    }

    /// The listing of a directory with these children and this data.
    ///
    /// Each name is read once: by the rule, and only if the rule does not count it, by the labels
    /// of other recipes.
    pub(crate) fn listing(&self, names: Vec<String>, data: Option<Vec<u8>>) -> Listing {
        let mut listing = Listing {
            contenders: Vec::with_capacity(names.len()),
            children: names.len(),
            data,
            ..Listing::default()
        };
        for name in names {
            match Contender::read(name, |label| self.shared.rule.counts(label)) {
                Ok(contender) => listing.contenders.push(contender),
                Err(name) if listing.other_recipe.is_none() => {
                    listing.other_recipe = recipe_of(&name).map(|recipe| (name, recipe));
                }
                Err(_) => {}
            }
        }
        listing
    }

    /// The contender of this name, if the rule counts it.
    pub(crate) fn parse(&self, name: &str) -> Option<Contender> {
        Contender::parse(name, |label| self.shared.rule.counts(label))
    }

    /// Notes the connection, before a request whose answer says who is in the queue.
    pub(crate) fn note_connection(&self) {
        self.read_over.note(&self.server);
    }

    /// The connection over which the queue was last read, or an earlier one.
    pub(crate) fn read_over(&self) -> Option<u64> {
        self.read_over.number()
    }

    /// Asks for the directory's names.
    pub(crate) fn send_list(&self) -> Pending<Vec<String>> {
        self.note_connection();
        self.server.list(self.directory())
    }

    /// Asks for the directory's data if the rule reads it.
    ///
    /// The caller sends a list before this, because the data must not be older than the names.
    pub(crate) fn send_read(&self) -> Option<Pending<Node>> {
        let reads = self.shared.rule.reads_directory();
        reads.then(|| self.server.get(self.directory()))
    }

    /// Waits for the names and the data. If no answer comes, both are read again.
    pub(crate) async fn listing_of(
        &self,
        names: Pending<Vec<String>>,
        data: Option<Pending<Node>>,
    ) -> Result<Listing, Error> {
        let listing = match if_there(self.listed(names, data).await) {
            Err(error) if error.is_unknown() => {
                let again = || self.listed(self.send_list(), self.send_read());
                self.answer_to(again).await?
            }
            listing => listing.map_err(|error| self.failed(error))?,
        };
        Ok(listing.unwrap_or_else(Listing::missing))
    }

    async fn listed(
        &self,
        names: Pending<Vec<String>>,
        data: Option<Pending<Node>>,
    ) -> Result<Listing, ServerError> {
        let names = names.await?;
        Ok(self.listing(names, data_of(data).await?))
    }

    /// The listing of a directory whose only child is this contender, once its data is read.
    pub(crate) async fn listing_of_one(
        &self,
        only: Option<Contender>,
        data: Option<Pending<Node>>,
    ) -> Result<Listing, Error> {
        match data_of(data).await {
            Ok(data) => Ok(Listing {
                contenders: only.into_iter().collect(),
                children: 1,
                data,
                ..Listing::default()
            }),
            // Boxed: an attempt would keep room for it while it waits.
            Err(_) => Box::pin(self.list()).await,
        }
    }

    pub(crate) async fn list(&self) -> Result<Listing, Error> {
        self.listing_of(self.send_list(), self.send_read()).await
    }

    /// Lists the queue for a contender that may hold. If the rule looks behind, the data is read,
    /// too.
    pub(crate) async fn list_again(&self) -> Result<Listing, Error> {
        let (names, mut data) = (self.send_list(), self.send_read());
        if self.shared.rule.looks_behind() && data.is_none() {
            data = Some(self.server.get(self.directory()));
        }
        self.listing_of(names, data).await
    }

    /// Reads the directory's data. `None` if there is no directory.
    pub(crate) async fn read_directory(&self) -> Result<Option<Vec<u8>>, Error> {
        let read = self.answer_to(|| self.server.get(self.directory())).await?;
        Ok(read.map(|(data, _)| data))
    }

    /// Sends a request until an answer comes. `None` if the znode is missing.
    async fn answer_to<T, F>(&self, request: impl FnMut() -> F) -> Result<Option<T>, Error>
    where
        F: Future<Output = Result<T, ServerError>>,
    {
        // Boxed: an attempt would keep room for it while it waits.
        let answer = Box::pin(retry(ServerError::is_unknown, request)).await;
        if_there(answer).map_err(|error| self.failed(error))
    }

    /// Puts the contenders of the listing into the order of the queue.
    ///
    /// True if some have left since the list, and are taken out. Others may have come since.
    pub(crate) async fn put_in_order(&self, listing: &mut Listing) -> Result<bool, Error> {
        let contenders = &mut listing.contenders;
        order(contenders);
        let tied = ordered_by_czxid(contenders);
        let nodes = self
            .read_each(tied.iter().map(|&index| &contenders[index]))
            .await?;
        let mut gone = Vec::new();
        for (&index, node) in zip(&tied, nodes) {
            match node {
                Some((_, stat)) => contenders[index].set_czxid(stat.czxid),
                None => gone.push(index),
            }
        }
        for index in gone.iter().rev() {
            contenders.remove(*index);
        }
        if !tied.is_empty() {
            order(contenders);
        }
        let some_left = !gone.is_empty();
        if some_left && self.shared.rule.reads_directory() {
            // The data was read before these contenders left.
            listing.data = self.read_directory().await?;
        }
        Ok(some_left)
    }

    /// Reads the znodes of these contenders. `None` is a missing znode.
    async fn read_each(
        &self,
        contenders: impl Iterator<Item = &Contender>,
    ) -> Result<Vec<Option<Node>>, Error> {
        let paths: Vec<String> = contenders.map(|it| self.child(it.name())).collect();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let read = retry(ServerError::is_unknown, || self.server.get_each(&paths));
        Box::pin(read).await.map_err(|error| self.failed(error))
    }
}

/// The answer to a read of the directory, if one was sent.
async fn data_of(sent: Option<Pending<Node>>) -> Result<Option<Vec<u8>>, ServerError> {
    match sent {
        Some(read) => read.await.map(|(data, _)| Some(data)),
        None => Ok(None),
    }
}

/// Lists the contenders that the rule counts, in the order of the queue.
pub(crate) async fn entries(queue: &SessionQueue<'_>) -> Result<Vec<QueueEntry>, Error> {
    let mut listing = queue.list().await?;
    if listing.is_missing {
        let (live, server) = (queue.live, &*queue.server);
        live.refuse_missing_chroot(server, queue.directory())
            .await?;
    }
    queue.put_in_order(&mut listing).await?;
    let read = queue.read_each(listing.contenders.iter()).await?;
    // A contender without a znode has left since the list.
    let read = zip(listing.contenders, read);
    let (contenders, nodes): (Vec<_>, Vec<_>) =
        read.filter_map(|(it, node)| Some((it, node?))).unzip();
    let (rule, data) = (&*queue.shared.rule, listing.data.as_deref());
    let each = nodes.into_iter().enumerate().map(|(position, node)| {
        let me = &contenders[position];
        let holds = rule.holds(&QueueView::new(&contenders[..position], me, data));
        QueueEntry::new(position, me.name(), node, holds)
    });
    Ok(each.collect())
}

pub(crate) const UNCOUNTED: &str = "does not count the contenders that it creates";

pub(crate) fn rule_is_broken(label: &str, problem: &str) -> InvalidInput {
    InvalidInput::new("rule with the label", label, problem)
}

/// Refuses a label that cannot name a znode, or that the rule does not count.
///
/// The result is a name with this label. The name of each contender is as long.
pub(crate) fn check_label(rule: &dyn Rule, label: &str) -> Result<String, InvalidInput> {
    let identity = Identity::from_random_bits(0);
    let name = format!("{}{}", identity.name(label), Sequence::from(0));
    if let Err(error) = NodePath::new(&format!("/{name}")) {
        let problem = format!("cannot name a znode: {error}");
        return Err(rule_is_broken(label, &problem));
    }
    if name.contains('/') {
        let problem = "cannot name a znode: the label contains '/'";
        return Err(rule_is_broken(label, problem));
    }
    match Contender::parse(&name, |label| rule.counts(label)) {
        Some(_) => Ok(name),
        None => Err(rule_is_broken(label, UNCOUNTED)),
    }
}
