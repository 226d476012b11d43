//! A queue at one moment, as the server shows it.

mod update;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use zookeeper_recipes_core::ensemble::{Node, ServerSession};
use zookeeper_recipes_core::{
    Contender, FencingToken, NodePath, Refusal, ServerError, SessionId, Stat, order,
    ordered_by_czxid,
};
use zookeeper_recipes_election::{has_to_step_back, named_successor};
use zookeeper_recipes_lock::JobRecord;

use crate::contender::{ContenderState, ContenderStatus, printable};
use crate::kind::{
    QueueKind, Wish, contender, is_candidate, is_mixed, is_writer, kind, recipe, wanted, wish,
};
pub(crate) use crate::queue::update::{Child, may_be_behind};
use crate::standing::{Before, Standing};

/// How often a queue is listed that writers leave again and again.
pub(crate) const TRIES: usize = 8;

/// A queue at one moment: its kind and its contenders, in order.
///
/// The rule of the recipe says who holds.
#[derive(Clone, Debug)]
pub struct QueueStatus {
    path: String,
    exists: bool,
    kind: QueueKind,
    is_mixed: bool,
    permits: Option<u32>,
    /// The zxid of the last change of the directory's data, if the data was read.
    data_mzxid: i64,
    job: Option<Box<JobRecord>>,
    /// The name of the candidate that an election's directory names as the successor.
    successor: Option<Box<str>>,
    /// In the order of the queue. Empty if the queue has members.
    contenders: Vec<Contender>,
    /// The znodes of a kind without an order.
    members: Vec<String>,
    /// What was read of the first contenders. `None` for a znode that may not be read.
    facts: Vec<Option<Facts>>,
    foreign: Vec<String>,
    /// Ephemeral znodes among the foreign ones. They are members if all contenders leave.
    aside: Vec<String>,
    /// True if all children are known that are no members.
    is_listed: bool,
    /// True if the directory has no data, or its data was read.
    is_data_known: bool,
    /// What the rules say of the contenders, once somebody has asked.
    standings: OnceLock<Box<[Standing]>>,
}

/// What the znode of a contender says.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    stat: ShortStat,
    owner: Arc<str>,
}

#[derive(Clone, Copy, Debug)]
struct ShortStat {
    czxid: i64,
    /// In milliseconds since 1970.
    ctime: i64,
    session: i64,
}

impl Facts {
    fn of((data, stat): &Node, owners: &mut Owners) -> Facts {
        Facts {
            owner: owners.of(data),
            stat: ShortStat {
                czxid: stat.czxid,
                ctime: stat.ctime,
                session: stat.ephemeral_owner,
            },
        }
    }
}

/// The owners that were read, each once: a process has many contenders.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashSet<Arc<str>>);

impl Owners {
    /// Forgets the owners of contenders that are gone.
    pub(crate) fn prune(&mut self) {
        self.0.retain(|owner| Arc::strong_count(owner) > 1);
    }

    fn of(&mut self, data: &[u8]) -> Arc<str> {
        let owner = printable(data);
        if let Some(known) = self.0.get(owner.as_str()) {
            return known.clone();
        }
        let owner: Arc<str> = owner.into();
        self.0.insert(owner.clone());
        owner
    }
}

impl QueueStatus {
    /// The queue of the znode at this path, which has children of these names.
    pub(crate) fn of_names(path: String, names: Vec<String>) -> QueueStatus {
        let (mut contenders, mut foreign) = (Vec::new(), Vec::new());
        for name in names {
            match contender(&name) {
                Some(contender) => contenders.push(contender),
                None => foreign.push(name),
            }
        }
        foreign.sort_unstable();
        order(&mut contenders);
        contenders.shrink_to_fit();
        let kind = kind(&contenders);
        QueueStatus {
            path,
            exists: true,
            kind,
            is_mixed: is_mixed(kind, &contenders),
            permits: None,
            data_mzxid: 0,
            job: None,
            successor: None,
            contenders,
            members: Vec::new(),
            facts: Vec::new(),
            foreign,
            aside: Vec::new(),
            is_listed: true,
            is_data_known: false,
            standings: OnceLock::new(),
        }
    }

    /// The ephemeral znodes of these names, which are no contenders.
    pub(crate) fn of_members(path: String, mut members: Vec<String>) -> QueueStatus {
        members.sort_unstable();
        QueueStatus {
            kind: QueueKind::Group,
            members,
            is_listed: false,
            ..QueueStatus::of_names(path, Vec::new())
        }
    }

