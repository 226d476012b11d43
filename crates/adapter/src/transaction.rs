//! Transactions, each with a check of the guard, and reads of several znodes.

use std::fmt;

use zookeeper_client::{self as client, MultiReadResult, MultiWriteError, MultiWriteResult};
use zookeeper_recipes_core::ensemble::{Operation, Outcome};
use zookeeper_recipes_protocol::ErrorCode;

use crate::fence::Fence;
use crate::values::{Failure, client_acl, client_mode, stat_of, understood, unknown};

/// Sends a transaction that is done only if the guard exists.
pub(crate) async fn transact(
    client: &client::Client,
    fence: &Fence,
    guard: &str,
    operations: &[Operation],
) -> Result<Vec<Outcome>, Failure> {
    let mut writer = client.new_multi_writer();
    for (index, operation) in operations.iter().enumerate() {
        match add(&mut writer, operation) {
            Err(Failure::Refused(code)) => {
                return Ok(Outcome::failed(operations.len(), index, code));
            }
            added => added?,
        }
    }
    writer.add_check_version(guard, -1)?;
    let count = operations.len();
    let mut results = match understood(writer.commit()).await {
        Ok(results) => results,
        Err(MultiWriteError::OperationFailed { index, source }) if index == count => {
            if matches!(Failure::from(source), Failure::Refused(ErrorCode::NoNode)) {
                fence.guard_is_missing();
            }
            return Err(unknown("the guard of the session is missing"));
        }
        Err(MultiWriteError::OperationFailed { index, source }) => match Failure::from(source) {
            Failure::Refused(code) => return Ok(Outcome::failed(count, index, code)),
            failure => return Err(failure),
        },
        Err(MultiWriteError::RequestFailed { source }) => return Err(Failure::from(source)),
    };
    results.truncate(count);
    results.into_iter().map(outcome).collect()
}

/// Adds one operation to a transaction.
fn add(writer: &mut client::MultiWriter<'_>, operation: &Operation) -> Result<(), Failure> {
    match operation {
        Operation::Check(check) => writer.add_check_version(&check.path, check.version)?,
        Operation::Create2(create) | Operation::CreateContainer(create) => {
            let acl = client_acl(&create.acl);
            let options = client_mode(create.mode)?.with_acls(acl.as_slice().into());
            let data = create.data.as_deref().unwrap_or_default();
            writer.add_create(&create.path, data, &options)?;
        }
        Operation::SetData(set) => {
            let data = set.data.as_deref().unwrap_or_default();
            writer.add_set_data(&set.path, data, Some(set.version))?;
        }
        Operation::Delete(delete) => writer.add_delete(&delete.path, Some(delete.version))?,
        _ => return Err(Failure::Refused(ErrorCode::BadArguments)),
    }
    Ok(())
}

/// What one operation of a transaction did.
fn outcome(result: MultiWriteResult) -> Result<Outcome, Failure> {
    Ok(match result {
        MultiWriteResult::Check => Outcome::Check,
        MultiWriteResult::Delete => Outcome::Delete,
        MultiWriteResult::Create { path, stat } => Outcome::Create2 {
            path,
            stat: stat_of(stat),
        },
        MultiWriteResult::SetData { stat } => Outcome::SetData {
            stat: stat_of(stat),
        },
        other => return Err(unexpected(&other)),
    })
}

/// The failure of a request whose reply has a result of another kind.
fn unexpected(found: &dyn fmt::Debug) -> Failure {
    unknown(format!("unexpected result in the reply: {found:?}"))
}

/// Reads the data of several znodes in one request.
pub(crate) async fn read_each(
    client: &client::Client,
    reads: &[Operation],
) -> Result<Vec<Outcome>, Failure> {
    let mut reader = client.new_multi_reader();
    for read in reads {
        reader.add_get_data(read.path())?;
    }
    let results = understood(reader.commit()).await?;
    let outcomes = results.into_iter().map(|result| match result {
        MultiReadResult::Data { data, stat } => {
            let (data, stat) = (Some(data), stat_of(stat));
            Ok(Outcome::GetData { data, stat })
        }
        MultiReadResult::Error { err } => match Failure::from(err) {
            Failure::Refused(code) => Ok(Outcome::Error(code)),
            failure => Err(failure),
        },
        other => Err(unexpected(&other)),
    });
    outcomes.collect()
}
