//! A server for one test, or the ensemble that the environment names.

use std::env;

use uuid::Uuid;
use zookeeper_recipes_core::ZookeeperEnsemble;

use crate::error::Error;
use crate::options::ServerOptions;
use crate::server::Server;

/// The variable that names an ensemble to use instead of starting a server.
pub const CONNECT_VARIABLE: &str = "ZOOKEEPER_CONNECT";

/// An ensemble for a test that needs a connect string only.
///
/// It is the ensemble that `ZOOKEEPER_CONNECT` names. If the variable is not set, it is a
/// [`Server`] that is started for the test.
///
/// A named ensemble may have other users. Work in a [directory](Self::directory) of your own, and
/// delete that directory at the end.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_client::{Acls, Client, CreateMode};
/// use zookeeper_recipes_testkit::{ServerOptions, TestEnsemble};
///
/// let ensemble = TestEnsemble::from_environment_or_start(ServerOptions::new()).await?;
/// let client = Client::connect(ensemble.connect_string()).await?;
/// let directory = TestEnsemble::directory("my-test");
/// let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
/// client.create(&directory, b"", &options).await?;
/// client.delete(&directory, None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TestEnsemble {
    connect_string: String,
    server: Option<Server>,
}

impl TestEnsemble {
    /// Takes the ensemble that `ZOOKEEPER_CONNECT` names, or starts a server.
    ///
    /// It does not connect to a named ensemble. It starts a server if the variable is unset or
    /// empty.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectString`] when the variable is set and cannot be a connect string; else as
    /// [`Server::start`].
    pub async fn from_environment_or_start(options: ServerOptions) -> Result<Self, Error> {
        match env::var_os(CONNECT_VARIABLE) {
            Some(value) if !value.is_empty() => match value.to_str() {
                Some(connect_string) => Self::external(connect_string),
                None => Err(Error::ConnectString {
                    value: value.to_string_lossy().into_owned(),
                }),
            },
            _ => Self::start(options).await,
        }
    }

    /// Takes the ensemble that a connect string (`host:port,host:port/chroot`) names, without
    /// connecting to it.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectString`] when it cannot be one.
    pub fn external(connect_string: &str) -> Result<Self, Error> {
        let value = connect_string.to_owned();
        match ZookeeperEnsemble::new(connect_string) {
            Ok(_) => Ok(Self {
                connect_string: value,
                server: None,
            }),
            Err(_) => Err(Error::ConnectString { value }),
        }
    }

    /// Starts a server, and ignores the environment.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub async fn start(options: ServerOptions) -> Result<Self, Error> {
        let server = Server::start(options).await?;
        Ok(Self {
            connect_string: server.connect_string(),
            server: Some(server),
        })
    }

    /// The connect string for clients.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// The server that was started. `None` if the ensemble was running before.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// A path that no other run uses: `prefix`, a hyphen and a random part.
    ///
    /// The path has one segment, under the root or the chroot. It is not created.
    ///
    /// ```
    /// use zookeeper_recipes_testkit::TestEnsemble;
    ///
    /// let directory = TestEnsemble::directory("demo");
    /// assert!(directory.starts_with("/demo-"));
    /// assert_ne!(directory, TestEnsemble::directory("demo"));
    /// ```
    pub fn directory(prefix: &str) -> String {
        format!("/{prefix}-{}", Uuid::new_v4().simple())
    }
}

#[cfg(test)]
#[path = "../tests/unit/environment.rs"]
mod tests;
