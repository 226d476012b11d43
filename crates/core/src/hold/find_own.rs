//! Finds the znodes of this process by their identity.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::contender::Identity;
use crate::server::ensemble::{Created, Node, ServerSession};
use crate::server::error::{Refusal, ServerError};

/// The znodes of this identity, read after the server has caught up with its leader.
///
/// The directory is empty for the root.
pub(crate) async fn own_nodes(
    server: &dyn ServerSession,
    directory: &str,
    identity: &Identity,
) -> Result<Vec<Created>, ServerError> {
    let prefix = identity.prefix();
    let listed = if directory.is_empty() { "/" } else { directory };
    let mut backoff = Backoff::up_to(Duration::from_secs(1));
    loop {
        let sync = server.sync(listed);
        let list = server.list(listed);
        let found = async {
            sync.await?;
            let paths: Vec<String> = list
                .await?
                .into_iter()
                .filter(|name| name.starts_with(&prefix))
                .map(|name| format!("{directory}/{name}"))
                .collect();
            if paths.is_empty() {
                return Ok(Vec::new());
            }
            let nodes = server.get_each(&paths).await?;
            let created =
                |(path, node): (String, Option<Node>)| node.map(|(_, stat)| Created { path, stat });
            Ok(paths.into_iter().zip(nodes).filter_map(created).collect())
        };
        match found.await {
            Err(error) if ServerError::is(&error, Refusal::NoNode) => return Ok(Vec::new()),
            Err(ServerError::OutcomeUnknown(_) | ServerError::Refused(Refusal::Throttled)) => {
                backoff.wait().await;
            }
            found => return found,
        }
    }
}
