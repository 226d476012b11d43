//! The schemes of a connect string.

use super::*;

#[test]
fn scheme_that_contradicts_the_options_is_refused() {
    for (given, is_encrypted, is_good) in [
        ("zk1,zk2", true, true),
        ("zk1,tcp+tls://zk2", true, true),
        ("zk1,tcp://zk2", true, false),
        ("tcp+tls://zk1,tcp://zk2", true, false),
        ("tcp+tls://zk1,tcp://zk2", false, false),
        ("zk1,tcp+tls://zk2", false, false),
        ("zk1,tcp://zk2", false, true),
    ] {
        let read = ConnectString::new(given, is_encrypted);
        assert_eq!(read.is_ok(), is_good, "{given}, {is_encrypted}: {read:?}");
    }
}

/// What was asked for and what is used are the same, or the string is refused.
#[test]
fn scheme_of_a_host_and_the_options_of_tls_agree() {
    assert_eq!(without_scheme("zk1:2181", false), Ok("zk1:2181"));
    assert_eq!(without_scheme("zk1:2181", true), Ok("zk1:2181"));
    assert_eq!(without_scheme("tcp://zk1", false), Ok("zk1"));
    assert_eq!(without_scheme("tcp+tls://zk1", true), Ok("zk1"));
    let refused = |given, is_encrypted| without_scheme(given, is_encrypted).expect_err(given);
    assert!(refused("tcp://zk1", true).contains("is not encrypted"));
    let no_options = refused("tcp+tls://zk1", false);
    assert!(no_options.contains("ConnectOptions::tls"), "{no_options}");
    let names_the_feature = no_options.contains("of the cargo feature tls");
    assert_eq!(names_the_feature, !cfg!(feature = "tls"));
    assert!(refused("http://zk1", false).contains("is not a scheme"));
}
