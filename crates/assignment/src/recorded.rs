//! The record of the partitions, on which all workers agree.
//!
//! The data of `partitions` is the first part of the record. If the record is long, the rest is in
//! children whose names begin with the generation in the first line. One write of the data replaces
//! the whole record. The write checks the children, so another writer cannot have deleted them.

use futures_util::future::{FutureExt, join_all};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{
    Acl, Backoff, CreateMode, Error, InvalidInput, NodePath, Operation, Refusal, ServerError,
    Session,
};

use crate::kept::Source;
use crate::partitions::Partitions;
use crate::pieces::{Unreadable, head, split_head};
use crate::retry::may_pass;

const KIND: &str = "partitions";
/// The most bytes of lines in a znode.
const FULL: usize = 32 * 1024;

/// A record has no more parts beside its first. The longest names of all partitions need fewer.
const MOST_PARTS: usize = 2_000;

/// What the record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Nothing,
    /// The path of the part that cannot be read.
    Unreadable(String, Unreadable),
    Partitions(Partitions),
}

/// A record, with the version of its data and the names of its children.
pub(crate) struct Record {
    pub(crate) recorded: Recorded,
    version: i32,
    children: Vec<String>,
}

/// Reads the record, once. `None` if a part is missing: the record was replaced meanwhile, unless
/// these are the data `again`.
async fn read_parts(
    server: &dyn ServerSession,
    path: &NodePath,
    data: &[u8],
    version: i32,
    again: bool,
) -> Result<Option<Record>, ServerError> {
    let record = |recorded, children| {
        Ok(Some(Record {
            recorded,
            version,
            children,
        }))
    };
    if data.is_empty() {
        return record(Recorded::Nothing, Vec::new());
    }
    let (first, lines) = match split_head(KIND, data) {
        Ok(split) => split,
        Err(problem) => return record(Recorded::Unreadable(path.to_string(), problem), Vec::new()),
    };
    let more = first.split_once(' ');
    let more = more.and_then(|(generation, more)| Some((generation, more.parse().ok()?)));
    let Some((generation, count)) = more.filter(|(_, count)| *count <= MOST_PARTS) else {
        let problem = "is no generation and number of parts".to_owned();
        let problem = Unreadable::Line(1, problem);
        return record(Recorded::Unreadable(path.to_string(), problem), Vec::new());
    };
    let children: Vec<String> = (1..=count).map(|it| child(path, generation, it)).collect();
    let mut parts = vec![lines.to_owned()];
    if count > 0 {
        for (found, child) in server.get_each(&children).await?.into_iter().zip(&children) {
            let Some((data, _)) = found else {
                let problem = Unreadable::Line(1, format!("names a part that is missing: {child}"));
                let unreadable = Recorded::Unreadable(path.to_string(), problem);
                return match again {
                    true => record(unreadable, Vec::new()),
                    false => Ok(None),
                };
            };
            parts.push(String::from_utf8_lossy(&data).into_owned());
        }
    }
    let recorded = match Partitions::parse(&parts) {
        Ok(partitions) => Recorded::Partitions(partitions),
        Err((0, problem)) => Recorded::Unreadable(path.to_string(), problem),
        Err((part, problem)) => Recorded::Unreadable(children[part - 1].clone(), problem),
    };
    record(recorded, children)
}

fn child(path: &NodePath, generation: &str, index: usize) -> String {
    format!("{path}/{generation}-{index}")
}

/// Reads the record, once.
pub(crate) async fn read(
    server: &dyn ServerSession,
    path: &NodePath,
) -> Result<Record, ServerError> {
    let (mut backoff, mut before) = (Backoff::default(), None);
    loop {
        let (data, stat) = server.get(path.as_str()).await?;
        let again = before.replace(stat.mzxid) == Some(stat.mzxid);
        if let Some(record) = read_parts(server, path, &data, stat.version, again).await? {
            return Ok(record);
        }
        backoff.wait().await;
    }
}

