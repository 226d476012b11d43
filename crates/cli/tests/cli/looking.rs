//! `who`, `leader`, `evict`, `resize` and `doctor`.

use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind};
use zookeeper_recipes_suite::{
    administrator, create, eventually, in_time, proxy, server, server_with,
};
use zookeeper_recipes_testkit::ServerOptions;
use zookeeper_recipes_testkit::proxy::Operation;

use crate::support::{
    CURATOR, KAZOO, Printed, SHORT_SESSION, Stage, contains, ended, line_in, queue_as, run, runs,
    start_in,
};

/// The columns of the rows of a table: state, kind and owner.
fn rows(table: &str) -> Vec<String> {
    let cells = |line: &str| {
        let cells: Vec<&str> = line
            .split("  ")
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        cells[1..4].join("|")
    };
    let lines = table.lines().skip(2);
    lines
        .filter(|line| !line.starts_with("warning: "))
        .map(cells)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_contenders_are_one_list_and_one_screen() {
    let stage = Stage::new();
    let proxy = proxy(&stage.connect).await;
    let client = administrator(&stage.connect).await;
    create(&client, "/lock").await;
    let prefix = format!("{CURATOR}lock-");
    join_all((0..1000).map(|_| queue_as(&client, "/lock", &prefix, "10.0.0.7"))).await;
    let who = run(&proxy.connect_string(), "who /lock").await;
    assert_eq!(who.code, Some(0), "{who:?}");
    let lines: Vec<&str> = who.stdout.lines().collect();
    assert_eq!(lines[0], "/lock: exclusive lock, 1 holds, 999 wait");
    assert!(
        lines.len() < 25 && lines.iter().all(|line| line.len() < 100),
        "{}",
        who.stdout
    );
    assert_eq!(lines[lines.len() - 1], "and 980 more; --all shows them");
    let rows = rows(&lines[..lines.len() - 1].join("\n"));
    assert_eq!(rows[0], "holds|lock|10.0.0.7");
    assert_eq!(rows[1], "waits for 1|lock|10.0.0.7");
    let counters = proxy.counters();
    assert_eq!(counters.of(Operation::GetChildren).requests, 1);
    assert_eq!(counters.of(Operation::MultiRead).requests, 1);
    let all = stage.run("who /lock --all").await;
    assert_eq!(all.stdout.lines().count(), 1003);
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_any_client_and_recipe_are_recognised() {
    let stage = Stage::new();
    let client = Client::connect(&stage.connect).await.expect("it connects");
    for directory in ["/lock", "/rw", "/leader", "/leases"] {
        create(&client, directory).await;
    }
    queue_as(&client, "/lock", &format!("{KAZOO}__lock__"), "host-a").await;
    queue_as(&client, "/lock", &format!("{CURATOR}lock-"), "10.0.0.7").await;
    queue_as(&client, "/lock", "config", "no contender").await;
    let waiter = stage.start("lock /lock -- sh -c true");
    stage.queue("/lock", 4).await;
    let who = stage.run("who /lock").await;
    let found = rows(&who.stdout);
    assert_eq!(
        found[..2],
        ["holds|lock|host-a", "waits for 1|lock|10.0.0.7"]
    );
    assert!(found[2].starts_with("waits for 2|lock|sh@"), "{found:?}");
    drop(waiter);

    for (label, owner) in [
        ("__READ__", "a"),
        ("__READ__", "b"),
        ("__WRIT__", "c"),
        ("__READ__", "d"),
    ] {
        queue_as(&client, "/rw", &format!("{CURATOR}{label}"), owner).await;
    }
    queue_as(&client, "/rw", &format!("{KAZOO}__rlock__"), "e").await;
    queue_as(&client, "/rw", &format!("{KAZOO}__lock__"), "f").await;
    let who = stage.run("who /rw").await;
    who.begins("/rw: read/write lock, 2 hold, 4 wait\n");
    let expected = [
        "holds|read|a",
        "holds|read|b",
        "waits for 2|write|c",
        "waits for 3|read|d",
        "waits for 3|read|e",
        "waits for 5|write|f",
    ];
    assert_eq!(rows(&who.stdout), expected);

    queue_as(&client, "/leader", &format!("{CURATOR}latch-"), "node-1").await;
    queue_as(&client, "/leases", &format!("{CURATOR}lease-"), "a").await;
    let who = stage.run("who /leader").await;
    assert_eq!(rows(&who.stdout), ["holds|lead|node-1"]);
    let who = stage.run("who /leases").await;
    assert_eq!(rows(&who.stdout), ["holds or waits|lease|a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn semaphore_shows_its_permits_and_can_be_resized() {
    let stage = Stage::new();
    let semaphore = "semaphore /exports --permits 3 --weight 2 --";
    let file = stage.file("second");
    let second = format!("echo runs > {file}; sleep 60");
    let _holders = [stage.start((semaphore, ["sleep", "60"])), {
        stage.queue("/exports", 1).await;
        stage.start((semaphore, ["sh", "-c", &second]))
    }];
    stage.queue("/exports", 2).await;
    let who = stage.run("who /exports").await;
    let headline = "/exports: semaphore of 3 permits, 1 holds, 1 waits\n";
    who.begins(headline);
    let found = rows(&who.stdout);
    assert!(found[0].starts_with("holds|2 permits|sleep@"), "{found:?}");
    contains(&found[1], ["waits for 1|2 permits|sh@"]);
    stage.run("resize /exports 0").await.failed_with(64);
    stage.run("resize /zookeeper 4").await.failed_with(64);
    let resized = stage.run("resize /exports 4").await;
    resized.printed("/exports has 4 permits, and had 3\n");
    line_in(&file).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn semaphore_with_fewer_permits_than_are_held_shows_who_may_hold() {
    let stage = Stage::new();
    let started = async |weight: &str, place: usize| {
        let semaphore = format!("semaphore /exports --weight {weight} --permits 8 -- sleep 60");
        let child = stage.start(semaphore);
        stage.queue("/exports", place).await;
        child
    };
    let states = async || {
        let who = stage.run("who /exports").await;
        let rows = rows(&who.stdout);
        let states = rows
            .iter()
            .map(|row| row.split('|').next().unwrap_or("").to_owned());
        (who.stdout.clone(), states.collect::<Vec<_>>())
    };
    // The first holds and wants more than there will be, the next two hold, the last one waits.
    let mut zkrs = Vec::new();
    for (place, weight) in ["2", "1", "5", "1"].into_iter().enumerate() {
        zkrs.push(started(weight, place + 1).await);
    }
    let (text, seen) = states().await;
    contains(
        &text,
        ["/exports: semaphore of 8 permits, 3 hold, 1 waits\n"],
    );
    assert_eq!(seen, ["holds", "holds", "holds", "waits for 1-3"]);

    // 1, so that nobody fits who does not hold from before.
    stage.run("resize /exports 1").await;
    let client = Client::connect(&stage.connect).await.expect("it connects");
    queue_as(&client, "/exports", &format!("{CURATOR}permit-1-"), "later").await;
    let (text, seen) = states().await;
    let unknown = "holds or waits";
    assert_eq!(seen, [unknown, unknown, unknown, unknown, "waits for 4"]);
    let headline = "/exports: semaphore of 1 permit, 4 hold or wait, 1 waits\n";
    contains(
        &text,
        [headline, "warning: the number of permits was changed"],
    );
    drop(zkrs);
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_of_another_recipe_or_of_a_missing_path_is_said() {
    let stage = Stage::new();
    let missing = stage.run("leader /leader").await;
    missing.printed("nobody leads: /leader does not exist\n");
    let _holder = stage.holder("/lock").await;
    let lock = stage.run("leader /lock").await;
    lock.refused(64, ["/lock: exclusive lock, not an election"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn contender_is_evicted_by_its_owner_and_only_if_it_holds() {
    let stage = Stage::new();
    let lock = |owner| ["lock", "/lock", "--owner", owner, "--", "sleep", "60"];
    let mut zkrs = vec![stage.start(lock("payroll"))];
    stage.queue("/lock", 1).await;
    for place in 2..4 {
        zkrs.push(stage.start(lock("report")));
        stage.queue("/lock", place).await;
    }
    let who = stage.run("who /lock --json").await.json();
    let token = |place: usize| who["contenders"][place]["fencing_token"].to_string();
    let evict = async |arguments: &[&str]| {
        let arguments = [&["evict", "/lock", "--yes"], arguments].concat();
        stage.run(&arguments).await
    };

    let unknown = evict(&["nobody"]).await;
    unknown.refused(64, ["OWNER", "TOKEN"]);
    let several = evict(&["report"]).await;
    several.refused(64, [&*token(1), &token(2)]);
    evict(&["--if-holder", &token(1)]).await.failed_with(75);
    evict(&["report", "--if-holder", &token(0)])
        .await
        .failed_with(75);
    assert_eq!(stage.contenders("/lock").len(), 3);
    assert_eq!(evict(&[&token(1)]).await.code, Some(0));
    let waiter = zkrs.pop().expect("the last one");
    assert_eq!(evict(&["report"]).await.code, Some(0));
    let waiter = ended(waiter).await;
    waiter.refused(81, ["another client deleted"]);
    let evicted = evict(&["--if-holder", &token(0)]).await;
    evicted.shows(["payroll@"]);
    // The user has seen it in the queue before it went.
    let name = who["contenders"][1]["node"].as_str().expect("a name");
    for gone in [&token(1), name] {
        evict(&[gone]).await.refused(75, ["or not any more"]);
    }
    drop(zkrs);
}

#[tokio::test(flavor = "multi_thread")]
async fn znodes_of_others_and_mixed_recipes_are_a_warning() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    let client = Client::connect(&stage.connect).await.expect("it serves");
    queue_as(&client, "/lock", &format!("{CURATOR}latch-"), "node-1").await;
    create(&client, "/lock/note").await;
    let who = stage.run("who /lock").await;
    let unknown = "warning: note is not a contender";
    who.shows([unknown, "warning: contenders of several recipes"]);
    let object = stage.run("who /lock --json").await.json();
    assert_eq!(object["foreign"], serde_json::json!(["note"]));
    assert_eq!(object["mixed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_that_tolerates_little_is_a_warning_and_doctor_recommends_the_tick() {
    // The limits are two ticks and twenty, as by default.
    let limit = Duration::from_secs(10);
    let server = server_with(ServerOptions::new().max_session_timeout(limit)).await;
    let connect = server.connect_string();
    let lock = ["lock", "/lock", "--", "true"];
    let warned = async |timeout: &str, tick: &str| {
        let variables = [("ZKR_SESSION_TIMEOUT", timeout), ("ZKR_TICK", tick)];
        let output = start_in(variables, &connect, lock).wait_with_output();
        let output = in_time("zkr ends", output).await.expect("it ends");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).starts_with(SHORT_SESSION)
    };
    assert!(warned("4s", "2s").await);
    assert!(!warned("10s", "200ms").await);

    let doctor = run(&connect, "doctor /lock").await;
    let silence = "ok    holds survive a single silence of the servers of up to 3.25s";
    doctor.shows([silence, "set --tick"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn reader_that_has_gone_is_no_failure() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    for arguments in [
        &["who", "/lock"][..],
        &["leader", "/leader", "--follow"],
        &["man"],
    ] {
        let mut child = stage.start(arguments);
        drop(child.stdout.take());
        ended(child).await.quiet(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_is_shown_and_followed() {
    let stage = Stage::new();
    let nobody = stage.run("leader /leader").await;
    nobody.begins("nobody leads");
    let mut follower = stage.start("leader /leader --follow --json");
    let mut printed = Printed::by(&mut follower);
    let mut next = async || printed.next().await;
    assert_eq!(next().await, "null");
    let leader = stage.start("lead /leader --session-timeout 2s --id node-7 -- sleep 60");
    assert!(next().await.contains(r#""id":"node-7""#));
    let shown = stage.run("leader /leader").await;
    shown.begins("node-7 leads: token ");
    // A latch of Curator's is behind our leader.
    let client = Client::connect(&stage.connect).await.expect("it connects");
    queue_as(&client, "/leader", &format!("{CURATOR}latch-"), "node-1").await;
    drop(leader);
    assert!(next().await.contains(r#""id":"node-1""#));
    drop(client);
    assert_eq!(next().await, "null");
}

#[tokio::test(flavor = "multi_thread")]
async fn evicted_holder_is_stopped_and_the_next_one_holds() {
    let stage = Stage::new();
    let file = stage.file("id");
    let script = format!("echo $$ > {file}; sleep 60");
    let holder = stage.start(("--session-timeout 3s lock /lock -- sh -c", [script]));
    let id = line_in(&file).await;
    let waiter = stage.start("lock /lock -- true");
    stage.queue("/lock", 2).await;
    let names = stage.contenders("/lock");
    let name = names
        .iter()
        .find(|name| name.ends_with('0'))
        .expect("the first");

    stage.run("evict /lock config --yes").await.failed_with(64);
    let unasked = stage.run(("evict /lock", [name])).await;
    unasked.refused(64, ["--yes"]);
    assert_eq!(stage.contenders("/lock").len(), 2);
    let evicted = stage.run(("evict /lock", [name, "--yes"])).await;
    evicted.shows(["was removed from the queue"]);
    ended(waiter).await.coded(0);
    ended(holder).await.failed_with(81);
    eventually("the command is dead", async || !runs(&id)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_a_healthy_server_healthy_and_leaves_nothing() {
    let server = server().await;
    let client = administrator(&server).await;
    create(&client, "/locks").await;
    let doctor = run(&server.connect_string(), "doctor /locks/report").await;
    doctor.quiet(0);
    doctor.shows([
        "ok    connected to ",
        ": version 3.",
        "may create and delete in /locks (/locks/report does not exist yet)",
        "the servers have containers",
        "releases are marked",
    ]);
    let counted = run(&server.connect_string(), "doctor /locks").await;
    counted.shows(["/locks has used 0.00 % of its numbers"]);
    let left = client.list_children("/locks").await.expect("it is listed");
    assert!(left.is_empty(), "{left:?}");
    let findings = run(&server.connect_string(), "doctor /locks --json").await;
    let object = findings.json();
    let findings = object["findings"].as_array().expect("a list");
    let is_good = |finding: &serde_json::Value| finding["grade"] != "bad";
    assert!(
        findings.len() > 5 && findings.iter().all(is_good),
        "{object}"
    );
    let root = run(&server.connect_string(), &["doctor"]).await;
    root.shows(["may create and delete in /;"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_so_if_no_server_reports_the_znodes_of_sessions() {
    let words = "srvr,stat,cons,conf,mntr,ruok,isro,wchs,wchp";
    let options = ServerOptions::new().configuration("4lw.commands.whitelist", words);
    let server = server_with(options).await;
    let doctor = run(&server.connect_string(), &["doctor"]).await;
    doctor.coded(0);
    let note = "note  which session has the most ephemeral znodes is not known";
    doctor.shows([note, "4lw.commands.whitelist"]);
}

/// A server closes one connection too many of an address before it reads a byte.
#[tokio::test(flavor = "multi_thread")]
async fn limit_of_the_connections_of_an_address_is_named_before_and_after_it_is_reached() {
    let options = ServerOptions::new().configuration("maxClientCnxns", "5");
    let server = server_with(options).await;
    let doctor = run(&server.connect_string(), &["doctor"]).await;
    let limit = "maxClientCnxns accepts 5 connections from one address";
    doctor.shows([limit]);
    // The question itself is a connection.
    eventually("nobody else is connected", async || {
        server.monitor().await.is_ok_and(|it| it.connections <= 1)
    })
    .await;
    let mut others = Vec::new();
    for _ in 0..5 {
        // The server closes a connection without a session after a while.
        others.push(administrator(&server).await);
    }
    // The connect timeout may elapse on a busy machine before the server has refused anything.
    eventually("the limit is named before other causes", async || {
        let refused = run(&server.connect_string(), "who /a --connect-timeout 1s").await;
        let why = refused.failed_with(69);
        let limit = why.find("maxClientCnxns");
        limit.is_some_and(|place| why.find("quorum").is_some_and(|other| place < other))
    })
    .await;
    drop(others.split_off(2));
    eventually("doctor warns of the limit", async || {
        let doctor = run(&server.connect_string(), &["doctor"]).await;
        let stdout = doctor.stdout;
        stdout.contains("further ones are closed without a word")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contender_that_goes_before_it_is_evicted_is_a_conflict() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    let late = FaultKind::RequestLate(Duration::from_secs(1));
    let faults = stage.server.faults();
    let own = &stage.contenders("/lock")[0];
    let path = format!("/lock/{own}");
    faults.inject(Fault::new(late).on(RequestKind::Delete).under(&path));
    let evict = stage.start(("evict /lock", [own, "--yes"]));
    eventually("the delete is sent", async || faults.waiting() == 0).await;
    let administrator = stage.server.administrator();
    administrator.delete(&path).expect("it is there");
    let evict = ended(evict).await;
    evict.refused(75, ["it has gone by itself"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_counts_each_number_for_contenders_once() {
    let stage = Stage::new();
    let _holder = stage.holder("/lock").await;
    for (creates, used) in [
        (2_200_000, "ok    /lock has used 0.10 % of its numbers"),
        (i32::MAX / 2 + 2, "ok    /lock has used 50.00 %"),
        (i32::MAX - 10, "note  /lock has used 100.00 %"),
    ] {
        let administrator = stage.server.administrator();
        let counted = administrator.set_create_counter("/lock", creates);
        counted.expect("it is there");
        stage.run("doctor /lock").await.shows([used]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn persistent_contender_is_named_with_the_way_to_remove_it() {
    let stage = Stage::new();
    let client = Client::connect(&stage.connect).await.expect("it connects");
    let left = format!("{CURATOR}lock-0000000000");
    // Other clients choose the paths: a shell must run nothing of them.
    for (path, quoted) in [("/lock", "/lock"), ("/$(id)", "'/$(id)'")] {
        create(&client, path).await;
        create(&client, &format!("{path}/{left}")).await;
        let who = stage.run(&format!("who {path}")).await;
        let zkr = format!("zkr --connect {}", stage.connect);
        let advice = format!("run: {zkr} evict {quoted} {left}\n");
        who.shows(["is persistent", &advice]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_a_session_with_so_many_znodes_that_the_servers_can_hardly_end_it() {
    const LIMIT: usize = 0xf_ffff - 1024;
    let server = server().await;
    let connect = server.connect_string();
    let doctor = async |finding: &str| {
        let doctor = run(&connect, &["doctor"]).await;
        doctor.coded(0);
        doctor.shows([finding]);
        doctor.stdout
    };
    doctor("ok    no session has ephemeral znodes\n").await;
    let client = administrator(&server).await;
    let options = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    let path = |number: usize| format!("/{number:0>899}");
    let create = |numbers: std::ops::Range<usize>| {
        let creates = numbers.map(|number| {
            let (client, options, path) = (&client, &options, path(number));
            async move { client.create(&path, b"", options).await }
        });
        try_join_all(creates)
    };
    create(0..100).await.expect("they are created");
    let id = format!("{:#x}", client.session_id().0);
    let few = format!("ok    the fullest session, {id}, has 100 ephemeral znodes, and their paths");
    let rest = format!(" {} bytes: 9 % of the {LIMIT} ", 100 * 904);
    contains(&doctor(&few).await, [&rest]);
    create(100..600).await.expect("they are created");
    let many = format!("note  the fullest session, {id}, has 600 ephemeral znodes");
    let seen = doctor(&many).await;
    contains(&seen, ["let its client (127.0.0.1:", "52 %"]);
}
