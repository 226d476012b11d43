//! Where the checks connect, as whom, and below which znode.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes_connection::DigestMd5;

use super::client::{Client, LeftSession, Trouble};
use crate::connecting::Connection;
use crate::failure::Failure;
use crate::four_letter::Servers;

/// How long a server may take until it has caught up with what a session has seen.
const CATCHING_UP: Duration = Duration::from_secs(5);

/// The session timeout that the checks ask for.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The servers, the credentials, and the znode that the checks work below.
pub(super) struct Site<'a> {
    servers: &'a Servers,
    credentials: Vec<(String, String)>,
    pub(super) root: String,
    /// The `tickTime` of the servers, if it is known.
    pub(super) tick: Option<Duration>,
    /// How long an empty container may stay.
    pub(super) containers_within: Duration,
}

impl<'a> Site<'a> {
    pub(super) fn new(
        servers: &'a Servers,
        connection: &Connection,
        root: String,
        containers_within: Duration,
    ) -> Result<Site<'a>, Failure> {
        let mut credentials = connection.credentials()?;
        // A server that requires SASL refuses all others before it.
        credentials.sort_by_key(|(scheme, _)| scheme != DigestMd5::SCHEME);
        Ok(Site {
            servers,
            credentials,
            root,
            tick: connection.tick,
            containers_within,
        })
    }

    /// The host of this place. A place beyond the last begins again with the first.
    pub(super) fn host(&self, place: usize) -> String {
        self.servers.name(place % self.servers.number().max(1))
    }

    pub(super) async fn open(&self, place: usize) -> Result<Client, Trouble> {
        self.greet(place, &LeftSession::none(TIMEOUT)).await
    }

    /// Opens a session at this host, whose server has seen all that was committed before the call.
    pub(super) async fn open_caught_up(&self, place: usize) -> Result<Client, Trouble> {
        let mut client = self.open(place).await?;
        client.sync("/").await?;
        Ok(client)
    }

    /// Takes a session to a new connection to this host.
    ///
    /// A server that is behind the session closes the connection until it has caught up.
    pub(super) async fn resume(&self, place: usize, left: &LeftSession) -> Result<Client, Trouble> {
        let began = Instant::now();
        loop {
            match self.greet(place, left).await {
                Err(Trouble::NoAnswer) if began.elapsed() < CATCHING_UP => {
                    sleep(Duration::from_millis(50)).await;
                }
                greeted => return greeted,
            }
        }
    }

    async fn greet(&self, place: usize, left: &LeftSession) -> Result<Client, Trouble> {
        let place = place % self.servers.number().max(1);
        let stream = self.servers.connect(place).await;
        let stream = stream.map_err(Trouble::Unreachable)?;
        let mut client = Client::greet(stream, left).await?;
        for (scheme, credentials) in &self.credentials {
            client.authenticate(scheme, credentials).await?;
        }
        Ok(client)
    }

    /// Makes a directory of this name, and returns its path.
    pub(super) async fn directory(
        &self,
        client: &mut Client,
        name: &str,
    ) -> Result<String, Trouble> {
        let path = format!("{}/{name}", self.root);
        client.create_directory(&path).await?;
        Ok(path)
    }

    /// Deletes the znode of the checks, with all below.
    pub(super) async fn remove(&self) -> Result<(), Trouble> {
        let mut client = self.open_caught_up(0).await?;
        client.delete_all(&self.root).await?;
        client.close().await;
        Ok(())
    }
}
