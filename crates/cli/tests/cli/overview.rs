//! `locks`, `deadlocks`, and `who` above queues.

use serde_json::{Value, json};

use zookeeper_client::{Acls, CreateMode};
use zookeeper_recipes_suite::{in_time, server_with};
use zookeeper_recipes_testkit::ServerOptions;

use crate::support::{
    CURATOR, Ended, KAZOO, Stage, clients, contains, queue, queue_as, run, start,
};

fn paths(locks: &Ended) -> Vec<String> {
    let object = locks.json();
    let queues = object["queues"].as_array().expect("a list");
    let path = |queue: &Value| queue["path"].as_str().expect("a path").to_owned();
    queues.iter().map(path).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_are_listed_filtered_and_sorted() {
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/locks", "/locks/a", "/locks/b", "/locks/c"]).await;
    queue(&one, "/locks/a", "billing@host-1:7").await;
    queue(&other, "/locks/b", "report@host-2:8").await;
    queue(&one, "/locks/b", "billing@host-1:7").await;
    queue(&other, "/locks/b", "report@host-2:8").await;
    queue(&one, "/locks/c", "last@host-1:7").await;
    let table = stage.run("locks /locks").await;
    table.coded(0);
    let lines: Vec<&str> = table.stdout.lines().collect();
    let words: Vec<Vec<&str>> = lines
        .iter()
        .map(|it| it.split_whitespace().collect())
        .collect();
    assert_eq!(words[0][..4], ["PATH", "KIND", "HOLDER", "HELD"]);
    let row = |line: usize| (words[line][0], words[line][3], words[line][5]);
    assert_eq!(row(1), ("/locks/a", "billing@host-1:7", "0"));
    assert_eq!(row(2), ("/locks/b", "report@host-2:8", "2"));
    table.shows([&format!("2 places of {:#x}", other.session_id().0)]);
    assert_eq!(lines.len(), 4);

    let all = ["/locks/a", "/locks/b", "/locks/c"];
    let session = format!("--session {:#x}", other.session_id().0);
    for (options, expected) in [
        ("", &all[..]),
        ("--waiting", &all[1..2]),
        ("--owner last", &all[2..]),
        (&session, &all[1..2]),
        ("--host host-2", &all[1..2]),
        ("--host 127.0.0.1", &all[..]),
        ("--host elsewhere", &[]),
        ("--held-longer 1h", &[]),
        ("--sort waiting", &["/locks/b", "/locks/a", "/locks/c"]),
    ] {
        let locks = stage.run(format!("locks /locks --json {options}")).await;
        locks.coded(0);
        assert_eq!(paths(&locks), expected, "{options}");
    }
    let nothing = stage.run("locks /locks --owner nobody").await;
    nothing.printed("/locks: no queue of 3 matches the options\n");
    let missing = stage.run("locks /missing").await;
    missing.printed("/missing: does not exist\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_that_is_too_long_is_a_code_for_checks_but_not_that_of_a_candidate() {
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/lock", "/leader"]).await;
    for client in [&one, &other] {
        queue(client, "/lock", "owner").await;
        queue_as(client, "/leader", &format!("{CURATOR}latch-"), "candidate").await;
    }
    let too_old = "zkr: /lock: a contender has waited for ";
    for (arguments, code, why) in [
        ("locks --fail-if-older 10m", 0, ""),
        ("locks --fail-if-older 0s", 1, too_old),
        ("locks /leader --fail-if-older 0s", 0, ""),
        ("locks --fail-if-older 0s --owner nobody", 0, ""),
    ] {
        let ended = stage.run(arguments).await;
        ended.coded(code);
        let is_said = ended.stderr.starts_with(why) && ended.stderr.is_empty() == why.is_empty();
        assert!(is_said, "{arguments}: {ended:?}");
    }
    let [waits, holds] = ["oldest_wait_ms", "held_ms"];
    let object = stage.run("locks /lock --json").await.json();
    let lock = &object["queues"][0];
    assert!(lock[waits].is_u64() && lock[holds].is_u64(), "{object}");
    assert_eq!(lock["rows"][1]["waits_for"], json!([1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlock_is_shown_with_the_command_that_breaks_it() {
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/a", "/b b"]).await;
    let none = stage.run("deadlocks").await;
    none.printed("/: no sessions wait for each other, in 0 queues\n");
    queue(&one, "/a", "billing@host-1:7").await;
    let none = stage.run("deadlocks").await;
    none.printed("/: no sessions wait for each other, in 1 queue\n");
    queue(&other, "/b b", "report@host-2:8").await;
    queue(&one, "/b b", "billing@host-1:7").await;
    let none = stage.run("deadlocks").await;
    none.printed("/: no sessions wait for each other, in 2 queues\n");
    queue(&other, "/a", "report@host-2:8").await;
    let found = stage.run("deadlocks").await;
    found.quiet(1);
    let [billing, report] =
        [(&one, "billing@host-1:7"), (&other, "report@host-2:8")].map(|(client, owner)| {
            format!("{owner} (session {:#x}, 127.0.0.1:", client.session_id().0)
        });
    found.begins("2 sessions wait for each other, for ");
    found.shows([&*billing, &report, "to lock at /a, behind billing@"]);
    let locks = stage.run(&["locks"]).await;
    locks.shows(["possible deadlock"]);
    assert!(!locks.stdout.contains("warning"), "{locks:?}");
    let zkr = format!("zkr --connect {}", stage.connect);
    let warning = format!("zkr: warning: sessions wait for each other: `{zkr} deadlocks /` shows");
    contains(&locks.stderr, [&*warning]);
    let object = stage.run("deadlocks --json").await;
    object.coded(1);
    let object = object.json();
    let waits = object["circles"][0]["waits"].as_array().expect("a list");
    assert_eq!(waits.len(), 2);

    let command = object["circles"][0]["way_out"].as_str().expect("a command");
    found.shows([command]);
    // The session that waits for the shortest time gives up what it holds.
    let expected = format!("{zkr} evict '/b b' --if-holder ");
    assert!(command.starts_with(&expected), "{command}");
    // As a shell takes it, which has other variables.
    let pasted = command.replacen("zkr", env!("CARGO_BIN_EXE_zkr"), 1) + " --yes";
    let mut shell = tokio::process::Command::new("sh");
    let shell = shell.args(["-c", &pasted]).env_remove("ZOOKEEPER_CONNECT");
    let evicted = in_time("it ends", shell.status()).await;
    assert!(evicted.is_ok_and(|it| it.success()), "{pasted}");
    stage.run("deadlocks").await.coded(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_above_queues_lists_them() {
    let stage = Stage::new();
    let [one, _] = clients(
        &stage,
        &["/locks", "/locks/a", "/locks/b", "/empty", "/empty/a"],
    )
    .await;
    queue(&one, "/locks/a", "billing@host-1:7").await;
    let who = stage.run("who /locks").await;
    who.begins("/locks: no contender is here, and below are\n");
    who.shows(["/locks/a  exclusive lock  billing@host-1:7"]);
    let object = stage.run("who /locks --json").await.json();
    assert_eq!(object["contenders"], json!([]));
    assert_eq!(object["queues"][0]["path"], "/locks/a");
    let empty = stage.run("who /empty").await;
    empty.shows(["nobody holds and nobody waits", "a is not a contender"]);
    let beside = stage.run("who /locks/a").await;
    beside.begins("/locks/a: exclusive lock, 1 holds, nobody waits\n");
}

/// kazoo's waiters have a lock at a path of their own.
#[tokio::test(flavor = "multi_thread")]
async fn who_of_a_semaphore_of_kazoo_shows_its_leases_and_its_waiters() {
    let stage = Stage::new();
    let [one, other] = clients(&stage, &["/exports-__lock__", "/members"]).await;
    let plain = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    let kept = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let created = one.create("/exports", b"1", &kept).await;
    created.expect("it is new");
    for path in [format!("/exports/{KAZOO}"), "/members/node-7".to_owned()] {
        one.create(&path, b"billing", &plain)
            .await
            .expect("it is new");
    }
    for owner in ["next", "later"] {
        queue_as(
            &other,
            "/exports-__lock__",
            &format!("{KAZOO}__lock__"),
            owner,
        )
        .await;
    }
    let who = stage.run("who /exports").await;
    who.begins("/exports: leases of a kazoo semaphore, 1 holds\n");
    let waiters = "the first one there is the next to get a lease:\n/exports-__lock__: exclusive lock, \
                   1 holds, 1 waits\n";
    who.shows(["billing", "ADDRESS", waiters, "later"]);
    let object = stage.run("who /exports --json").await.json();
    assert_eq!(object["contenders"][0]["owner"], "billing");
    assert_eq!(object["waiters"]["contenders"][1]["owner"], "later");
    let members = stage.run("who /members").await;
    members.begins("/members: group, 1 holds, nobody waits\n");
    members.shows(["holds  name  node-7"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kazoo_beside_other_clients_is_marked_by_each_view() {
    let stage = Stage::new();
    let [one, _] = clients(&stage, &["/lock"]).await;
    queue_as(&one, "/lock", &format!("{KAZOO}__lock__"), "kazoo").await;
    queue(&one, "/lock", "curator").await;
    let mark = "kazoo may not see the others";
    stage.run(&["locks"]).await.shows([mark]);
    let locks = stage.run("locks --json").await.json();
    assert_eq!(locks["queues"][0]["marks"][0], mark);
    stage
        .run("who /lock")
        .await
        .shows(["warning: a lock of kazoo sees the contenders of other"]);
    let who = stage.run("who /lock --json").await.json();
    assert_eq!(who["marks"][0], mark);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_why_no_addresses_are_shown() {
    let options = ServerOptions::new()
        .configuration("4lw.commands.whitelist", "srvr,stat,conf,mntr,ruok,isro");
    let server = server_with(options).await;
    let connect = server.connect_string();
    let _holder = start(&connect, "lock /lock -- sleep 60");
    let mut shown = run(&connect, "who /lock").await;
    while !shown.stdout.contains("1 holds") {
        shown = run(&connect, "who /lock").await;
    }
    let note = "note: ADDRESS is missing, because no server allows the word cons";
    shown.shows([note, "4lw.commands.whitelist"]);
}
