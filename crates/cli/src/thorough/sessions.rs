//! What a reconnect finds, and what the end of a session deletes.

use zookeeper_recipes_protocol::{CreateMode, RequestBody};

use super::client::Trouble;
use super::site::Site;
use super::verdict::{Flaw, Kept, Promise, broken};

pub(super) const RESUMES: Promise = Promise {
    name: "session-resumes",
    without: "a hold ends when its connection breaks",
};

pub(super) const TIMEOUT: Promise = Promise {
    name: "session-keeps-timeout",
    without: "a hold ends when its connection breaks: its lease would be too long",
};

pub(super) const CLOSES: Promise = Promise {
    name: "session-closes",
    without: "a lock is not free before the session timeout after its process has ended",
};

/// A new connection takes a session over, by its id and its password, with its ephemeral znodes.
pub(super) async fn resumes(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, RESUMES.name).await?;
    let path = format!("{directory}/ephemeral");
    client.create(&path, CreateMode::Ephemeral).await?;
    let left = client.leave();
    let mut again = site.resume(1, &left).await?;
    if again.session.id != left.id {
        return broken(format!(
            "the reconnect of session {:#x} was answered with session {:#x}",
            left.id, again.session.id
        ));
    }
    match again.exists(&path).await? {
        None => return broken("the ephemeral znode of the session was gone after a reconnect"),
        Some(stat) if stat.ephemeral_owner != left.id => {
            return broken(format!(
                "the owner of the session's znode is {:#x} after a reconnect of {:#x}",
                stat.ephemeral_owner, left.id
            ));
        }
        Some(_) => {}
    }
    again.close().await;
    Ok(format!(
        "session {:#x} was resumed over a new connection to {}",
        left.id,
        site.host(1)
    ))
}

/// The answer to a reconnect has the session timeout that was granted.
pub(super) async fn keeps_timeout(site: &Site<'_>) -> Kept {
    let left = site.open(0).await?.leave();
    let again = match site.resume(1, &left).await {
        Err(trouble @ (Trouble::Expired | Trouble::NoAnswer)) => {
            return Err(Flaw::Untried(trouble.to_string()));
        }
        again => again?,
    };
    let timeout = again.session.timeout;
    again.close().await;
    match timeout == left.timeout {
        true => Ok(format!(
            "a reconnect was granted the same timeout: {timeout:?}"
        )),
        false => broken(format!(
            "a session was granted {:?}, and its reconnect {timeout:?}",
            left.timeout
        )),
    }
}

/// The reply to a close comes after the session's ephemeral znodes are deleted.
pub(super) async fn closes(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, CLOSES.name).await?;
    let path = format!("{directory}/ephemeral");
    client.create(&path, CreateMode::Ephemeral).await?;
    // Some servers close the connection in place of the reply.
    let closed = client.done(RequestBody::CloseSession).await;
    let mut other = site.open_caught_up(1).await?;
    let left = other.exists(&path).await?;
    other.close().await;
    match (left, closed) {
        (Some(_), _) => broken("an ephemeral znode was there after its session was closed"),
        (None, Err(trouble)) => Ok(format!(
            "the znodes of a closed session are gone ({trouble})"
        )),
        (None, Ok(_)) => Ok("the znodes of a closed session are gone".to_owned()),
    }
}
