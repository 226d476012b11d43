//! The directories of a tree, as they were read last, changed by what has happened since.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use zookeeper_recipes_core::ensemble::Node;
use zookeeper_recipes_core::{Refusal, ServerError};

use crate::changes::{Change, ChangedChildren, ChangedDirectories, split};
use crate::kind::{QueueKind, contender, is_contender, is_writer};
use crate::queue::{Child, Owners, QueueStatus, child, may_be_behind, shared};
use crate::reader::Reader;
use crate::sessions::Sessions;
use crate::walk::{Assignments, BATCH, READS, Unread, Walk, read_directories};

/// What is known of a tree.
#[derive(Debug)]
pub(crate) struct Mirror {
    root: String,
    exists: bool,
    /// The directories that have contenders or members, or had some since they were read.
    ///
    /// In the order of their paths.
    directories: Vec<Arc<QueueStatus>>,
    /// Those that differ since. `None` for one that is not a directory any more.
    changed: BTreeMap<String, Option<Arc<QueueStatus>>>,
    unread: BTreeMap<String, Refusal>,
    assignments: Assignments,
    sessions: Sessions,
    /// False if the last search found no possible circle, and no change since can have closed one.
    may_have_circles: bool,
    owners: Owners,
}

/// What was read of changed znodes.
#[derive(Debug, Default)]
pub(crate) struct Found {
    nodes: Nodes,
    /// The directories that were not known. `None` for one that has no contenders.
    listed: HashMap<String, Option<QueueStatus>>,
    /// The directories that may not be listed.
    refused: BTreeMap<String, Refusal>,
    /// The directories of which nothing was read, because the session might not.
    passed_over: HashSet<String>,
}

type Nodes = HashMap<String, Result<Node, Refusal>>;

