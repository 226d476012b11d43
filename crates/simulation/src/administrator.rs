//! The handle of an administrator, who reads and changes the tree.

use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission, SessionId, Stat};
use zookeeper_recipes_core::{Refusal, ServerError};
use zookeeper_recipes_protocol::{
    CreateRequest, DeleteRequest, ErrorCode, RequestBody, SetDataRequest,
};

use crate::client::world::World;
use crate::engine::shared::Shared;
use crate::server::access::Writer;
use crate::server::state::Servers;
use crate::server::watches::WatchKind;

/// Changes and reads the tree without a session, at once, past every access control list.
///
/// When the call returns, the change is committed, and so are all writes that were under way before
/// it. The followers apply it later, each after its own delay.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_core::ensemble::CreateMode;
/// use zookeeper_recipes_simulation::{Simulation};
///
/// let simulation = Simulation::default();
/// let session = simulation.process("worker").connect().await?;
/// let (_, changed) = session.list_and_watch("/").await?;
///
/// let administrator = simulation.administrator();
/// administrator.create("/config", b"v1", CreateMode::Persistent).expect("nothing is there yet");
/// changed.await;
/// assert_eq!(session.get("/config").await?.0, b"v1");
/// assert!(administrator.watches().is_empty(), "a watch fires once");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Administrator {
    pub(crate) shared: Arc<Shared>,
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

/// A watch that is set on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingWatch {
    /// The server.
    pub server: usize,
    /// The session that set it, by its server's account.
    pub session: SessionId,
    /// The process that set it, or an empty string if its client no longer exists.
    pub process: String,
    /// The path.
    pub path: String,
    /// The kind of change that it reports.
    pub kind: WatchKind,
}

impl Administrator {
    fn servers<T>(&self, change: impl FnOnce(&mut Servers) -> T) -> T {
        self.shared.with(|world| change(&mut world.servers))
    }

    fn write(&self, request: &RequestBody, writer: &Writer<'_>) -> Result<String, Refusal> {
        let written = self.servers(|servers| servers.write_as(request, writer));
        written.map_err(refusal)
    }

    /// Creates a znode that is open to all, and returns its path.
    ///
    /// # Errors
    ///
    /// The server's reason, if it refuses the change.
    pub fn create(&self, path: &str, data: &[u8], mode: CreateMode) -> Result<String, Refusal> {
        let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
        self.create_with_acl(path, data, mode, &everyone)
    }

