//! Who our contenders say they are, as Curator and kazoo read it.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_interop::Referee;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{
    Address, LONG, TestServer, in_time, on_both_servers, queue_length, session,
};

use crate::process::{Contenders, Language, PATH, Task, all_done};
use crate::support::present;

// Both servers, so that the gate has the other libraries on the embedded one, too.
on_both_servers!(
    curator_and_kazoo_read_the_owner_of_our_contender,
    kazoo_under_its_own_names_reads_the_owner_of_our_contender,
);

/// Lets each of these peers that the machine has hold before a contender of ours, and checks what
/// each has read.
async fn read_our_owner(server: TestServer, suite: &str, peers: &[(Language, &str)]) {
    let peers = present(suite, peers);
    if peers.is_empty() {
        return;
    }
    let lock = async |owner| {
        let options = ConnectOptions::new().session_timeout(LONG).owner(owner);
        let session = Session::connect_with(&server.address(), options).await;
        let session = session.expect("a session opens");
        let lock = ExclusiveLock::new(&session, PATH).expect("a good path");
        (session, lock)
    };
    let referee = Referee::listen(1).expect("a free port");
    let task = Task::new(&server, 1, Duration::ZERO);
    let observer = session(&server, LONG).await;
    let observer = ExclusiveLock::new(&observer, PATH).expect("a good path");
    let (_first_session, first) = lock("first").await;
    let first = first.acquire().await.expect("it holds");
    let mut waiters = Vec::new();
    for (place, (language, mode)) in peers.iter().enumerate() {
        waiters.push(Contenders::start(*language, &task, &referee, &[(*mode, 1)]));
        queue_length(&observer, place + 2).await;
    }
    let (session, last) = lock("billing").await;
    let last = tokio::spawn(async move { last.acquire().await });
    queue_length(&observer, peers.len() + 2).await;
    first.release().await.expect("it is released");
    all_done(waiters, &referee).await;
    let last = in_time("the last one holds", last).await;
    let _last = last.expect("no panic").expect("it holds");

    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or_else(|_| host_in(session.owner()), |host| host.trim().to_owned());
    let owner = format!("billing@{host}:{}", std::process::id());
    let report = referee.report();
    assert_eq!(report.violations, [""; 0]);
    let name = |(language, mode): &(Language, &str)| format!("{}{mode}-0", language.prefix());
    for place in 0..peers.len() {
        let queue = peers[place..].iter().map(name).chain([owner.clone()]);
        let seen = &report.seen[&name(&peers[place])];
        assert_eq!(*seen, queue.collect::<BTreeSet<_>>(), "{peers:?}");
    }
}

/// The host in an owner, on a system that has no file with it.
fn host_in(owner: &str) -> String {
    let host = owner
        .split_once('@')
        .and_then(|(_, it)| it.rsplit_once(':'));
    host.expect("it has a host").0.to_owned()
}

async fn curator_and_kazoo_read_the_owner_of_our_contender(server: TestServer) {
    let peers = [(Language::Curator, "lock"), (Language::Kazoo, "renamed")];
    read_our_owner(server, "owners", &peers).await;
}

async fn kazoo_under_its_own_names_reads_the_owner_of_our_contender(server: TestServer) {
    read_our_owner(server, "owners with kazoo", &[(Language::Kazoo, "lock")]).await;
}
