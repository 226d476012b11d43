//! A worker of an assignment, which reports to the referee what it owns.
//!
//! ```text
//! worker <connect string> <path> <referee's address> <session timeout, ms> <tick, ms> <partitions> <id>
//! ```
//!
//! It shuts down at the line `end` on its standard input. It ends at once when its input ends, so
//! that it never outlives the test.

use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::sync::oneshot;
use tokio::time::timeout;
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOptions, ConnectOptions, Partition, Partitions, Session,
};

/// The interval between two pieces of work.
const PIECE: Duration = Duration::from_millis(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut next = |what: &'static str| words.next().context(what);
    let connect_string = next("no connect string")?;
    let path = next("no path")?;
    let referee = Line::connect(&next("no address of a referee")?)?;
    let milliseconds = |word: String| anyhow::Ok(Duration::from_millis(word.parse()?));
    let session_timeout = milliseconds(next("no session timeout")?)?;
    let tick = milliseconds(next("no tick")?)?;
    let partitions = Partitions::numbered(next("no number of partitions")?.parse()?);
    let id = next("no id")?;
    referee.report(&format!("ready {id}"))?;
    let options = ConnectOptions::new()
        .session_timeout(session_timeout)
        .tick(tick);
    let session = Session::connect_in_background(&connect_string, options)?;
    let options = AssignmentOptions::new().drain_at_most(Duration::from_secs(2));
    let assignment = Assignment::with_options(&session, path, partitions, &id, options)?;
    let (worker, referee) = (Arc::from(id), Arc::new(referee));
    let work = async |owned: Partition| -> Result<(), Infallible> {
        work(&worker, &referee, owned).await;
        Ok(())
    };
    assignment.run(until_the_end(), work).await?;
    session.close().await;
    Ok(())
}

/// Waits for the line `end`. A thread ends the process when the input ends, even if the tasks are
/// blocked.
async fn until_the_end() {
    let (ends, end) = oneshot::channel();
    std::thread::spawn(move || {
        let mut ends = Some(ends);
        for line in io::stdin().lines().map_while(Result::ok) {
            if line == "end" {
                ends.take().map(|ends| ends.send(()));
            }
        }
        std::process::exit(1);
    });
    // The sender lives as long as the process.
    let _ = end.await;
}

/// Works until it should drain. The referee hears of the end before the partition is released.
async fn work(worker: &Arc<str>, referee: &Arc<Line>, owned: Partition) {
    let (id, token) = (owned.id().to_owned(), owned.fencing_token().get());
    referee.must_hear(&format!("own {worker} {id} {token}"));
    let _free = Free {
        line: format!("free {worker} {id}"),
        referee: referee.clone(),
    };
    while !owned.is_draining() {
        if owned.is_held() {
            referee.must_hear(&format!("works {worker} {id} {token}"));
        }
        // A timeout means that the work continues.
        let _ = timeout(PIECE, owned.draining()).await;
    }
}

/// Reports the end of work when it is dropped, as the work itself may be.
struct Free {
    line: String,
    referee: Arc<Line>,
}

impl Drop for Free {
    fn drop(&mut self) {
        self.referee.must_hear(&self.line);
    }
}

/// The connection to the referee, which blocks until each line is answered: a dropped future cannot
/// wait.
struct Line(Mutex<BufReader<TcpStream>>);

impl Line {
    fn connect(address: &str) -> anyhow::Result<Line> {
        let connection = TcpStream::connect(address)?;
        connection.set_nodelay(true)?;
        Ok(Line(Mutex::new(BufReader::new(connection))))
    }

    fn report(&self, line: &str) -> anyhow::Result<()> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = format!("{line}\n");
        connection.get_mut().write_all(text.as_bytes())?;
        let read = connection.read_line(&mut String::new())?;
        ensure!(
            read > 0,
            "the referee has closed the connection at {line:?}"
        );
        Ok(())
    }

    /// Ends the process if the referee does not understand.
    fn must_hear(&self, line: &str) {
        if let Err(error) = self.report(line) {
            eprintln!("{error:#}");
            std::process::exit(1);
        }
    }
}
