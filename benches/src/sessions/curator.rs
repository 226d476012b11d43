//! The fleet of Apache Curator, in a process of its own: `java/CuratorFleet.java`.
//!
//! The process gets the connect string, the session timeout in milliseconds, the number of sessions,
//! the locks of each, and the contenders of each lock that is handed on. It says `ready` and its
//! version once the turns have begun, and answers each order by a line. Its session is a
//! `CuratorFramework`, its contender a thread. A call that fails is made again.
//!
//! | order | answer |
//! |---|---|
//! | `take` | `taken` and the microseconds of each handoff |
//! | `held` | `held` and the locks of the sessions that Curator has not reported as lost |
//! | `died` | `noted` |
//! | `outcome` | `outcome` and the fields of [`Recovery`], separated by semicolons |
//! | `end` | `ended` |

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use zookeeper_recipes_interop::Program;

use crate::party::{Party, Recovery, in_order};
use crate::plan::{CONTENDERS, Plan, SESSION_TIMEOUT};

/// For a heap that holds the whole fleet, and for thousands of threads.
pub(crate) const JAVA_OPTIONS: [&str; 3] = ["-Xms1g", "-Xmx1g", "-Xss256k"];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// The process. Dropping it ends the process.
pub(crate) struct Curator {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    version: String,
}

impl Curator {
    pub(crate) async fn open(
        program: &Program,
        connect_string: &str,
        plan: Plan,
    ) -> anyhow::Result<Curator> {
        let mut child = Command::from(program.command())
            .arg(connect_string)
            .arg(SESSION_TIMEOUT.as_millis().to_string())
            .args([plan.sessions, plan.locks, CONTENDERS].map(|number| number.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start Java")?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = child.stdout.take().context("no standard output")?;
        let mut curator = Curator {
            child,
            orders,
            answers: BufReader::new(answers).lines(),
            version: String::new(),
        };
        curator.version = curator.answer("ready ").await?;
        Ok(curator)
    }

    async fn ask(&mut self, order: &str, word: &str) -> anyhow::Result<String> {
        let line = format!("{order}\n");
        let sent = self.orders.write_all(line.as_bytes()).await;
        sent.with_context(|| format!("Curator has ended before: {order}"))?;
        self.answer(word).await
    }

    /// The rest of the next line, which must begin with this word.
    async fn answer(&mut self, word: &str) -> anyhow::Result<String> {
        let line = timeout(PATIENCE, self.answers.next_line()).await;
        let line = line.with_context(|| format!("no answer of Curator within {PATIENCE:?}"))??;
        let line = line.context("Curator has failed, as it says above")?;
        match line.strip_prefix(word) {
            Some(rest) => Ok(rest.to_owned()),
            None => bail!("Curator says {line:?} instead of {word:?}"),
        }
    }
}

/// The figures between the commas.
fn figures(list: &str) -> anyhow::Result<Vec<f64>> {
    let figures = list.split(',').filter(|figure| !figure.is_empty());
    Ok(figures.map(str::parse).collect::<Result<_, _>>()?)
}

#[async_trait]
impl Party for Curator {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn process(&self) -> Option<u32> {
        self.child.id()
    }

    async fn take(&mut self) -> anyhow::Result<Vec<f64>> {
        let microseconds = figures(&self.ask("take", "taken ").await?)?;
        Ok(microseconds.into_iter().map(|each| each / 1e3).collect())
    }

    async fn held(&mut self) -> anyhow::Result<usize> {
        Ok(self.ask("held", "held ").await?.parse()?)
    }

    async fn died(&mut self) -> anyhow::Result<()> {
        self.ask("died", "noted").await.map(drop)
    }

    async fn recovery(&mut self) -> anyhow::Result<Recovery> {
        let answer = self.ask("outcome", "outcome ").await?;
        let mut parts = answer.split(';');
        let mut part = || parts.next().with_context(|| format!("{answer:?}"));
        Ok(Recovery {
            works_after: in_order(figures(part()?)?),
            gaps: in_order(figures(part()?)?),
            failures: part()?.parse()?,
        })
    }

    async fn end(mut self: Box<Self>) -> anyhow::Result<()> {
        self.ask("end", "ended").await.map(drop)
    }
}
