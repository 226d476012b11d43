//! The znodes of an ensemble in memory, and their watches.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use zookeeper_recipes_core::Stat;
use zookeeper_recipes_core::ensemble::{CreateMode, Created, EventType, Node, WatchEvent};
use zookeeper_recipes_protocol::ErrorCode;

/// What a watch is set on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Znode,
    Children,
}

/// The znodes, and the watches on them.
#[derive(Debug)]
pub(crate) struct Znodes {
    znodes: BTreeMap<String, Znode>,
    watches: Vec<(String, Watched, oneshot::Sender<WatchEvent>)>,
    last_zxid: i64,
}

#[derive(Clone, Debug, Default)]
struct Znode {
    data: Vec<u8>,
    stat: Stat,
    /// The number of the next sequential child.
    next: i32,
}

impl Default for Znodes {
    fn default() -> Znodes {
        Znodes {
            znodes: BTreeMap::from([(String::from("/"), Znode::default())]),
            watches: Vec::new(),
            last_zxid: 0,
        }
    }
}

fn parent_of(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

impl Znodes {
    pub(crate) fn watch(&mut self, path: &str, watched: Watched) -> oneshot::Receiver<WatchEvent> {
        let (fire, event) = oneshot::channel();
        self.watches.push((path.to_owned(), watched, fire));
        event
    }

    fn fire(&mut self, path: &str, watched: Watched, event: EventType) {
        let mut fired = Vec::new();
        self.watches.retain_mut(|(on, kind, fire)| {
            let is_meant = on == path && *kind == watched;
            if is_meant {
                let (spent, _) = oneshot::channel();
                fired.push(std::mem::replace(fire, spent));
            }
            !is_meant && !fire.is_closed()
        });
        for fire in fired {
            // A watch that was dropped hears nothing.
            let _ = fire.send(WatchEvent::Fired(event));
        }
    }

    pub(crate) fn get(&self, path: &str) -> Result<Node, ErrorCode> {
        let znode = self.znodes.get(path).ok_or(ErrorCode::NoNode)?;
        Ok((znode.data.clone(), znode.stat))
    }

    pub(crate) fn children(&self, path: &str) -> Result<Vec<String>, ErrorCode> {
        self.get(path)?;
        let paths = self.znodes.keys();
        let children = paths.filter(|child| *child != "/" && parent_of(child) == path);
        let name = |child: &String| child.rsplit('/').next().map(str::to_owned);
        Ok(children.filter_map(name).collect())
    }

    pub(crate) fn of_session(&self, session: i64) -> Vec<String> {
        let all = self.znodes.iter();
        let of_session = all.filter(|(_, znode)| znode.stat.ephemeral_owner == session);
        of_session.map(|(path, _)| path.clone()).collect()
    }

    pub(crate) fn create(
        &mut self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        session: i64,
    ) -> Result<Created, ErrorCode> {
        let parent = parent_of(path).to_owned();
        let directory = self.znodes.get_mut(&parent).ok_or(ErrorCode::NoNode)?;
        let mut path = path.to_owned();
        if mode.is_sequential() {
            path += &format!("{:010}", directory.next);
        }
        directory.next += 1;
        if self.znodes.contains_key(&path) {
            return Err(ErrorCode::NodeExists);
        }
        self.last_zxid += 1;
        let is_ephemeral = matches!(
            mode,
            CreateMode::Ephemeral | CreateMode::EphemeralSequential
        );
        let stat = Stat {
            czxid: self.last_zxid,
            mzxid: self.last_zxid,
            pzxid: self.last_zxid,
            ephemeral_owner: if is_ephemeral { session } else { 0 },
            ..Stat::default()
        };
        let znode = Znode {
            data: data.to_vec(),
            stat,
            next: 0,
        };
        self.znodes.insert(path.clone(), znode);
        self.changed_children(&parent);
        self.fire(&path, Watched::Znode, EventType::NodeCreated);
        Ok(Created {
            path,
            stat,
            connection: None,
        })
    }

    fn changed_children(&mut self, directory: &str) {
        if let Some(directory) = self.znodes.get_mut(directory) {
            directory.stat.pzxid = self.last_zxid;
            directory.stat.cversion += 1;
        }
        self.fire(directory, Watched::Children, EventType::NodeChildrenChanged);
    }

    pub(crate) fn delete(&mut self, path: &str) -> Result<(), ErrorCode> {
        self.znodes.remove(path).ok_or(ErrorCode::NoNode)?;
        self.last_zxid += 1;
        self.changed_children(parent_of(path));
        self.fire(path, Watched::Znode, EventType::NodeDeleted);
        Ok(())
    }

    /// Deletes all of these znodes or none. The error is the place of the one that does not exist.
    pub(crate) fn delete_all(&mut self, paths: &[&str]) -> Result<(), usize> {
        let missing = paths
            .iter()
            .position(|path| !self.znodes.contains_key(*path));
        missing.map_or(Ok(()), Err)?;
        for path in paths {
            let _ = self.delete(path);
        }
        Ok(())
    }
}
