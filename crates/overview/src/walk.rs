//! The walk through a tree of znodes, which finds the queues.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;

use futures_util::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};
use zookeeper_recipes_core::{Refusal, ServerError, Stat};

use crate::kind::QueueKind;
use crate::queue::{Owners, QueueStatus, TRIES, child};
use crate::reader::Reader;

/// How many lists are under way at a time.
const LISTS: usize = 64;

/// How many reads of contenders are under way at a time.
pub(crate) const READS: usize = 8;

/// How many znodes are read for several queues together.
pub(crate) const BATCH: usize = 128;

/// The directories of an assignment of partitions, which no other program names so.
const ASSIGNMENT: [&str; 5] = ["plan", "owned", "locks", "partitions", "orders"];

/// A znode that the session of an overview may not read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unread {
    /// Its path. Nothing below it was read.
    pub path: String,
    /// Why the server refused the read.
    pub refusal: Refusal,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// False if there is no znode at the path of the walk.
    pub(crate) exists: bool,
    /// In the order of their paths.
    pub(crate) queues: Vec<QueueStatus>,
    /// In the order of their paths.
    pub(crate) unread: Vec<Unread>,
    /// The queues whose directories have data.
    with_data: HashSet<String>,
    /// The ephemeral znodes that are no contenders, by the directory that they are in.
    members: BTreeMap<String, Vec<String>>,
    pub(crate) assignments: Assignments,
}

/// The directories of [`ASSIGNMENT`] that there are, as bits, by the path of what may be an assignment.
#[derive(Debug, Default)]
pub(crate) struct Assignments {
    found: HashMap<String, u8>,
    /// The path that has become an assignment, or is none now.
    changed: Option<String>,
}

impl Assignments {
    const ALL: u8 = (1 << ASSIGNMENT.len()) - 1;

    pub(crate) fn note(&mut self, path: &str, name: &str) {
        if let Some(bit) = ASSIGNMENT.iter().position(|it| *it == name) {
            let found = self.found.entry(path.to_owned()).or_default();
            *found |= 1 << bit;
            if *found == Assignments::ALL {
                self.changed = Some(path.to_owned());
            }
        }
    }

    pub(crate) fn forget(&mut self, path: &str, name: &str) {
        let bit = ASSIGNMENT.iter().position(|it| *it == name);
        if let Some((bit, found)) = bit.zip(self.found.get_mut(path)) {
            if *found == Assignments::ALL {
                self.changed = Some(path.to_owned());
            }
            *found &= !(1 << bit);
            if *found == 0 {
                self.found.remove(path);
            }
        }
    }

    /// True if this path has become an assignment since the last call, or is none now.
    pub(crate) fn has_changed(&mut self, path: &str) -> bool {
        self.changed.take().is_some_and(|changed| changed == path)
    }

    /// True if the queue at this path guards a partition of an assignment.
    pub(crate) fn has_partition(&self, path: &str) -> bool {
        let directory = path.rsplit_once('/').map(|(directory, _)| directory);
        let base = directory.and_then(|directory| directory.strip_suffix("/locks"));
        let base = base.map(|base| if base.is_empty() { "/" } else { base });
        base.and_then(|base| self.found.get(base)) == Some(&Assignments::ALL)
    }
}

impl Walk {
    /// Lists all znodes below a path but the contenders, and reads the contenders.
    pub(crate) async fn below(reader: &Reader, path: &str) -> Result<Walk, ServerError> {
        let mut walk = Walk::default();
        let mut left = vec![path.to_owned()];
        let mut lists = FuturesUnordered::new();
        loop {
            while lists.len() < LISTS {
                let Some(path) = left.pop() else { break };
                lists.push(async move {
                    let listed = reader.list(&path).await;
                    (path, listed)
                });
            }
            let Some((path, listed)) = lists.next().await else {
                break;
            };
            match listed? {
                Ok((names, stat)) => walk.note(path, names, &stat, &mut left),
                Err(Refusal::NoNode) => {}
                Err(refusal) => walk.unread.push(Unread { path, refusal }),
            }
        }
        // A path that may not be read exists.
        walk.exists |= !walk.unread.is_empty();
        walk.unread
            .sort_unstable_by(|one, other| one.path.cmp(&other.path));
        walk.add_members();
        let (queues, with_data) = (mem::take(&mut walk.queues), mem::take(&mut walk.with_data));
        walk.queues = read_contenders(reader, queues, &with_data).await?;
        walk.note_partitions();
        Ok(walk)
    }

    /// Notes a znode and the names of its children.
    fn note(&mut self, path: String, names: Vec<String>, stat: &Stat, left: &mut Vec<String>) {
        self.exists = true;
        // It has no children.
        if stat.ephemeral_owner != 0 {
            if let Some((directory, name)) = path.rsplit_once('/') {
                let directory = if directory.is_empty() { "/" } else { directory };
                let members = self.members.entry(directory.to_owned()).or_default();
                members.push(name.to_owned());
            }
            return;
        }
        for name in &names {
            self.assignments.note(&path, name);
        }
        let queue = QueueStatus::of_names(path, names);
        let children = queue.foreign().iter().map(|name| child(queue.path(), name));
        // It belongs to the servers.
        left.extend(children.filter(|path| path != "/zookeeper"));
        if stat.data_length > 0 {
            // A group has no contenders, and its data may say that it is a semaphore.
            self.with_data.insert(queue.path().to_owned());
        }
        if !queue.is_empty() {
            self.queues.push(queue);
        }
    }

