//! The members of a group, as the server shows them: read once, or kept up to date.

use std::time::SystemTime;

use futures_util::future::FutureExt;
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{
    Backoff, FencingToken, NodePath, Refusal, ServerError, Session, SessionId,
};

/// A member of a group, as the server shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The name that the member joined with: the name of its znode.
    pub name: String,
    /// The data that the member joined with, for example its address.
    pub data: Vec<u8>,
    /// The session that the member's znode belongs to. The membership ends with the session.
    pub session_id: SessionId,
    /// When the member joined, by the clock of the leading server.
    pub since: SystemTime,
    /// A number that is larger for each later member, also if the name is the same.
    pub token: FencingToken,
}

/// Who is in a group, as far as a [watch](crate::Group::watch) knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// No server has answered yet.
    Unknown,
    /// The server refuses the reads, for example without the permission to read.
    Refused(Refusal),
    /// These members are in the group, in the order of their names.
    Members(Vec<Member>),
}

impl GroupState {
    /// The members. Empty if they are not known.
    pub fn members(&self) -> &[Member] {
        match self {
            GroupState::Members(members) => members,
            GroupState::Unknown | GroupState::Refused(_) => &[],
        }
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.name == name)
    }
}

/// Who is in the group at `directory`, kept up to date by a task.
pub(crate) fn watch_members(session: Session, directory: NodePath) -> watch::Receiver<GroupState> {
    let (state, receiver) = watch::channel(GroupState::Unknown);
    let ensemble = session.ensemble().clone();
    let task = async move {
        tokio::select! {
            biased;
            () = state.closed() => {}
            () = keep_up_to_date(&state, &session, &directory) => {}
        }
    };
    tokio::spawn(ensemble.task(task.boxed()));
    receiver
}

/// Returns when the session is closed.
async fn keep_up_to_date(
    state: &watch::Sender<GroupState>,
    session: &Session,
    directory: &NodePath,
) {
    // A server may open a session before it has caught up with its leader.
    let mut caught_up = None;
    // Dropped when the next watch is set, so that no request removes it in between.
    let mut watched = None;
    let mut backoff = Backoff::default();
    while let Ok(server) = session.server(directory).await {
        let read = async {
            if caught_up != Some(server.id) {
                server.sync(directory.as_str()).await?;
                caught_up = Some(server.id);
            }
            read_and_watch(&server, directory).await
        };
        let read = read.await;
        drop(server);
        match read {
            Ok((members, changed)) => {
                set(state, GroupState::Members(members));
                backoff = Backoff::default();
                // Any event is a reason to read again, the end of the session too.
                watched.insert(changed).await;
                continue;
            }
            Err(ServerError::Refused(refusal)) if refusal != Refusal::Throttled => {
                if set(state, GroupState::Refused(refusal.clone())) {
                    tracing::warn!(target: "zookeeper_recipes", %directory, %refusal, "the members of the group are not known");
                }
            }
            Err(error) => {
                tracing::debug!(target: "zookeeper_recipes", %directory, %error, "reading the group again")
            }
        }
        backoff.wait().await;
    }
}

/// Notifies the receivers if the state is new, and then returns true.
fn set(state: &watch::Sender<GroupState>, new: GroupState) -> bool {
    state.send_if_modified(|state| {
        let is_new = *state != new;
        *state = new;
        is_new
    })
}

/// Reads the members, and watches for a member that comes or leaves.
async fn read_and_watch(
    server: &ServerSession,
    directory: &NodePath,
) -> Result<(Vec<Member>, Watch), ServerError> {
    let path = directory.as_str();
    loop {
        match server.list_and_watch(path).await {
            Ok((names, changed)) => {
                return Ok((read_each(server, directory, names).await?, changed));
            }
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error),
        }
        if let (None, created) = server.exists_and_watch(path).await? {
            return Ok((Vec::new(), created));
        }
    }
}

/// Reads the members, once.
pub(crate) async fn read_members(
    server: &ServerSession,
    directory: &NodePath,
) -> Result<Vec<Member>, ServerError> {
    match server.list(directory.as_str()).await {
        Ok(names) => read_each(server, directory, names).await,
        Err(error) if error.is(Refusal::NoNode) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Reads the children of these names, in the order of the names.
///
/// A child of a known name is read again: it may be a later member of that name.
async fn read_each(
    server: &ServerSession,
    directory: &NodePath,
    mut names: Vec<String>,
) -> Result<Vec<Member>, ServerError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    names.sort_unstable();
    let path = |name: &String| format!("{directory}/{name}");
    let paths: Vec<String> = names.iter().map(path).collect();
    let nodes = server.get_each(&paths).await?;
    let members = names.into_iter().zip(nodes).filter_map(|(name, node)| {
        let (data, stat) = node?;
        // A znode that outlives its session is no member.
        (stat.ephemeral_owner != 0).then(|| Member {
            name,
            data,
            session_id: SessionId(stat.ephemeral_owner),
            since: stat.created(),
            token: FencingToken::from(stat.czxid),
        })
    });
    Ok(members.collect())
}
