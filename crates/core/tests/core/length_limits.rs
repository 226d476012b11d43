//! Requests that are longer than the servers accept, and replies that are longer than we read.

use crate::support::*;

/// `jute.maxbuffer` without a configuration.
const DEFAULT: usize = 0xf_ffff;

/// A session, and a hold that is suspended as soon as the connection breaks.
async fn session_that_holds(simulation: &Simulation) -> (Session, Hold) {
    let session = simulated_session(simulation, "one").await;
    let steady = queue_by(&session, "/steady", FIRST_ALONE);
    let hold = steady.acquire().await.expect("nobody is before it");
    (session, hold)
}

/// A recipe of each kind that creates znodes.
fn recipes(
    session: &Session,
    path: &str,
    data: &[u8],
    acl: &[Acl],
) -> [Result<Box<dyn Recipe>, InvalidInput>; 2] {
    let queue = QueueOptions::new().data(data).acl(acl);
    let queue = Queue::with_options(session, path, FIRST_ALONE, queue);
    let single_node = SingleNodeOptions::new().data(data).acl(acl);
    let single_node = SingleNodeLock::with_options(session, path, single_node);
    [
        queue.map(|queue| Box::new(queue) as _),
        single_node.map(|node| Box::new(node) as _),
    ]
}

fn many_entries(number: usize) -> Vec<Acl> {
    let digest = |user| format!("user{user}:xQJmxLMiHGwaqBvst5y6rkB6HQs=");
    let entries = (0..number).map(|user| AuthId::new("digest", &digest(user)));
    entries.map(|id| Acl::new(Permission::ALL, id)).collect()
}

#[tokio::test(start_paused = true)]
async fn contender_that_no_request_can_create_is_refused_at_once() {
    let long = |length| format!("/{}", "x".repeat(length));
    for (path, data, acl) in [
        (long(1_100_000), 1, everyone().to_vec()),
        (long(500_000), 1, everyone().to_vec()),
        (long(50_000), 1_000_000, everyone().to_vec()),
        (long(20_000), DEFAULT - 20_000, everyone().to_vec()),
        (long(1), DEFAULT, everyone().to_vec()),
        (long(1), 1, many_entries(40_000)),
        (long(1), 1_000_000, many_entries(1_000)),
    ] {
        let simulation = Simulation::default();
        let (session, hold) = session_that_holds(&simulation).await;
        for recipe in recipes(&session, &path, &vec![7; data], &acl) {
            let acquired = async { recipe?.acquire().await };
            let acquired = timeout(PATIENCE, acquired).await.expect("an answer");
            let error = acquired.expect_err("it is too long").to_string();
            assert!(error.contains(" bytes"), "{error}");
            assert!(error.len() < 300, "{error}");
        }
        assert_eq!(hold.state(), HoldState::Held);
    }
}

