//! The znode of a job: reading and writing its record.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::{Operation, Outcome, Stat};
use zookeeper_recipes_core::{Error, Hold, LossReason, NodePath, Refusal, Session};

use super::record::JobRecord;

/// Before a request whose outcome is unknown is sent again.
const PAUSE: Duration = Duration::from_millis(100);

/// The directory of a job, whose data is the record.
#[derive(Clone, Debug)]
pub(super) struct JobZnode {
    pub(super) session: Session,
    pub(super) path: NodePath,
}

impl JobZnode {
    /// Reads the record, and the metadata of the znode. Asks again if no answer comes.
    pub(super) async fn read(&self) -> Result<(Option<JobRecord>, Stat), Error> {
        let path = &self.path;
        loop {
            let server = self.session.server(path).await?;
            let error = match server.get(path.as_str()).await {
                Ok((data, stat)) => return Ok((JobRecord::at(path, &data)?, stat)),
                Err(error) if error.is(Refusal::NoNode) => return Ok((None, Stat::default())),
                Err(error) => Error::at(path.as_str(), server.id, error),
            };
            match error {
                Error::OutcomeUnknown { .. } => {
                    drop(server);
                    tokio::time::sleep(PAUSE).await;
                }
                error => return Err(error),
            }
        }
    }

    /// Writes the record over this version, as long as the hold is held. Returns the metadata, or
    /// `None` if another client has written meanwhile.
    ///
    /// The call ends once the outcome is known. It fails if the hold is lost before.
    pub(super) async fn write(
        &self,
        hold: &Hold,
        record: &JobRecord,
        version: i32,
    ) -> Result<Option<Stat>, Error> {
        while_held(hold, self.write_until_known(hold, record, version)).await
    }

    async fn write_until_known(
        &self,
        hold: &Hold,
        record: &JobRecord,
        mut version: i32,
    ) -> Result<Option<Stat>, Error> {
        loop {
            let set = Operation::set_data(self.path.as_str(), record.text()).at_version(version);
            match hold.transaction().operation(set).commit().await {
                Ok(outcomes) => {
                    if let Some(Outcome::SetData { stat }) = outcomes.last() {
                        return Ok(Some(*stat));
                    }
                }
                Err(Error::OutcomeUnknown { .. }) => tokio::time::sleep(PAUSE).await,
                Err(Error::Refused {
                    refusal: Refusal::BadVersion,
                    ..
                }) => {}
                Err(error) => return Err(error),
            }
            let (recorded, stat) = self.read().await?;
            match recorded {
                _ if stat.version == version => {}
                // The write whose answer was lost.
                Some(recorded) if recorded == *record => return Ok(Some(stat)),
                // The writer may be the next holder.
                _ => return prove(hold).await.map(|()| None),
            }
            version = stat.version;
        }
    }
}

/// Asks the servers if the hold is held. Asks again until the outcome is known.
async fn prove(hold: &Hold) -> Result<(), Error> {
    loop {
        match hold.transaction().commit().await {
            Err(Error::OutcomeUnknown { .. }) => tokio::time::sleep(PAUSE).await,
            held => return held.map(drop),
        }
    }
}

/// Does the work, unless the hold is lost before.
pub(super) async fn while_held<T>(
    hold: &Hold,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let done = hold.run_until_lost(work).await;
    done.unwrap_or_else(|reason| Err(lost(hold, reason)))
}

/// The error of a run whose hold was lost.
pub(super) fn lost(hold: &Hold, reason: LossReason) -> Error {
    Error::Lost {
        path: hold.node_path().to_owned(),
        session: hold.session_id(),
        reason,
    }
}
