//! One attempt, in one ZooKeeper session: enter, look, wait, and again, or hold.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Shared;
use super::entry::Entry;
use super::wait::{Wait, Waited};
use crate::alone::Alone;
use crate::backoff::Backoff;
use crate::contender::{Contender, Identity, Sequence, order, ordered_by_czxid, recipe_of};
use crate::directory::{MissingDirectory, UnknownCreates};
use crate::ensemble::{AuthId, CreateMode, Created, Node, Reply, ServerSession, SessionEnd};
use crate::error::{Error, InvalidInput, Refusal, ServerError};
use crate::hold::Grant;
use crate::lease::Lease;
use crate::live::LiveSession;
use crate::loss_watch::LossWatch;
use crate::marked_release::written_by_owner_alone;
use crate::node::own_nodes;
use crate::path::NodePath;
use crate::rule::{Rule, Verdict, WaitStrategy};

/// One attempt, in one ZooKeeper session.
pub(super) struct Attempt<'a> {
    pub(super) queue: &'a Shared,
    pub(super) live: &'a Arc<LiveSession>,
    pub(super) server: Arc<dyn ServerSession>,
    /// The directory's data, if any, as the rule has last learned it in this attempt.
    learned: Mutex<Option<Vec<u8>>>,
}

/// What a look at the queue came to.
enum Look {
    Hold,
    Wait(Vec<Awaited>),
}

/// A contender to wait on.
pub(super) struct Awaited {
    pub(super) name: String,
    /// Whether its release, if it says that it is one, is all that the waiter must know to hold.
    pub(super) hands_over: bool,
    /// Whether its going, whatever the reason, is.
    pub(super) stands_alone: bool,
}

