//! Writes to the notice of an election.

use zookeeper_recipes_core::{
    Error, HoldView, InvalidInput, NodePath, Operation, Refusal, ServerError, Session, ensemble,
};

use crate::backoff::Backoff;
use crate::notice::Notice;

/// Changes the notice, unless it says so already.
///
/// If a leader changes it, the server refuses that once the leader's znode is deleted. Tries again
/// if another process changes the notice meanwhile, or no answer comes.
///
/// # Errors
///
/// [`Error::InvalidInput`] if the directory's data belongs to another program; the errors of the
/// requests.
pub(crate) async fn post(
    session: &Session,
    directory: &NodePath,
    leader: Option<&HoldView>,
    change: impl Fn(&mut Notice),
) -> Result<(), Error> {
    let mut backoff = Backoff::new();
    loop {
        let server = session.server(directory).await?;
        let tried = try_to_post(&*server, directory, leader, &change).await;
        drop(server);
        match tried {
            Err(Error::OutcomeUnknown { .. })
            | Err(Error::Refused {
                refusal: Refusal::BadVersion,
                ..
            }) => backoff.wait().await,
            outcome => return outcome,
        }
    }
}

async fn try_to_post(
    server: &dyn ensemble::ServerSession,
    directory: &NodePath,
    leader: Option<&HoldView>,
    change: &impl Fn(&mut Notice),
) -> Result<(), Error> {
    let path = directory.as_str();
    let failed = |error: ServerError| Error::at(directory.as_str(), server.id(), error);
    let (data, stat) = server.get(path).await.map_err(failed)?;
    let old = Notice::read(&data).ok_or_else(|| {
        let problem = "has data of another program, which is not overwritten";
        InvalidInput::new("the election at", path, problem)
    })?;
    let mut new = old.clone();
    change(&mut new);
    let path = path.to_owned();
    let version = Some(stat.version);
    let write = match (new == old, leader) {
        (true, None) => return Ok(()),
        // The server still has to say that it leads.
        (true, Some(_)) => Operation::Check { path, version },
        (false, _) => Operation::SetData {
            path,
            data: new.data(),
            version,
        },
    };
    match leader {
        Some(leader) => leader.transaction().operation(write).commit().await?,
        None => {
            let written = server.transact(&[write]).await;
            written.map_err(|failure| failed(failure.error))?
        }
    };
    Ok(())
}