/// Writes the record over this version.
async fn write(
    server: &dyn ServerSession,
    path: &NodePath,
    generation: &str,
    over: &Record,
    partitions: &Partitions,
    acl: &[Acl],
) -> Result<(), Error> {
    let session = server.id();
    let parts = partitions.pieces(FULL);
    let names: Vec<String> = (1..parts.len())
        .map(|it| child(path, generation, it))
        .collect();
    let creates = names.iter().zip(&parts[1..]).map(|(name, part)| {
        let mode = CreateMode::Persistent;
        server.create(name, part.as_bytes(), mode, acl)
    });
    for (name, created) in names.iter().zip(join_all(creates).await) {
        created.map_err(|error| Error::at_create(name, session, error))?;
    }
    let data = format!("{}{generation} {}\n{}", head(KIND), names.len(), parts[0]);
    let mut operations = vec![Operation::SetData {
        path: path.to_string(),
        data: data.into_bytes(),
        version: Some(over.version),
    }];
    operations.extend(names.into_iter().map(Operation::check));
    let failed = |failure| Error::at_transaction(path.as_str(), session, failure, &operations);
    server.transact(&operations).await.map_err(failed)?;
    // The earlier record is not read any more. A child that remains does no harm.
    join_all(over.children.iter().map(|child| server.delete(child))).await;
    Ok(())
}

/// Takes the recorded partitions, or records these if none are recorded.
pub(crate) async fn open(
    session: &Session,
    path: &NodePath,
    partitions: &Partitions,
    acl: &[Acl],
) -> Result<Partitions, Error> {
    record(session, path, partitions, acl, false).await
}

/// Records these partitions in place of the recorded ones.
pub(crate) async fn replace(
    session: &Session,
    path: &NodePath,
    partitions: &Partitions,
    acl: &[Acl],
) -> Result<(), Error> {
    record(session, path, partitions, acl, true).await?;
    Ok(())
}

async fn record(
    session: &Session,
    path: &NodePath,
    partitions: &Partitions,
    acl: &[Acl],
    replaces: bool,
) -> Result<Partitions, Error> {
    let mut backoff = Backoff::default();
    loop {
        let server = session.server(path).await?;
        let recorded = async {
            let found = read(&*server, path).await;
            let found = found.map_err(|error| Error::at(path.as_str(), server.id(), error))?;
            match &found.recorded {
                Recorded::Unreadable(_, Unreadable::Version(_)) => Ok::<_, Error>(found.recorded),
                Recorded::Unreadable(..) if !replaces => Ok(found.recorded),
                // The same partitions are written again: an earlier request may be on its way.
                Recorded::Partitions(_) if !replaces => Ok(found.recorded),
                _ => {
                    let generation = session.ensemble().identity().prefix();
                    write(&*server, path, &generation, &found, partitions, acl).await?;
                    Ok(Recorded::Partitions(partitions.clone()))
                }
            }
        };
        match recorded.await {
            Ok(Recorded::Partitions(partitions)) => return Ok(partitions),
            Ok(Recorded::Unreadable(path, problem)) => return Err(unreadable(&path, &problem)),
            Ok(Recorded::Nothing) => {}
            // Another process has replaced the record, and deleted a child.
            Err(Error::Refused {
                refusal: Refusal::BadVersion | Refusal::NoNode,
                ..
            }) => {}
            Err(error) if may_pass(&error) => {}
            Err(error) => return Err(error),
        }
        drop(server);
        backoff.wait().await;
    }
}

/// The error of a record that this program does not read.
pub(crate) fn unreadable(path: &str, problem: &Unreadable) -> Error {
    InvalidInput::new("data of", path, problem.to_string()).into()
}

/// The record, with a watch of its data.
pub(crate) struct RecordAt {
    path: NodePath,
    changed: Option<Watch>,
}

impl RecordAt {
    pub(crate) fn new(path: &NodePath) -> RecordAt {
        RecordAt {
            path: path.clone(),
            changed: None,
        }
    }
}

impl Source for RecordAt {
    type Value = Recorded;

    fn path(&self) -> &NodePath {
        &self.path
    }

    fn reset(&mut self) {
        self.changed = None;
    }

    async fn read(&mut self, server: &dyn ServerSession) -> Result<Recorded, ServerError> {
        let mut before = None;
        loop {
            match server.get_and_watch(self.path.as_str()).await {
                Ok((data, stat, changed)) => {
                    self.changed = Some(changed);
                    let again = before.replace(stat.mzxid) == Some(stat.mzxid);
                    let parts = read_parts(server, &self.path, &data, stat.version, again);
                    if let Some(record) = parts.await? {
                        return Ok(record.recorded);
                    }
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    let (found, created) = server.exists_and_watch(self.path.as_str()).await?;
                    if found.is_none() {
                        self.changed = Some(created);
                        return Ok(Recorded::Nothing);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn changed(&mut self) {
        if let Some(changed) = &mut self.changed {
            changed.map(drop).await;
        }
    }
}
