//! Servers that come back without their data, or with older data.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use zookeeper_recipes_suite::log::Log;

use crate::support::*;

/// How often each kind is acquired and released before the servers lose their data.
const ROUNDS: usize = 10;
/// Two session timeouts pass before a session is over, and a third one until the servers expire it
/// if they know it again.
const BACK: Duration = Duration::from_millis(
    SHORT.as_millis() as u64 * 3 + TICK.as_millis() as u64 + LATE.as_millis() as u64,
);

/// A process that holds each kind, and its warnings.
struct Holder {
    session: Session,
    holds: Vec<Hold>,
    log: Log,
    _listening: DefaultGuard,
}

impl Holder {
    async fn new(at: &str) -> Holder {
        let log = Log::up_to(Level::WARN);
        let listening = tracing::subscriber::set_default(log.clone());
        let session = session(at, SHORT).await;
        Holder {
            holds: hold_all(&session, "held").await,
            session,
            log,
            _listening: listening,
        }
    }

    /// Commits transactions that the servers lose later.
    async fn writes(&self) {
        for _ in 0..ROUNDS {
            for hold in hold_all(&self.session, "written").await {
                hold.release().await.expect("it is held");
            }
        }
    }

    /// Checks that the process holds again in another session, now that the servers are back.
    async fn holds_again(self) {
        let since = Instant::now();
        let before = self.log.lines();
        assert!(before.iter().all(|line| line.message != "session over"));
        for hold in self.holds {
            let reason = in_time("the loss", hold.lost()).await;
            assert_eq!(reason, LossReason::LeaseElapsed);
        }
        works_with_each_kind(&self.session, "held", BACK).await;
        assert!(since.elapsed() < BACK, "{:?}", since.elapsed());
        let lines = self.log.lines();
        let reason = SessionEnd::Refused.to_string();
        let names = lines
            .iter()
            .filter(|line| line.fields.get("reason") == Some(&reason));
        assert_eq!(names.count(), 1, "{lines:?}");
        self.session.close().await;
    }
}

/// The transactions and snapshots of a server.
const LOGS: &str = "version-2";

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).expect("a directory") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("it is copied");
    }
}

fn empty(directory: &Path) {
    fs::remove_dir_all(directory).expect("a directory");
    fs::create_dir(directory).expect("its parent is there");
}

/// The backup has the session of the holder and its znodes.
#[tokio::test]
async fn holder_holds_again_after_a_server_was_restored_from_a_backup() {
    let mut server: Server = server().await;
    let logs = server.data_directory().join(LOGS);
    let backup = TempDir::new().expect("a directory");
    let holder = Holder::new(&server.connect_string()).await;
    copy(&logs, backup.path());
    holder.writes().await;
    server.kill().await.expect("it can be killed");
    empty(&logs);
    copy(backup.path(), &logs);
    server.restart().await.expect("it starts again");
    holder.holds_again().await;
}
