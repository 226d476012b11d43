//! What a session does not ask for.

use super::*;
use crate::server::ensemble::{AuthId, Permission};

/// No later session could show the identity that the library draws for itself.
#[test]
fn list_for_the_creator_needs_credentials_of_the_user() {
    let creator = [Acl::new(Permission::ALL, AuthId::authed())];
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    for is_anonymous in [true, false] {
        let scope = Scope::new("/", is_anonymous);
        let checked = scope.check_acl(&creator);
        match is_anonymous {
            true => assert_eq!(checked, Err(Refusal::NoCredentials)),
            false => assert_eq!(checked, Ok(())),
        }
        assert_eq!(scope.check_acl(&everyone), Ok(()));
        assert_eq!(scope.check_acl(&[]), Err(Refusal::InvalidAcl));
    }
}

#[test]
fn paths_are_below_the_chroot() {
    for (chroot, root, child) in [("/", "/", "/a"), ("/app", "/app", "/app/a")] {
        let scope = Scope::new(chroot, true);
        assert_eq!(scope.server_path("/", false).as_deref(), Ok(root));
        assert_eq!(scope.server_path("/a", false).as_deref(), Ok(child));
        // The server appends a number.
        let directory = format!("{child}/");
        assert_eq!(scope.server_path("/a/", true).as_deref(), Ok(&*directory));
        assert!(scope.server_path("/a/", false).is_err());
    }
}