    /// Reads the queue at a path, and its first contenders, at most so many.
    ///
    /// One list and one read of the directory, sent together, and one read of the contenders. If
    /// several contenders have one number, one more read gives their order. A contender that leaves
    /// between the list and the read is left out. If it is a writer, all is read again, because it may
    /// have become a reader in its place.
    ///
    /// # Errors
    ///
    /// The error of a request. A directory that does not exist is no error.
    pub async fn read(
        server: &ServerSession,
        path: &NodePath,
        most: usize,
    ) -> Result<QueueStatus, ServerError> {
        let mut tries = 0..TRIES;
        loop {
            let (names, data) = (server.list(path.as_str()), server.get(path.as_str()));
            let names = names.await;
            let data = data.await;
            let read = QueueStatus::of_once(server, path, names, data, most).await;
            let (queue, has_lost_a_writer) = read?;
            if !has_lost_a_writer || tries.next().is_none() {
                return Ok(queue);
            }
        }
    }

    /// As [`read`](Self::read), with the names and the data of the directory from the caller.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read).
    pub async fn of(
        server: &ServerSession,
        path: &NodePath,
        names: Result<Vec<String>, ServerError>,
        data: Result<Node, ServerError>,
        most: usize,
    ) -> Result<QueueStatus, ServerError> {
        let read = QueueStatus::of_once(server, path, names, data, most).await;
        Ok(read?.0)
    }

    /// As [`of`](Self::of). True if a writer has left since the list.
    async fn of_once(
        server: &ServerSession,
        path: &NodePath,
        names: Result<Vec<String>, ServerError>,
        data: Result<Node, ServerError>,
        most: usize,
    ) -> Result<(QueueStatus, bool), ServerError> {
        let exists = !matches!(&names, Err(error) if error.is(Refusal::NoNode));
        let mut queue = QueueStatus::of_names(path.to_string(), or_none(names)?);
        queue.exists = exists;
        let (data, stat) = or_none(data)?;
        queue.note_directory(&data, &stat);
        let tied = ordered_by_czxid(&queue.contenders);
        if !tied.is_empty() {
            let paths: Vec<String> = tied.iter().map(|place| queue.node(*place)).collect();
            for (place, node) in tied.into_iter().zip(server.get_each(&paths).await?) {
                if let Some((_, stat)) = node {
                    queue.contenders[place].set_czxid(stat.czxid);
                }
            }
            order(&mut queue.contenders);
        }
        let first = 0..most.min(queue.len());
        let paths: Vec<String> = first.map(|place| queue.node(place)).collect();
        let mut has_lost_a_writer = false;
        if !paths.is_empty() {
            let nodes = server.get_each(&paths).await?.into_iter();
            let nodes = nodes.map(|node| node.ok_or(Refusal::NoNode));
            has_lost_a_writer = queue.note_contenders(nodes.collect(), &mut Owners::default());
        }
        Ok((queue, has_lost_a_writer))
    }

    /// Notes the data of the directory, and its metadata.
    pub(crate) fn note_directory(&mut self, data: &[u8], stat: &Stat) {
        self.permits = std::str::from_utf8(data)
            .ok()
            .and_then(|it| it.parse().ok());
        self.job = JobRecord::read(data).map(Box::new);
        self.successor = named_successor(data).map(String::into_boxed_str);
        self.data_mzxid = stat.mzxid;
        self.is_data_known = true;
        self.recognise_data();
    }

    /// The data of the directory says more of the kind than the names do.
    fn recognise_data(&mut self) {
        match self.kind {
            QueueKind::Lock if self.job.is_some() => self.kind = QueueKind::OncePerSlot,
            QueueKind::Group if self.permits.is_some() && self.has_names_of_kazoo() => {
                self.kind = QueueKind::KazooSemaphore;
            }
            _ => {}
        }
    }

    /// True if each member has a name as kazoo gives it to the lease of a semaphore.
    pub(crate) fn has_names_of_kazoo(&self) -> bool {
        let is_of_kazoo =
            |name: &String| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.members.iter().all(is_of_kazoo)
    }

    /// Notes that this lock guards a partition of an assignment.
    pub(crate) fn note_partition(&mut self) {
        if self.kind == QueueKind::Lock {
            self.kind = QueueKind::Partition;
        }
    }

