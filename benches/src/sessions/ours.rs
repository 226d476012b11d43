//! The fleet of these recipes, in this process.

use std::time::Instant;

use async_trait::async_trait;
use tokio::task::JoinSet;
use zookeeper_recipes_lock::ExclusiveLock;

use crate::fleet::Fleet;
use crate::party::{Party, Recovery, in_order};
use crate::plan::{AFTER, Plan};
use crate::turns::Turns;

pub(crate) struct Ours {
    fleet: Fleet,
    turns: Turns,
    died: Instant,
    /// When each session's lock works, in seconds since the death.
    working: JoinSet<anyhow::Result<f64>>,
}

impl Ours {
    pub(crate) async fn open(connect_string: &str, plan: Plan) -> anyhow::Result<Ours> {
        let fleet = Fleet::open(connect_string, plan).await?;
        let turns = Turns::begin(&fleet.sessions, plan.queues())?;
        Ok(Ours {
            fleet,
            turns,
            died: Instant::now(),
            working: JoinSet::new(),
        })
    }
}

#[async_trait]
impl Party for Ours {
    fn version(&self) -> String {
        format!("zookeeper-recipes {}", env!("CARGO_PKG_VERSION"))
    }

    fn process(&self) -> Option<u32> {
        Some(std::process::id())
    }

    async fn take(&mut self) -> anyhow::Result<Vec<f64>> {
        let taken = self.turns.take().into_iter().flatten();
        Ok(taken.map(|it| it.took.as_secs_f64() * 1e3).collect())
    }

    async fn held(&mut self) -> anyhow::Result<usize> {
        Ok(self.fleet.held())
    }

    async fn died(&mut self) -> anyhow::Result<()> {
        self.turns.take();
        let died = Instant::now();
        self.died = died;
        for (number, session) in self.fleet.sessions.iter().enumerate() {
            let lock = ExclusiveLock::new(session, format!("/after/{number}"))?;
            self.working.spawn(async move {
                lock.acquire().await?.release().await?;
                anyhow::Ok(died.elapsed().as_secs_f64())
            });
        }
        Ok(())
    }

    async fn recovery(&mut self) -> anyhow::Result<Recovery> {
        let (died, end) = (self.died, self.died + AFTER);
        let gaps = self.turns.take().into_iter().map(|handoffs| {
            let moments = handoffs.iter().map(|handoff| handoff.at.min(end));
            let ends = moments.clone().chain([end]);
            let gaps = ends.zip([died].into_iter().chain(moments));
            let gaps = gaps.map(|(end, begin)| end.saturating_duration_since(begin));
            gaps.max().unwrap_or(AFTER).as_secs_f64()
        });
        let gaps = in_order(gaps);
        let mut works_after = Vec::new();
        while let Some(works) = self.working.join_next().await {
            works_after.push(works??);
        }
        Ok(Recovery {
            works_after: in_order(works_after),
            gaps,
            failures: 0,
        })
    }

    async fn end(self: Box<Self>) -> anyhow::Result<()> {
        self.turns.end().await?;
        self.fleet.close().await;
        Ok(())
    }
}
