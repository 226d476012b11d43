//! Reading who leads, once.

use std::time::Duration;

use futures_util::future::join;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Backoff, Contender, Error, NodePath, Refusal, ServerError, Session, order, ordered_by_czxid,
};

use crate::leader::Leader;
use crate::rule::candidate_named;

/// The longest wait for an answer while there is no session.
const WITHOUT_SESSION: Duration = Duration::from_secs(10);

/// Bounds requests to the election at `directory` by the session's timeout.
///
/// # Errors
///
/// Those of the requests; [`Error::OutcomeUnknown`] or [`Error::Connect`] if no answer came in time.
pub(crate) async fn in_time<T>(
    session: &Session,
    directory: &NodePath,
    requests: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let most = session.timeout().unwrap_or(WITHOUT_SESSION);
    match tokio::time::timeout(most, requests).await {
        Ok(result) => result,
        Err(_) => Err(session.no_answer(directory, most)),
    }
}

/// Reads who leads. The call repeats the requests until a server answers, for at most the session's
/// timeout.
pub(crate) async fn read_leader(
    session: &Session,
    directory: &NodePath,
) -> Result<Option<Leader>, Error> {
    let read = async {
        let mut backoff = Backoff::default();
        loop {
            let server = session.server(directory).await?;
            match read_once(&server, directory).await {
                Ok(leader) => return Ok(leader),
                Err(error @ ServerError::Refused(_)) => {
                    return Err(Error::at(directory.as_str(), server.id, error));
                }
                Err(ServerError::OutcomeUnknown(_) | ServerError::SessionOver(_)) => {}
            }
            drop(server);
            backoff.wait().await;
        }
    };
    in_time(session, directory, read).await
}

/// Lists the names and reads the first candidate. The call repeats both if that znode is deleted in
/// between.
async fn read_once(
    server: &ServerSession,
    directory: &NodePath,
) -> Result<Option<Leader>, ServerError> {
    loop {
        let children = match server.list(directory.as_str()).await {
            Err(error) if error.is(Refusal::NoNode) => return Ok(None),
            children => children?,
        };
        let Some(first) = first_candidate(server, directory, &children).await? else {
            return Ok(None);
        };
        let reads = join(server.get(&first), server.get(directory.as_str()));
        let (leader, in_directory) = reads.await;
        match leader.and_then(|leader| Ok((leader, in_directory?))) {
            Ok(((data, stat), (directory_data, _))) => {
                return Ok(Some(Leader::new((&data, &stat), &directory_data)));
            }
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The path of the first candidate among these children, or `None` if there is none.
///
/// The call sends nothing, unless several candidates have the same number: then one read gives
/// their order.
pub(crate) async fn first_candidate(
    server: &ServerSession,
    directory: &NodePath,
    children: &[String],
) -> Result<Option<String>, ServerError> {
    let mut candidates: Vec<Contender> = children
        .iter()
        .filter_map(|name| candidate_named(name))
        .collect();
    let path = |candidate: &Contender| format!("{directory}/{}", candidate.name());
    order(&mut candidates);
    let tied = ordered_by_czxid(&candidates);
    if tied.first() == Some(&0) {
        let paths: Vec<String> = tied.iter().map(|place| path(&candidates[*place])).collect();
        let nodes = server.get_each(&paths).await?;
        for (place, node) in tied.into_iter().zip(nodes) {
            if let Some((_, stat)) = node {
                candidates[place].set_czxid(stat.czxid);
            }
        }
        // A candidate whose znode was deleted meanwhile comes last. If all were deleted, the read
        // of the first one finds no znode.
        order(&mut candidates);
    }
    Ok(candidates.first().map(path))
}