async fn assert_each_is_refused(server: &ServerSession, long: &str) {
    let create = async |path: &str, data: &[u8], acl: &[Acl]| {
        let created = server.create(path, data, CreateMode::Persistent, acl);
        created.await.map(drop)
    };
    let many = (0..40).map(|_| Operation::check("/x".repeat(15_000)));
    let transact = async |operations: &[Operation]| {
        let refused = server.transact(operations).await;
        refused.map(drop).map_err(|failure| failure.error)
    };
    let each = ["/a".to_owned(), long.to_owned()];
    for outcome in [
        create(long, b"", &everyone()).await,
        create("/a", &vec![7; long.len()], &everyone()).await,
        create("/a", b"", &many_entries(40_000)).await,
        server.delete(long).await,
        server.list(long).await.map(drop),
        server.list_and_watch(long).await.map(drop),
        server.get(long).await.map(drop),
        server.get_and_watch(long).await.map(drop),
        server.exists_and_watch(long).await.map(drop),
        server.get_each(&each).await.map(drop),
        server.sync(long).await.map(drop),
        transact(&[Operation::check(long)]).await,
        transact(&many.collect::<Vec<_>>()).await,
    ] {
        let is_too_long = matches!(outcome, Err(ServerError::Refused(Refusal::TooLong(_))));
        assert!(is_too_long, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_request_that_is_too_long_is_sent() {
    let simulation = Simulation::default();
    let (session, hold) = session_that_holds(&simulation).await;
    let path = NodePath::new("/a").expect("a good path");
    let server = session.server(&path).await.expect("a session");
    let sent = simulation.counters().requests_of("one");
    assert_each_is_refused(&server, &format!("/{}", "x".repeat(1_100_000))).await;
    assert_eq!(simulation.counters().requests_of("one"), sent);
    // A read of many znodes is split.
    let paths: Vec<_> = (0..100)
        .map(|number| format!("/{}{number}", "x".repeat(30_000)))
        .collect();
    for number in [0, 50, 99] {
        make(&simulation, &paths[number]);
    }
    let nodes = server.get_each(&paths).await.expect("an answer");
    assert_eq!(nodes.len(), paths.len());
    let found = (0..100).filter(|number| nodes[*number].is_some());
    assert_eq!(found.collect::<Vec<_>>(), [0, 50, 99]);
    assert_eq!(simulation.counters().requests_of("one"), sent + 6);
    assert_eq!(hold.state(), HoldState::Held);
}

#[tokio::test(start_paused = true)]
async fn guarded_write_that_is_too_long_is_refused_and_the_hold_stays() {
    let simulation = Simulation::default();
    let (_session, hold) = session_that_holds(&simulation).await;
    let mut deletes = hold.transaction();
    for _ in 0..70 {
        deletes = deletes.delete(&"/x".repeat(8_000));
    }
    let writes = [
        hold.transaction().set_data("/a", &vec![7; DEFAULT]),
        hold.transaction().check(&"/x".repeat(DEFAULT / 2)),
        deletes,
    ];
    for write in writes {
        let refused = timeout(PATIENCE, write.commit()).await.expect("an answer");
        assert_fails!(refused, Error::InvalidInput);
    }
    assert_eq!(hold.state(), HoldState::Held);
}

#[tokio::test(start_paused = true)]
async fn limit_of_the_servers_is_an_option() {
    for limit in [300_000, 4_000_000] {
        let simulation = simulation!(largest_request: limit);
        let options = ConnectOptions::new().jute_maxbuffer(limit);
        let session = open(simulation.ensemble("one"), options).await;
        let data = |bytes| recipes(&session, "/lock", &vec![7; bytes], &everyone());
        for recipe in data(limit * 9 / 10) {
            in_time("a turn", take_turn(&*recipe.expect("it fits"))).await;
        }
        assert!(data(limit).iter().all(Result::is_err));
    }
}

/// Each answer to the list is longer than the client reads, on every connection.
#[tokio::test(start_paused = true)]
async fn list_that_is_too_long_is_one_clear_error_and_the_session_continues() {
    let simulation = Simulation::default();
    make(&simulation, "/queue");
    let long = "x".repeat(32_000);
    for number in 0..2_100 {
        let child = format!("/queue/{long}{number}");
        make(&simulation, &child);
    }
    let session = simulated_session(&simulation, "one").await;
    let elsewhere = queue_by(&session, "/elsewhere", FIRST_ALONE);
    let held = elsewhere.acquire().await.expect("nobody is before it");
    let queue = queue_by(&session, "/queue", FIRST_ALONE);
    let refused = queue.acquire().await.expect_err("no list can be read");
    let too_long = matches!(
        &refused,
        Error::Refused {
            refusal: Refusal::ReplyTooLong { length, limit: 67_108_864 },
            ..
        } if *length > 67_108_864
    );
    assert!(too_long, "{refused}");
    assert!(!refused.is_retryable());
    assert!(held.is_held());
    assert_eq!(session.id(), Some(held.session_id()));
    held.release().await.expect("the session continues");
}
