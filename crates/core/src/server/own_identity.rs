//! An identity that no other client can show to the server.

use crate::server::ensemble::AuthId;

/// The authentication scheme of the identity. Every server knows it.
pub(crate) const SCHEME: &str = "digest";

/// Random credentials of one [`ZookeeperEnsemble`](crate::ZookeeperEnsemble).
///
/// Only the servers of the ensemble get them.
pub(crate) struct OwnIdentity {
    credentials: String,
}

impl OwnIdentity {
    /// An identity of these two numbers, which nobody can guess.
    pub(crate) fn of([user, password]: [u128; 2]) -> OwnIdentity {
        OwnIdentity {
            credentials: format!("{user:032x}:{password:032x}"),
        }
    }

    /// The credentials to send to the server.
    pub(crate) fn credentials(&self) -> &str {
        &self.credentials
    }

    /// The identity for access control lists.
    pub(crate) fn auth_id(&self) -> AuthId {
        let (user, password) = self.credentials.split_once(':').unwrap_or_default();
        AuthId::digest(user, password)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This example is from ZooKeeper's documentation of the super user.
    #[test]
    fn digest_is_the_same_as_zookeepers() {
        let own = OwnIdentity {
            credentials: "super:admin".to_owned(),
        };
        assert_eq!(
            own.auth_id(),
            AuthId::new("digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=")
        );
    }

    #[test]
    fn two_identities_differ() {
        assert_ne!(
            OwnIdentity::of([1, 2]).auth_id(),
            OwnIdentity::of([1, 3]).auth_id()
        );
    }
}
