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
