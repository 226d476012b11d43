//! The record of the partitions, on which all workers agree.
//!
//! The data of `partitions` is the first part of the record. If the record is long, the rest is in
//! children whose names begin with the generation in the first line. One write of the data replaces
//! the whole record. The write checks the children, so another writer cannot have deleted them.

use futures_util::future::join_all;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Recorded {
    #[default]
    Nothing,
    /// The path of the part that cannot be read.
    Unreadable(String, Unreadable),
    Partitions(Partitions),
}

/// Reads the record of these data, and the names of its children.
///
/// `None` if a part is missing: the record was replaced meanwhile, unless these are the data `again`.
async fn read_parts(
    server: &dyn ServerSession,
    path: &NodePath,
    data: &[u8],
    again: bool,
) -> Result<Option<(Recorded, Vec<String>)>, ServerError> {
    if data.is_empty() {
        return Ok(Some((Recorded::Nothing, Vec::new())));
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
        Ok(partitions) => Recorded::Partitions(partitions),
        Err((0, problem)) => Recorded::Unreadable(path.to_string(), problem),
        Err((part, problem)) => Recorded::Unreadable(children[part - 1].clone(), problem),
    };
    Ok(Some((recorded, children)))
}

fn child(path: &NodePath, generation: &str, index: usize) -> String {
    format!("{path}/{generation}-{index}")
}

/// Reads the record once, with the version of its data and the names of its children.
pub(crate) async fn read(
    server: &dyn ServerSession,
    path: &NodePath,
) -> Result<(Recorded, i32, Vec<String>), ServerError> {
    let (mut backoff, mut before) = (Backoff::default(), None);
    loop {
        let (data, stat) = server.get(path.as_str()).await?;
        let again = before.replace(stat.mzxid) == Some(stat.mzxid);
        if let Some((recorded, children)) = read_parts(server, path, &data, again).await? {
            return Ok((recorded, stat.version, children));
        }
        backoff.wait().await;
    }
}

/// Writes the record over this version.
async fn write(
    server: &dyn ServerSession,
    path: &NodePath,
    generation: &str,
    over: i32,
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
        version: Some(over),
    }];
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
    let mut backoff = Backoff::default();
    loop {
        let server = session.server(path).await?;
        let recorded = async {
            let found = read(&*server, path).await;
            let (found, version, children) =
                found.map_err(|error| Error::at(path.as_str(), server.id(), error))?;
            match found {
                Recorded::Unreadable(at, problem)
                    if !replaces || matches!(problem, Unreadable::Version(_)) =>
                {
                    return Err(unreadable(&at, &problem));
                }
                // The same partitions are written again: an earlier request may be on its way.
                Recorded::Partitions(recorded) if !replaces => return Ok(recorded),
                _ => {}
            }
            let generation = session.ensemble().identity().prefix();
            write(&*server, path, &generation, version, partitions, acl).await?;
            // The earlier record is not read any more. A child that remains does no harm.
            join_all(children.iter().map(|child| server.delete(child))).await;
            Ok(partitions.clone())
        };
        match recorded.await {
            // Another process has replaced the record, and deleted a child.
            Err(Error::Refused {
                refusal: Refusal::BadVersion | Refusal::NoNode,
                ..
            }) => {}
            Err(error) if may_pass(&error) => {}
            recorded => return recorded,
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
    /// `None` if the record must be read.
    changed: Option<Watch>,
    recorded: Recorded,
}

impl RecordAt {
    pub(crate) fn new(path: &NodePath) -> RecordAt {
        RecordAt {
            path: path.clone(),
            changed: None,
            recorded: Recorded::Nothing,
        }
    }

    async fn read_again(&mut self, server: &dyn ServerSession) -> Result<(), ServerError> {
        let mut before = None;
        loop {
            match server.get_and_watch(self.path.as_str()).await {
                Ok((data, stat, changed)) => {
                    let again = before.replace(stat.mzxid) == Some(stat.mzxid);
                    let parts = read_parts(server, &self.path, &data, again);
                    if let Some((recorded, _)) = parts.await? {
                        (self.recorded, self.changed) = (recorded, Some(changed));
                        return Ok(());
                    }
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    let (found, created) = server.exists_and_watch(self.path.as_str()).await?;
                    if found.is_none() {
                        (self.recorded, self.changed) = (Recorded::Nothing, Some(created));
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
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
        if self.changed.is_none() {
            self.read_again(server).await?;
        }
        Ok(self.recorded.clone())
    }

    async fn changed(&mut self) {
        if let Some(changed) = &mut self.changed {
            changed.await;
            self.changed = None;
        }
    }
}
