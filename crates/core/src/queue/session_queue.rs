//! A queue: what it is made of, and the directory as one ZooKeeper session reads it.

use std::iter::zip;
use std::sync::Arc;

use crate::contender::{Contender, order, ordered_by_czxid, recipe_of};
use crate::error::Error;
use crate::events::RecipeInfo;
use crate::hold::open_session::OpenSession;
use crate::invalid_input::InvalidInput;
use crate::live::live_session::LiveSession;
use crate::path::NodePath;
use crate::queue::options::QueueOptions;
use crate::retry::retry;
use crate::rule::Rule;
use crate::server::ensemble::{Node, Pending, ServerSession};
use crate::server::error::{ServerError, if_there};
use crate::session::handle::Session;

/// What a queue is made of.
pub(crate) struct QueueSetup {
    pub(crate) session: Session,
    pub(crate) directory: NodePath,
    pub(crate) rule: Arc<dyn Rule>,
    /// The label of the contenders that the queue creates.
    pub(crate) label: String,
    pub(crate) options: QueueOptions,
    pub(crate) info: Arc<RecipeInfo>,
}

/// A queue as one attempt reads it, in one ZooKeeper session.
pub(crate) struct SessionQueue<'a> {
    pub(crate) setup: &'a QueueSetup,
    pub(crate) open: &'a Arc<OpenSession>,
    pub(crate) live: &'a Arc<LiveSession>,
    pub(crate) server: Arc<ServerSession>,
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
        setup: &'a QueueSetup,
        open: &'a Arc<OpenSession>,
    ) -> Result<SessionQueue<'a>, Error> {
        let live = &open.live;
        let server = live
            .server()
            .map_err(|error| Error::at(setup.directory.as_str(), live.id, error))?;
        Ok(SessionQueue {
            setup,
            open,
            live,
            server,
        })
    }

    pub(crate) fn failed(&self, error: ServerError) -> Error {
        Error::at(self.directory(), self.live.id, error)
    }

    pub(crate) fn directory(&self) -> &str {
        self.setup.directory.as_str()
    }

    pub(crate) fn name<'p>(&self, path: &'p str) -> &'p str {
        self.setup.directory.child_name(path).unwrap_or_default()
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
            match Contender::read(name, |label| self.setup.rule.counts(label)) {
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
        Contender::parse(name, |label| self.setup.rule.counts(label))
    }

    /// Asks for the directory's names.
    pub(crate) fn send_list(&self) -> Pending<Vec<String>> {
        self.server.list(self.directory())
    }

    /// Asks for the directory's data if the rule reads it.
    ///
    /// The caller sends a list before this, because the data must not be older than the names.
    pub(crate) fn send_read(&self) -> Option<Pending<Node>> {
        let reads = self.setup.rule.reads_directory();
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
        only: Contender,
        data: Option<Pending<Node>>,
    ) -> Result<Listing, Error> {
        match data_of(data).await {
            Ok(data) => Ok(Listing {
                contenders: vec![only],
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
        if self.setup.rule.looks_behind() && data.is_none() {
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
        if some_left && self.setup.rule.reads_directory() {
            // The data was read before these contenders left.
            listing.data = self.read_directory().await?;
        }
        Ok(some_left)
    }

    /// Reads the znodes of these contenders. `None` is a missing znode.
    pub(crate) async fn read_each(
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

pub(crate) const UNCOUNTED: &str = "does not count the contenders that it creates";

pub(crate) fn rule_is_broken(label: &str, problem: &str) -> InvalidInput {
    InvalidInput::new("rule with the label", label, problem)
}
