//! The changes of a tree of znodes since it was last read.

use std::collections::BTreeMap;
use std::iter::successors;

use zookeeper_recipes_core::ensemble::TreeEvent;

/// How many changed znodes are noted. If there are more, all is read again.
const MOST: usize = 100_000;

/// The znodes that have changed, by their directories.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    directories: ChangedDirectories,
    number: usize,
    is_missed: bool,
}

/// Changed children, by their names.
pub(crate) type ChangedChildren = BTreeMap<String, Change>;

/// Changed children, by the paths of their directories.
pub(crate) type ChangedDirectories = BTreeMap<String, ChangedChildren>;

/// What has become of a znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It was created, and perhaps an older znode of this name was deleted before.
    Created,
    Written,
    Deleted,
}

impl Changes {
    /// Changes that are not known: all is to be read.
    pub(crate) fn unknown() -> Changes {
        Changes {
            is_missed: true,
            ..Changes::default()
        }
    }

    pub(crate) fn note(&mut self, event: TreeEvent) {
        let (path, change) = match event {
            TreeEvent::Created(path) => (path, Change::Created),
            TreeEvent::Deleted(path) => (path, Change::Deleted),
            TreeEvent::DataChanged(path) => (path, Change::Written),
            TreeEvent::Missed => return *self = Changes::unknown(),
        };
        // It belongs to the servers.
        if path == "/zookeeper" || path.starts_with("/zookeeper/") {
            return;
        }
        let (directory, name) = split(&path);
        if self.insert(directory, name, change) && self.number > MOST {
            *self = Changes::unknown();
        }
    }

    /// True if it is a change of a znode that has not changed before.
    fn insert(&mut self, directory: &str, name: &str, change: Change) -> bool {
        let children = match self.directories.get_mut(directory) {
            Some(children) => children,
            None => self.directories.entry(directory.to_owned()).or_default(),
        };
        match (children.get_mut(name), change) {
            (Some(Change::Created), Change::Written) => {}
            (Some(noted), change) => *noted = change,
            (None, change) => {
                children.insert(name.to_owned(), change);
                self.number += 1;
                return true;
            }
        }
        false
    }

    /// True if all has to be read again.
    pub(crate) fn is_missed(&self) -> bool {
        self.is_missed
    }

    /// The changes that were noted, which are forgotten.
    pub(crate) fn take(&mut self) -> ChangedDirectories {
        self.number = 0;
        std::mem::take(&mut self.directories)
    }

    /// Notes that a child has to be read.
    pub(crate) fn want(&mut self, directory: &str, name: &str) {
        let children = self.directories.get(directory);
        if !children.is_some_and(|children| children.contains_key(name)) {
            self.insert(directory, name, Change::Created);
        }
    }

    /// True if a child of this directory was created.
    pub(crate) fn has_created(&self, directory: &str) -> bool {
        let mut children = self.directories.get(directory).into_iter().flatten();
        children.any(|(_, change)| *change == Change::Created)
    }

    /// Takes the changes of these directories, which follow the given ones.
    ///
    /// The changes of the directories above come with them. A directory that was created anew is noted
    /// as empty, so its creation must not be noted after the changes of its children.
    pub(crate) fn take_after(&mut self, earlier: ChangedDirectories) -> ChangedDirectories {
        let mut later = Vec::new();
        for directory in earlier.keys() {
            let paths = with_all_above(directory);
            later.extend(paths.filter_map(|path| self.directories.remove_entry(path)));
        }
        let mut taken = Changes {
            directories: earlier,
            ..Changes::default()
        };
        for (directory, children) in later {
            self.number -= children.len();
            for (name, change) in children {
                taken.insert(&directory, &name, change);
            }
        }
        taken.directories
    }

    /// Notes changes that are earlier than the noted ones.
    pub(crate) fn put_back(&mut self, earlier: ChangedDirectories) {
        let merged = self.take_after(earlier);
        for (directory, children) in merged {
            for (name, change) in children {
                self.insert(&directory, &name, change);
            }
        }
    }
}

/// The directory of a znode, and its name there. The root is the znode without a name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", "")) | None => ("", ""),
        Some(("", name)) => ("/", name),
        Some((directory, name)) => (directory, name),
    }
}

/// The directory, and each directory above it.
fn with_all_above(directory: &str) -> impl Iterator<Item = &str> {
    successors(Some(directory), |path| {
        (!path.is_empty()).then_some(split(path).0)
    })
}
