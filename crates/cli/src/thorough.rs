//! The checks of `zkr doctor --thorough`: each tries one promise of the servers that the recipes need.
//!
//! They send ZooKeeper's own protocol over connections of their own, because a
//! [`Session`](zookeeper_recipes_core::Session) hides what they look for.

mod client;
mod containers;
mod expiry;
mod requests;
mod sessions;
mod site;
mod verdict;
mod watches;
mod znodes;

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join, join3};
use zookeeper_recipes_protocol::ErrorCode;

use self::client::Trouble;
use self::requests::REQUESTS;
use self::site::Site;
pub(crate) use self::verdict::Verdict;
use self::verdict::{Kept, Promise};
use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::four_letter::Servers;
use crate::signals::ended_by_signal;

/// The name of the znode that the checks make, and remove.
const OWN: &str = "zkr-doctor-thorough";

/// The data of that znode, by which a doctor knows what another one has left.
const MARK: &[u8] = b"zkr doctor --thorough";

/// The ephemeral znode below it, which exists while a doctor runs.
const RUNS: &str = "runs";

/// The znode below this directory that says that a doctor runs.
pub(crate) fn runs_in(directory: &str) -> String {
    format!("{}/{OWN}/{RUNS}", directory.trim_end_matches('/'))
}

/// Tries each promise below `directory`, in a znode of its own, which is removed at the end.
///
/// `directory` exists, and its path includes the chroot. `runs` creates the ephemeral znode
/// [`runs_in`] the directory. An empty container is awaited for `containers_within`.
pub(crate) async fn try_promises(
    servers: &Servers,
    connection: &Connection,
    directory: &str,
    runs: impl Future<Output = Result<(), Failure>>,
    containers_within: Duration,
) -> Result<Vec<Verdict>, Failure> {
    let directory = directory.trim_end_matches('/');
    let root = format!("{directory}/{OWN}");
    let site = Site::new(servers, connection, root, containers_within)?;
    match make(&site).await {
        Ok(()) => {}
        Err(trouble @ (Trouble::Closed(_) | Trouble::Silent(_))) => {
            return Ok(vec![Verdict::new(&requests::CREATE2, Err(trouble.into()))]);
        }
        Err(trouble) => return Err(not_made(&site, &trouble)),
    }
    runs.await?;
    let verdicts = tokio::select! {
        biased;
        signal = ended_by_signal() => {
            let text = format!("interrupted; {} was removed", site.root);
            Err(Failure::new(Exit::Signal(signal), text))
        }
        verdicts = all(&site) => Ok(verdicts),
    };
    match site.remove().await {
        Ok(()) => verdicts,
        Err(trouble) => Err(Failure::new(
            Exit::Unavailable,
            format!(
                "{} is left, delete it with its children: {trouble}",
                site.root
            ),
        )),
    }
}

/// Makes the znode of the checks. What an interrupted doctor has left is removed first.
async fn make(site: &Site<'_>) -> Result<(), Trouble> {
    let mut client = site.open(0).await?;
    match client.create_marked(&site.root, MARK).await {
        Err(trouble) if trouble.is_refusal(ErrorCode::NodeExists) => {
            client.sync("/").await?;
            let (data, _) = client.get(&site.root).await?;
            let runs = client
                .children(&site.root)
                .await?
                .iter()
                .any(|it| it == RUNS);
            if data != MARK || runs {
                return Err(trouble);
            }
            client.delete_all(&site.root).await?;
            client.create_marked(&site.root, MARK).await?;
        }
        made => made?,
    }
    client.close().await;
    Ok(())
}

fn not_made(site: &Site<'_>, trouble: &Trouble) -> Failure {
    let root = &site.root;
    if trouble.is_refusal(ErrorCode::NodeExists) {
        return Failure::usage(format!(
            "{root} exists: another doctor runs, or was killed and its session has not expired, or the \
             znode is somebody else's"
        ));
    }
    let exit = match trouble {
        Trouble::Refused(..) => Exit::NoPermission,
        _ => Exit::Unavailable,
    };
    Failure::new(exit, format!("{root} cannot be created: {trouble}"))
}

/// The verdict of each promise. The checks that wait for the servers' clock run beside the others.
async fn all(site: &Site<'_>) -> Vec<Verdict> {
    let (mut verdicts, (expires, lives, containers)) = join(
        one_by_one(site),
        join3(
            expiry::expires(site),
            expiry::lives(site),
            containers::are_reaped(site),
        ),
    )
    .await;
    verdicts.push(Verdict::new(&expiry::EXPIRES, expires));
    verdicts.push(Verdict::new(&expiry::LIVES, lives));
    verdicts.push(Verdict::new(&containers::REAPED, containers));
    verdicts
}

/// The checks that end at once, one after the other.
async fn one_by_one(site: &Site<'_>) -> Vec<Verdict> {
    let checks: [(&'static Promise, BoxFuture<'_, Kept>); 13] = [
        (&sessions::RESUMES, sessions::resumes(site).boxed()),
        (&sessions::TIMEOUT, sessions::keeps_timeout(site).boxed()),
        (&sessions::CLOSES, sessions::closes(site).boxed()),
        (&znodes::OWN_WRITES, znodes::own_writes(site).boxed()),
        (&znodes::SYNC, znodes::sync(site).boxed()),
        (&watches::BEFORE, watches::before_reply(site).boxed()),
        (&watches::ORDER, watches::in_order(site).boxed()),
        (&watches::AGAIN, watches::set_again(site).boxed()),
        (&znodes::SEQUENCE, znodes::sequence(site).boxed()),
        (&znodes::EPHEMERAL, znodes::ephemeral(site).boxed()),
        (&znodes::ZXIDS, znodes::transaction_ids(site).boxed()),
        (&znodes::VERSIONS, znodes::versions(site).boxed()),
        (&znodes::ATOMIC, znodes::atomic(site).boxed()),
    ];
    let mut verdicts = Vec::new();
    for (promise, check) in checks {
        verdicts.push(Verdict::new(promise, check.await));
    }
    for request in REQUESTS {
        verdicts.push(Verdict::new(&request.promise, request.is_known(site).await));
    }
    verdicts
}
