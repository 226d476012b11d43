//! The requests of an uncontended acquisition and release, and nothing else.
//!
//! The recipes are measured against them. They panic if the server refuses a request.

use std::sync::Arc;

use zookeeper_client::{Acls, Client, CreateMode as ClientMode, CreateOptions};
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Permission};

/// A name as long as a contender's.
pub(crate) const CONTENDER: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";

/// Data as long as the identity that the owner of a single node writes.
const IDENTITY: &[u8] = b"_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-";

const ANSWERED: &str = "the server does what it is asked";

/// The requests by `zookeeper-client` itself.
#[derive(Clone)]
pub(crate) struct RawClient {
    client: Client,
}

impl RawClient {
    /// The requests over this connection.
    pub(crate) fn new(client: &Client) -> RawClient {
        RawClient {
            client: client.clone(),
        }
    }
}

fn open(mode: ClientMode) -> CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

impl RawClient {
    /// Creates a persistent directory.
    pub(crate) async fn make(&self, directory: &str, data: &[u8]) {
        let create = self
            .client
            .create(directory, data, &open(ClientMode::Persistent));
        create.await.expect(ANSWERED);
    }

    /// The requests of a newcomer to a queue: a create and a list, together; then a delete.
    pub(crate) async fn newcomer(&self, directory: &str) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self
            .client
            .create(&path, b"", &open(ClientMode::EphemeralSequential));
        let list = self.client.list_children(directory);
        let (_, sequence) = create.await.expect(ANSWERED);
        assert_eq!(list.await.expect(ANSWERED).len(), 1);
        let path = format!("{path}{sequence}");
        self.client.delete(&path, None).await.expect(ANSWERED);
    }

    /// The requests of a contender that comes back to an empty queue: a create, then a delete.
    pub(crate) async fn again(&self, directory: &str) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self
            .client
            .create(&path, b"", &open(ClientMode::EphemeralSequential));
        let (_, sequence) = create.await.expect(ANSWERED);
        let path = format!("{path}{sequence}");
        self.client.delete(&path, None).await.expect(ANSWERED);
    }

    /// The requests of a contender that comes back to an unused semaphore: a create and a read of
    /// the directory, together; then a delete.
    pub(crate) async fn semaphore_again(&self, directory: &str) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self
            .client
            .create(&path, b"", &open(ClientMode::EphemeralSequential));
        let read = self.client.get_data(directory);
        let (_, sequence) = create.await.expect(ANSWERED);
        read.await.expect(ANSWERED);
        let path = format!("{path}{sequence}");
        self.client.delete(&path, None).await.expect(ANSWERED);
    }

    /// The requests of a lock without a queue: a create, then a delete.
    pub(crate) async fn single_node(&self, path: &str) {
        let create = self
            .client
            .create(path, IDENTITY, &open(ClientMode::Ephemeral));
        create.await.expect(ANSWERED);
        self.client.delete(path, None).await.expect(ANSWERED);
    }
}

/// The requests through the interface that the recipes use.
#[derive(Clone)]
pub(crate) struct RawSession {
    server: Arc<dyn ServerSession>,
    acl: Vec<Acl>,
}

impl RawSession {
    /// The requests in this session.
    pub(crate) fn new(server: Arc<dyn ServerSession>) -> RawSession {
        RawSession {
            server,
            acl: vec![Acl::new(Permission::ALL, AuthId::anyone())],
        }
    }

    /// The requests of a newcomer to a queue: a create and a list, together; then a delete.
    pub(crate) async fn newcomer(&self, directory: &str) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self
            .server
            .create(&path, b"", CreateMode::EphemeralSequential, &self.acl);
        let list = self.server.list(directory);
        let created = create.await.expect(ANSWERED);
        assert_eq!(list.await.expect(ANSWERED).len(), 1);
        self.server.delete(&created.path).await.expect(ANSWERED);
    }

    /// The requests of a contender that comes back to an empty queue: a create, then a delete.
    pub(crate) async fn again(&self, directory: &str) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self
            .server
            .create(&path, b"", CreateMode::EphemeralSequential, &self.acl);
        let created = create.await.expect(ANSWERED);
        self.server.delete(&created.path).await.expect(ANSWERED);
    }

    /// The requests of a contender that comes back to an unused semaphore: a create and a read of
    /// the directory, together; then a delete.
    pub(crate) async fn semaphore_again(&self, directory: &str) {
        let path = format!("{directory}/{CONTENDER}");
        let create = self
            .server
            .create(&path, b"", CreateMode::EphemeralSequential, &self.acl);
        let read = self.server.get(directory);
        let created = create.await.expect(ANSWERED);
        read.await.expect(ANSWERED);
        self.server.delete(&created.path).await.expect(ANSWERED);
    }

    /// The requests of a lock without a queue: a create, then a delete.
    pub(crate) async fn single_node(&self, path: &str) {
        let create = self
            .server
            .create(path, IDENTITY, CreateMode::Ephemeral, &self.acl);
        create.await.expect(ANSWERED);
        self.server.delete(path).await.expect(ANSWERED);
    }
}
