//! What a session does not ask for.

use std::time::Duration;

use super::*;
use crate::live::scripted::Scripted;
use crate::server::ensemble::{AuthId, Permission};
use crate::server::options::ConnectOptions;

/// A session below this chroot.
fn opened(chroot: &str, is_anonymous: bool) -> OpenedSession {
    let (_, script) = Scripted::open(Duration::ZERO);
    OpenedSession {
        is_anonymous,
        limit: ConnectOptions::new().request_limit(chroot),
        ..script.server().opened.clone()
    }
}

/// No later session could show the identity that the library draws for itself.
#[tokio::test]
async fn list_for_the_creator_needs_credentials_of_the_user() {
    let creator = [Acl::new(Permission::ALL, AuthId::authed())];
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    for is_anonymous in [true, false] {
        let session = opened("/", is_anonymous);
        let refused = |acl| session.check_acl(acl).err();
        let is = |acl, refusal| refused(acl).is_some_and(|error| error.is(refusal));
        assert_eq!(is(&creator, Refusal::NoCredentials), is_anonymous);
        assert_eq!(refused(&creator).is_some(), is_anonymous);
        assert!(refused(&everyone).is_none());
        assert!(is(&[], Refusal::InvalidAcl));
    }
}

#[tokio::test]
async fn paths_are_below_the_chroot() {
    for (chroot, root, child) in [("/", "/", "/a"), ("/app", "/app", "/app/a")] {
        let session = opened(chroot, true);
        let path = |path, sequential| session.server_path(path, sequential).ok();
        assert_eq!(path("/", false).as_deref(), Some(root));
        assert_eq!(path("/a", false).as_deref(), Some(child));
        // The server appends a number.
        let directory = format!("{child}/");
        assert_eq!(path("/a/", true).as_deref(), Some(&*directory));
        assert_eq!(path("/a/", false), None);
    }
}
