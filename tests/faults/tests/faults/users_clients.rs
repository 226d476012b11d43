//! Sessions over a client of the user that outlives them.

use tokio::runtime::Handle;
use zookeeper_client::Acls;
use zookeeper_recipes_core::ensemble::{Ensemble, EventType};
use zookeeper_recipes_suite::exists;

use crate::support::*;

on_both_servers!(apache at night:
    holder_whose_reconnect_gets_a_new_session_knows_its_loss_before_the_next_one_holds,
    holds_outlive_a_reconnect_of_the_client,
    nothing_is_deleted_or_written_without_the_guard,
    guard_that_is_refused_is_an_error_that_says_what_to_do,
    closed_session_sends_nothing_but_the_deletions_of_the_one_who_closed_it,
    watch_beyond_the_limit_of_the_client_resolves_by_reads,
    watch_beyond_the_limit_of_the_client_ends_with_its_session,
);

/// The name of a guard begins with it.
const GUARD: &str = "zookeeper-recipes-session-";

async fn client(server: &impl Address, timeout: Duration) -> Client {
    let connector = Client::connector().with_session_timeout(timeout);
    connector
        .connect(&server.address())
        .await
        .expect("it connects")
}

/// The one session of a client, without recipes.
async fn server_session(client: Client) -> ServerSession {
    let ensemble = Arc::new(ClientEnsemble::new(client));
    let connector = ensemble.connector(&ConnectOptions::new());
    let opened = connector.expect("no option is set").connect().await;
    opened.expect("it is open")
}

async fn session_over(client: Client) -> Session {
    let ensemble = Arc::new(ClientEnsemble::new(client));
    let options = ConnectOptions::new().tick(TICK);
    Session::open(ensemble, options).await.expect("it is open")
}

/// A thread that stood still may send a request after the close.
async fn closed_session_sends_nothing_but_the_deletions_of_the_one_who_closed_it(
    server: TestServer,
) {
    let client = client(&server, LONG).await;
    let session = server_session(client.clone()).await;
    let create = async |session: &ServerSession, path| {
        let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
        let created = session.create(path, b"", CreateMode::Ephemeral, &everyone);
        created.await.map(drop)
    };
    create(&session, "/left").await.expect("it is new");
    let kept = session.close().expect("the client keeps it open");
    let late = create(&session, "/late").await;
    let closed = ServerError::SessionOver(SessionEnd::Closed);
    assert_eq!(
        late.map_err(|error| error.to_string()),
        Err(closed.to_string())
    );
    kept.delete("/left").await.expect("it exists");
    let administrator = administrator(&server).await;
    for path in ["/left", "/late"] {
        assert!(!exists(&administrator, path).await, "{path}");
    }
}

/// The client adopts the new session in silence.
async fn holder_whose_reconnect_gets_a_new_session_knows_its_loss_before_the_next_one_holds(
    server: TestServer,
) {
    let proxy = proxy(&server).await;
    let each = Fault::on(Operation::Connect).repeatedly();
    proxy.fault(each.session_forgotten());
    let client = client(&proxy, 2 * SHORT).await;
    let rival = session(&server, LONG).await;
    let victim = session_over(client.clone()).await;
    let successions = held_and_awaited(&victim, &rival, "forgotten").await;
    proxy.cut();
    for (_, succession) in successions {
        let succeeded = succession.in_order().await;
        succeeded.next.release().await.expect("it is released");
    }
    let over = KINDS[0].on(&victim, "later").acquire().await;
    assert!(matches!(over, Err(Error::NoSession { .. })), "{over:?}");
    // The znode that showed the new session is deleted.
    no_guard_left(&server).await;
    drop(client);
}

async fn holds_outlive_a_reconnect_of_the_client(server: TestServer) {
    let proxy = proxy(&server).await;
    let client = client(&proxy, LONG).await;
    let session = session_over(client.clone()).await;
    let holds = hold_all(&session, "kept").await;
    for _ in 0..5 {
        let before = proxy.counters();
        proxy.cut();
        eventually("the holds are held again", || async {
            let connected = proxy
                .counters()
                .since(&before)
                .of(Operation::Connect)
                .replies
                > 0;
            connected && holds.iter().all(|hold| hold.is_held())
        })
        .await;
    }
    let administrator = administrator(&server).await;
    eventually("one guard exists", || async {
        guards(&administrator).await == 1
    })
    .await;
    for hold in holds {
        hold.release().await.expect("it is held");
    }
    session.close().await;
    no_guard_left(&server).await;
    drop(client);
}

async fn no_guard_left(server: &TestServer) {
    let administrator = administrator(server).await;
    eventually("the guard is gone", || async {
        guards(&administrator).await == 0
    })
    .await;
}

async fn guards(administrator: &Client) -> usize {
    let names = children(administrator, "/").await;
    names.iter().filter(|name| name.starts_with(GUARD)).count()
}

