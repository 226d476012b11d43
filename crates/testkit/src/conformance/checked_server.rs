//! The server that a recipe is checked on.

use futures_util::future::BoxFuture;
use zookeeper_recipes_core::ensemble::SessionId;

use super::promise::{Kept, text};
use crate::four_letter::PATIENCE;
use crate::handshake;
use crate::server::Server;

/// A server that a recipe is checked on.
///
/// It speaks ZooKeeper's protocol. By default it also answers the four-letter words `mntr` and
/// `dump`, and makes the passwords of sessions as Apache's server does. A [`RunningEnsemble`] need
/// not.
///
/// | server | what it needs |
/// |---|---|
/// | [`Server`](crate::Server) | Java and ZooKeeper on the machine |
/// | `EmbeddedServer` of `zookeeper-recipes-simulation` | the feature `embedded` of this crate |
/// | [`RunningEnsemble`] | servers that run already |
///
/// Without Java:
///
/// ```
/// # #[cfg(feature = "embedded")]
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_lock::ExclusiveLock;
/// use zookeeper_recipes_simulation::EmbeddedServer;
/// use zookeeper_recipes_testkit::conformance::Conformance;
///
/// let server = EmbeddedServer::start()?;
/// let made = |session: &_, path: &str| Box::new(ExclusiveLock::new(session, path).unwrap()) as _;
/// Conformance::new(&server, made).check().await?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "embedded"))]
/// # fn main() {}
/// ```
///
/// [`RunningEnsemble`]: super::RunningEnsemble
pub trait CheckedServer: Send + Sync {
    /// The address of the server, for clients.
    fn connect_string(&self) -> String;

    /// Pauses the server: connections stay open, and it does not answer.
    ///
    /// # Errors
    ///
    /// The reason, if the server continues.
    fn pause(&self) -> Result<(), String>;

    /// Resumes the server.
    ///
    /// # Errors
    ///
    /// The reason, if the server is still paused.
    fn resume(&self) -> Result<(), String>;

    /// Ends a session, as if it had expired.
    ///
    /// By default takes the session over with the password that Apache's server gives it, and
    /// closes it.
    ///
    /// # Errors
    ///
    /// The reason, if the session may still be open.
    fn expire(&self, session: SessionId) -> BoxFuture<'_, Result<(), String>> {
        let address = self.connect_string();
        Box::pin(async move {
            let ended = handshake::end_session(&address, session.0, PATIENCE);
            ended.await.map_err(text)
        })
    }

    /// True if [`expire`](Self::expire) works. If not, the checks that need it are skipped.
    fn expires_sessions(&self) -> bool {
        true
    }

    /// True if no other client uses the server, and it answers `mntr` and `dump`.
    ///
    /// If not, the checks look for znodes that are left behind, and not for watches.
    fn is_ours(&self) -> bool {
        true
    }
}

impl CheckedServer for Server {
    fn connect_string(&self) -> String {
        Server::connect_string(self)
    }

    fn pause(&self) -> Kept {
        Server::pause(self).map_err(text)
    }

    fn resume(&self) -> Kept {
        Server::resume(self).map_err(text)
    }
}

#[cfg(feature = "embedded")]
#[cfg_attr(docsrs, doc(cfg(feature = "embedded")))]
impl CheckedServer for zookeeper_recipes_simulation::EmbeddedServer {
    fn connect_string(&self) -> String {
        self.connect_string()
    }

    fn pause(&self) -> Kept {
        self.pause();
        Ok(())
    }

    fn resume(&self) -> Kept {
        self.resume();
        Ok(())
    }
}
