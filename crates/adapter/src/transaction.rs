//! Transactions, each with a check of the guard.

use futures_util::future::{BoxFuture, FutureExt, ready};
use zookeeper_client as client;
use zookeeper_recipes_core::ensemble::{Created, Operation, Outcome, TransactionError};
use zookeeper_recipes_core::{Refusal, ServerError};

use crate::fence::Fence;
use crate::values::{classify, client_acl, client_mode, stat_of, understood};

/// Sends a transaction that is done only if the guard exists.
pub(crate) fn transact<'a>(
    client: &'a client::Client,
    fence: &'a Fence,
    guard: &str,
    operations: &[Operation],
) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
    let mut writer = client.new_multi_writer();
    for (index, operation) in operations.iter().enumerate() {
        if let Err(error) = add(&mut writer, operation) {
            let operation = Some(index);
            return ready(Err(TransactionError { operation, error })).boxed();
        }
    }
    if let Err(error) = writer.add_check_version(guard, -1) {
        return ready(Err(failed(None, error))).boxed();
    }
    let count = operations.len();
    let reply = writer.commit();
    async move {
        let mut results = match understood(reply).await {
            Ok(results) => results,
            Err(client::MultiWriteError::OperationFailed { index, source }) if index == count => {
                if classify(source).is(Refusal::NoNode) {
                    fence.guard_is_missing();
                }
                let error = ServerError::outcome_unknown("the guard of the session is missing");
                return Err(TransactionError {
                    operation: None,
                    error,
                });
            }
            Err(client::MultiWriteError::OperationFailed { index, source }) => {
                return Err(failed(Some(index), source));
            }
            Err(client::MultiWriteError::RequestFailed { source }) => {
                return Err(failed(None, source));
            }
        };
        results.truncate(count);
        results.into_iter().map(outcome).collect()
    }
    .boxed()
}

fn failed(operation: Option<usize>, source: client::Error) -> TransactionError {
    let error = classify(source);
    TransactionError { operation, error }
}

/// Adds one operation to a transaction.
fn add(writer: &mut client::MultiWriter<'_>, operation: &Operation) -> Result<(), ServerError> {
    let added = match operation {
        Operation::Check { path, version } => writer.add_check_version(path, version.unwrap_or(-1)),
        Operation::Create {
            path,
            data,
            mode,
            acl,
        } => {
            let acl = client_acl(acl);
            let options = client_mode(*mode)?.with_acls(acl.as_slice().into());
            writer.add_create(path, data, &options)
        }
        Operation::SetData {
            path,
            data,
            version,
        } => writer.add_set_data(path, data, *version),
        Operation::Delete { path, version } => writer.add_delete(path, *version),
    };
    added.map_err(classify)
}

/// What one operation of a transaction did.
fn outcome(result: client::MultiWriteResult) -> Result<Outcome, TransactionError> {
    match result {
        client::MultiWriteResult::Check => Ok(Outcome::Checked),
        client::MultiWriteResult::Delete => Ok(Outcome::Deleted),
        client::MultiWriteResult::Create { path, stat } => Ok(Outcome::Created(Created {
            path,
            stat: stat_of(stat),
        })),
        client::MultiWriteResult::SetData { stat } => Ok(Outcome::DataSet(stat_of(stat))),
        other => Err(TransactionError {
            operation: None,
            error: ServerError::outcome_unknown(format!(
                "unexpected result in the reply: {other:?}"
            )),
        }),
    }
}
