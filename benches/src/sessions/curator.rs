//! The fleet of Apache Curator, in a process of its own. Its session is a `CuratorFramework`, its
//! contender a thread. A call that fails is made again.

use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use zookeeper_recipes_interop::{Peer, Program};

use crate::party::{Party, Recovery, in_order};
use crate::plan::{CONTENDERS, Plan, SESSION_TIMEOUT};

/// For a heap that holds the whole fleet, and for thousands of threads.
pub(crate) const JAVA_OPTIONS: [&str; 3] = ["-Xms1g", "-Xmx1g", "-Xss256k"];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Curator(Peer);

impl Curator {
    pub(crate) async fn open(
        program: &Program,
        connect_string: &str,
        plan: Plan,
    ) -> anyhow::Result<Curator> {
        let mut command = program.command();
        command.arg(connect_string);
        command.args([&*SESSION_TIMEOUT.as_millis().to_string(), "fleet"]);
        command.args([plan.sessions, plan.locks, CONTENDERS].map(|number| number.to_string()));
        Ok(Curator(Peer::start("Curator", command).await?))
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
        self.0.version().to_owned()
    }

    fn process(&self) -> Option<u32> {
        self.0.process_id()
    }

    async fn take(&mut self) -> anyhow::Result<Vec<f64>> {
        let microseconds = figures(&self.0.ask("take", "taken ", PATIENCE).await?)?;
        Ok(microseconds.into_iter().map(|each| each / 1e3).collect())
    }

    async fn held(&mut self) -> anyhow::Result<usize> {
        Ok(self.0.ask("held", "held ", PATIENCE).await?.parse()?)
    }

    async fn died(&mut self) -> anyhow::Result<()> {
        self.0.ask("died", "noted", PATIENCE).await.map(drop)
    }

    async fn recovery(&mut self) -> anyhow::Result<Recovery> {
        let answer = self.0.ask("outcome", "outcome ", PATIENCE).await?;
        let mut parts = answer.split(';');
        let mut part = || parts.next().with_context(|| format!("{answer:?}"));
        Ok(Recovery {
            works_after: in_order(figures(part()?)?),
            gaps: in_order(figures(part()?)?),
            failures: part()?.parse()?,
        })
    }

    async fn end(mut self: Box<Self>) -> anyhow::Result<()> {
        self.0.ask("end", "ended", PATIENCE).await.map(drop)
    }
}
