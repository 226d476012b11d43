//! How an order is given and taken back, so that no late request does it again.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::{Operation, ServerSession};
use zookeeper_recipes_core::{
    Acl, CreateMode, Error, InvalidInput, NodePath, Refusal, ServerError, Session,
};

use crate::layout::{Layout, create_directory};
use crate::retry::repeat;

/// Gives the order of this path, with its data, or takes it back if there is no data.
///
/// A request that had no answer is repeated. The servers may apply the first request later than the
/// repeated one, if that is of another session, or after a call that another process has made
/// meanwhile. So each write of an order also writes the data of `orders`, at the version that was
/// read before. If any order is written between the read and the write, the servers refuse the
/// write. The write is made even if the order exists or is missing already: an earlier request may
/// be on its way.
pub(crate) async fn write(
    session: &Session,
    layout: &Layout,
    acl: &[Acl],
    path: &NodePath,
    order: Option<&[u8]>,
) -> Result<(), Error> {
    let write =
        async |server: Arc<dyn ServerSession>| match write_once(&*server, layout, acl, path, order)
            .await
        {
            Err(Error::Refused {
                refusal: Refusal::NoNode,
                ..
            }) => {
                if let Some(directory) = path.parent() {
                    create_directory(session, &directory, acl).await?;
                }
                Ok(None)
            }
            // Another order came first.
            Err(Error::Refused {
                refusal: Refusal::NodeExists | Refusal::BadVersion,
                ..
            }) => Ok(None),
            written => written.map(Some),
        };
    repeat(session, path, write).await
}

async fn write_once(
    server: &dyn ServerSession,
    layout: &Layout,
    acl: &[Acl],
    path: &NodePath,
    order: Option<&[u8]>,
) -> Result<(), Error> {
    let failed = |error| Error::at(path.as_str(), server.id(), error);
    let orders = &layout.orders;
    let paths = [&layout.partitions, orders, path].map(NodePath::to_string);
    let nodes = server.get_each(&paths).await.map_err(failed)?;
    let mut nodes = nodes.into_iter();
    let record = nodes.next().flatten();
    if record.is_none_or(|(data, _)| data.is_empty()) {
        let problem = "is no assignment: no partitions are recorded there";
        return Err(InvalidInput::new("path", layout.base.as_str(), problem).into());
    }
    let (Some(all), found) = (nodes.next().flatten(), nodes.next().flatten()) else {
        return Err(failed(ServerError::Refused(Refusal::NoNode)));
    };
    let (data, stat) = all;
    let mut operations = vec![Operation::SetData {
        path: orders.to_string(),
        data,
        version: Some(stat.version),
    }];
    operations.extend(match (order, found) {
        (Some(order), Some(_)) => Some(Operation::set_data(path.as_str(), order)),
        (Some(order), None) => {
            let mode = CreateMode::Persistent;
            Some(Operation::create(path.as_str(), order, mode, acl))
        }
        (None, Some(_)) => Some(Operation::delete(path.as_str())),
        (None, None) => None,
    });
    let written = server.transact(&operations).await;
    let refused = |failure| Error::at_transaction(path.as_str(), server.id(), failure, &operations);
    written.map(drop).map_err(refused)
}
