//! What a client says of itself when it connects.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::AuthId;

/// What a client says of itself on a new connection.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    /// What the client authenticates as.
    pub(crate) identities: Vec<AuthId>,
    /// The session timeout that the client asks for.
    pub(crate) timeout: Duration,
    /// Whether a server is enough for the client that only answers reads.
    pub(crate) read_only: bool,
    /// The password of the session that the client resumes.
    pub(crate) password: Vec<u8>,
}
