//! The server that a recipe is checked on.

use super::promise::{Kept, text};
use crate::server::Server;

/// A server that a recipe is checked on.
///
/// It speaks ZooKeeper's protocol, answers the four-letter words `mntr` and `dump`, and makes the
/// passwords of sessions as Apache's server does.
///
/// A check without Java runs on the `EmbeddedServer` of `zookeeper-recipes-simulation`, in a type
/// of your own:
///
/// ```
/// use zookeeper_recipes_simulation::EmbeddedServer;
/// use zookeeper_recipes_testkit::conformance::CheckedServer;
///
/// struct Embedded(EmbeddedServer);
///
/// impl CheckedServer for Embedded {
///     fn connect_string(&self) -> String {
///         self.0.connect_string()
///     }
///
///     fn pause(&self) -> Result<(), String> {
///         self.0.pause();
///         Ok(())
///     }
///
///     fn resume(&self) -> Result<(), String> {
///         self.0.resume();
///         Ok(())
///     }
/// }
///
/// let server = Embedded(EmbeddedServer::start()?);
/// assert!(server.connect_string().starts_with("127.0.0.1:"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
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
