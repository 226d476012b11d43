//! One server: how it starts, what can be done to it, and that it goes.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use zookeeper_client::{Acls, CreateMode, CreateOptions};
use zookeeper_recipes_suite::{administrator, create, exists};
use zookeeper_recipes_testkit::four_letter::ask_within;
use zookeeper_recipes_testkit::{
    Error, FourLetterWord, Installation, InstallationError, Server, ServerOptions, TestEnsemble,
};

async fn server() -> Server {
    Server::start(ServerOptions::new()).await.expect("a server")
}

async fn is_well(server: &Server) {
    let answer = server.ask(FourLetterWord::Ruok).await;
    assert_eq!(answer.expect("an answer"), "imok");
}

fn accepts_connections(port: u16) -> bool {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_ok()
}

fn data_directory(server: &Server, configuration: &str) -> std::path::PathBuf {
    let data = configuration
        .lines()
        .find_map(|line| line.strip_prefix("dataDir="))
        .unwrap_or_else(|| panic!("no dataDir in {configuration} of {}", server.port()));
    data.into()
}

#[tokio::test]
async fn server_is_gone_when_dropped() {
    let server = server().await;
    let configuration = server.ask(FourLetterWord::Conf).await.expect("conf");
    let (port, data) = (server.port(), data_directory(&server, &configuration));
    assert!(accepts_connections(port));
    assert!(data.exists());
    drop(server);
    assert!(!accepts_connections(port));
    assert!(!data.exists());
}

#[tokio::test]
async fn data_is_where_the_options_say() {
    let below = tempfile::tempdir().expect("a directory");
    let options = ServerOptions::new().data_on_disk(below.path());
    let server = Server::start(options).await.expect("a server");
    let configuration = server.ask(FourLetterWord::Conf).await.expect("an answer");
    let data = data_directory(&server, &configuration);
    assert!(data.starts_with(below.path()), "{data:?}");
}

#[tokio::test]
async fn server_is_gone_when_the_test_panics() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let panicking = tokio::spawn(async move {
        let server = server().await;
        tell.send(server.port()).expect("a listener");
        panic!("as a failed assertion would");
    });
    let port = told.await.expect("a port");
    assert!(panicking.await.expect_err("a panic").is_panic());
    assert!(!accepts_connections(port));
}

#[tokio::test]
async fn restart_keeps_the_data() {
    let mut server = server().await;
    let port = server.port();
    let before = administrator(&server).await;
    create(&before, "/stopped").await;
    server.restart().await.expect("a restart");
    create(&before, "/killed").await;
    server.kill().await.expect("a kill");
    assert!(!accepts_connections(port));
    assert!(matches!(server.pause(), Err(Error::NotRunning { .. })));
    server.restart().await.expect("a restart");
    assert_eq!(server.port(), port);
    let after = administrator(&server).await;
    for path in ["/stopped", "/killed"] {
        assert!(exists(&after, path).await, "{path}");
    }
    // The first client's session has lived through it all.
    assert!(exists(&before, "/killed").await);
}

#[tokio::test]
async fn sequential_names_go_on_from_a_counter_that_was_set() {
    const SEQUENTIAL: CreateOptions<'static> =
        CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
    let mut server = server().await;
    let before = administrator(&server).await;
    for path in ["/one", "/two", "/two/below"] {
        create(&before, path).await;
    }
    let running = server.set_create_counter(&["/one"], 7).await;
    assert!(matches!(running, Err(Error::Running { .. })), "{running:?}");
    server.stop().await.expect("it stops");
    let set = server
        .set_create_counter(&["/one", "/two"], 1_000_000)
        .await;
    let installation = Installation::find().expect("there is one");
    if !installation.has_compiler() {
        let no_compiler = Error::Installation(InstallationError::NoCompiler);
        assert_eq!(set.unwrap_err().to_string(), no_compiler.to_string());
        return;
    }
    set.expect("it is set");
    for (path, next) in [("/none", 2_000_000), ("/one", 999_999)] {
        let refused = server.set_create_counter(&[path], next).await;
        let said = refused.expect_err("it cannot be done").to_string();
        assert!(said.contains(path), "{said}");
    }
    server.restart().await.expect("a restart");
    let after = administrator(&server).await;
    for path in ["/one", "/two"] {
        let (_, number) = after
            .create(&format!("{path}/child-"), b"", &SEQUENTIAL)
            .await
            .expect("a child");
        assert_eq!(number.into_i64(), 1_000_000, "{path}");
    }
    assert!(exists(&after, "/two/below").await, "all else is as it was");
}

#[tokio::test]
async fn paused_server_does_not_answer_until_resumed() {
    let server = server().await;
    let address = server.connect_string();
    server.pause().expect("a pause");
    assert!(!server.is_running());
    let silence = ask_within(&address, FourLetterWord::Ruok, Duration::from_millis(300)).await;
    match silence {
        Err(Error::Unanswered { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::TimedOut);
        }
        other => panic!("{other:?}"),
    }
    server.resume().expect("a resumption");
    is_well(&server).await;
}

#[tokio::test]
async fn paused_server_can_be_stopped() {
    let mut server = server().await;
    server.pause().expect("a pause");
    server.stop().await.expect("a stop");
    assert!(!accepts_connections(server.port()));
    assert!(server.log().contains("INFO"), "{}", server.log());
}

#[tokio::test]
async fn server_that_cannot_start_shows_its_log() {
    let options = ServerOptions::new().configuration("tickTime", "soon");
    let began = Instant::now();
    let error = Server::start(options).await.expect_err("no tick");
    assert!(matches!(error, Error::Exited { .. }), "{error:?}");
    assert!(error.to_string().contains("soon"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn server_that_does_not_serve_in_time_is_an_error() {
    let options = ServerOptions::new().start_timeout(Duration::from_millis(1));
    let error = Server::start(options).await.expect_err("no time");
    assert!(matches!(error, Error::NotServingInTime { .. }), "{error:?}");
}

#[tokio::test]
async fn server_that_ended_by_itself_is_noticed_and_can_be_restarted() {
    let mut server = server().await;
    let process_id = server.process_id().expect("a process").to_string();
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &process_id])
        .status();
    assert!(killed.expect("a kill").success());
    let error = loop {
        match server.wait_until_serving().await {
            Ok(()) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Exited { .. }), "{error:?}");
    assert!(matches!(server.pause(), Err(Error::Process { .. })));
    server.restart().await.expect("a restart");
}

#[tokio::test]
async fn ensemble_of_others_is_used_and_not_started() {
    let server = server().await;
    let ensemble = TestEnsemble::external(&server.connect_string()).expect("an ensemble");
    assert!(ensemble.server().is_none());
    drop(ensemble);
    is_well(&server).await;
}

#[test]
fn server_outlives_the_runtime_it_was_started_on() {
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let mut server = std::thread::spawn(move || runtime().block_on(server()))
        .join()
        .expect("a server");
    runtime().block_on(async {
        is_well(&server).await;
        server.restart().await.expect("a restart");
    });
}

#[tokio::test]
async fn line_of_the_configuration_takes_effect_with_the_next_restart() {
    let mut server = server().await;
    let granted = async |server: &Server| administrator(server).await.session_timeout();
    assert_eq!(granted(&server).await, Duration::from_secs(20));
    for timeout in [7, 3] {
        server
            .set_configuration("maxSessionTimeout", format!("{timeout}000"))
            .expect("it is written");
        server.restart().await.expect("a restart");
        assert_eq!(granted(&server).await, Duration::from_secs(timeout));
    }
}
