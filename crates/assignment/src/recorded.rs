//! The record of the partitions, on which all workers agree.
//!
//! The data of `partitions` is the first part of the record. If the record is long, the rest is in
//! children whose names begin with the generation in the first line. One write of the data replaces
//! the whole record. The write checks the children, so another writer cannot have deleted them.

use std::fmt;
use std::sync::Arc;

use futures_util::future::join_all;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Acl, Backoff, CreateMode, Error, InvalidInput, NodePath, Operation, Refusal, ServerError,
    Session,
};

use crate::layout::create_directory;
use crate::partitions::Partitions;
use crate::pieces::{Record, Unreadable, head, split_head};
use crate::retry::{refusal, repeat};

const KIND: &str = "partitions";
/// The most bytes of lines in a znode.
const FULL: usize = 32 * 1024;

/// A record has no more parts beside its first. The longest names of all partitions need fewer.
const MOST_PARTS: usize = 2_000;

pub(crate) type Recorded = Record<Partitions>;

/// Reads the record of these data, and the names of its children.
///
/// `None` if a part is missing: the record was replaced meanwhile, unless these are the data `again`.
async fn read_parts(
    server: &ServerSession,
    path: &NodePath,
    data: &[u8],
    again: bool,
) -> Result<Option<(Recorded, Vec<String>)>, ServerError> {
    if data.is_empty() {
        return Ok(Some((Recorded::Missing, Vec::new())));
    }
    let unreadable = |problem| {
        let unreadable = Recorded::Unreadable(path.to_string(), problem);
        Ok(Some((unreadable, Vec::new())))
    };
    let (first, lines) = match split_head(KIND, data) {
        Ok(split) => split,
        Err(problem) => return unreadable(problem),
    };
    let more = first.split_once(' ');
    let more = more.and_then(|(generation, more)| Some((generation, more.parse().ok()?)));
    let Some((generation, count)) = more.filter(|(_, count)| *count <= MOST_PARTS) else {
        let problem = "is no generation and number of parts".to_owned();
        return unreadable(Unreadable::Line(1, problem));
    };
    let children: Vec<String> = (1..=count).map(|it| child(path, generation, it)).collect();
    let mut parts = vec![lines.to_owned()];
    if count > 0 {
        for (found, child) in server.get_each(&children).await?.into_iter().zip(&children) {
            match found {
                Some((data, _)) => parts.push(String::from_utf8_lossy(&data).into_owned()),
                None if again => {
                    let problem = format!("names a part that is missing: {child}");
                    return unreadable(Unreadable::Line(1, problem));
                }
                None => return Ok(None),
            }
        }
    }
    let recorded = match Partitions::parse(&parts) {
        Ok(partitions) => Recorded::Found(partitions),
        Err((0, problem)) => Recorded::Unreadable(path.to_string(), problem),
        Err((part, problem)) => Recorded::Unreadable(children[part - 1].clone(), problem),
    };
    Ok(Some((recorded, children)))
}

fn child(path: &NodePath, generation: &str, index: impl fmt::Display) -> String {
    format!("{path}/{generation}-{index}")
}

/// The record at one moment.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) recorded: Recorded,
    /// The version of its data.
    version: i32,
    /// Its other parts.
    children: Vec<String>,
}

/// Reads the record. One whose znode is missing counts as missing.
pub(crate) async fn read(server: &ServerSession, path: &NodePath) -> Result<Read, ServerError> {
    let (mut backoff, mut before) = (Backoff::default(), None);
    loop {
        let (data, stat) = match server.get(path.as_str()).await {
            Err(error) if error.is(Refusal::NoNode) => return Ok(Read::default()),
            read => read?,
        };
        let again = before.replace(stat.mzxid) == Some(stat.mzxid);
        if let Some((recorded, children)) = read_parts(server, path, &data, again).await? {
            return Ok(Read {
                recorded,
                version: stat.version,
                children,
            });
        }
        backoff.wait().await;
    }
}

/// Writes the record over this version.
async fn write(
    server: &ServerSession,
    path: &NodePath,
    generation: &str,
    over: i32,
    partitions: &Partitions,
    acl: &[Acl],
) -> Result<(), Error> {
    let session = server.id;
    let parts = partitions.pieces(FULL);
    let names: Vec<String> = (1..parts.len())
        .map(|it| child(path, generation, it))
        .collect();
    let creates = names.iter().zip(&parts[1..]).map(|(name, part)| {
        let mode = CreateMode::Persistent;
        server.create(name, part.as_bytes(), mode, acl)
    });
    for (name, created) in names.iter().zip(join_all(creates).await) {
        match created {
            // By an earlier attempt of this call: nobody else has its generation.
            Err(error) if error.is(Refusal::NodeExists) => {}
            created => drop(created.map_err(|error| Error::at_create(name, session, error))?),
        }
    }
    let data = format!("{}{generation} {}\n{}", head(KIND), names.len(), parts[0]);
    let mut operations = vec![Operation::set_data(path.as_str(), data).at_version(over)];
    operations.extend(names.into_iter().map(Operation::check));
    let failed = |failure| Error::at_transaction(path.as_str(), session, failure, &operations);
    server.transact(&operations).await.map(drop).map_err(failed)
}

/// Records these partitions if none are recorded, or in place of others. Returns the recorded ones.
pub(crate) async fn record(
    session: &Session,
    path: &NodePath,
    partitions: &Partitions,
    acl: &[Acl],
    replaces: bool,
) -> Result<Partitions, Error> {
    let generation = session.ensemble().identity().prefix();
    let write = async |server: Arc<ServerSession>| {
        let found = read(&server, path).await;
        let found = found.map_err(|error| Error::at(path.as_str(), server.id, error))?;
        match found.recorded {
            Recorded::Unreadable(at, problem)
                if !replaces || matches!(problem, Unreadable::Version(_)) =>
            {
                return Err(unreadable(&at, &problem));
            }
            // The same partitions are written again: an earlier request may be on its way.
            Recorded::Found(recorded) if !replaces => return Ok(Some(recorded)),
            _ => {}
        }
        let written = write(&server, path, &generation, found.version, partitions, acl).await;
        match written.as_ref().map_err(refusal) {
            // The directory is new, or the servers have lost it, or another process has replaced
            // the record and deleted a child.
            Err(Some(Refusal::NoNode)) => {
                create_directory(session, path, acl).await?;
                return Ok(None);
            }
            Err(Some(Refusal::BadVersion)) => return Ok(None),
            _ => written?,
        }
        // The earlier record is not read any more. A child that remains does no harm. An attempt whose
        // answer was lost may have written the record that was read.
        let own = child(path, &generation, "");
        let earlier = found.children.iter().filter(|it| !it.starts_with(&own));
        join_all(earlier.map(|child| server.delete(child))).await;
        Ok(Some(partitions.clone()))
    };
    repeat(session, path, write).await
}

/// The error of a record that this program does not read.
pub(crate) fn unreadable(path: &str, problem: &Unreadable) -> Error {
    InvalidInput::new("data of", path, problem.to_string()).into()
}
