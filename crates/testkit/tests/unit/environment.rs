//! Tests of `src/environment.rs`.

use super::*;

#[test]
fn connect_strings_of_several_hosts_and_a_chroot_are_taken() {
    for good in [
        "localhost",
        "zk1:2181,zk2:2182/app/locks",
        "[::1]:2181",
        "[::1]",
    ] {
        assert!(TestEnsemble::external(good).is_ok(), "{good}");
    }
}

#[test]
fn what_is_no_connect_string_is_quoted_in_the_error() {
    for bad in [
        "",
        "zk1:2181,,zk2",
        "zk1:port",
        "zk 1:2181",
        "/app",
        "zk1:0",
    ] {
        let error = TestEnsemble::external(bad).expect_err(bad);
        assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
    }
}