    /// Creates a znode with this access control list, and returns its path.
    ///
    /// # Errors
    ///
    /// The server's reason, if it refuses the change.
    pub fn create_with_acl(
        &self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Result<String, Refusal> {
        let request = CreateRequest {
            path: path.to_owned(),
            data: Some(data.to_vec()),
            acl: acl.to_vec(),
            mode,
        };
        let create = match mode {
            CreateMode::Container => RequestBody::CreateContainer(request),
            _ => RequestBody::Create2(request),
        };
        self.write(&create, &Writer::Administrator)
    }

    /// Replaces a znode's data.
    ///
    /// # Errors
    ///
    /// The server's reason, if it refuses the change.
    pub fn set_data(&self, path: &str, data: &[u8]) -> Result<(), Refusal> {
        let set = set_data(path, data);
        self.write(&set, &Writer::Administrator).map(drop)
    }

    /// Replaces a znode's data, with the rights that everyone has.
    ///
    /// # Errors
    ///
    /// The server's reason, if it refuses the change.
    pub fn set_data_as_anyone(&self, path: &str, data: &[u8]) -> Result<(), Refusal> {
        let set = set_data(path, data);
        self.write(&set, &Writer::Session(0, &[])).map(drop)
    }

    /// Replaces a znode's access control list, and returns the earlier one.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoNode`] if there is no such znode.
    pub fn set_acl(&self, path: &str, acl: &[Acl]) -> Result<Vec<Acl>, Refusal> {
        let earlier = self.servers(|servers| servers.set_acl(path, acl));
        earlier.map_err(refusal)
    }

    /// Deletes a znode.
    ///
    /// # Errors
    ///
    /// The server's reason, if it refuses the change.
    pub fn delete(&self, path: &str) -> Result<(), Refusal> {
        let delete = RequestBody::Delete(DeleteRequest {
            path: path.to_owned(),
            version: -1,
        });
        self.write(&delete, &Writer::Administrator).map(drop)
    }

    /// Ends a session from outside, at once, however alive its client is.
    ///
    /// The next contender may hold at once, before the holder learns that its session is over. So
    /// two contenders can hold for a moment, as after a znode that is deleted by hand. A leader
    /// expires a session only when the lease of the holder has run out: to see that,
    /// [cut the process off](crate::SimulatedProcess::partition).
    pub fn expire(&self, session: SessionId) {
        self.servers(|servers| {
            servers.expire(session.0);
            servers.commit_all();
        });
    }

    /// Deletes the containers that have lost their last child, and returns their paths.
    ///
    /// The leader does this by itself from time to time.
    pub fn reap_containers(&self) -> Vec<String> {
        self.servers(|servers| {
            let reaped = servers.reap_containers();
            servers.commit_all();
            reaped
        })
    }

    /// Sets the counter behind the sequence numbers of a znode's children.
    ///
    /// The change is an entry of the log: a server that lags applies it later.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoNode`] if there is no such znode.
    pub fn set_create_counter(&self, path: &str, creates: i32) -> Result<(), Refusal> {
        let set = self.servers(|servers| servers.set_create_counter(path, creates));
        set.map_err(refusal)
    }

    /// All committed znodes except the server's own, in the order of their paths.
    pub fn tree(&self) -> Vec<StandingNode> {
        self.servers(|servers| {
            let leader = &servers.members[servers.leader];
            leader
                .tree
                .iter()
                .filter(|(path, _)| *path != "/" && !path.starts_with("/zookeeper"))
                .map(|(path, node)| StandingNode {
                    path: path.clone(),
                    data: node.data.clone().unwrap_or_default(),
                    stat: node.stat(),
                })
                .collect()
        })
    }

    /// The names of a znode's children, sorted. The list is empty if there is no such znode.
    pub fn children(&self, path: &str) -> Vec<String> {
        self.servers(|servers| {
            let node = servers.members[servers.leader].tree.get(path);
            node.map(|node| node.children.iter().cloned().collect())
                .unwrap_or_default()
        })
    }

    /// The sessions that the leader knows.
    pub fn sessions(&self) -> Vec<SessionId> {
        self.servers(|servers| servers.sessions.keys().copied().map(SessionId).collect())
    }

    /// The timeout of a session at the leader. `None` if the leader knows no such session.
    pub fn timeout_of(&self, session: SessionId) -> Option<Duration> {
        self.servers(|servers| Some(servers.sessions.get(&session.0)?.timeout))
    }

    /// The watches on the servers.
    pub fn watches(&self) -> Vec<StandingWatch> {
        self.shared.with(|world| standing_watches(world))
    }

    /// The index of the leader.
    pub fn leader(&self) -> usize {
        self.servers(|servers| servers.leader)
    }

    /// The server that a session is connected to. `None` if it is not connected.
    pub fn server_of(&self, session: SessionId) -> Option<usize> {
        self.shared.with(|world| {
            let connection = world.connection_of_session(session)?;
            world.servers.network.server_of(connection)
        })
    }
}

fn set_data(path: &str, data: &[u8]) -> RequestBody {
    RequestBody::SetData(SetDataRequest {
        path: path.to_owned(),
        data: Some(data.to_vec()),
        version: -1,
    })
}

fn refusal(error: ErrorCode) -> Refusal {
    match ServerError::from(error) {
        ServerError::Refused(refusal) => refusal,
        other => Refusal::Other(other.to_string()),
    }
}

/// The watches on the servers, with the processes that have set them.
pub(crate) fn standing_watches(world: &World) -> Vec<StandingWatch> {
    let servers = &world.servers;
    let mut standing = Vec::new();
    for (at, server) in servers.members.iter().enumerate() {
        for (path, kind, id) in server.watches.iter() {
            let connection = servers.network.connections.get(&id);
            let process = connection.map(|connection| world.name_of(connection.host).to_owned());
            standing.push(StandingWatch {
                server: at,
                session: SessionId(servers.session_on(id)),
                process: process.unwrap_or_default(),
                path: path.to_owned(),
                kind,
            });
        }
    }
    standing
}
