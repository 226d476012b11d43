//! What a client says of itself when it connects.

use std::time::Duration;

use zookeeper_recipes_core::ensemble::AuthId;

/// What a client says of itself on a new connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greeting {
    /// What the client authenticates as.
    pub(crate) identities: Vec<AuthId>,
    /// The session timeout that the client asks for. With none it is the one of the options.
    pub(crate) timeout: Option<Duration>,
    /// Whether a server is enough for the client that only answers reads.
    pub(crate) read_only: bool,
    /// The password of a session that goes on.
    pub(crate) password: Option<Vec<u8>>,
}
