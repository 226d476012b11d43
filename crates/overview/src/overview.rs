//! The overview: one look at all queues below a path.

use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::task::spawn_blocking;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Error, InvalidInput, NodePath, ServerError, Session, SessionId};

use crate::circle::{Circle, circles, rings};
use crate::edges::{Edge, EdgeKey, edges};
use crate::mirror::Mirror;
use crate::queue::{QueueStatus, shared};
use crate::reader::Reader;
use crate::sessions::Sessions;
use crate::standing::Standing;
use crate::walk::{Unread, Walk, read_directories};

/// So many contenders are searched on a thread that may block.
const MANY: usize = 10_000;

/// All queues below a path, as one look has shown them.
///
/// See the [crate](crate) for an example, the costs and the limits.
#[derive(Clone, Debug)]
pub struct Overview {
    path: String,
    exists: bool,
    queues: Vec<Arc<QueueStatus>>,
    unread: Vec<Unread>,
    circles: Vec<Circle>,
}

/// A session, and what it has below the path of an overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionStatus {
    /// The session.
    pub session_id: SessionId,
    /// How many of its contenders hold.
    pub holds: usize,
    /// How many of its contenders wait.
    pub waits: usize,
    /// How many ephemeral znodes of it were found: contenders and members.
    pub znodes: usize,
    /// The bytes of their paths in the transaction that ends the session, without the chroot.
    ///
    /// The servers can end a session with fewer than [`LARGEST_SESSION`] bytes.
    pub bytes: usize,
}

/// The most bytes that the paths of a session's ephemeral znodes may have.
///
/// It is 1,024 bytes less than the servers' `jute.maxbuffer` is by default.
pub const LARGEST_SESSION: usize = 0xf_ffff - 1024;

impl SessionStatus {
    /// True if its znodes fill half of what the servers can end, or more.
    pub fn is_near_its_limit(&self) -> bool {
        self.bytes >= LARGEST_SESSION / 2
    }
}

impl Overview {
    /// Looks at all queues at a path and below it. `/` is the root of the session's paths.
    ///
    /// The look repeats a request until a server has answered it. If its session ends, the look
    /// begins again in the next one. It writes nothing and sets no watch.
    ///
    /// If sessions seem to wait for each other, it reads their queues again: see
    /// [`circles`](Self::circles).
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if the path is neither `/` nor a valid [`NodePath`].
    /// * [`Error::NoSession`] if no further ZooKeeper session will be opened.
    /// * [`Error::Refused`] if the server refuses a `sync`. What the session may not read is no
    ///   error: see [`unread`](Self::unread).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing remains.
    pub async fn below(session: &Session, path: impl AsRef<str>) -> Result<Overview, Error> {
        let path = Root::new(path.as_ref())?;
        loop {
            let server = path.server(session).await?;
            match Overview::look(server.clone(), path.as_str()).await {
                Err(ServerError::SessionOver(_)) => {}
                looked => {
                    return looked.map_err(|error| Error::at(path.as_str(), server.id, error));
                }
            }
        }
    }

    async fn look(server: Arc<ServerSession>, path: &str) -> Result<Overview, ServerError> {
        let reader = Reader::new(server);
        reader.sync(path).await?;
        let walk = Walk::below(&reader, path).await?;
        let queues = shared(walk.queues);
        let crossed = searched(&queues, |queues| Sessions::of(queues).crossed(queues)).await;
        let circles = confirmed_circles(&reader, &crossed, &mut HashSet::new()).await?;
        Ok(Overview {
            path: path.to_owned(),
            exists: walk.exists,
            queues,
            unread: walk.unread,
            circles: circles.unwrap_or_default(),
        })
    }

    /// The tree as a mirror shows it now.
    pub(crate) async fn of_mirror(
        reader: &Reader,
        mirror: &mut Mirror,
        path: &str,
        confirmed: &mut HashSet<EdgeKey>,
    ) -> Result<Overview, ServerError> {
        let queues = mirror.queues();
        let mut circles = None;
        if mirror.may_have_circles() {
            let crossed = mirror.sessions().crossed(&queues);
            circles = confirmed_circles(reader, &crossed, confirmed).await?;
            if circles.is_none() {
                mirror.note_no_circle();
            }
        }
        Ok(Overview {
            path: path.to_owned(),
            exists: mirror.exists(),
            circles: circles.unwrap_or_default(),
            queues,
            unread: mirror.unread(),
        })
    }

    /// The path of the look.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// False if there was no znode at the path.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// The queues that have contenders, in the order of their paths.
    pub fn queues(&self) -> &[Arc<QueueStatus>] {
        &self.queues
    }

    /// The queue at this path.
    pub fn queue(&self, path: &str) -> Option<&QueueStatus> {
        let place = self.queues.binary_search_by(|queue| queue.path().cmp(path));
        Some(&self.queues[place.ok()?])
    }

    /// The znodes that the session may not list, in the order of their paths.
    ///
    /// A contender that may not be read is a [mark](crate::Mark::Unread) of its queue.
    pub fn unread(&self) -> &[Unread] {
        &self.unread
    }

