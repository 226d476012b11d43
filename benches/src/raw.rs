//! The requests of an uncontended acquisition and release, and nothing else.
//!
//! The recipes are measured against them. They panic if the server refuses a request.

use std::sync::Arc;

use zookeeper_client::{Acls, Client, CreateMode as ClientMode};
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, CreateMode};

/// A name as long as a contender's.
pub(crate) const CONTENDER: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";

/// Data as long as the identity that the owner of a single node writes.
const IDENTITY: &[u8] = b"_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-";

const ANSWERED: &str = "the server does what it is asked";

/// What a contender reads together with its create.
#[derive(Clone, Copy)]
pub(crate) enum Reads {
    /// Nothing: it comes back to an empty queue.
    Nothing,
    /// The queue, as a newcomer does.
    Queue,
    /// The data of the directory, as a contender for permits does.
    Data,
}

/// Sends the requests.
#[derive(Clone)]
pub(crate) enum Raw {
    /// Sends by `zookeeper-client` itself.
    Client(Client),
    /// Sends through the interface that the recipes use.
    Session(Arc<dyn ServerSession>, Vec<Acl>),
}

impl Raw {
    /// Creates a contender in a queue and reads, together; then deletes the contender.
    pub(crate) async fn turn(&self, directory: &str, reads: Reads) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self.create(&path, b"", true);
        let (path, ()) = tokio::join!(create, self.read(directory, reads));
        self.delete(&path).await;
    }

    /// Creates the znode of a lock without a queue, then deletes it.
    pub(crate) async fn single_node(&self, path: &str) {
        self.create(path, IDENTITY, false).await;
        self.delete(path).await;
    }

    async fn create(&self, path: &str, data: &[u8], sequential: bool) -> String {
        match self {
            Raw::Client(client) => {
                let mode = match sequential {
                    true => ClientMode::EphemeralSequential,
                    false => ClientMode::Ephemeral,
                };
                let options = mode.with_acls(Acls::anyone_all());
                let created = client.create(path, data, &options).await;
                format!("{path}{}", created.expect(ANSWERED).1)
            }
            Raw::Session(server, acl) => {
                let mode = match sequential {
                    true => CreateMode::EphemeralSequential,
                    false => CreateMode::Ephemeral,
                };
                let created = server.create(path, data, mode, acl).await;
                created.expect(ANSWERED).path
            }
        }
    }

    async fn read(&self, directory: &str, reads: Reads) {
        match (self, reads) {
            (_, Reads::Nothing) => {}
            (Raw::Client(client), Reads::Queue) => {
                let names = client.list_children(directory).await;
                assert_eq!(names.expect(ANSWERED).len(), 1);
            }
            (Raw::Client(client), Reads::Data) => {
                client.get_data(directory).await.expect(ANSWERED);
            }
            (Raw::Session(server, _), Reads::Queue) => {
                let names = server.list(directory).await;
                assert_eq!(names.expect(ANSWERED).len(), 1);
            }
            (Raw::Session(server, _), Reads::Data) => {
                server.get(directory).await.expect(ANSWERED);
            }
        }
    }

    async fn delete(&self, path: &str) {
        match self {
            Raw::Client(client) => client.delete(path, None).await.expect(ANSWERED),
            Raw::Session(server, _) => server.delete(path).await.expect(ANSWERED),
        }
    }
}
