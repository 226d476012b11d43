//! The tree of znodes, as one server has it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use zookeeper_recipes_protocol::{Acl, EventType, Permission, Stat};

use super::access::anyone;
use super::paths;

/// What keeps the znode alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Nobody,
    Container,
    /// The time to live, in milliseconds.
    Ttl(i64),
    Session(i64),
}

/// The longest time to live, in milliseconds: what five bytes hold.
pub(super) const LONGEST_TTL: i64 = (1 << 40) - 1;

impl Owner {
    /// The `ephemeralOwner` in the metadata. It shows neither containers nor times to live.
    pub(crate) fn ephemeral_owner(self) -> i64 {
        match self {
            Owner::Nobody | Owner::Container | Owner::Ttl(_) => 0,
            Owner::Session(session) => session,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Znode {
    /// `None` if the data is absent. Only clients over TCP distinguish that from empty data.
    pub(crate) data: Option<Vec<u8>>,
    /// Shared, since it may be long, and each change of a child takes it along.
    pub(crate) acl: Arc<[Acl]>,
    pub(crate) owner: Owner,
    pub(crate) version: i32,
    pub(crate) acl_version: i32,
    /// The number of children ever created: the counter behind the sequence numbers.
    pub(crate) creates: i32,
    pub(crate) children: BTreeSet<String>,
    czxid: i64,
    mzxid: i64,
    pub(crate) pzxid: i64,
    ctime: i64,
    mtime: i64,
}

impl Znode {
    /// An empty znode of nobody, created by the transaction `zxid`.
    fn new(acl: Arc<[Acl]>, zxid: i64, time: i64) -> Znode {
        Znode {
            data: Some(Vec::new()),
            acl,
            owner: Owner::Nobody,
            version: 0,
            acl_version: 0,
            creates: 0,
            children: BTreeSet::new(),
            czxid: zxid,
            mzxid: zxid,
            pzxid: zxid,
            ctime: time,
            mtime: time,
        }
    }

    pub(crate) fn stat(&self) -> Stat {
        let children = self.children.len() as i32;
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            ctime: self.ctime,
            mtime: self.mtime,
            version: self.version,
            // A server reports the count of creates and deletes. Each created child has been
            // deleted since, except those that exist.
            cversion: self.creates.wrapping_mul(2).wrapping_sub(children),
            aversion: self.acl_version,
            ephemeral_owner: self.owner.ephemeral_owner(),
            data_length: self.data_length() as i32,
            num_children: children,
        }
    }

    pub(crate) fn data_length(&self) -> usize {
        self.data.as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn modified(&self) -> i64 {
        self.mzxid
    }

    /// True if the leader deletes the znode at this time, in milliseconds since 1970.
    pub(super) fn is_due(&self, now: i64) -> bool {
        self.children.is_empty()
            && match self.owner {
                Owner::Container => self.stat().cversion > 0,
                Owner::Ttl(milliseconds) => now - self.mtime > milliseconds,
                Owner::Nobody | Owner::Session(_) => false,
            }
    }
}

/// What a transaction does to one znode: decided by the leader, applied alike by every server.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    pub(crate) path: String,
    pub(crate) kind: EditKind,
}

#[derive(Clone, Debug)]
pub(crate) enum EditKind {
    Check,
    Create {
        data: Option<Vec<u8>>,
        acl: Arc<[Acl]>,
        owner: Owner,
        parent_creates: i32,
    },
    Delete,
    SetData {
        data: Option<Vec<u8>>,
        version: i32,
    },
    SetAcl(Arc<[Acl]>),
    SetCreates(i32),
}

impl EditKind {
    /// This edit of the znode at `path`.
    pub(super) fn of(self, path: &str) -> Edit {
        Edit {
            path: path.to_owned(),
            kind: self,
        }
    }
}

/// The effects of an edit.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// The event for the watchers.
    pub(crate) trigger: Option<EventType>,
    /// The znode's metadata, if a reply carries it.
    pub(crate) stat: Option<Stat>,
    /// Who may read the znode, and so is notified of it.
    pub(crate) acl: Arc<[Acl]>,
    /// Who may read the parent, and so is notified of its children.
    pub(crate) parent_acl: Arc<[Acl]>,
}

/// One server's copy of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Znode>,
    /// The last transaction applied.
    pub(crate) zxid: i64,
}