impl<'a> Attempt<'a> {
    pub(super) fn begin(
        queue: &'a Shared,
        live: &'a Arc<LiveSession>,
    ) -> Result<Attempt<'a>, Error> {
        let server = live
            .server()
            .map_err(|error| Error::at(queue.directory.as_str(), live.id(), error))?;
        Ok(Attempt {
            queue,
            live,
            server,
            learned: Mutex::new(None),
        })
    }

    pub(super) fn failed(&self, error: ServerError) -> Error {
        Error::at(self.queue.directory.as_str(), self.live.id(), error)
    }

    /// What to tell a waiter whose znode has gone: that somebody has deleted it, unless it went
    /// with its session, whose end the server tells a moment later.
    pub(super) async fn deleted(&self, entry: &Entry) -> Error {
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        loop {
            match self.server.get(entry.path()).await {
                Ok(_) | Err(ServerError::Refused(_)) => return entry.deleted(),
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error @ ServerError::SessionOver(_)) => return self.failed(error),
            }
        }
    }

    pub(super) fn child(&self, name: &str) -> String {
        format!("{}/{name}", self.queue.directory)
    }

    /// Lets the rule learn the directory's data, `None` where there is no directory. Says whether
    /// that is anything else than it went by until now.
    pub(super) fn learn(&self, directory: Option<Vec<u8>>) -> Result<bool, Error> {
        self.queue.rule.learn(directory.as_deref())?;
        // Nothing panics while it is locked, and it is never half-written.
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *learned != directory;
        *learned = directory;
        Ok(is_news)
    }

    /// Whether a contender that came now would hold at once. One read.
    pub(super) async fn could_win(&self) -> Result<bool, Error> {
        let children = self.list().await?;
        self.refuse_other_recipes(&children)?;
        let mut contenders = self.in_order(children).await?;
        let next = contenders
            .last()
            .map_or(0.into(), |last| last.sequence().next());
        let label = self.queue.rule.label();
        check_label(&*self.queue.rule, &label)?;
        let name = format!("{}{next}", Identity::random().name(&label));
        let newcomer = self.contender(&name);
        let newcomer = newcomer.ok_or_else(|| rule_is_broken(&*self.queue.rule, UNCOUNTED))?;
        contenders.push(newcomer);
        Ok(self.queue.rule.decide(&contenders, contenders.len() - 1) == Verdict::Hold)
    }

    /// Creates the contender's znode, and lists the queue as it is after that, unless the znode's
    /// number says who is in it.
    pub(super) async fn enter(&self) -> Result<(Entry, Vec<String>), Error> {
        let options = &self.queue.options;
        let label = self.queue.rule.label();
        check_label(&*self.queue.rule, &label)?;
        let mut entry = Entry::new(&self.queue.session, self.live, &self.queue.directory);
        let last = self.queue.last_alone.get();
        // As the time before. Where it comes otherwise, the list comes later.
        let expects_alone = last.is_some_and(|last| last.was_known_alone);
        let mut missing_again = Backoff::after(1, Duration::from_secs(1));
        let mut unknown = UnknownCreates::default();
        loop {
            let owner = self.sole_writer(entry.identity(), &label).await;
            if owner.is_some() {
                entry.mark();
            }
            let acl = match owner {
                Some(owner) => Cow::Owned(written_by_owner_alone(&options.acl, &owner)),
                None => Cow::Borrowed(options.acl.as_slice()),
            };
            let path = self.child(&entry.identity().name(&label));
            let sent = self.live.now();
            let mode = CreateMode::EphemeralSequential;
            let create = self.server.create(&path, &options.data, mode, &acl);
            // Sent right behind the create, and answered after it: they see the new znode.
            let after = match expects_alone {
                true => self.ask_for_directory(),
                false => self.ask_for_queue(),
            };
            let (created, after) = match create.await {
                Ok(created) => {
                    let owner = created.stat.ephemeral_owner;
                    let proof = self.live.created(sent, owner);
                    proof.map_err(|error| self.failed(error))?;
                    entry.known_alone = last.is_some_and(|last| self.proves_alone(&last, &created));
                    match expects_alone && !entry.known_alone {
                        true => (created, self.ask_for_queue()),
                        false => (created, after),
                    }
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    self.live.create_was_answered();
                    let missing = MissingDirectory {
                        path: &self.queue.directory,
                        data: &self.queue.rule.directory_data(),
                        kind: options.directories,
                        acl: &options.acl,
                        chroot: self.queue.session.ensemble().chroot(),
                    };
                    missing.create(self.live, &*self.server).await?;
                    missing_again.wait().await;
                    continue;
                }
                // At the end of the count all znodes of one identity have the same name.
                Err(error)
                    if matches!(error, ServerError::OutcomeUnknown(_))
                        || error.is(Refusal::NodeExists) =>
                {
                    tracing::debug!(%path, %error, "looking for a contender of unknown fate");
                    match self.find_own(entry.identity()).await? {
                        Some(created) => {
                            self.live.create_was_answered();
                            (created, self.ask_for_queue())
                        }
                        None => {
                            unknown.another(self.live, &path).await?;
                            continue;
                        }
                    }
                }
                Err(error) => {
                    // Nothing was created, so that there is nothing to give up.
                    if unknown.is_none() {
                        entry.was_refused();
                    }
                    return Err(Error::at(path, self.live.id(), error));
                }
            };
            entry.created(created);
            let children = self.answered_queue(after, entry.name()).await?;
            return Ok((entry, children));
        }
    }

    /// Who alone may write to the znode of a contender that will mark its release, if it can.
    async fn sole_writer(&self, identity: &Identity, label: &str) -> Option<AuthId> {
        if !self.queue.options.marks_release || !self.queue.rule.holds_alone(label) {
            return None;
        }
        let directory = self.queue.directory.as_str();
        let server = &*self.server;
        self.live.sole_writer(server, directory, identity).await
    }

    /// Looks for the znode of a create whose reply was lost.
    ///
    /// A server that lags behind may not have seen it yet, so it is made to catch up first. Should
    /// it not be there then, it never will be: a request that was still under way on the old
    /// connection is refused once the session has moved to a new one.
    async fn find_own(&self, identity: &Identity) -> Result<Option<Created>, Error> {
        let own = own_nodes(&*self.server, self.queue.directory.as_str(), identity)
            .await
            .map_err(|error| self.failed(error))?;
        if own
            .iter()
            .any(|node| node.stat.ephemeral_owner != self.live.id().0)
        {
            // The server has put the client into another session.
            return Err(self.failed(ServerError::SessionOver(SessionEnd::Expired)));
        }
        Ok(own.into_iter().min_by_key(|node| node.stat.czxid))
    }

    fn proves_alone(&self, last: &Alone, created: &Created) -> bool {
        self.contender(created.path.rsplit('/').next().unwrap_or_default())
            .is_some_and(|contender| last.proves_alone(contender.sequence(), created.stat.czxid))
    }

    fn contender(&self, name: &str) -> Option<Contender> {
        Contender::parse(name, |label| self.queue.rule.counts(label))
    }

    /// Sends for the names in the directory, and for its data where the rule wants it.
    fn ask_for_queue(&self) -> AskedForQueue<'_> {
        let names = self.server.list(self.queue.directory.as_str());
        AskedForQueue {
            names: Some(names),
            ..self.ask_for_directory()
        }
    }

    /// Sends for the directory's data where the rule wants it.
    fn ask_for_directory(&self) -> AskedForQueue<'_> {
        let directory = self.queue.directory.as_str();
        let reads = self.queue.rule.reads_directory();
        AskedForQueue {
            names: None,
            data: reads.then(|| self.server.get(directory)),
        }
    }

    /// Takes in the answers: the names, which are none where there is no directory, and are known
    /// to be just this one where they were not asked for. The rule has learned the data then. Asks
    /// for everything again as long as no answer comes.
    async fn answered_queue(
        &self,
        asked: AskedForQueue<'_>,
        only: Option<&str>,
    ) -> Result<Vec<String>, Error> {
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        let mut asked = asked;
        loop {
            let answers = async {
                let names = match asked.names {
                    Some(names) => names.await?,
                    None => only.map(str::to_owned).into_iter().collect(),
                };
                let data = match asked.data {
                    Some(data) => Some(data.await?.0),
                    None => None,
                };
                Ok((names, data))
            };
            match answers.await {
                Ok((names, data)) => {
                    if let Some(data) = data {
                        self.learn(Some(data))?;
                    }
                    return Ok(names);
                }
                Err(error) if ServerError::is(&error, Refusal::NoNode) => {
                    if self.queue.rule.reads_directory() {
                        self.learn(None)?;
                    }
                    return Ok(Vec::new());
                }
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error) => return Err(self.failed(error)),
            }
            asked = self.ask_for_queue();
        }
    }

    /// Reads the directory's data, and lets the rule learn it.
    async fn learn_directory(&self) -> Result<(), Error> {
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        loop {
            let data = match self.server.get(self.queue.directory.as_str()).await {
                Ok((data, _)) => Some(data),
                Err(error) if error.is(Refusal::NoNode) => None,
                Err(ServerError::OutcomeUnknown(_)) => {
                    backoff.wait().await;
                    continue;
                }
                Err(error) => return Err(self.failed(error)),
            };
            return self.learn(data).map(drop);
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<String>, Error> {
        self.answered_queue(self.ask_for_queue(), None).await
    }

    /// The contenders among these children, first in the queue first.
    pub(super) async fn in_order(&self, children: Vec<String>) -> Result<Vec<Contender>, Error> {
        let rule = &*self.queue.rule;
        let mut contenders: Vec<Contender> = children
            .iter()
            .filter_map(|name| self.contender(name))
            .collect();
        order(&mut contenders);
        let tied = ordered_by_czxid(&contenders);
        if tied.is_empty() {
            return Ok(contenders);
        }
        let alike: Vec<Contender> = tied
            .iter()
            .map(|&index| contenders[index].clone())
            .collect();
        let mut gone = Vec::new();
        for (index, node) in tied.into_iter().zip(self.read_each(&alike).await?) {
            match node {
                Some((_, stat)) => contenders[index].set_czxid(stat.czxid),
                None => gone.push(index),
            }
        }
        if !gone.is_empty() && rule.reads_directory() {
            // What was read of the directory is older than that they have gone.
            self.learn_directory().await?;
        }
        for index in gone.into_iter().rev() {
            contenders.remove(index);
        }
        order(&mut contenders);
        Ok(contenders)
    }

    pub(super) async fn read_each(
        &self,
        contenders: &[Contender],
    ) -> Result<Vec<Option<Node>>, Error> {
        if contenders.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<String> = contenders
            .iter()
            .map(|contender| self.child(contender.name()))
            .collect();
        let mut backoff = Backoff::up_to(Duration::from_secs(1));
        loop {
            match self.server.get_each(&paths).await {
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                read => return read.map_err(|error| self.failed(error)),
            }
        }
    }

    /// Asks the rule.
    async fn look(&self, entry: &mut Entry, children: Vec<String>) -> Result<Look, Error> {
        self.refuse_other_recipes(&children)?;
        let contenders = self.in_order(children).await?;
        let own = entry.name();
        let Some(me) = contenders
            .iter()
            .position(|contender| Some(contender.name()) == own)
        else {
            return Err(entry.deleted());
        };
        let rule = &*self.queue.rule;
        match rule.decide(&contenders, me) {
            Verdict::Hold => {
                entry.alone = match (contenders.as_slice(), entry.created_node()) {
                    ([own], Some(node)) => Some(Alone {
                        sequence: own.sequence(),
                        czxid: node.stat.czxid,
                        was_known_alone: entry.known_alone,
                    }),
                    _ => None,
                };
                Ok(Look::Hold)
            }
            Verdict::Wait { on } if !on.is_empty() && on.iter().all(|&place| place < me) => {
                let awaited = |place: usize| Awaited {
                    name: contenders[place].name().to_owned(),
                    hands_over: self.hands_over(&contenders[place..=me]),
                    stands_alone: self.stands_alone(&contenders[..=me], place),
                };
                Ok(Look::Wait(on.into_iter().map(awaited).collect()))
            }
            Verdict::Wait { .. } => Err(rule_is_broken(
                rule,
                "waits on nobody, or on somebody who is not before",
            )
            .into()),
        }
    }

    /// Whether the last of these holds when the first marks its release.
    ///
    /// The first has held alone then, so that nobody is left before it; and who is between the two
    /// is known, but for those who have left since.
    fn hands_over(&self, contenders: &[Contender]) -> bool {
        let rule = &self.queue.rule;
        let Some((first, rest)) = contenders.split_first() else {
            return false;
        };
        first.marks_release()
            && rule.holds_alone(first.label())
            && rule.decide(rest, rest.len() - 1) == Verdict::Hold
    }

    /// Whether the last of these holds when the one at this place has gone, even if nobody else has.
    fn stands_alone(&self, contenders: &[Contender], place: usize) -> bool {
        let rule = &self.queue.rule;
        // With more before it than that one, this is seldom worth the work.
        let only = matches!(contenders, [_, _]) && place == 0;
        only && !rule.reads_directory()
            && !rule.may_be_replaced(contenders[place].label())
            && rule.decide(&contenders[1..], 0) == Verdict::Hold
    }

    /// Where two recipes meet under one path, each grants as if the other were not there.
    fn refuse_other_recipes(&self, children: &[String]) -> Result<(), Error> {
        let rule = &*self.queue.rule;
        let other = children.iter().find_map(|name| {
            let recipe = recipe_of(name, |label| !rule.counts(label))?;
            Some((name, recipe))
        });
        match other {
            None => Ok(()),
            Some((name, recipe)) => Err(Error::OtherRecipe {
                path: self.queue.directory.to_string(),
                child: name.clone(),
                recipe,
            }),
        }
    }

    /// Holds if that is possible at once.
    pub(super) async fn take_turn(
        &self,
        mut entry: Entry,
        mut children: Vec<String>,
    ) -> Result<Option<Grant>, Error> {
        loop {
            match self.look(&mut entry, children).await? {
                Look::Hold => match self.grant(&mut entry, None) {
                    Some(grant) => return Ok(Some(grant)),
                    None => self.renew_lease().await?,
                },
                Look::Wait(..) => return Ok(None),
            }
            children = self.list().await?;
        }
    }

    pub(super) async fn wait_for_turn(
        &self,
        mut entry: Entry,
        mut children: Vec<String>,
    ) -> Result<Grant, Error> {
        let mut wait = Wait::default();
        loop {
            match self.look(&mut entry, children).await? {
                Look::Hold => match self.grant(&mut entry, wait.loss_watch.take()) {
                    Some(grant) => return Ok(grant),
                    None => self.renew_lease().await?,
                },
                Look::Wait(on) => match self.queue.options.strategy {
                    WaitStrategy::Predecessor => {
                        if wait.wait_on(self, &entry, &on).await? == Waited::Handover {
                            // Where the lease has lapsed, what holds on may have gone: look again.
                            if let Some(grant) = self.grant(&mut entry, wait.loss_watch.take()) {
                                return Ok(grant);
                            }
                        }
                    }
                    WaitStrategy::Parent => {
                        children = wait.wait_on_parent(self).await?;
                        continue;
                    }
                    WaitStrategy::Poll(interval) => tokio::time::sleep(interval).await,
                },
            }
            children = self.list().await?;
        }
    }

    fn grant(&self, entry: &mut Entry, loss_watch: Option<LossWatch>) -> Option<Grant> {
        entry.grant(&self.queue.rule, &self.queue.last_alone, loss_watch)
    }

    /// Makes sure that the session lives before anything is granted in it.
    async fn renew_lease(&self) -> Result<(), Error> {
        let path = self.queue.directory.as_str();
        let renewed = self.live.until_lease(path, Lease::may_grant).await;
        renewed.map_err(|error| self.failed(error))
    }
}

/// Reads of the directory that have been sent.
struct AskedForQueue<'a> {
    /// `None` where they are known.
    names: Option<Reply<'a, Vec<String>>>,
    data: Option<Reply<'a, Node>>,
}

const UNCOUNTED: &str = "does not count the contenders it creates";

fn rule_is_broken(rule: &dyn Rule, problem: &str) -> InvalidInput {
    InvalidInput::new("rule", format!("{rule:?}"), problem)
}

/// Refuses a label that no znode's name can have, or that the rule itself does not count.
pub(super) fn check_label(rule: &dyn Rule, label: &str) -> Result<(), InvalidInput> {
    let name = format!("{}{}", Identity::NONE.name(label), Sequence::from(0));
    if let Err(error) = NodePath::new(&format!("/{name}")) {
        return Err(rule_is_broken(rule, &format!("has a bad label: {error}")));
    }
    if name.contains('/') {
        return Err(rule_is_broken(rule, "has a label with '/' in it"));
    }
    match Contender::parse(&name, |label| rule.counts(label)) {
        Some(_) => Ok(()),
        None => Err(rule_is_broken(rule, UNCOUNTED)),
    }
}