/// An administrator deletes the guard.
async fn nothing_is_deleted_or_written_without_the_guard(server: TestServer) {
    let client = client(&server, LONG).await;
    let session = server_session(client.clone()).await;
    let administrator = administrator(&server).await;
    create(&administrator, "/kept").await;
    let names = children(&administrator, "/").await;
    let guard = names.iter().find(|name| name.starts_with(GUARD));
    let guard = format!("/{}", guard.expect("it exists"));
    administrator.delete(&guard, None).await.expect("it exists");
    let deleted = session.delete("/kept").await;
    assert!(
        matches!(deleted, Err(ServerError::OutcomeUnknown(_))),
        "{deleted:?}"
    );
    assert!(exists(&administrator, "/kept").await);
    // The session is alive, and gets another guard.
    in_time("the deletion", session.delete("/kept"))
        .await
        .expect("the guard exists");
    assert!(!exists(&administrator, "/kept").await);
    // The task that keeps the fence ends with the session, though the client lives on.
    let tasks = Handle::current().metrics().num_alive_tasks();
    drop(session);
    eventually("a task ends", || async {
        Handle::current().metrics().num_alive_tasks() < tasks
    })
    .await;
    drop(client);
}

async fn guard_that_is_refused_is_an_error_that_says_what_to_do(server: TestServer) {
    let administrator = administrator(&server).await;
    create(&administrator, "/guards").await;
    let sealed = administrator.set_acl("/", &Acls::anyone_read(), None).await;
    sealed.expect("anyone may do it");
    let open = async |ensemble: ClientEnsemble| {
        Session::open(Arc::new(ensemble), ConnectOptions::new()).await
    };
    let refused = open(ClientEnsemble::new(client(&server, LONG).await)).await;
    let refused = refused.expect_err("the root is sealed");
    assert!(format!("{refused:?}").contains("guard_in"), "{refused:?}");
    let elsewhere = ClientEnsemble::new(client(&server, LONG).await).guard_in("/guards");
    let session = open(elsewhere.expect("a good path"))
        .await
        .expect("it is open");
    session.close().await;
}

/// A path that is longer than those that fill the session.
fn long(name: &str) -> String {
    format!("/{name}{}", "-long".repeat(150))
}

/// A session through a proxy, with as many watches as the client can set again.
async fn session_that_is_full(proxy: &Proxy) -> (ServerSession, Vec<Watch>) {
    let connector = Client::connector().with_session_timeout(SHORT);
    let client = connector.connect(&proxy.connect_string()).await;
    let session = server_session(client.expect("it connects")).await;
    let mut watches = Vec::new();
    while session.raw.orders_events() {
        let path = format!("/{}{}", "absent".repeat(100), watches.len());
        let (_, watch) = session.exists_and_watch(&path).await.expect("an answer");
        watches.push(watch);
    }
    (session, watches)
}

async fn watch_beyond_the_limit_of_the_client_resolves_by_reads(server: TestServer) {
    let administrator = administrator(&server).await;
    let (changed_path, deleted_path) = (long("changed"), long("deleted"));
    for path in [&changed_path, &deleted_path] {
        create(&administrator, path).await;
    }
    let proxy = proxy(&server).await;
    let (session, watches) = session_that_is_full(&proxy).await;
    let (_, _, changed) = session
        .get_and_watch(&changed_path)
        .await
        .expect("it is there");
    let (_, _, deleted) = session
        .get_and_watch(&deleted_path)
        .await
        .expect("it is there");
    let (changed, deleted) = (tokio::spawn(changed), tokio::spawn(deleted));
    let reads = || proxy.counters().of(Operation::GetData).replies;
    let before = reads();
    // Both are read in turn.
    eventually("they are read", async || reads() >= before + 5).await;
    assert!(!changed.is_finished() && !deleted.is_finished());
    let written = administrator.set_data(&changed_path, b"", None).await;
    written.expect("it is there");
    let gone = administrator.delete(&deleted_path, None).await;
    gone.expect("it is there");
    let event = in_time("the change", changed).await.expect("no panic");
    assert_eq!(event, WatchEvent::Fired(EventType::NodeDataChanged));
    let event = in_time("the deletion", deleted).await.expect("no panic");
    assert_eq!(event, WatchEvent::Fired(EventType::NodeDeleted));
    // What is watched of others has to be read again.
    let absent = session.exists_and_watch(&deleted_path).await;
    let (_, absent) = absent.expect("an answer");
    assert_eq!(in_time("a pause", absent).await, WatchEvent::Unwatched);
    let children = session.list_and_watch(&changed_path).await;
    let (_, children) = children.expect("it is there");
    assert_eq!(in_time("a pause", children).await, WatchEvent::Unwatched);
    drop(watches);
}

/// The client reads on in the session that it has adopted.
async fn watch_beyond_the_limit_of_the_client_ends_with_its_session(server: TestServer) {
    let path = long("kept");
    create(&administrator(&server).await, &path).await;
    let proxy = proxy(&server).await;
    let each = Fault::on(Operation::Connect).repeatedly();
    proxy.fault(each.session_forgotten());
    let (session, watches) = session_that_is_full(&proxy).await;
    let (_, _, watch) = session.get_and_watch(&path).await.expect("it is there");
    proxy.cut();
    let event = in_time("the end", watch).await;
    assert_eq!(event, WatchEvent::Unwatched);
    let expired = ConnectionState::Ended(SessionEnd::Expired);
    assert_eq!(session.state(), expired);
    drop(watches);
}
