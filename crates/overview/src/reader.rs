//! Reads of one ZooKeeper session, each until an answer comes.

use std::sync::Arc;

use zookeeper_recipes_core::ensemble::{Node, ServerSession};
use zookeeper_recipes_core::{Backoff, Refusal, ServerError, Stat};

/// How many znodes one request reads.
///
/// A server answers a request as a whole, so others wait for it. This one takes it about a
/// millisecond.
const TOGETHER: usize = 128;

/// The reads of a look.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    server: Arc<ServerSession>,
}

impl Reader {
    pub(crate) fn new(server: Arc<ServerSession>) -> Reader {
        Reader { server }
    }

    /// Lets the server catch up with its leader.
    pub(crate) async fn sync(&self, path: &str) -> Result<(), ServerError> {
        answered(|| self.server.sync(path)).await.map(drop)
    }

    /// The names of a znode's children, and its metadata. The inner error is the server's refusal.
    pub(crate) async fn list(
        &self,
        path: &str,
    ) -> Result<Result<(Vec<String>, Stat), Refusal>, ServerError> {
        refused(answered(|| self.server.list_with_stat(path)).await)
    }

    /// These znodes. The inner errors are the server's refusals.
    pub(crate) async fn get(
        &self,
        paths: &[String],
    ) -> Result<Vec<Result<Node, Refusal>>, ServerError> {
        let mut nodes = Vec::with_capacity(paths.len());
        let mut left: Vec<&[String]> = paths.chunks(TOGETHER).rev().collect();
        while let Some(some) = left.pop() {
            match refused(answered(|| self.server.try_get_each(some)).await)? {
                Ok(found) => {
                    for node in found {
                        nodes.push(refused(node)?);
                    }
                }
                Err(refusal) if some.len() == 1 => nodes.push(Err(refusal)),
                // The reply would be too long, or the server refuses the request for one of them.
                Err(_) => {
                    let (first, rest) = some.split_at(some.len() / 2);
                    left.extend([rest, first]);
                }
            }
        }
        Ok(nodes)
    }
}

/// Sends a read again until the server has answered it.
pub(crate) async fn answered<T, F>(mut read: impl FnMut() -> F) -> Result<T, ServerError>
where
    F: Future<Output = Result<T, ServerError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match read().await {
            Err(ServerError::OutcomeUnknown(_) | ServerError::Refused(Refusal::Throttled)) => {
                backoff.wait().await;
            }
            answer => return answer,
        }
    }
}

fn refused<T>(answer: Result<T, ServerError>) -> Result<Result<T, Refusal>, ServerError> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(ServerError::Refused(refusal)) => Ok(Err(refusal)),
        Err(error) => Err(error),
    }
}