    /// Sessions that wait for each other, oldest circle first. No session is in two of them.
    ///
    /// If sessions wait for each other in several circles, those that share a session are shown one
    /// after the other, as each is broken.
    ///
    /// # Why a circle is no accident of the look
    ///
    /// A look reads one queue after the other, so its edges are of different moments. The look
    /// reads all queues of a circle a second time, after the first time. It reports a circle only if
    /// each of its edges is there again, between the znodes of the same transactions (`czxid`). A
    /// deleted znode does not come back with its `czxid`, and a contender that waits has waited since
    /// it queued. So each of these edges existed at the moment between the two.
    pub fn circles(&self) -> &[Circle] {
        &self.circles
    }

    /// The sessions of all contenders and members, in the order of their ids.
    pub fn sessions(&self) -> Vec<SessionStatus> {
        /// A path is written with its length.
        const LENGTH: usize = 4;
        let mut sessions: HashMap<i64, SessionStatus> = HashMap::new();
        for queue in &self.queues {
            for place in 0..queue.len() {
                let id = queue.session(place).filter(|session| *session != 0);
                let Some(id) = id else { continue };
                let session = sessions.entry(id).or_insert(SessionStatus {
                    session_id: SessionId(id),
                    holds: 0,
                    waits: 0,
                    znodes: 0,
                    bytes: 0,
                });
                session.znodes += 1;
                session.bytes += LENGTH + queue.path().len() + "/".len() + queue.name(place).len();
                match queue.standing(place) {
                    Standing::Holds => session.holds += 1,
                    Standing::Waits { .. } => session.waits += 1,
                    Standing::Unknown => {}
                }
            }
        }
        let mut sessions: Vec<SessionStatus> = sessions.into_values().collect();
        sessions.sort_unstable_by_key(|session| session.session_id);
        sessions
    }
}

/// The circles among these queues that a second look finds unchanged.
///
/// `None` if the first look shows no circle.
///
/// The second look is left out if an earlier one has found each edge. Its edges are `confirmed`.
async fn confirmed_circles(
    reader: &Reader,
    queues: &[Arc<QueueStatus>],
    confirmed: &mut HashSet<EdgeKey>,
) -> Result<Option<Vec<Circle>>, ServerError> {
    let search = |queues: &[Arc<QueueStatus>]| {
        let (edges, contended) = edges(queues);
        (rings(&edges), edges, contended)
    };
    let (rings, first, contended) = searched(queues, search).await;
    if rings.is_empty() {
        confirmed.clear();
        return Ok(None);
    }
    let mut edges = rings.iter().flatten();
    if !edges.all(|edge| confirmed.contains(&edge.key(queues))) {
        *confirmed = second_look(reader, queues, contended).await?;
    }
    let known = std::mem::take(confirmed);
    let (circles, known) = searched(queues, move |queues| {
        let is_confirmed = |edge: &Edge| known.contains(&edge.key(queues));
        (circles(&first, queues, is_confirmed), known)
    })
    .await;
    *confirmed = known;
    Ok(Some(circles))
}

/// Searches these queues. The search of many contenders takes a while, in which other tasks run.
///
/// Measured in a release build, with all contenders stuck, of 24 sessions: 10,000 contenders take
/// 0.03 s, 100,000 take 0.4 s, and 1,000,000 take 7 s. On a thread of the runtime, the session would
/// send no probe for that long.
async fn searched<T: Send + 'static>(
    queues: &[Arc<QueueStatus>],
    search: impl FnOnce(&[Arc<QueueStatus>]) -> T + Send + 'static,
) -> T {
    if queues.iter().map(|queue| queue.len()).sum::<usize>() < MANY {
        return search(queues);
    }
    let queues = queues.to_vec();
    match spawn_blocking(move || search(&queues)).await {
        Ok(found) => found,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The edges of another look at these queues.
async fn second_look(
    reader: &Reader,
    queues: &[Arc<QueueStatus>],
    // All in which stuck sessions wait, so that a session is stuck in both looks.
    contended: Vec<usize>,
) -> Result<HashSet<EdgeKey>, ServerError> {
    let paths = contended.into_iter().map(|it| queues[it].path().to_owned());
    let (again, _) = read_directories(reader, paths.collect()).await?;
    let keys = |again: &[Arc<QueueStatus>]| {
        let (edges, _) = edges(again);
        edges.iter().map(|edge| edge.key(again)).collect()
    };
    Ok(searched(&shared(again), keys).await)
}

/// The path of a look, which may be the root.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    Root,
    Below(NodePath),
}

impl Root {
    pub(crate) fn new(path: &str) -> Result<Root, InvalidInput> {
        Ok(match path {
            "/" => Root::Root,
            path => Root::Below(NodePath::new(path)?),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Root::Root => "/",
            Root::Below(path) => path.as_str(),
        }
    }

    pub(crate) async fn server(&self, session: &Session) -> Result<Arc<ServerSession>, Error> {
        match self {
            Root::Below(path) => session.server(path).await,
            Root::Root => {
                let any = NodePath::new("/any")?;
                session.server(&any).await.map_err(|error| match error {
                    Error::NoSession { reason, .. } => Error::NoSession {
                        path: "/".to_owned(),
                        reason,
                    },
                    error => error,
                })
            }
        }
    }
}
