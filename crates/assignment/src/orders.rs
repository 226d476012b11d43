//! How an order is given and taken back, so that no late request does it again.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::{Operation, ServerSession};
use zookeeper_recipes_core::{CreateMode, Error, InvalidInput, NodePath, Refusal, ServerError};

use crate::layout::create_directory;
use crate::operator::AssignmentOperator;
use crate::retry::{refusal, repeat};

impl AssignmentOperator {
    /// Gives the order of this name, with its data, or takes it back if there is no data.
    ///
    /// Each write of an order also writes the data of `orders`, at the version that was read before.
    /// So the servers refuse an earlier request that they apply late, after any other order. The
    /// write is made even if the order exists or is missing already: an earlier request may be on
    /// its way.
    pub(crate) async fn order(
        &self,
        directory: &NodePath,
        name: &str,
        order: Option<&[u8]>,
    ) -> Result<(), Error> {
        let path = directory.join(name)?;
        let write = async |server: Arc<ServerSession>| {
            let written = self.order_once(&server, &path, order).await;
            match written.as_ref().map_err(refusal) {
                Err(Some(Refusal::NoNode)) => {
                    create_directory(&self.session, directory, &self.acl).await?;
                    Ok(None)
                }
                // Another order came first.
                Err(Some(Refusal::NodeExists | Refusal::BadVersion)) => Ok(None),
                _ => written.map(Some),
            }
        };
        repeat(&self.session, &path, write).await
    }

    async fn order_once(
        &self,
        server: &ServerSession,
        path: &NodePath,
        order: Option<&[u8]>,
    ) -> Result<(), Error> {
        let failed = |error| Error::at(path.as_str(), server.id, error);
        let layout = &self.layout;
        let paths = [&layout.partitions, &layout.orders, path].map(NodePath::to_string);
        let nodes = server.get_each(&paths).await.map_err(failed)?;
        let mut nodes = nodes.into_iter();
        let record = nodes.next().flatten();
        if record.is_none_or(|(data, _)| data.is_empty()) {
            let problem = "is no assignment: no partitions are recorded there";
            return Err(InvalidInput::new("path", layout.base.as_str(), problem).into());
        }
        let (Some((data, stat)), found) = (nodes.next().flatten(), nodes.next().flatten()) else {
            return Err(failed(ServerError::Refused(Refusal::NoNode)));
        };
        let orders = Operation::set_data(layout.orders.as_str(), data);
        let mut operations = vec![orders.at_version(stat.version)];
        let path = path.as_str();
        operations.extend(match (order, found) {
            (Some(order), Some(_)) => Some(Operation::set_data(path, order)),
            (Some(order), None) => {
                let mode = CreateMode::Persistent;
                Some(Operation::create(path, order, mode, &*self.acl))
            }
            (None, Some(_)) => Some(Operation::delete(path)),
            (None, None) => None,
        });
        let written = server.transact(&operations).await;
        let refused = |failure| Error::at_transaction(path, server.id, failure, &operations);
        written.map(drop).map_err(refused)
    }
}
