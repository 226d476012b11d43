//! What clients prove who they are with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;
use zookeeper_recipes_core::ensemble::AuthId;

/// The identity that these credentials prove; `None` if the server does not know the scheme.
pub(crate) fn identity(scheme: &str, credentials: &[u8]) -> Option<AuthId> {
    match scheme {
        "digest" => {
            let text = String::from_utf8_lossy(credentials);
            let user = text.split(':').next().unwrap_or_default();
            let hash = STANDARD.encode(Sha1::from(text.as_bytes()).digest().bytes());
            Some(AuthId::new("digest", &format!("{user}:{hash}")))
        }
        // The address is known anyway, and proves nothing.
        "ip" => Some(AuthId::new("ip", "")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::identity;

    #[test]
    fn digest_is_that_of_apaches_server() {
        let identity = identity("digest", b"super:test").expect("a known scheme");
        assert_eq!(identity.id(), "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
    }
}
