//! Contenders and their referee, each a process that does not outlive the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zookeeper_recipes_interop::{OVER_THE_ADAPTER, Report, Task};

use crate::peers::Peer;

/// Longer than anything here may take: a test that gets there has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// How often something is looked at that cannot be waited for.
const LOOK: Duration = Duration::from_millis(10);

/// Whose contenders they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Ours,
    /// Ours, over the client of the crate `zookeeper-client`.
    Adapter,
    Curator,
    Kazoo,
}

impl Language {
    /// What the names of its contenders begin with.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Language::Ours => "ours-",
            Language::Adapter => "adapter-",
            Language::Curator => "curator-",
            Language::Kazoo => "kazoo-",
        }
    }

    fn command(self) -> Command {
        match self {
            Language::Ours => Command::new(env!("CARGO_BIN_EXE_contender")),
            Language::Adapter => {
                let mut command = Language::Ours.command();
                command.env(OVER_THE_ADAPTER, "1");
                command
            }
            Language::Curator => Peer::Curator.run(),
            Language::Kazoo => Peer::Kazoo.run(),
        }
    }
}

/// A child that is killed when dropped, and ends by itself when this process does.
#[derive(Debug)]
struct Process {
    child: Child,
    complaints: Option<JoinHandle<String>>,
}

impl Process {
    fn spawn(command: &mut Command) -> Process {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut stderr = child.stderr.take().expect("it is piped");
        let complaints = thread::spawn(move || {
            let mut complaints = Vec::new();
            // What came before an error is worth having all the same.
            let _ = stderr.read_to_end(&mut complaints);
            String::from_utf8_lossy(&complaints).into_owned()
        });
        Process {
            child,
            complaints: Some(complaints),
        }
    }

    fn complaints(&mut self) -> String {
        let complaints = self.complaints.take().map(JoinHandle::join);
        complaints.and_then(Result::ok).unwrap_or_default()
    }

    fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error here means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Several contenders of one language, in one process.
#[derive(Debug)]
pub(crate) struct Contenders {
    language: Language,
    process: Process,
}

impl Contenders {
    /// Starts them; `modes` says how many of each kind.
    pub(crate) fn start(
        language: Language,
        task: &Task<'_>,
        referee: &Referee,
        modes: &[(&str, usize)],
    ) -> Contenders {
        let mut command = language.command();
        command.args(task.arguments(&referee.address, modes));
        Contenders {
            language,
            process: Process::spawn(&mut command),
        }
    }

    /// Kills the process (SIGKILL), and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.process.kill();
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self
            .process
            .child
            .try_wait()
            .expect("it can be waited for")?;
        let language = self.language;
        assert!(
            status.success(),
            "{language:?}: {status}\n{}",
            self.process.complaints()
        );
        Some(status)
    }
}

/// Waits until all of them have had all their turns. Fails the test when one of them fails, and
/// when it takes too long, saying who is inside.
pub(crate) async fn all_done(groups: &mut [Contenders], referee: &Referee) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let done = groups.iter_mut().filter_map(Contenders::ended).count();
        if done == groups.len() {
            return;
        }
        if Instant::now() > deadline {
            let report = referee.report();
            panic!(
                "not done within {PATIENCE:?}: {} entries, inside {:?}, violations {:#?}",
                report.entries.len(),
                report.inside,
                report.violations,
            );
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the referee has seen it. Fails the test when that takes too long.
pub(crate) async fn until(what: &str, referee: &Referee, seen: impl Fn(&Report) -> bool) -> Report {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let report = referee.report();
        if seen(&report) {
            return report;
        }
        assert!(
            Instant::now() < deadline,
            "{what}: not within {PATIENCE:?}: {report:#?}"
        );
        tokio::time::sleep(LOOK).await;
    }
}

/// The referee.
#[derive(Debug)]
pub(crate) struct Referee {
    address: String,
    _process: Process,
}

impl Referee {
    /// Starts it. It lets nobody begin before so many contenders are ready.
    pub(crate) fn start(expected: usize) -> Referee {
        let mut command = Command::new(env!("CARGO_BIN_EXE_referee"));
        let mut process = Process::spawn(command.arg(expected.to_string()));
        let stdout = process.child.stdout.take().expect("it is piped");
        let mut address = String::new();
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("the referee says its address");
        Referee {
            address: address.trim_end().to_owned(),
            _process: process,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What it has seen up to now.
    pub(crate) fn report(&self) -> Report {
        let mut connection = TcpStream::connect(&self.address).expect("the referee listens");
        connection
            .write_all(b"report\n")
            .expect("the referee listens");
        let mut line = String::new();
        BufReader::new(connection)
            .read_line(&mut line)
            .expect("the referee answers");
        serde_json::from_str(&line).expect("a report")
    }
}
