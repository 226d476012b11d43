//! Watching who leads: a value that a task keeps up to date.

use futures_util::future::{FutureExt, join};
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{ServerSession, SessionId, Watch};
use zookeeper_recipes_core::{Backoff, NodePath, Refusal, ServerError, Session};

use crate::leader::{Leader, LeaderState};
use crate::read_leader::first_candidate;
use crate::transfer::either;

/// Who leads in the election at `directory`, kept up to date by a task.
pub(crate) fn watch_leader(session: Session, directory: NodePath) -> watch::Receiver<LeaderState> {
    let (state, receiver) = watch::channel(LeaderState::Unknown);
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
    state: &watch::Sender<LeaderState>,
    session: &Session,
    directory: &NodePath,
) {
    // A server may open a session before it has caught up with its leader.
    let mut caught_up = None;
    // Dropped when the next watches are set, so that no request removes one in between.
    let mut watched = None;
    let mut backoff = Backoff::default();
    while let Ok(server) = session.server(directory).await {
        let read = read_and_watch(&server, directory, &mut caught_up).await;
        drop(server);
        match read {
            Ok((leader, changed)) => {
                let leader = leader.map_or(LeaderState::Nobody, LeaderState::Leader);
                set(state, leader);
                backoff = Backoff::default();
                // Any event is a reason to read again, the end of the session too.
                watched.insert(changed).await;
                continue;
            }
            Err(ServerError::Refused(refusal)) if refusal != Refusal::Throttled => {
                if set(state, LeaderState::Refused(refusal.clone())) {
                    tracing::warn!(target: "zookeeper_recipes", %directory, %refusal, "who leads is not known");
                }
            }
            Err(error) => {
                tracing::debug!(target: "zookeeper_recipes", %directory, %error, "reading again who leads")
            }
        }
        backoff.wait().await;
    }
}

/// Notifies the receivers if the state is new, and then returns true.
fn set(state: &watch::Sender<LeaderState>, mut new: LeaderState) -> bool {
    state.send_if_modified(|state| {
        if let (LeaderState::Leader(new), LeaderState::Leader(old)) = (&mut new, &*state) {
            if new.fencing_token == old.fencing_token {
                new.since = old.since;
            }
        }
        let is_new = *state != new;
        *state = new;
        is_new
    })
}

/// Reads who leads, and sets watches: on the leader's znode and the directory's data, or on the
/// directory's children if nobody leads.
async fn read_and_watch(
    server: &ServerSession,
    directory: &NodePath,
    caught_up: &mut Option<SessionId>,
) -> Result<(Option<Leader>, Watch), ServerError> {
    let path = directory.as_str();
    if *caught_up != Some(server.id) {
        server.sync(path).await?;
        *caught_up = Some(server.id);
    }
    loop {
        let children = match server.list(path).await {
            Err(error) if error.is(Refusal::NoNode) => match server.exists_and_watch(path).await? {
                (None, created) => return Ok((None, created)),
                (Some(_), _) => continue,
            },
            children => children?,
        };
        let first = match first_candidate(server, directory, &children).await? {
            Some(first) => first,
            None => {
                let (children, changed) = match server.list_and_watch(path).await {
                    Err(error) if error.is(Refusal::NoNode) => continue,
                    listed => listed?,
                };
                match first_candidate(server, directory, &children).await? {
                    Some(first) => first,
                    None => return Ok((None, changed)),
                }
            }
        };
        let reads = join(server.get_and_watch(&first), server.get_and_watch(path));
        let (leader, in_directory) = reads.await;
        match leader.and_then(|leader| Ok((leader, in_directory?))) {
            Ok(((data, stat, leader_changed), (directory_data, _, directory_changed))) => {
                let leader = Leader::new((&data, &stat), &directory_data);
                return Ok((Some(leader), either(leader_changed, directory_changed)));
            }
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
}