impl Default for Tree {
    fn default() -> Tree {
        let mut tree = Tree {
            nodes: BTreeMap::new(),
            zxid: 0,
        };
        let node = |children: &[&str]| Znode {
            children: children.iter().map(|child| (*child).to_owned()).collect(),
            ..Znode::new(anyone(Permission::ALL).into(), 0, 0)
        };
        tree.nodes.insert("/".to_owned(), node(&["zookeeper"]));
        tree.nodes
            .insert("/zookeeper".to_owned(), node(&["config", "quota"]));
        let config = Znode {
            acl_version: -1,
            ..Znode::new(anyone(Permission::READ).into(), 0, 0)
        };
        tree.nodes.insert("/zookeeper/config".to_owned(), config);
        tree.nodes.insert("/zookeeper/quota".to_owned(), node(&[]));
        tree
    }
}

impl Tree {
    pub(crate) fn get(&self, path: &str) -> Option<&Znode> {
        self.nodes.get(paths::of_node(path))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Znode)> {
        self.nodes.iter()
    }

    /// The ephemeral znodes of a session, in the order of their paths.
    pub(crate) fn ephemerals(&self, session: i64) -> Vec<String> {
        self.nodes
            .iter()
            .filter(|(_, node)| node.owner == Owner::Session(session))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Applies one edit of the transaction `zxid`.
    pub(super) fn apply(&mut self, edit: &Edit, zxid: i64, time: i64) -> Applied {
        let path = &edit.path;
        match &edit.kind {
            EditKind::Check => Applied {
                stat: self.nodes.get(path).map(Znode::stat),
                ..Applied::default()
            },
            EditKind::Create {
                data,
                acl,
                owner,
                parent_creates,
            } => {
                let parent_acl = self.add_to_parent(path, *parent_creates, zxid);
                let node = Znode {
                    data: data.clone(),
                    owner: *owner,
                    ..Znode::new(acl.clone(), zxid, time)
                };
                let stat = node.stat();
                self.nodes.insert(path.clone(), node);
                Applied {
                    trigger: Some(EventType::NodeCreated),
                    stat: Some(stat),
                    acl: acl.clone(),
                    parent_acl,
                }
            }
            EditKind::Delete => self.delete(path, zxid),
            EditKind::SetAcl(acl) => self.edit(path, |node| {
                node.acl = Arc::clone(acl);
                node.acl_version = node.acl_version.wrapping_add(1);
            }),
            EditKind::SetCreates(creates) => self.edit(path, |node| node.creates = *creates),
            EditKind::SetData { data, version } => {
                let applied = self.edit(path, |node| {
                    node.data.clone_from(data);
                    node.version = *version;
                    node.mzxid = zxid;
                    node.mtime = time;
                });
                Applied {
                    trigger: applied.stat.map(|_| EventType::NodeDataChanged),
                    ..applied
                }
            }
        }
    }

    /// Changes a znode, if it exists.
    fn edit(&mut self, path: &str, change: impl FnOnce(&mut Znode)) -> Applied {
        let Some(node) = self.nodes.get_mut(path) else {
            return Applied::default();
        };
        change(node);
        Applied {
            stat: Some(node.stat()),
            acl: node.acl.clone(),
            ..Applied::default()
        }
    }

    /// Adds a child to its parent, and returns the parent's access control list.
    fn add_to_parent(&mut self, path: &str, parent_creates: i32, zxid: i64) -> Arc<[Acl]> {
        let (parent, name) = split(path);
        let Some(parent) = self.nodes.get_mut(parent) else {
            return Arc::default();
        };
        // Word for word the server's rule, with its end: past 2147483647 the counter wraps in the
        // leader's proposal and is dropped here, and the parent's pzxid no longer moves with a
        // create.
        let proposed = if parent_creates == -1 {
            parent.creates.wrapping_add(1)
        } else {
            parent_creates
        };
        if proposed > parent.creates {
            parent.creates = proposed;
            parent.pzxid = zxid;
        }
        parent.children.insert(name.to_owned());
        parent.acl.clone()
    }

    fn delete(&mut self, path: &str, zxid: i64) -> Applied {
        let Some(removed) = self.nodes.remove(path) else {
            return Applied::default();
        };
        let (parent, name) = split(path);
        let mut parent_acl = Arc::default();
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent_acl = Arc::clone(&parent.acl);
            parent.children.remove(name);
            parent.pzxid = parent.pzxid.max(zxid);
        }
        Applied {
            trigger: Some(EventType::NodeDeleted),
            stat: None,
            acl: removed.acl,
            parent_acl,
        }
    }
}

/// The parent's path, and the name below it.
pub(crate) fn split(path: &str) -> (&str, &str) {
    match path.rfind('/') {
        Some(0) => ("/", &path[1..]),
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => ("/", path),
    }
}
