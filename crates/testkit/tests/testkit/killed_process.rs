//! What happens to a server when the process that started it is killed.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use zookeeper_recipes_testkit::{FourLetterWord, Server, ServerOptions};

/// Set in the process that is to be killed, which runs the same test.
const VICTIM: &str = "ZOOKEEPER_RECIPES_TESTKIT_VICTIM";

/// Begins the line in which the victim says what is to be gone after it.
const MARK: &str = "left behind: ";

#[test]
fn server_dies_with_a_killed_test_process() {
    if std::env::var_os(VICTIM).is_some() {
        be_the_victim();
    }
    let this_program = std::env::current_exe().expect("a path");
    let mut victim = Command::new(this_program)
        .args([
            "--exact",
            "killed_process::server_dies_with_a_killed_test_process",
            "--nocapture",
        ])
        .env(VICTIM, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let output = BufReader::new(victim.stdout.take().expect("its output"));
    let line = output
        .lines()
        .map(|line| line.expect("UTF-8"))
        .find_map(|line| line.split_once(MARK).map(|(_, rest)| rest.to_owned()))
        .expect("a started server");
    let (port, data) = line.split_once(' ').expect("a port and a directory");
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse().expect("a port")));
    assert!(TcpStream::connect(address).is_ok());
    assert!(Path::new(data).exists());

    victim.kill().expect("a kill"); // SIGKILL: nothing of it runs any more
    victim.wait().expect("its end");

    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(address).is_ok() || Path::new(data).exists() {
        assert!(
            Instant::now() < deadline,
            "the server, or its data, is still there"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn be_the_victim() -> ! {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let server = runtime
        .block_on(Server::start(ServerOptions::new()))
        .expect("a server");
    let configuration = runtime
        .block_on(server.ask(FourLetterWord::Conf))
        .expect("its configuration");
    let data = configuration
        .lines()
        .find_map(|line| line.strip_prefix("dataDir="))
        .expect("a data directory");
    println!("{MARK}{} {data}", server.port());
    loop {
        std::thread::park();
    }
}
