//! Sessions whose hosts are replaced.

use crate::support::*;

/// Three servers, and a session.
async fn three_servers() -> (Simulation, Session) {
    let simulation = simulation!(servers: 3);
    let session = simulated_session(&simulation, "one").await;
    (simulation, session)
}

/// The server of the current ZooKeeper session.
fn server_of(simulation: &Simulation, session: &Session) -> usize {
    let id = session.id().expect("it is open");
    let server = simulation.administrator().server_of(id);
    server.expect("it is connected")
}

fn name_of(server: usize) -> String {
    format!("server-{server}.simulation-0")
}

#[tokio::test(start_paused = true)]
async fn session_and_its_hold_move_to_the_new_hosts() {
    let (simulation, session) = three_servers().await;
    let id = session.id();
    let queue = lock(&session, "/locks/a");
    let hold = queue.acquire().await.expect("free");
    for _ in 0..5 {
        let other = (server_of(&simulation, &session) + 1) % 3;
        session.set_hosts(&name_of(other)).expect("a good name");
        sleep(SECOND).await;
        assert_eq!(server_of(&simulation, &session), other);
        assert!(session.is_connected() && hold.is_held());
    }
    assert_eq!(session.id(), id);
    hold.release().await.expect("it is held");
}

#[tokio::test(start_paused = true)]
async fn session_stays_at_a_host_that_is_still_listed() {
    let (simulation, session) = three_servers().await;
    let here = server_of(&simulation, &session);
    let path = "/a".parse().expect("a good path");
    let server = session.server(&path).await.expect("it is open");
    let connection = server.connection();
    let hosts = [(here + 1) % 3, here].map(name_of).join(",");
    session.set_hosts(&hosts).expect("good names");
    // The name of all servers has its address, too.
    let all = session.set_hosts("servers.simulation-0");
    all.expect("a good name");
    sleep(SECOND).await;
    assert_eq!(server.connection(), connection);
}

#[tokio::test(start_paused = true)]
async fn later_sessions_of_the_handle_use_the_new_hosts() {
    let (simulation, session) = three_servers().await;
    session.set_hosts(&name_of(1)).expect("a good name");
    sleep(SECOND).await;
    let first = session.id().expect("it is open");
    simulation.administrator().expire(first);
    sleep(5 * SECOND).await;
    assert!(session.is_connected() && session.id() != Some(first));
    assert_eq!(server_of(&simulation, &session), 1);
}

/// The first hosts do not exist, as in a configuration that was wrong.
#[tokio::test(start_paused = true)]
async fn session_that_is_being_opened_is_opened_at_the_new_hosts() {
    let simulation = simulation!(servers: 3);
    let ensemble = simulation.ensemble("one");
    let session = Session::open_in_background(ensemble, ConnectOptions::new());
    let session = session.expect("good options");
    let nobody = session.set_hosts("nobody.simulation-0");
    nobody.expect("a good name");
    sleep(5 * SECOND).await;
    assert!(!session.is_connected());
    session.set_hosts(&name_of(2)).expect("a good name");
    sleep(SECOND).await;
    assert!(session.is_connected());
}

#[tokio::test(start_paused = true)]
async fn hosts_that_cannot_be_used_are_refused_and_change_nothing() {
    let (_simulation, session) = three_servers().await;
    let before = session.id();
    for (hosts, problem) in [
        ("zk1/app", "has the chroot /app"),
        ("", "an empty host"),
        ("tcp+tls://zk1", "needs the options of TLS"),
        ("user:secret@zk1", "may have credentials"),
    ] {
        let error = session.set_hosts(hosts).expect_err(hosts).to_string();
        assert!(error.contains(problem), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    sleep(5 * SECOND).await;
    assert_eq!((session.is_connected(), session.id()), (true, before));
}