    /// Makes a queue of the ephemeral znodes of each directory that has no contenders.
    fn add_members(&mut self) {
        let mut members = mem::take(&mut self.members);
        for queue in &mut self.queues {
            if let Some(names) = members.remove(queue.path()) {
                queue.note_aside(names);
            }
        }
        let groups = members.into_iter();
        let groups = groups.map(|(path, names)| QueueStatus::of_members(path, names));
        self.queues.extend(groups);
        self.queues
            .sort_unstable_by(|one, other| one.path().cmp(other.path()));
    }

    fn note_partitions(&mut self) {
        for queue in &mut self.queues {
            if self.assignments.has_partition(queue.path()) {
                queue.note_partition();
            }
        }
    }
}

/// Lists these directories, and reads their contenders: the queues that have some, and the refusals.
pub(crate) async fn read_directories(
    reader: &Reader,
    paths: Vec<String>,
) -> Result<(Vec<QueueStatus>, Vec<(String, Refusal)>), ServerError> {
    let (mut queues, mut with_data, mut refused) = (Vec::new(), HashSet::new(), Vec::new());
    let lists = stream::iter(paths).map(|path| async move {
        let listed = reader.list(&path).await;
        (path, listed)
    });
    let mut lists = lists.buffered(LISTS);
    while let Some((path, listed)) = lists.next().await {
        match listed? {
            Ok((names, stat)) => {
                with_data.extend((stat.data_length > 0).then(|| path.clone()));
                queues.push(QueueStatus::of_names(path, names));
            }
            Err(refusal) => refused.push((path, refusal)),
        }
    }
    let queues = read_contenders(reader, queues, &with_data).await?;
    Ok((queues, refused))
}

/// Reads the contenders of these queues, and the data of their directories if there is any.
///
/// A write lock becomes a read lock by a znode in its place, which the list has not shown. So a queue
/// that a writer has left since is listed again, up to [`TRIES`] times. So is one that all contenders
/// have left, and that has members, which were not read beside contenders.
async fn read_contenders(
    reader: &Reader,
    queues: Vec<QueueStatus>,
    with_data: &HashSet<String>,
) -> Result<Vec<QueueStatus>, ServerError> {
    let mut owners = Owners::default();
    let mut read = Vec::with_capacity(queues.len());
    let mut left = queues;
    for tries in 0..=TRIES {
        let (settled, changed) = read_once(reader, left, with_data, &mut owners).await?;
        read.extend(settled);
        left = Vec::new();
        if tries == TRIES {
            read.extend(changed);
            break;
        }
        for queue in changed {
            match reader.list(queue.path()).await? {
                Ok((names, _)) => left.push(queue.listed_again(names)),
                Err(_) => read.push(queue),
            }
        }
        if left.is_empty() {
            break;
        }
    }
    read.retain(|queue| !queue.is_empty());
    let without_data = read.iter_mut().filter(|it| !with_data.contains(it.path()));
    without_data.for_each(QueueStatus::note_no_data);
    read.sort_unstable_by(|one, other| one.path().cmp(other.path()));
    Ok(read)
}

/// As [`read_contenders`], without another list: the second part is the queues to list again.
async fn read_once(
    reader: &Reader,
    queues: Vec<QueueStatus>,
    with_data: &HashSet<String>,
    owners: &mut Owners,
) -> Result<(Vec<QueueStatus>, Vec<QueueStatus>), ServerError> {
    let (mut settled, mut changed) = (Vec::with_capacity(queues.len()), Vec::new());
    let batches = stream::iter(batches(queues)).map(|batch| async move {
        let mut paths = Vec::new();
        for queue in &batch {
            paths.extend(reads_directory(queue, with_data).then(|| queue.path().to_owned()));
            paths.extend((0..queue.len()).map(|place| queue.node(place)));
        }
        Ok::<_, ServerError>((batch, reader.get(&paths).await?))
    });
    let mut batches = batches.buffered(READS);
    while let Some((batch, nodes)) = batches.try_next().await? {
        let mut nodes = nodes.into_iter();
        for mut queue in batch {
            if reads_directory(&queue, with_data) {
                if let Some(Ok((data, stat))) = nodes.next() {
                    queue.note_directory(&data, &stat);
                }
            }
            let own = nodes.by_ref().take(queue.len()).collect();
            let has_lost_a_writer = queue.note_contenders(own, owners);
            match has_lost_a_writer || !queue.unread_members().is_empty() {
                true => changed.push(queue),
                false => settled.push(queue),
            }
        }
    }
    Ok((settled, changed))
}

/// True if the data of the directory says more of the queue.
fn reads_directory(queue: &QueueStatus, with_data: &HashSet<String>) -> bool {
    let matters = match queue.kind() {
        QueueKind::Lock | QueueKind::Semaphore | QueueKind::Election => true,
        QueueKind::Group => queue.has_names_of_kazoo(),
        _ => queue.is_mixed(),
    };
    matters && with_data.contains(queue.path())
}

/// Queues that are read together.
fn batches(queues: Vec<QueueStatus>) -> impl Iterator<Item = Vec<QueueStatus>> {
    let mut queues = queues.into_iter().peekable();
    std::iter::from_fn(move || {
        let (mut batch, mut znodes) = (Vec::new(), 0);
        while let Some(queue) = queues.next_if(|it| znodes == 0 || znodes + it.len() < BATCH) {
            znodes += queue.len() + 1;
            batch.push(queue);
        }
        (!batch.is_empty()).then_some(batch)
    })
}
