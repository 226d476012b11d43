//! The hand of an operator: what others do to the tree.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, CreateMode, Operation, Permission, SessionId, Stat,
};

use super::proposal::Writer;
use super::request::Failure;
use super::transaction::Body;
use super::tree::Edit;
use super::watches::WatchKind;
use super::world::{Shared, World};

/// Changes and reads the tree without a session, at once, past every access control list.
///
/// A change is committed when the call returns, and all writes that were under way before it. The
/// followers get to know of it in their own time.
#[derive(Clone, Debug)]
pub struct Administrator {
    pub(super) shared: Arc<Shared>,
}

/// A znode, as the leader has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingNode {
    /// Its path.
    pub path: String,
    /// Its data.
    pub data: Vec<u8>,
    /// Its metadata.
    pub stat: Stat,
}

/// A watch that stands on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingWatch {
    /// The server.
    pub server: usize,
    /// The session that set it, by its server's account.
    pub session: SessionId,
    /// The process that set it; empty if its client has gone.
    pub process: String,
    /// The path.
    pub path: String,
    /// What it sees.
    pub kind: WatchKind,
}

impl Administrator {
    /// Creates a znode, open to all, and tells its path.
    ///
    /// # Errors
    ///
    /// What the server refused it for.
    pub fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Result<String, Refusal> {
        self.create_with_acl(
            path,
            data,
            mode,
            &[Acl::new(Permission::ALL, AuthId::anyone())],
        )
    }

    /// Creates a znode with this access control list, and tells its path.
    ///
    /// # Errors
    ///
    /// What the server refused it for.
    pub fn create_with_acl(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Result<String, Refusal> {
        let (path, data, acl) = (path.to_owned(), data.to_vec(), acl.to_vec());
        self.shared.with(|world| {
            let known = world.history.len();
            write(
                world,
                Operation::Create {
                    path,
                    data,
                    mode,
                    acl,
                },
            )?;
            let created =
                world.history[known..]
                    .iter()
                    .find_map(|committed| match &committed.change {
                        super::history::Change::Created { path, .. }
                            if committed.session.is_none() =>
                        {
                            Some(path.clone())
                        }
                        _ => None,
                    });
            Ok(created.unwrap_or_default())
        })
    }

    /// Replaces a znode's data.
    ///
    /// # Errors
    ///
    /// What the server refused it for.
    pub fn set_data(&self, path: &str, data: &[u8]) -> Result<(), Refusal> {
        let (path, data) = (path.to_owned(), data.to_vec());
        self.shared.with(|world| {
            write(
                world,
                Operation::SetData {
                    path,
                    data,
                    version: None,
                },
            )
        })
    }

    /// Replaces a znode's data, as somebody who has no rights but everyone's.
    ///
    /// # Errors
    ///
    /// What the server refused it for.
    pub fn set_data_as_anyone(&self, path: &str, data: &[u8]) -> Result<(), Refusal> {
        let operation = Operation::SetData {
            path: path.to_owned(),
            data: data.to_vec(),
            version: None,
        };
        let anyone = Writer::Session(0, &[]);
        self.shared
            .with(|world| write_as(world, operation, &anyone))
    }

    /// Replaces a znode's access control list, and tells the earlier one.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoNode`] where there is no such znode.
    pub fn set_acl(&self, path: &str, acl: &[Acl]) -> Result<Vec<Acl>, Refusal> {
        self.shared.with(|world| {
            let earlier = world.tree.get(path).ok_or(Refusal::NoNode)?.acl.clone();
            let edit = Edit::SetAcl {
                path: path.to_owned(),
                acl: acl.to_vec(),
            };
            let body = Body::Write {
                edits: vec![edit],
                several: false,
            };
            world.propose(0, None, body);
            commit_all(world);
            Ok(earlier)
        })
    }

    /// Deletes a znode.
    ///
    /// # Errors
    ///
    /// What the server refused it for.
    pub fn delete(&self, path: &str) -> Result<(), Refusal> {
        let path = path.to_owned();
        self.shared.with(|world| {
            write(
                world,
                Operation::Delete {
                    path,
                    version: None,
                },
            )
        })
    }

    /// Ends a session, as the leader does with one that it has not heard of for too long.
    pub fn expire(&self, session: SessionId) {
        self.shared.with(|world| {
            world.expire(session.0);
            commit_all(world);
        });
    }

    /// Deletes the containers that have had children and have none now, and tells which. The
    /// server does it by itself from time to time.
    pub fn reap_containers(&self) -> Vec<String> {
        self.shared.with(|world| {
            let reaped = world.reap_containers();
            commit_all(world);
            reaped
        })
    }

    /// Sets the counter behind the sequence numbers of a znode's children, on every server.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoNode`] where there is no such znode.
    pub fn set_create_counter(&self, path: &str, creates: i32) -> Result<(), Refusal> {
        self.shared.with(|world| {
            commit_all(world);
            world.outstanding.remove(path);
            world.tree.get_mut(path).ok_or(Refusal::NoNode)?.creates = creates;
            for server in &mut world.servers {
                if let Some(node) = server.tree.get_mut(path) {
                    node.creates = creates;
                }
            }
            Ok(())
        })
    }

    /// All znodes that have been committed, in the order of their paths, the server's own left
    /// out.
    pub fn tree(&self) -> Vec<StandingNode> {
        self.shared.with(|world| {
            world.servers[world.leader]
                .tree
                .iter()
                .filter(|(path, _)| *path != "/" && !path.starts_with("/zookeeper"))
                .map(|(path, node)| StandingNode {
                    path: path.clone(),
                    data: node.data.clone(),
                    stat: node.stat(),
                })
                .collect()
        })
    }

    /// The names of a znode's children, in their order as strings; none where there is no such
    /// znode.
    pub fn children(&self, path: &str) -> Vec<String> {
        self.shared.with(|world| {
            let node = world.servers[world.leader].tree.get(path);
            node.map(|node| node.children.iter().cloned().collect())
                .unwrap_or_default()
        })
    }

    /// The sessions that the leader knows.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.shared
            .with(|world| world.sessions.keys().copied().map(SessionId).collect())
    }

