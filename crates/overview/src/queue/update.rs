//! A queue after some of its children have changed.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use zookeeper_recipes_core::ensemble::Node;
use zookeeper_recipes_core::{Stat, order, ordered_by_czxid};

use crate::kind::{QueueKind, contender, is_mixed, kind};
use crate::queue::{Facts, Owners, QueueStatus};

/// What a child of a directory is.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    Gone,
    /// A contender. Without what was read, if it may not be read.
    Contender(Option<Facts>),
    /// An ephemeral znode that is no contender.
    Member(Facts),
    /// Any other znode.
    Directory,
}

impl Child {
    /// The child of this name, as it was read.
    pub(crate) fn of(name: &str, node: &Node, owners: &mut Owners) -> Child {
        if contender(name).is_some() {
            Child::Contender(Some(Facts::of(node, owners)))
        } else if node.1.ephemeral_owner != 0 {
            Child::Member(Facts::of(node, owners))
        } else {
            Child::Directory
        }
    }
}

/// True if the first contender may be behind the second one. Numbers may have wrapped.
pub(crate) fn may_be_behind(one: &str, other: &str) -> bool {
    let number = |name| contender(name).map(|it| it.sequence().get());
    number(one) >= number(other)
}

impl QueueStatus {
    /// A directory without children, whose data was read.
    pub(crate) fn of_directory(path: String, data: &[u8], stat: &Stat) -> QueueStatus {
        let mut queue = QueueStatus::of_names(path, Vec::new());
        queue.note_directory(data, stat);
        queue
    }

    /// A directory of which nothing is known.
    pub(crate) fn unknown(path: String) -> QueueStatus {
        QueueStatus {
            is_listed: false,
            ..QueueStatus::of_names(path, Vec::new())
        }
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }

    pub(crate) fn is_data_known(&self) -> bool {
        self.is_data_known
    }

    /// Notes that the directory has no data.
    pub(crate) fn note_no_data(&mut self) {
        self.is_data_known = true;
    }

    /// Notes the ephemeral znodes beside the contenders, if they are still there.
    pub(crate) fn note_aside(&mut self, mut names: Vec<String>) {
        names.retain(|name| self.foreign.contains(name));
        self.aside = names;
    }

    /// The queue of these names, with the members that are still there. Nothing of it is read.
    pub(crate) fn listed_again(&self, names: Vec<String>) -> QueueStatus {
        let mut listed = QueueStatus::of_names(self.path.clone(), names);
        listed.note_aside(self.all_members().to_vec());
        match listed.unread_members().is_empty() {
            true => listed,
            false => QueueStatus::of_members(listed.path, listed.aside),
        }
    }

    /// The members, also those beside contenders.
    pub(crate) fn all_members(&self) -> &[String] {
        match self.members.is_empty() {
            true => &self.aside,
            false => &self.members,
        }
    }

    /// The znodes that have become members now that all contenders have left. They have to be read.
    pub(crate) fn unread_members(&self) -> &[String] {
        match self.contenders.is_empty() {
            true => &self.aside,
            false => &[],
        }
    }

    /// True if this is a contender or a member.
    pub(crate) fn has(&self, name: &str) -> bool {
        (0..self.len()).any(|place| self.name(place) == name)
    }

    /// True if the queue has a contender that may be behind this one.
    pub(crate) fn has_behind(&self, name: &str) -> bool {
        let mut others = self.contenders.iter();
        others.any(|other| other.name() != name && may_be_behind(other.name(), name))
    }

    /// Notes that the data of the directory has changed.
    pub(crate) fn note_data(&mut self, data: &[u8], stat: &Stat) {
        self.note_directory(data, stat);
        self.standings = OnceLock::new();
        self.recognise();
    }

    /// The same queue after these children have changed.
    pub(crate) fn updated(&self, children: Vec<(String, Child)>) -> QueueStatus {
        let changed: HashSet<&str> = children.iter().map(|(name, _)| name.as_str()).collect();
        let stays = |name: &str| !changed.contains(name);
        let mut queue = self.clone();
        queue.standings = OnceLock::new();
        let facts = std::mem::take(&mut queue.facts).into_iter().enumerate();
        let mut facts: HashMap<String, Option<Facts>> = facts
            .map(|(place, facts)| (self.name(place).to_owned(), facts))
            .collect();
        queue.contenders.retain(|it| stays(it.name()));
        for names in [&mut queue.members, &mut queue.foreign, &mut queue.aside] {
            names.retain(|name| stays(name));
        }
        for (name, child) in children {
            match child {
                Child::Gone => {}
                Child::Contender(its) => {
                    queue.contenders.extend(contender(&name));
                    facts.insert(name, its);
                }
                Child::Member(its) => {
                    facts.insert(name.clone(), Some(its));
                    queue.members.push(name);
                }
                Child::Directory => queue.foreign.push(name),
            }
        }
        queue.part();
        queue.place(facts);
        queue.recognise();
        queue
    }

    /// Puts the members aside if there are contenders.
    fn part(&mut self) {
        if !self.contenders.is_empty() {
            self.aside.append(&mut self.members);
            self.foreign.extend(self.aside.iter().cloned());
        } else if !self.aside.is_empty() {
            self.foreign.retain(|name| !self.aside.contains(name));
        }
        for names in [&mut self.members, &mut self.foreign, &mut self.aside] {
            names.sort_unstable();
            names.dedup();
        }
    }

    /// Orders the contenders, and puts what was read of each to its place.
    fn place(&mut self, mut facts: HashMap<String, Option<Facts>>) {
        order(&mut self.contenders);
        if !ordered_by_czxid(&self.contenders).is_empty() {
            for contender in &mut self.contenders {
                if let Some(Some(its)) = facts.get(contender.name()) {
                    contender.set_czxid(its.stat.czxid);
                }
            }
            order(&mut self.contenders);
        }
        let placed = (0..self.len()).map(|place| facts.remove(self.name(place)).flatten());
        self.facts = placed.collect();
    }

    /// Finds the kind anew.
    fn recognise(&mut self) {
        self.kind = match self.members.is_empty() {
            true => kind(&self.contenders),
            false => QueueKind::Group,
        };
        self.is_mixed = is_mixed(self.kind, &self.contenders);
        self.recognise_data();
    }
}
