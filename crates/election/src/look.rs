//! Reading from the server who leads.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Contender, Error, NodePath, Refusal, ServerError, Session, order, ordered_by_czxid,
};

use crate::backoff::Backoff;
use crate::leader::Leader;
use crate::rule::candidate_named;

/// How long an answer is waited for while there is no session.
const WITHOUT_SESSION: Duration = Duration::from_secs(10);

/// Bounds a look at the election at `directory` by the session's timeout.
///
/// # Errors
///
/// Those of the look; [`Error::OutcomeUnknown`] or [`Error::Connect`] if no answer came in time.
pub(crate) async fn in_time<T>(
    session: &Session,
    directory: &NodePath,
    look: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let most = session.timeout().unwrap_or(WITHOUT_SESSION);
    match tokio::time::timeout(most, look).await {
        Ok(result) => result,
        Err(_) => Err(no_answer(session, directory, most)),
    }
}

fn no_answer(session: &Session, directory: &NodePath, waited: Duration) -> Error {
    let silence = ServerError::outcome_unknown(format!("no server answered within {waited:.1?}"));
    match session.id() {
        Some(id) => Error::at(directory.as_str(), id, silence),
        None => {
            let ensemble = session.ensemble();
            Error::Connect {
                address: ensemble.address(),
                tried_for: waited,
                cause: ensemble.obstacle().unwrap_or_else(|| Arc::new(silence)),
            }
        }
    }
}

/// Reads who leads, again until a server answers, for at most the session's timeout.
pub(crate) async fn who_leads(
    session: &Session,
    directory: &NodePath,
) -> Result<Option<Leader>, Error> {
    let look = async {
        let mut backoff = Backoff::new();
        loop {
            let server = session.server(directory).await?;
            match look(&*server, directory).await {
                Ok(leader) => return Ok(leader),
                Err(error @ ServerError::Refused(_)) => {
                    return Err(Error::at(directory.as_str(), server.id(), error));
                }
                Err(ServerError::OutcomeUnknown(_) | ServerError::SessionOver(_)) => {}
            }
            drop(server);
            backoff.wait().await;
        }
    };
    in_time(session, directory, look).await
}

/// Lists the names and reads the first candidate, again as often as that one goes in between.
async fn look(
    server: &dyn ServerSession,
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
        let (leader, notice) = (server.get(&first), server.get(directory.as_str()));
        let (leader, notice) = join(leader, notice).await;
        match leader.and_then(|leader| Ok((leader, notice?))) {
            Ok(((data, stat), (notice, _))) => {
                return Ok(Some(Leader::new((&data, &stat), &notice)));
            }
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The path of the first candidate among these children, or `None` if there is none.
///
/// Sends nothing, unless several candidates have the same number: then one read tells their order.
pub(crate) async fn first_candidate(
    server: &dyn ServerSession,
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
        // A candidate that has gone meanwhile comes last. If all have gone, reading the first
        // tells.
        order(&mut candidates);
    }
    Ok(candidates.first().map(path))
}