    /// After how long a session expires that is silent, as the leader knows it; none where it
    /// knows no such session.
    pub fn timeout_of(&self, session: SessionId) -> Option<Duration> {
        self.shared
            .with(|world| Some(world.sessions.get(&session.0)?.timeout))
    }

    /// The watches that stand on the servers.
    pub fn watches(&self) -> Vec<StandingWatch> {
        self.shared.with(|world| standing_watches(world))
    }

    /// Which server leads.
    pub fn leader(&self) -> usize {
        self.shared.with(|world| world.leader)
    }

    /// The server that a session is connected to, where it is.
    pub fn server_of(&self, session: SessionId) -> Option<usize> {
        self.shared.with(|world| {
            let (client, _) = world
                .clients
                .iter()
                .find(|(_, client)| client.session == session.0)?;
            let connection = world.connection_of(*client)?;
            world
                .connections
                .get(&connection)
                .map(|connection| connection.server)
        })
    }
}

pub(super) fn standing_watches(world: &World) -> Vec<StandingWatch> {
    let mut standing = Vec::new();
    for (at, server) in world.servers.iter().enumerate() {
        for (path, kind, connection) in server.watches.iter() {
            let connection = world.connections.get(&connection);
            let client = connection.and_then(|it| world.clients.get(&it.client));
            let process = client.map(|client| world.processes[client.process].name.clone());
            standing.push(StandingWatch {
                server: at,
                session: SessionId(connection.map_or(0, |it| it.session)),
                process: process.unwrap_or_default(),
                path: path.to_owned(),
                kind,
            });
        }
    }
    standing
}

fn write(world: &mut World, operation: Operation) -> Result<(), Refusal> {
    write_as(world, operation, &Writer::Administrator)
}

fn write_as(world: &mut World, operation: Operation, writer: &Writer<'_>) -> Result<(), Refusal> {
    let body = world.decide(&[operation], false, writer);
    let refusal = match &body {
        Body::Refused(Failure::Refused { refusal, .. }) => Some(refusal.clone()),
        _ => None,
    };
    world.propose(0, None, body);
    commit_all(world);
    refusal.map_or(Ok(()), Err)
}

fn commit_all(world: &mut World) {
    if world.log_end() > 0 {
        let last = world.log_end() - 1;
        world.commit(last);
    }
}
