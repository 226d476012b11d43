//! A proxy breaks connections as it is configured to, and counts.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error, SessionState};
use zookeeper_recipes_suite::{PATIENCE, administrator, create, exists, proxy, server};
use zookeeper_recipes_testkit::proxy::{Breakage, Direction, Fault, Operation, Proxy};
use zookeeper_recipes_testkit::{FourLetterWord, Server, four_letter};

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

/// A server behind a proxy, and a client that comes by way of it.
async fn proxied() -> (Server, Proxy, Client) {
    let server = server().await;
    let proxy = proxy(&server).await;
    let client = administrator(&proxy).await;
    (server, proxy, client)
}

/// A connection of two sockets through a raw proxy.
async fn raw() -> (Proxy, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let proxy = Proxy::start_raw(address).await.expect("a proxy starts");
    let client = TcpStream::connect(proxy.address()).await.expect("a client");
    let (server, _) = in_time(listener.accept()).await.expect("a server");
    (proxy, client, server)
}

async fn pass(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(b"here").await.expect("it is written");
    let mut buffer = [0; 4];
    let read = in_time(to.read_exact(&mut buffer)).await;
    read.expect("it is read");
    assert_eq!(&buffer, b"here");
}

async fn reads(stream: &mut TcpStream) -> std::io::Result<usize> {
    in_time(stream.read(&mut [0; 16])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn third_create_is_applied_and_its_reply_lost_and_what_came_before_is_answered() {
    let (_server, proxy, client) = proxied().await;
    let third = Fault::on(Operation::Create).under("/counted").nth(3);
    let strikes = proxy.fault(third.reply_lost());
    // All sent before the first is answered; the first does not count.
    let paths = [
        "/other",
        "/counted-1",
        "/counted-2",
        "/counted-3",
        "/counted-4",
    ];
    let creates = paths.map(|path| client.create(path, b"", &PERSISTENT));
    let outcomes = futures_util::future::join_all(creates).await;
    for outcome in &outcomes[..3] {
        assert!(outcome.is_ok(), "{outcomes:?}");
    }
    assert!(outcomes[3].is_err(), "{outcomes:?}");
    assert_eq!(strikes.count(), 1);
    in_time(strikes.first()).await;
    assert!(exists(&client, "/counted-3").await, "it was applied");
    assert_eq!(proxy.counters().connections(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_request_is_not_applied_and_strikes_once_or_each_time() {
    let (_server, proxy, client) = proxied().await;
    let once = proxy.fault(Fault::on(Operation::Create).request_lost());
    let before = client.check_stat("/before");
    let lost = client.create("/lost", b"", &PERSISTENT);
    assert_eq!(before.await.expect("it was asked before"), None);
    assert!(lost.await.is_err());
    assert!(!exists(&client, "/lost").await);
    create(&client, "/lost").await;
    assert_eq!(once.count(), 1);

    let each = Fault::on(Operation::Delete).repeatedly();
    let each = proxy.fault(each.at_request(Breakage::Reset));
    for _ in 0..3 {
        assert!(client.delete("/lost", None).await.is_err());
    }
    assert_eq!(each.count(), 3);
    proxy.clear_faults();
    let deleted = client.delete("/lost", None).await;
    deleted.expect("no fault is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_found_by_each_of_their_paths_and_notifications_by_theirs() {
    let server = server().await;
    let proxy = proxy(&server).await;
    let direct = administrator(&server).await;
    let client = administrator(&proxy).await;
    let multi = Fault::on(Operation::Multi).under("/second");
    let multi = proxy.fault(multi.at_reply(Breakage::Reset));
    for (first, second) in [("/first", "/third"), ("/fourth", "/second")] {
        let mut writer = client.new_multi_writer();
        writer.add_create(first, b"", &PERSISTENT).expect("valid");
        writer.add_create(second, b"", &PERSISTENT).expect("valid");
        let committed = writer.commit().await;
        assert_eq!(committed.is_err(), second == "/second", "{committed:?}");
    }
    assert_eq!(multi.count(), 1);

    let (_, _, watcher) = client.get_and_watch_data("/first").await.expect("a watch");
    let lost = Fault::on(Operation::Notification).under("/first");
    let lost = proxy.fault(lost.reply_lost());
    direct.delete("/first", None).await.expect("it is there");
    in_time(lost.first()).await;
    let event = in_time(watcher.changed()).await;
    let deleted = zookeeper_client::EventType::NodeDeleted;
    assert_eq!(event.event_type, deleted, "notified after the reconnect");
    assert_eq!(proxy.counters().notifications(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_by_the_proxy_in_their_turn() {
    let (_server, proxy, client) = proxied().await;
    proxy.fault(Fault::on(Operation::Create).nth(2).refused(-102));
    let first = client.create("/first", b"", &PERSISTENT);
    let second = client.create("/second", b"", &PERSISTENT);
    let third = client.create("/third", b"", &PERSISTENT);
    assert!(first.await.is_ok());
    assert_eq!(second.await.expect_err("refused"), Error::NoAuth);
    assert!(third.await.is_ok());
    assert!(!exists(&client, "/second").await);
    assert_eq!(proxy.counters().connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn applied_request_is_answered_with_another_code() {
    let (_server, proxy, client) = proxied().await;
    proxy.fault(Fault::on(Operation::Create).answered(-7));
    let created = client.create("/applied", b"", &PERSISTENT).await;
    assert!(created.is_err(), "{created:?}");
    assert!(exists(&client, "/applied").await);
    assert_eq!(proxy.counters().connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_connection_stays_and_all_arrives_after_the_thaw() {
    let (server, proxy, client) = proxied().await;
    let strikes = proxy.fault(Fault::on(Operation::Create).at_reply(Breakage::Freeze));
    let create = client.create("/frozen", b"", &PERSISTENT);
    in_time(strikes.first()).await;
    let direct = administrator(&server).await;
    assert!(exists(&direct, "/frozen").await, "it was applied");
    let mut create = std::pin::pin!(create);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut create).await;
    assert!(early.is_err(), "nothing passes: {early:?}");
    proxy.thaw();
    in_time(create).await.expect("the reply arrives");
    assert_eq!(client.state(), SessionState::SyncConnected);
    assert_eq!(proxy.counters().connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn delays_keep_the_order_and_add_up_over_both_ways() {
    let (_server, proxy, client) = proxied().await;
    let delay = Duration::from_millis(50);
    proxy.delay(delay);
    let started = Instant::now();
    let requests: Vec<_> = (0..100).map(|_| client.check_stat("/")).collect();
    for request in requests {
        request.await.expect("a reply");
    }
    let took = started.elapsed();
    assert!(took >= 2 * delay, "{took:?}");
    assert!(took < 40 * delay, "all are under way at a time: {took:?}");
    proxy.delay(Duration::ZERO);
    let late = Duration::from_secs(2);
    proxy.fault(Fault::on(Operation::Exists).at_request(Breakage::Delay(late)));
    let started = Instant::now();
    client.check_stat("/").await.expect("a reply");
    assert!(started.elapsed() >= late);
    let started = Instant::now();
    client.check_stat("/").await.expect("a reply");
    assert!(started.elapsed() < late);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_replies_and_bytes_are_counted_per_operation() {
    let (_server, proxy, client) = proxied().await;
    let before = proxy.counters();
    assert_eq!(before.of(Operation::Connect).requests, 1);
    create(&client, "/a").await;
    let (_, _, watcher) = client.get_and_watch_data("/a").await.expect("done");
    client.set_data("/a", &[7; 1000], None).await.expect("done");
    in_time(watcher.changed()).await;
    client.get_data("/a").await.expect("done");
    client.delete("/a", None).await.expect("done");
    assert!(client.list_children("/b").await.is_err());
    let counters = proxy.counters().since(&before);
    for (operation, requests) in [
        (Operation::Create, 1),
        (Operation::GetData, 2),
        (Operation::SetData, 1),
        (Operation::Delete, 1),
        (Operation::GetChildren, 1),
        (Operation::Connect, 0),
    ] {
        let tally = counters.of(operation);
        assert_eq!(
            (tally.requests, tally.replies),
            (requests, requests),
            "{operation}: {counters:?}"
        );
    }
    assert_eq!((counters.requests(), counters.round_trips()), (6, 6));
    assert_eq!(counters.notifications(), 1);
    // Two lengths, the header (8), the path, a version, and the data.
    assert_eq!(
        counters.of(Operation::SetData).request_bytes,
        4 + 8 + 6 + 4 + 1000 + 4
    );
    let large = counters.of(Operation::GetData).reply_bytes;
    assert!((1000..1300).contains(&large), "{large}");
    assert!(counters.bytes_to_client() > 1000 && counters.bytes_to_server() > 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_letter_words_pass_and_a_server_may_be_restarted_behind_it() {
    let mut server = server().await;
    let proxy = proxy(&server).await;
    let address = proxy.address().to_string();
    let answer = four_letter::ask(&address, FourLetterWord::Ruok).await;
    assert_eq!(answer.expect("an answer"), "imok");
    let client = administrator(&proxy).await;
    create(&client, "/kept").await;
    server.kill().await.expect("it can be killed");
    server.restart().await.expect("it starts again");
    let read = async {
        // The first may be answered by the broken connection.
        while client.get_data("/kept").await.is_err() {}
    };
    in_time(read).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_refused_for_as_long_as_one_wants() {
    let (_server, proxy, client) = proxied().await;
    proxy.refuse_connections();
    client.check_stat("/").await.expect("those there are stay");
    proxy.cut();
    let mut states = client.state_watcher();
    while in_time(states.changed()).await != SessionState::Disconnected {}
    while proxy.counters().connections() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(proxy.connections(), 0);
    proxy.accept_connections();
    while in_time(states.changed()).await != SessionState::SyncConnected {}
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn cut_is_an_end_in_good_order_for_both_sides() {
    let (proxy, mut client, mut server) = raw().await;
    pass(&mut client, &mut server).await;
    pass(&mut server, &mut client).await;
    // What lies unread in the proxy must not turn the end into a reset.
    proxy.freeze();
    client.write_all(b"unread").await.expect("it is written");
    proxy.cut();
    assert_eq!(reads(&mut client).await.expect("no error"), 0);
    assert_eq!(reads(&mut server).await.expect("no error"), 0);
    drop((client, server));
    while proxy.connections() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn reset_is_an_error_for_both_sides() {
    let (proxy, mut client, mut server) = raw().await;
    pass(&mut client, &mut server).await;
    proxy.reset();
    for stream in [&mut client, &mut server] {
        let error = reads(stream).await.expect_err("reset");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn half_closed_connection_passes_the_other_way() {
    for direction in [Direction::ToServer, Direction::ToClient] {
        let (proxy, mut client, mut server) = raw().await;
        pass(&mut client, &mut server).await;
        proxy.half_close(direction);
        let (closed, open) = match direction {
            Direction::ToServer => (&mut server, &mut client),
            Direction::ToClient => (&mut client, &mut server),
        };
        assert_eq!(reads(closed).await.expect("no error"), 0);
        pass(closed, open).await;
    }
}

#[tokio::test]
async fn one_direction_can_be_frozen_and_an_end_does_not_pass_either() {
    let (proxy, mut client, mut server) = raw().await;
    proxy.freeze_direction(Direction::ToServer);
    pass(&mut server, &mut client).await;
    client.write_all(b"late").await.expect("it is written");
    client.shutdown().await.expect("it is ended");
    let mut buffer = [0; 16];
    let early = tokio::time::timeout(Duration::from_millis(100), server.read(&mut buffer)).await;
    assert!(early.is_err(), "nothing passes: {early:?}");
    proxy.thaw();
    assert_eq!(reads(&mut server).await.expect("no error"), 4);
    assert_eq!(reads(&mut server).await.expect("no error"), 0);
    assert_eq!(proxy.counters().bytes_to_server(), 4);
}

#[tokio::test]
async fn dropped_proxy_leaves_neither_connections_nor_its_port() {
    let (proxy, mut client, mut server) = raw().await;
    pass(&mut client, &mut server).await;
    let address = proxy.address();
    drop(proxy);
    assert!(!matches!(reads(&mut client).await, Ok(1..)));
    assert!(!matches!(reads(&mut server).await, Ok(1..)));
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_is_lost_by_its_code_alone_or_in_a_transaction() {
    const CREATE: i32 = 15;
    const CREATE_CONTAINER: i32 = 19;
    let (_server, proxy, client) = proxied().await;
    let containers = Fault::on_code(CREATE_CONTAINER).repeatedly();
    let containers = proxy.fault(containers.request_lost());
    let container = CreateMode::Container.with_acls(Acls::anyone_all());
    assert!(client.create("/a", b"", &container).await.is_err());
    let mut writer = client.new_multi_writer();
    writer.add_create("/b", b"", &PERSISTENT).expect("valid");
    writer.add_create("/c", b"", &container).expect("valid");
    assert!(writer.commit().await.is_err());
    assert_eq!(containers.count(), 2);
    let created = client.create("/a", b"", &PERSISTENT).await;
    created.expect("another code");
    assert!(!exists(&client, "/b").await);

    let creates = proxy.fault(Fault::on_code(CREATE).request_lost());
    assert!(client.create("/d", b"", &PERSISTENT).await.is_err());
    assert_eq!(creates.count(), 1);
}