    /// Notes what was read of the first contenders. Those that have gone are left out.
    ///
    /// True if one of them is a writer, who may have come to hold as a reader.
    pub(crate) fn note_contenders(
        &mut self,
        nodes: Vec<Result<Node, Refusal>>,
        owners: &mut Owners,
    ) -> bool {
        let nodes = self.in_order(nodes);
        let mut gone = HashSet::new();
        self.facts = Vec::with_capacity(nodes.len());
        for (place, node) in nodes.into_iter().enumerate() {
            match node {
                Ok(node) => self.facts.push(Some(Facts::of(&node, owners))),
                Err(Refusal::NoNode) => drop(gone.insert(place)),
                Err(_) => self.facts.push(None),
            }
        }
        let mut ordered = self.contenders.iter().enumerate();
        let has_lost_a_writer = ordered.any(|(place, it)| gone.contains(&place) && is_writer(it));
        if !gone.is_empty() {
            let mut place = 0..;
            let mut stays = || place.next().is_none_or(|place| !gone.contains(&place));
            if self.members.is_empty() {
                self.contenders.retain(|_| stays());
            } else {
                self.members.retain(|_| stays());
            }
        }
        has_lost_a_writer
    }

    /// Orders the contenders by what was read of all of them, if their numbers do not.
    fn in_order(&mut self, nodes: Vec<Result<Node, Refusal>>) -> Vec<Result<Node, Refusal>> {
        let is_tied = !ordered_by_czxid(&self.contenders).is_empty();
        if nodes.len() < self.contenders.len() || !is_tied {
            return nodes;
        }
        for (contender, node) in self.contenders.iter_mut().zip(&nodes) {
            if let Ok((_, stat)) = node {
                contender.set_czxid(stat.czxid);
            }
        }
        let names = self.contenders.iter().map(|it| it.name().to_owned());
        let mut named: HashMap<String, _> = names.zip(nodes).collect();
        order(&mut self.contenders);
        let ordered = self.contenders.iter();
        let ordered = ordered.map(|it| named.remove(it.name()).unwrap_or(Err(Refusal::NoNode)));
        ordered.collect()
    }

    /// The path of the znode whose children the contenders are.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// False if the znode does not exist.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// The recipe.
    pub fn kind(&self) -> QueueKind {
        self.kind
    }

    /// True if contenders of several recipes are here. They do not see each other.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// The number of permits, if the directory records a number.
    pub fn permits(&self) -> Option<u32> {
        self.permits
    }

    /// What is recorded of a job of each time slot, if the directory is one.
    pub fn job(&self) -> Option<&JobRecord> {
        self.job.as_deref()
    }

    /// How many contenders there are.
    pub fn len(&self) -> usize {
        self.contenders.len().max(self.members.len())
    }

    /// True if there is no contender.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the znodes that are no contenders, in order.
    pub fn foreign(&self) -> &[String] {
        match self.members.is_empty() {
            true => &self.foreign,
            false => &[],
        }
    }

