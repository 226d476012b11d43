//! Where paths are at the server, how long requests may be, and what a session does not ask for.

use super::*;

/// The scope below this chroot of a session of this many bytes in a request.
fn scope(chroot: &str, longest_request: usize) -> Scope {
    Scope::new(chroot, longest_request, true)
}

/// No later session could show the identity that the library draws for itself.
#[test]
fn list_for_the_creator_needs_credentials_of_the_user() {
    let creator = [Acl::new(Permission::ALL, AuthId::authed())];
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    for is_anonymous in [true, false] {
        let scope = Scope::new("/", MIN_LIMIT, is_anonymous);
        let refused = |acl| scope.check_acl(acl).err();
        let is = |acl, refusal| refused(acl).is_some_and(|error| error.is(refusal));
        assert_eq!(is(&creator, Refusal::NoCredentials), is_anonymous);
        assert_eq!(refused(&creator).is_some(), is_anonymous);
        assert!(refused(&everyone).is_none());
        assert!(is(&[], Refusal::InvalidAcl));
    }
}

#[test]
fn paths_are_below_the_chroot() {
    for (chroot, root, child) in [("/", "/", "/a"), ("/app", "/app", "/app/a")] {
        let scope = scope(chroot, MIN_LIMIT);
        let path = |path, sequential| scope.server_path(path, sequential).ok();
        assert_eq!(path("/", false).as_deref(), Some(root));
        assert_eq!(path("/a", false).as_deref(), Some(child));
        // The server appends a number.
        let directory = format!("{child}/");
        assert_eq!(path("/a/", true).as_deref(), Some(&*directory));
        assert_eq!(path("/a/", false), None);
    }
}

#[test]
fn contender_is_measured_at_its_path_below_the_chroot() {
    let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
    let check = |chroot: &str| scope(chroot, 1_000).check_contender("/lock", "a", &[7; 400], &acl);
    assert!(check("/").is_ok());
    let error = check(&format!("/{}", "c".repeat(300))).expect_err("it is too long");
    let text = error.to_string();
    assert!(text.contains("longer than the 1000 bytes"), "{text}");
}

#[test]
fn read_is_split_unless_one_path_is_too_long() {
    let limit = |chroot: &str| scope(chroot, 1_000);
    let path = |length| "x".repeat(length);
    let paths = [path(100), path(300), path(100), path(900)];
    let (short, chrooted) = (limit("/"), limit("/chroot"));
    let each = [&paths[..1], &paths[1..2], &paths[2..3], &paths[3..]];
    assert_eq!(short.reads(&paths), each);
    assert_eq!(short.reads(&paths[..1]), [&paths[..1]]);
    assert_eq!(chrooted.reads(&paths[2..]), [&paths[2..3], &paths[3..]]);
    assert_eq!(limit(&path(100)).reads(&paths), [&paths[3..]]);
    assert!(short.reads(&[]).is_empty());
    let small = [path(10), path(10), path(10), path(400), path(10)];
    assert_eq!(
        short.reads(&small),
        [&small[..3], &small[3..4], &small[4..]]
    );
}
