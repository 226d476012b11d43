//! Many queues.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use zookeeper_recipes_benches::member::Member;
use zookeeper_recipes_core::ensemble::{Operation, ServerSession};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, NodePath, Permission, Session};
use zookeeper_recipes_testkit::Server;

/// The sessions of the contenders. A server ends a session only if its znodes fit into a request.
pub(crate) const SESSIONS: usize = 200;

/// The sessions among them that hold. The others wait, and each of them holds a lock of its own.
const HOLDERS: usize = 20;

/// The pause between two looks of what keeps an overview up to date.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// The contenders of a queue.
pub(crate) const CONTENDERS: usize = 9;

/// How many znodes a request creates, and how many requests of a session are under way.
const TOGETHER: usize = 100;
const UNDER_WAY: usize = 2;

/// The path that all queues are below, and the name of a contender without its number.
pub(crate) const ROOT: &str = "/bench";
pub(crate) const CONTENDER: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";

/// A tree of queues, and the sessions of their contenders.
pub(crate) struct Tree {
    members: Vec<Member>,
    sessions: Vec<Arc<ServerSession>>,
    queues: usize,
}

pub(crate) fn everyone() -> [Acl; 1] {
    [Acl::new(Permission::ALL, AuthId::anyone())]
}

pub(crate) async fn raw(session: &Session) -> anyhow::Result<Arc<ServerSession>> {
    let path = NodePath::new(ROOT)?;
    Ok(session.server(&path).await?)
}

fn directory(queue: usize) -> String {
    format!("{ROOT}/{:03}/{:03}", queue / 1000, queue % 1000)
}

fn persistent(path: String) -> Operation {
    Operation::create(path, b"", CreateMode::Persistent, everyone())
}

fn create(path: String, mode: CreateMode, owner: usize) -> Operation {
    let owner = format!("host-{owner:03}.example:4242");
    Operation::create(path, owner.as_bytes(), mode, everyone())
}

impl Tree {
    pub(crate) async fn new(server: &Server) -> anyhow::Result<Tree> {
        let members = Member::connect(&server.connect_string(), SESSIONS).await?;
        let mut sessions = Vec::new();
        for member in &members {
            sessions.push(raw(&member.session).await?);
        }
        let tree = Tree {
            members,
            sessions,
            queues: 0,
        };
        let mut own = vec![
            persistent(ROOT.to_owned()),
            persistent(format!("{ROOT}/own")),
        ];
        own.extend((0..SESSIONS).map(|it| persistent(format!("{ROOT}/own/{it}"))));
        tree.apply(0, own).await?;
        for session in HOLDERS..SESSIONS {
            let path = format!("{ROOT}/own/{session}/{CONTENDER}");
            let own = vec![create(path, CreateMode::EphemeralSequential, session)];
            tree.apply(session, own).await?;
        }
        Ok(tree)
    }

    /// All queues, also those of one contender.
    pub(crate) fn queues(&self) -> usize {
        self.queues + SESSIONS - HOLDERS
    }

    pub(crate) fn contenders(&self) -> usize {
        self.queues * CONTENDERS + SESSIONS - HOLDERS
    }

    /// The sessions of the contenders are still open.
    pub(crate) fn is_open(&self) -> bool {
        self.members
            .iter()
            .all(|member| member.session.id().is_some())
    }

    /// Adds queues, until there are so many.
    pub(crate) async fn grow(&mut self, queues: usize) -> anyhow::Result<()> {
        let new = self.queues..queues;
        let above = new.clone().filter(|queue| queue % 1000 == 0);
        let above = above.map(|queue| persistent(format!("{ROOT}/{:03}", queue / 1000)));
        self.apply(0, above.collect()).await?;
        let directories = new.clone().map(|queue| persistent(directory(queue)));
        self.apply(0, directories.collect()).await?;
        // The first contender of each queue holds.
        for place in [0..1, 1..CONTENDERS] {
            let by_session = (0..SESSIONS).map(|session| {
                let own = new.clone().flat_map(|queue| {
                    let own = place.clone().filter(move |it| owner(queue, *it) == session);
                    own.map(move |_| format!("{}/{CONTENDER}", directory(queue)))
                });
                let mode = CreateMode::EphemeralSequential;
                let own: Vec<_> = own.map(|path| create(path, mode, session)).collect();
                self.apply(session, own)
            });
            let by_session = stream::iter(by_session.collect::<Vec<_>>());
            by_session.buffer_unordered(8).try_collect::<()>().await?;
        }
        self.queues = queues;
        Ok(())
    }

    /// Applies operations by a session, many in one transaction.
    async fn apply(&self, session: usize, operations: Vec<Operation>) -> anyhow::Result<()> {
        let session = &self.sessions[session];
        let parts: Vec<Vec<Operation>> = operations.chunks(TOGETHER).map(<[_]>::to_vec).collect();
        let applied = stream::iter(parts).map(|part| session.transact(&part));
        let mut applied = applied.buffered(UNDER_WAY);
        while let Some(applied) = applied.next().await {
            applied.map_err(|refused| anyhow!("cannot make the queues: {refused:?}"))?;
        }
        Ok(())
    }
}

/// The session of a contender.
fn owner(queue: usize, place: usize) -> usize {
    match place {
        0 => queue % HOLDERS,
        _ => HOLDERS + (queue * CONTENDERS + place) % (SESSIONS - HOLDERS),
    }
}
