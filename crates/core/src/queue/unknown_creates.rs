//! The pause between creates that get no answer, and the limit on them.

use std::time::Duration;

use crate::error::Error;
use crate::live::live_session::LiveSession;
use crate::retry::Backoff;
use crate::server::error::{Refusal, ServerError};

/// Consecutive creates without an answer.
#[derive(Debug, Default)]
pub(crate) struct UnknownCreates {
    /// The number of these creates that soon broke their connection.
    broke_soon: u32,
    backoff: Backoff,
}

impl UnknownCreates {
    /// Waits before the next create. The last one has got its outcome `after` this time.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if eight creates broke their connection, each within a sixth of the
    /// session timeout, and neither this session nor an earlier one had an answer to a create. Some
    /// servers close the connection at a request that they do not know.
    pub(crate) async fn pause(
        &mut self,
        live: &LiveSession,
        path: &str,
        after: Duration,
    ) -> Result<(), Error> {
        const MOST: u32 = 8;
        if after <= live.timeout / 6 {
            self.broke_soon += 1;
        }
        if self.broke_soon >= MOST && !live.create_is_supported() {
            let problem = "the connection breaks at each create: the server may not know create2, \
                           which ZooKeeper knows since 3.5";
            let refusal = Refusal::Other(problem.to_owned());
            return Err(Error::at(path, live.id, ServerError::Refused(refusal)));
        }
        self.backoff.wait().await;
        Ok(())
    }
}
