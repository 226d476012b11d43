//! The schemes of a connect string.

use super::*;

#[test]
fn scheme_that_contradicts_the_options_is_refused() {
    for (given, is_encrypted, is_good) in [
        ("zk1,zk2", true, true),
        ("zk1,zk2", false, true),
        ("zk1,tcp+tls://zk2", true, true),
        ("zk1,tcp://zk2", true, false),
        ("tcp+tls://zk1,tcp://zk2", true, false),
        ("tcp+tls://zk1,tcp://zk2", false, false),
        ("zk1,tcp+tls://zk2", false, false),
        ("zk1,tcp://zk2", false, true),
    ] {
        let read = ConnectString::new(given).expect("it is well formed");
        let checked = read.check_schemes(is_encrypted);
        assert_eq!(checked.is_ok(), is_good, "{given}, {is_encrypted}");
    }
}

/// What was asked for and what is used are the same, or the string is refused.
#[test]
fn refusal_of_a_scheme_says_what_to_do() {
    let refused = |given, is_encrypted| {
        let read = ConnectString::new(given).expect("it is well formed");
        let error = read.check_schemes(is_encrypted).expect_err(given);
        error.to_string()
    };
    assert!(refused("tcp://zk1", true).contains("is not encrypted"));
    let no_options = refused("tcp+tls://zk1", false);
    assert!(no_options.contains("ConnectOptions::tls"), "{no_options}");
    let names_the_feature = no_options.contains("of the cargo feature tls");
    assert_eq!(names_the_feature, !cfg!(feature = "tls"));
    let unknown = ConnectString::new("http://zk1").expect_err("it is no scheme");
    assert!(unknown.to_string().contains("is not a scheme"), "{unknown}");
}
