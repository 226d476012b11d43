//! Contenders, in processes that do not outlive the test.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zookeeper_recipes_interop::{OVER_THE_ADAPTER, Referee, Report, Task};

use crate::peers::Peer;

/// Longer than anything here may take: a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

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

/// Several contenders of one language, in one process. It is killed when dropped, and ends by itself
/// when this process does.
#[derive(Debug)]
pub(crate) struct Contenders {
    language: Language,
    child: Child,
    complaints: Option<JoinHandle<String>>,
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
        command.args(task.arguments(referee.address(), modes));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
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
        Contenders {
            language,
            child,
            complaints: Some(complaints),
        }
    }

    /// Kills the process (SIGKILL), and waits until it has ended.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().expect("it can be waited for")?;
        if !status.success() {
            let complaints = self.complaints.take().map(JoinHandle::join);
            let complaints = complaints.and_then(Result::ok).unwrap_or_default();
            panic!("{:?}: {status}\n{complaints}", self.language);
        }
        Some(status)
    }
}

impl Drop for Contenders {
    fn drop(&mut self) {
        // An error here means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until all contenders have had all their turns. The test fails if one of them fails or it
/// takes too long.
pub(crate) async fn all_done(groups: &mut [Contenders], referee: &Referee) {
    until("all turns are over", referee, |_| {
        let ended = groups.iter_mut().filter_map(Contenders::ended);
        ended.count() == groups.len()
    })
    .await;
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
