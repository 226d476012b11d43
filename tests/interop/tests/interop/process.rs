//! Contenders, in processes that do not outlive the test.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::process::{Child, ChildStdin};
use zookeeper_recipes_interop::{OVER_THE_ADAPTER, Referee, Report};
use zookeeper_recipes_suite::{Address, LONG, TestServer};

use crate::peers::Peer;

/// Longer than anything here may take: a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

/// Where the contenders of a test queue.
pub(crate) const PATH: &str = "/shared";

/// The interval between two looks at a condition.
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

    /// The library of another language.
    pub(crate) fn peer(self) -> Option<Peer> {
        match self {
            Language::Ours | Language::Adapter => None,
            Language::Curator => Some(Peer::Curator),
            Language::Kazoo => Some(Peer::Kazoo),
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

#[derive(Clone, Debug)]
pub(crate) struct Task<'a> {
    pub(crate) connect_string: String,
    pub(crate) path: &'a str,
    /// That of the session of each contender.
    pub(crate) session_timeout: Duration,
    /// How often each contender comes in.
    pub(crate) turns: usize,
    /// How long a contender stays inside.
    pub(crate) stay: Duration,
}

impl Task<'_> {
    /// Turns at [`PATH`], in sessions that do not expire.
    pub(crate) fn new(server: &TestServer, turns: usize, stay: Duration) -> Task<'static> {
        Task {
            connect_string: server.address(),
            path: PATH,
            session_timeout: LONG,
            turns,
            stay,
        }
    }
}

/// Several contenders of one language, in one process. It is killed when dropped, and ends by itself
/// when this process does.
#[derive(Debug)]
pub(crate) struct Contenders {
    language: Language,
    child: Child,
    /// The process ends with its input.
    _input: Option<ChildStdin>,
}

impl Contenders {
    /// Starts them; `modes` says how many of each kind.
    pub(crate) fn start(
        language: Language,
        task: &Task<'_>,
        referee: &Referee,
        modes: &[(&str, usize)],
    ) -> Contenders {
        let milliseconds = |time: Duration| time.as_millis().to_string();
        let mut command = tokio::process::Command::from(language.command());
        command
            .arg(&task.connect_string)
            .arg(milliseconds(task.session_timeout))
            .args(["contend", task.path, referee.address()])
            .args([task.turns.to_string(), milliseconds(task.stay)])
            .args(modes.iter().map(|(mode, count)| format!("{mode}:{count}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Contenders {
            language,
            _input: child.stdin.take(),
            child,
        }
    }

    /// Kills the process (SIGKILL), and waits until it has ended.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// Waits until the process has ended. The error is why it failed.
    async fn end(self) -> Result<(), String> {
        let ended = self.child.wait_with_output().await;
        let ended = ended.expect("it can be waited for");
        let complaints = String::from_utf8_lossy(&ended.stderr);
        match ended.status.success() {
            true => Ok(()),
            false => Err(format!(
                "{:?}: {}\n{complaints}",
                self.language, ended.status
            )),
        }
    }
}

/// Waits until all contenders have had all their turns. The test fails if one of them fails or it
/// takes too long.
pub(crate) async fn all_done(groups: impl IntoIterator<Item = Contenders>, referee: &Referee) {
    let ends = groups.into_iter().map(Contenders::end);
    match tokio::time::timeout(PATIENCE, try_join_all(ends)).await {
        Ok(ended) => drop(ended.unwrap_or_else(|failure| panic!("{failure}"))),
        Err(_) => panic!("turns are not over: {:#?}", referee.report()),
    }
}

/// Waits until the referee has seen it. The test fails if that takes too long.
pub(crate) async fn until(
    what: &str,
    referee: &Referee,
    mut seen: impl FnMut(&Report) -> bool,
) -> Report {
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
