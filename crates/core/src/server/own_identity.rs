//! An identity that nobody else can show to the server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;
use uuid::Uuid;

use crate::server::ensemble::AuthId;

/// The scheme that every server knows.
pub(crate) const SCHEME: &str = "digest";

/// Credentials made up for one [`ZookeeperEnsemble`](crate::ZookeeperEnsemble), and told to nobody
/// but its servers.
pub(crate) struct OwnIdentity {
    credentials: String,
}

impl OwnIdentity {
    pub(crate) fn random() -> OwnIdentity {
        let (user, password) = (Uuid::new_v4().simple(), Uuid::new_v4().simple());
        OwnIdentity {
            credentials: format!("{user}:{password}"),
        }
    }

    /// What is shown to the server.
    pub(crate) fn credentials(&self) -> &str {
        &self.credentials
    }

    /// What stands for it in access control lists, by ZooKeeper's default algorithm
    /// (`DigestAuthenticationProvider.generateDigest`).
    pub(crate) fn auth_id(&self) -> AuthId {
        let user = self.credentials.split(':').next().unwrap_or_default();
        let digest = Sha1::from(&self.credentials).digest().bytes();
        AuthId::new(SCHEME, &format!("{user}:{}", STANDARD.encode(digest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of ZooKeeper's documentation of its super user.
    #[test]
    fn digest_is_zookeepers() {
        let own = OwnIdentity {
            credentials: "super:admin".to_owned(),
        };
        assert_eq!(
            own.auth_id(),
            AuthId::new("digest", "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=")
        );
    }

    #[test]
    fn no_two_are_alike() {
        assert_ne!(
            OwnIdentity::random().auth_id(),
            OwnIdentity::random().auth_id()
        );
    }
}
