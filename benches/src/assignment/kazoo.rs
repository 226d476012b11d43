//! kazoo's `SetPartitioner` at the same work. Each worker is a process.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use zookeeper_recipes_benches::report::target;
use zookeeper_recipes_benches::wire::Wire;
use zookeeper_recipes_interop::{Program, ProgramError};
use zookeeper_recipes_testkit::Server;

use crate::ownership::Ownership;
use crate::phases::{Clock, Phase};
use crate::size::{Size, Times};

/// How long a process has until its session is open.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process with a partitioner. Dropping the value kills the process.
struct Worker {
    _child: Child,
    orders: ChildStdin,
}

/// The phases of kazoo; none if the machine lacks it.
///
/// # Errors
///
/// If the server or a process fails.
pub(crate) async fn measure(
    server: &Server,
    size: Size,
    times: Times,
) -> anyhow::Result<Vec<Phase>> {
    let program = match Program::kazoo(&target()) {
        Ok(program) => program,
        Err(missing @ ProgramError::Missing { .. }) => {
            eprintln!("{missing}");
            return Ok(Vec::new());
        }
        Err(broken) => return Err(broken.into()),
    };
    let wire = Wire::to(server).await?;
    let ownership = Ownership::new(size.partitions, size.workers + 1);
    let clock = || Clock::start(&wire, server, &ownership, times.rest);
    let start = async |number: usize| {
        let mut command = program.command();
        command.arg(wire.connect_string());
        command.args([&*times.session_timeout.as_millis().to_string(), "partition"]);
        command.args([size.partitions.to_string(), number.to_string()]);
        Worker::start(command, number, ownership.clone()).await
    };
    let mut workers = Vec::new();
    for number in 0..size.workers {
        workers.push(start(number).await?);
    }
    let mut present: Vec<usize> = (0..size.workers).collect();
    let begun = clock();
    for worker in &mut workers {
        worker.begin().await?;
    }
    let started = begun.phase("start", "kazoo", size, &present, None).await?;

    let victim = size.workers - 1;
    present.truncate(victim);
    let begun = clock();
    workers.truncate(victim);
    ownership.set(victim, &[]);
    let died = begun
        .phase("death", "kazoo", size, &present, Some(victim))
        .await?;

    let mut last = start(size.workers).await?;
    present.push(size.workers);
    let begun = clock();
    last.begin().await?;
    let mut arrived = begun
        .phase("arrival", "kazoo", size, &present, None)
        .await?;
    arrived.owned = None;
    Ok(vec![started, died, arrived])
}

impl Worker {
    async fn start(
        command: std::process::Command,
        number: usize,
        ownership: Ownership,
    ) -> anyhow::Result<Worker> {
        let mut child = Command::from(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start kazoo")?;
        let orders = child.stdin.take().context("no standard input")?;
        let answers = child.stdout.take().context("no standard output")?;
        let mut answers = BufReader::new(answers).lines();
        match timeout(PATIENCE, answers.next_line()).await {
            Ok(Ok(Some(line))) if line.starts_with("ready ") => {}
            other => bail!("kazoo is not ready: {other:?}"),
        }
        tokio::spawn(follow(answers, number, ownership));
        Ok(Worker {
            _child: child,
            orders,
        })
    }

    /// Lets the worker join.
    async fn begin(&mut self) -> anyhow::Result<()> {
        use tokio::io::AsyncWriteExt;

        Ok(self.orders.write_all(b"begin\n").await?)
    }
}

/// Notes what the process owns, until it ends.
async fn follow(mut answers: Lines<BufReader<ChildStdout>>, number: usize, ownership: Ownership) {
    while let Ok(Some(line)) = answers.next_line().await {
        let Some(owned) = line.strip_prefix("owns") else {
            eprintln!("kazoo: {line}");
            continue;
        };
        let owned: Vec<usize> = owned.split_whitespace().flat_map(str::parse).collect();
        ownership.set(number, &owned);
    }
}
