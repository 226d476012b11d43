//! Connect strings: the hosts that are read from them, and those that are refused.

use zookeeper_recipes_core::{Ensemble, InvalidInput, ZookeeperEnsemble};

fn read(connect_string: &str) -> Result<ZookeeperEnsemble, InvalidInput> {
    ZookeeperEnsemble::new(connect_string)
}

#[test]
fn hosts_are_read_with_their_ports() {
    let servers = |connect_string| {
        let ensemble = read(connect_string).expect("it is well formed");
        ensemble.facts().servers.clone()
    };
    assert_eq!(servers("zk1"), ["zk1:2181"]);
    assert_eq!(
        servers("zk1:1, tcp://zk2:2 ,[::1]:3,[::1]/app"),
        ["zk1:1", "zk2:2", "[::1]:3", "[::1]:2181"]
    );
}

#[test]
fn malformed_connect_string_is_refused_with_its_problem() {
    for (given, problem) in [
        ("", "an empty host"),
        ("/app", "an empty host"),
        (",zk1", "an empty host"),
        ("zk1:2181,", "an empty host"),
        ("zk1:1;zk2:2", "separate hosts by commas"),
        ("::1:2181", "into brackets"),
        ("zk1 zk2", "separate hosts by commas"),
        ("zk1:port", "not a port"),
        ("zk1:0", "not a port"),
        ("[::1]2181", "into brackets"),
        ("[::1]]:2181", "into brackets"),
        ("zk1:70000", "not a port"),
        ("zk://zk1:2181", "zk://"),
        ("zk1/app,zk2", "before its last host"),
        ("zk1/app/", "bad chroot"),
    ] {
        let error = read(given).expect_err(given).to_string();
        assert!(error.contains(problem), "{given}: {error}");
    }
}

#[test]
fn credentials_in_a_connect_string_are_refused_and_not_quoted() {
    for given in [
        "user:secret@zk1:2181",
        "tcp://user:secret@zk1",
        "zk1;zk2,user:secret@zk3",
        "zk://user:secret@zk1/app",
        "user:sec/ret@zk1",
        "user:2181/secret@zk1:2181/app",
        "tcp://user:2181/secret@zk1",
        "user:2181,secret@zk1",
        "user:2181,zk2/secret@zk1",
        "user://secret@zk1",
        "secret@zk1/app",
        "user:[secret@zk1",
        "user:secret@",
        "user:p@ss/secret@zk1",
        "@:secret",
    ] {
        let error = read(given).expect_err(given);
        let shown = format!("{error} {error:?}");
        assert!(
            !shown.contains("ret") && !shown.contains("2181/"),
            "{shown}"
        );
        assert!(shown.contains("ConnectOptions::auth"), "{shown}");
    }
}

#[test]
fn chroot_may_have_an_at_sign_if_the_text_before_it_cannot_be_credentials() {
    for given in [
        "zk1/app@home",
        "tcp://zk1,zk2/app@home",
        "[zk1]:2181,[::1]:1/app@home",
    ] {
        let ensemble = read(given).expect("it is well formed");
        assert_eq!(ensemble.facts().chroot, "/app@home", "{given}");
    }
}