impl Mirror {
    pub(crate) fn of(root: &str, walk: Walk) -> Mirror {
        let directories = shared(walk.queues);
        let unread = walk.unread.into_iter();
        Mirror {
            root: root.to_owned(),
            exists: walk.exists,
            sessions: Sessions::of(&directories),
            directories,
            changed: BTreeMap::new(),
            unread: unread.map(|it| (it.path, it.refusal)).collect(),
            assignments: walk.assignments,
            may_have_circles: true,
            owners: Owners::default(),
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    pub(crate) fn unread(&self) -> Vec<Unread> {
        let unread = self.unread.iter();
        let unread = unread.map(|(path, refusal)| Unread {
            path: path.clone(),
            refusal: refusal.clone(),
        });
        unread.collect()
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// False if there is no circle, because there was none before the changes.
    ///
    /// A change closes a circle, or keeps a contender of one from going on, only in a queue of a session
    /// that waits in one queue and is in another one. All other waits close no circle.
    pub(crate) fn may_have_circles(&self) -> bool {
        self.may_have_circles
    }

    /// Notes that a search of the present queues found no possible circle.
    pub(crate) fn note_no_circle(&mut self) {
        self.may_have_circles = false;
    }

    /// The queues that have contenders or members, in the order of their paths.
    pub(crate) fn queues(&mut self) -> Vec<Arc<QueueStatus>> {
        self.merge();
        let queues = self.directories.iter().filter(|queue| !queue.is_empty());
        queues.cloned().collect()
    }

    fn merge(&mut self) {
        if self.changed.is_empty() {
            return;
        }
        let mut changed = std::mem::take(&mut self.changed).into_iter().peekable();
        let mut merged = Vec::with_capacity(self.directories.len() + changed.len());
        for directory in self.directories.drain(..) {
            while let Some((_, new)) = changed.next_if(|(path, _)| **path < *directory.path()) {
                merged.extend(new);
            }
            match changed.next_if(|(path, _)| **path == *directory.path()) {
                Some((_, new)) => merged.extend(new),
                None => merged.push(directory),
            }
        }
        merged.extend(changed.filter_map(|(_, new)| new));
        self.directories = merged;
        self.owners.prune();
    }

    fn directory(&self, path: &str) -> Option<&Arc<QueueStatus>> {
        if let Some(changed) = self.changed.get(path) {
            return changed.as_ref();
        }
        let place = self.directories.binary_search_by(|it| it.path().cmp(path));
        Some(&self.directories[place.ok()?])
    }

    fn set(&mut self, path: &str, mut new: Option<QueueStatus>) {
        if let Some(new) = &mut new {
            if self.assignments.has_partition(path) {
                new.note_partition();
            }
        }
        let old = self.directory(path).cloned();
        if old.is_none() && new.is_none() {
            return;
        }
        if let Some(old) = old {
            self.sessions.remove(&old);
        }
        let new = new.map(Arc::new);
        if let Some(new) = &new {
            self.sessions.add(new);
            self.may_have_circles |= self.sessions.is_crossed(new);
        }
        self.changed.insert(path.to_owned(), new);
    }

    /// True if nothing below this path is read, because the session may not.
    fn is_below_unread(&self, path: &str) -> bool {
        let is_below = |unread: &String| {
            let below = path.strip_prefix(unread.trim_end_matches('/'));
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        self.unread.keys().any(is_below)
    }

    /// Reads what these changes make necessary.
    pub(crate) async fn find(
        &self,
        reader: &Reader,
        changes: &ChangedDirectories,
    ) -> Result<Found, ServerError> {
        let mut found = Found::default();
        let (mut paths, mut lists) = (Vec::new(), Vec::new());
        for (directory, children) in changes {
            if self.is_below_unread(directory) {
                found.passed_over.insert(directory.clone());
                continue;
            }
            let known = self.directory(directory);
            for (name, change) in children {
                let path = child(directory, name);
                let is_shown = || {
                    known.is_some_and(|queue| queue.has(name)) || self.directory(&path).is_some()
                };
                let is_read = match change {
                    Change::Created => true,
                    Change::Written => is_shown(),
                    Change::Deleted => false,
                };
                paths.extend(is_read.then_some(path));
            }
            // All that is in a directory was created after it.
            let (above, name) = split(directory);
            let is_new = changes.get(above).and_then(|it| it.get(name)) == Some(&Change::Created);
            let is_listed = is_new || known.is_some_and(|queue| queue.is_listed());
            let is_data_known = is_new || known.is_some_and(|queue| queue.is_data_known());
            let mut created = children.iter().filter(|(_, it)| **it == Change::Created);
            // The data matters for some kinds only, and each of these changes can make another kind.
            let may_change_kind = |change: &Change| match change {
                Change::Created => true,
                Change::Written => false,
                Change::Deleted => known.is_some(),
            };
            if !is_listed && created.any(|(name, _)| is_contender(name)) {
                lists.push(directory.clone());
            } else if has_lost_writer(known.map(Arc::as_ref), children)
                || !is_data_known && children.values().any(may_change_kind)
            {
                paths.push(directory.clone());
            }
        }
        let parts: Vec<Vec<String>> = paths.chunks(BATCH).map(<[_]>::to_vec).collect();
        let reads = stream::iter(parts).map(|paths| async move {
            let nodes = reader.get(&paths).await?;
            Ok::<_, ServerError>(paths.into_iter().zip(nodes))
        });
        let read: Vec<_> = reads.buffered(READS).try_collect().await?;
        found.nodes = read.into_iter().flatten().collect();
        list(reader, lists, &mut found).await?;
        Ok(found)
    }

    /// Applies changes, by what was found of them. Returns those that have to be read again.
    ///
    /// A contender behind one that has left since would seem to hold, although a third one may be in
    /// its place. So each queue is shown as it was at one moment. `is_moved` says if a directory has
    /// got new children since. If the creation of a directory is returned, so are the changes of its
    /// children. With `is_last` no change is returned.
    pub(crate) fn apply(
        &mut self,
        changes: ChangedDirectories,
        found: Found,
        is_moved: impl Fn(&str) -> bool,
        is_last: bool,
    ) -> ChangedDirectories {
        let mut again = ChangedDirectories::new();
        self.unread.extend(found.refused);
        for (directory, children) in changes {
            if self.is_below_unread(&directory) {
                continue;
            }
            let mut known = self.directory(&directory).cloned();
            if let Some(Some(listed)) = found.listed.get(&directory) {
                let members = known.iter().flat_map(|it| it.all_members().to_vec());
                let mut listed = listed.clone();
                listed.note_aside(members.collect());
                known = Some(Arc::new(listed));
            }
            let (above, name) = split(&directory);
            // It was passed over, and may be read now.
            let is_early = found.passed_over.contains(&directory)
                || again.get(above).is_some_and(|it| it.contains_key(name));
            let left = has_left(known.as_deref(), &directory, &children, &found.nodes)
                || is_moved(&directory) && has_lost_writer(known.as_deref(), &children);
            if (left || is_early) && !is_last {
                again.insert(directory, children);
                continue;
            }
            let is_listed = found.listed.contains_key(&directory);
            self.apply_to(&directory, known, is_listed, children, &found.nodes);
        }
        again
    }

    fn apply_to(
        &mut self,
        directory: &str,
        known: Option<Arc<QueueStatus>>,
        is_listed: bool,
        children: ChangedChildren,
        nodes: &Nodes,
    ) {
        let mut updates = Vec::new();
        for (name, change) in children {
            let path = child(directory, &name);
            let update = match (change, nodes.get(&path)) {
                (Change::Deleted, _) | (_, Some(Err(Refusal::NoNode))) => self.forget(&path),
                (_, None) => continue,
                (_, Some(Ok(node))) => self.note(&path, change, node),
                (_, Some(Err(_))) if is_contender(&name) => Child::Contender(None),
                (_, Some(Err(refusal))) => {
                    self.unread.insert(path, refusal.clone());
                    Child::Directory
                }
            };
            // A list has shown the contenders.
            if !(is_listed && is_contender(&name)) {
                updates.push((name, update));
            }
        }
        let is_queue =
            |(_, update): &(_, Child)| matches!(update, Child::Contender(_) | Child::Member(_));
        let mut queue = match known {
            Some(known) => known.updated(updates),
            None if updates.iter().any(is_queue) => {
                QueueStatus::unknown(directory.to_owned()).updated(updates)
            }
            None => return,
        };
        if let Some(Ok((data, stat))) = nodes.get(directory) {
            queue.note_data(data, stat);
        }
        self.set(directory, Some(queue));
    }

    /// Notes a znode that is no contender.
    fn note(&mut self, path: &str, change: Change, node: &Node) -> Child {
        let (directory, name) = split(path);
        let child = Child::of(name, node, &mut self.owners);
        let (data, stat) = node;
        if matches!(child, Child::Directory) {
            self.exists |= path == self.root;
            self.unread.remove(path);
            if change == Change::Created {
                let new = QueueStatus::of_directory(path.to_owned(), data, stat);
                self.set(path, Some(new));
                self.assignments.note(directory, name);
                self.note_partitions(directory);
            } else if let Some(known) = self.directory(path) {
                let mut known = QueueStatus::clone(known);
                known.note_data(data, stat);
                self.set(path, Some(known));
            }
        }
        child
    }

    fn forget(&mut self, path: &str) -> Child {
        let (directory, name) = split(path);
        self.exists &= path != self.root;
        self.unread.remove(path);
        self.set(path, None);
        self.assignments.forget(directory, name);
        self.note_partitions(directory);
        Child::Gone
    }

    /// Finds the kinds of the locks anew, if a directory has become an assignment, or is none now.
    fn note_partitions(&mut self, directory: &str) {
        if !self.assignments.has_changed(directory) {
            return;
        }
        let locks = child(&child(directory, "locks"), "");
        let first = self.directories.partition_point(|it| *it.path() < *locks);
        let known = self.directories[first..].iter().map(|it| it.path());
        let changed = self.changed.range(locks.clone()..).map(|it| it.0.as_str());
        let is_below = |path: &&str| path.starts_with(&locks);
        let below = known.take_while(is_below);
        let below = below.chain(changed.take_while(is_below)).map(str::to_owned);
        for path in below.collect::<BTreeSet<String>>() {
            let queue = self.directory(&path).map(|it| it.updated(Vec::new()));
            self.set(&path, queue);
        }
    }

    /// The znodes that have become members since all contenders beside them have left.
    pub(crate) fn unread_members(&self) -> Vec<(String, String)> {
        let changed = self.changed.values().flatten();
        let members = changed.flat_map(|queue| {
            let names = queue.unread_members().iter();
            names.map(|name| (queue.path().to_owned(), name.clone()))
        });
        members.collect()
    }
}

/// True if a contender has left before it was read, and another one was behind it.
fn has_left(
    known: Option<&QueueStatus>,
    directory: &str,
    children: &ChangedChildren,
    nodes: &Nodes,
) -> bool {
    let node = |name: &str| nodes.get(&child(directory, name));
    let created = children
        .iter()
        .filter(|(name, change)| **change == Change::Created && is_contender(name));
    let mut gone = created
        .clone()
        .filter(|(name, _)| matches!(node(name), Some(Err(Refusal::NoNode))));
    gone.any(|(name, _)| {
        let mut others = created
            .clone()
            .filter(|(other, _)| matches!(node(other), Some(Ok(_))));
        known.is_some_and(|queue| queue.has_behind(name))
            || others.any(|(other, _)| may_be_behind(other, name))
    })
}

/// True if a writer of a read/write lock was deleted. A reader may have got its place.
fn has_lost_writer(known: Option<&QueueStatus>, children: &ChangedChildren) -> bool {
    let mut deleted = children.iter().filter(|(_, it)| **it == Change::Deleted);
    known.is_some_and(|queue| queue.kind() == QueueKind::ReadWriteLock)
        && deleted.any(|(name, _)| contender(name).is_some_and(|it| is_writer(&it)))
}

/// Lists directories that were not known, and reads their contenders.
async fn list(reader: &Reader, paths: Vec<String>, found: &mut Found) -> Result<(), ServerError> {
    found.listed = paths.iter().map(|path| (path.clone(), None)).collect();
    let (queues, refused) = read_directories(reader, paths).await?;
    for (path, refusal) in refused {
        if refusal != Refusal::NoNode {
            found.listed.remove(&path);
            found.refused.insert(path, refusal);
        }
    }
    let queues = queues.into_iter();
    let queues = queues.map(|queue| (queue.path().to_owned(), Some(queue)));
    found.listed.extend(queues);
    Ok(())
}
