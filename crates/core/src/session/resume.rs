//! Takes over a session and its holds from another process.

use std::sync::Arc;

use crate::error::Error;
use crate::events::session as events;
use crate::server::ensemble::Ensemble;
use crate::server::error::SessionEnd;
use crate::server::options::ConnectOptions;
use crate::server::zookeeper::ZookeeperEnsemble;
use crate::session::connect::{NotOpened, Opener};
use crate::session::detached_session::DetachedSession;
use crate::session::handle::Session;
use crate::session::leftovers::Leftovers;

impl Session {
    /// Resumes a session that another process has [left](Self::detach) to this one.
    ///
    /// If a recipe of the same path and kind acquires, it takes a hold over. The attempt continues
    /// with the znode of the earlier holder, at the place of that znode in the queue. The
    /// [fencing token](crate::FencingToken) has the same number and a larger turn. The data of the
    /// znode still names the process that created it.
    ///
    /// If the attempt that takes a hold fails or is dropped, the hold is released. If no recipe
    /// takes a hold for a session timeout, the hold is released, and a warning names it. If the
    /// session has expired, or another process has resumed it, this opens a new session, and a
    /// warning says so: compare [`Session::id`] with [`DetachedSession::session_id`].
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the claim: a transaction that sets the data of the ticket | 1 | 1 | 0 |
    /// | the ticket, and each znode that the earlier process has not deleted | 1 for each, or 2 if its name is not known | 1, or 2 | 0 |
    /// | a proof, as after a reconnect | 1 | 1 | 0 |
    /// | a recipe that takes a hold: a sync, a read of the znode, and a list | 3 | 3 | 0 |
    ///
    /// ```
    /// # use zookeeper_recipes_core::{ConnectOptions, Error, DetachedSession, Recipe, Session};
    /// # async fn example(session: Session, recipe: &dyn Recipe) -> Result<(), Box<dyn std::error::Error>> {
    /// // The process that ends:
    /// let hold = recipe.acquire().await?;
    /// let detached = session.detach([hold]).await?;
    /// std::fs::write("/run/my-service/detached", detached.to_secret())?;
    ///
    /// // The process that begins, before it makes its recipes:
    /// let detached = std::fs::read_to_string("/run/my-service/detached")?;
    /// let detached = DetachedSession::from_secret(&detached)?;
    /// let session = Session::resume("zk1:2181,zk2:2181", ConnectOptions::new(), &detached).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors, panics
    ///
    /// Those of [`connect_with`](Self::connect_with). After an error the session stays open until
    /// its timeout, and this may be called again.
    ///
    /// Call it again with the same value. After [`Error::Connect`], the servers may have given the
    /// session to the first call. A process that reads the text again then opens a new session.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the session stays open until its timeout. This may be called again
    /// with the same value.
    pub async fn resume(
        connect_string: &str,
        options: ConnectOptions,
        detached: &DetachedSession,
    ) -> Result<Session, Error> {
        let ensemble = ZookeeperEnsemble::new(connect_string, options.clone())?;
        Session::resume_in(Arc::new(ensemble), options, detached).await
    }

    /// As [`resume`](Self::resume), with any [`Ensemble`], such as a simulated one.
    ///
    /// # Errors, panics, cancel safety
    ///
    /// Those of [`resume`](Self::resume), and [`Error::Connect`] if the ensemble cannot resume a
    /// session.
    pub async fn resume_in(
        ensemble: Arc<dyn Ensemble>,
        options: ConnectOptions,
        detached: &DetachedSession,
    ) -> Result<Session, Error> {
        let opener = Opener::new(ensemble, options)?;
        let open = match opener.open(Some(detached)).await {
            Ok(open) => open,
            Err(NotOpened {
                final_end: Some(end @ (SessionEnd::Expired | SessionEnd::Detached)),
                ..
            }) => {
                events::not_resumed(detached.session_id(), end);
                return Session::open(opener.ensemble, opener.options).await;
            }
            Err(not_opened) => return Err(not_opened.error),
        };
        let holds = detached.holds.iter().map(|hold| (&*hold.path, hold.token));
        open.inherited.give(&open.znodes, holds);
        let mut leftovers = Leftovers {
            paths: detached.leftovers.clone(),
            named: Vec::new(),
        };
        leftovers.paths.push(detached.ticket.as_str().into());
        if let Ok(server) = open.live.server() {
            let deletion = async move { leftovers.delete_all(&server).await };
            open.live.in_background(deletion);
        }
        Ok(Session::start(opener, Some(open)))
    }
}