    /// The contenders that were read, in the order of the queue.
    ///
    /// An overview reads all of them, except those that its session may not read.
    pub fn contenders(&self) -> impl Iterator<Item = ContenderStatus> + '_ {
        (0..self.facts.len()).filter_map(|place| self.contender(place))
    }

    pub(crate) fn contender(&self, place: usize) -> Option<ContenderStatus> {
        let Facts { stat, owner } = self.facts.get(place)?.as_ref()?;
        Some(ContenderStatus {
            position: place,
            name: self.name(place).to_owned(),
            wants: match self.contenders.get(place) {
                Some(contender) => wanted(self.kind, contender),
                None if self.kind == QueueKind::KazooSemaphore => "lease".to_owned(),
                None => "name".to_owned(),
            },
            state: self.state(place),
            owner: owner.clone(),
            created: Stat {
                ctime: stat.ctime,
                ..Stat::default()
            }
            .created(),
            session_id: SessionId(stat.session),
            fencing_token: FencingToken::from(stat.czxid),
        })
    }

    /// How many contenders hold by the present number of permits. `None` if it cannot be known.
    pub fn holders(&self) -> Option<usize> {
        if !self.members.is_empty() {
            return Some(self.len());
        }
        let is_known = |standing: &&Standing| **standing != Standing::Unknown;
        let known = self.standings().iter().take_while(is_known);
        let (known, holders) = known.fold((0, 0), |(known, holders), standing| {
            (
                known + 1,
                holders + usize::from(*standing == Standing::Holds),
            )
        });
        (known == self.len()).then_some(holders)
    }

    /// What the rules say of the contenders by the present number of permits.
    fn standings(&self) -> &[Standing] {
        self.standings.get_or_init(|| {
            let mut before = Before::new(self.kind, self.permits);
            let contenders = self.contenders.iter().enumerate();
            let standings = contenders.map(|(place, contender)| {
                let standing = before.standing(contender, None);
                before.push(contender, place, 0);
                standing
            });
            let mut standings: Box<[Standing]> = standings.collect();
            if let Some(place) = self.stepping_back() {
                standings[place] = Standing::Unknown;
            }
            standings
        })
    }

    /// The first candidate of an election, if it has to leave its place to one behind it.
    ///
    /// It leads until it does if it has led before. A `LeaderLatch` of Curator's leads on.
    fn stepping_back(&self) -> Option<usize> {
        let candidates = self.contenders.iter().enumerate();
        let mut candidates = candidates.filter(|(_, it)| is_candidate(it));
        let (place, first) = candidates.next()?;
        let behind = candidates.map(|(_, it)| it);
        has_to_step_back(first, behind, self.successor.as_deref()).then_some(place)
    }

    /// Whether the contender at this place holds, also by an earlier number of permits.
    pub(crate) fn standing(&self, place: usize) -> Standing {
        let Some(standing) = self.standings().get(place) else {
            return Standing::Holds;
        };
        let is_older_than_the_number = || {
            let contender = self.contenders.get(place);
            let wish = contender.and_then(|it| wish(it.label()));
            matches!(wish, Some(Wish::Permits(_)))
                && (self.czxid(place)).is_some_and(|czxid| czxid < self.numbered_at())
        };
        match *standing {
            // It may have held before the number was lowered, or still wait: a waiter that wants more
            // permits than there are leaves only once its process knows.
            Standing::Waits { .. } if is_older_than_the_number() => Standing::Unknown,
            standing => standing,
        }
    }

    /// False if no contender waits, because it is alone.
    pub(crate) fn may_wait(&self) -> bool {
        // It may want more permits than there are.
        self.contenders.len() > 1 || self.kind == QueueKind::Semaphore
    }

    /// The state of the contender at this place.
    pub(crate) fn state(&self, place: usize) -> ContenderState {
        match self.standing(place) {
            Standing::Holds => ContenderState::Holds,
            Standing::Waits { first, end } => {
                let before = first as usize..end as usize;
                let blockers = before.filter(|other| self.counts(place, *other));
                ContenderState::WaitsFor(blockers.collect())
            }
            Standing::Unknown => ContenderState::Unknown,
        }
    }

    /// True if the rule of one contender counts the other one.
    pub(crate) fn counts(&self, place: usize, other: usize) -> bool {
        if !self.is_mixed {
            return true;
        }
        let wish = |place: usize| wish(self.contenders.get(place)?.label());
        let (own, other) = (wish(place), wish(other));
        own.zip(other)
            .is_some_and(|(own, other)| recipe(self.kind, own).counts(other))
    }

    /// The path of the znode of the contender at this place.
    pub(crate) fn node(&self, place: usize) -> String {
        child(&self.path, self.name(place))
    }

    pub(crate) fn name(&self, place: usize) -> &str {
        match self.contenders.get(place) {
            Some(contender) => contender.name(),
            None => &self.members[place],
        }
    }

    /// The contenders that have an order.
    pub(crate) fn ordered(&self) -> &[Contender] {
        &self.contenders
    }

    /// The zxid of the last change of the number of permits. Zero if the recipe has no number.
    pub(crate) fn numbered_at(&self) -> i64 {
        match self.kind {
            QueueKind::Semaphore => self.data_mzxid,
            _ => 0,
        }
    }

    /// How many of the contenders may not be read.
    pub(crate) fn unread(&self) -> usize {
        self.facts.iter().filter(|facts| facts.is_none()).count()
    }

    /// The session of the contender at this place, 0 if it is persistent. `None` if it was not read.
    pub(crate) fn session(&self, place: usize) -> Option<i64> {
        Some(self.stat(place)?.session)
    }

    /// The transaction that created the contender at this place.
    pub(crate) fn czxid(&self, place: usize) -> Option<i64> {
        Some(self.stat(place)?.czxid)
    }

    fn stat(&self, place: usize) -> Option<ShortStat> {
        Some(self.facts.get(place)?.as_ref()?.stat)
    }
}

/// These queues, without the memory that they were in.
pub(crate) fn shared(queues: Vec<QueueStatus>) -> Vec<Arc<QueueStatus>> {
    let mut shared = Vec::with_capacity(queues.len());
    shared.extend(queues.into_iter().map(Arc::new));
    shared
}

/// The path of a child.
pub(crate) fn child(path: &str, name: &str) -> String {
    match path {
        "/" => format!("/{name}"),
        _ => format!("{path}/{name}"),
    }
}

/// What was read, or nothing if the directory does not exist.
fn or_none<T: Default>(read: Result<T, ServerError>) -> Result<T, ServerError> {
    match read {
        Err(error) if error.is(Refusal::NoNode) => Ok(T::default()),
        read => read,
    }
}
