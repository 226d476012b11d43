//! The faults, one after the other, until the time is over.

use std::time::Duration;

use tokio::time::sleep;
use zookeeper_recipes_testkit::Ensemble;

use crate::arena::Arena;
use crate::fault::Fault;
use crate::library::Client;
use crate::machine::Disk;
use crate::namespace::run;
use crate::network::Cut;

/// What can fail.
#[derive(Debug)]
pub(crate) struct Failing<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) clients: &'a [Client],
    pub(crate) ensemble: &'a mut Ensemble,
    pub(crate) disk: &'a Disk,
    pub(crate) session_timeout: Duration,
}

/// How long all is well between two faults.
const PEACE: Duration = Duration::from_millis(1500);

impl Failing<'_> {
    /// Lets one thing fail after the other, and all faults of a round in another order each time.
    ///
    /// The call returns how often each fault was there.
    pub(crate) async fn run(mut self, faults: &[Fault]) -> anyhow::Result<Vec<(Fault, usize)>> {
        let mut counts: Vec<(Fault, usize)> = faults.iter().map(|fault| (*fault, 0)).collect();
        let mut round: Vec<Fault> = Vec::new();
        // Each client has had its first turns by then.
        sleep(2 * PEACE).await;
        while !self.arena.is_over() {
            if round.is_empty() {
                round.extend(faults);
                fastrand::shuffle(&mut round);
            }
            // A paused holder is what the token is for, so it comes after each other fault too.
            for fault in round.pop().into_iter().chain([Fault::PausedHolder]) {
                self.arena.begin(fault);
                self.strike(fault).await?;
                counts
                    .iter_mut()
                    .filter(|it| it.0 == fault)
                    .for_each(|it| it.1 += 1);
                sleep(PEACE).await;
            }
        }
        Ok(counts)
    }

    async fn strike(&mut self, fault: Fault) -> anyhow::Result<()> {
        let time = self.session_timeout.mul_f64(1.2 + fastrand::f64());
        match fault {
            Fault::PausedHolder => self.pause_holder(time).await,
            Fault::CutOff => self.cut(&[Cut::ToServers, Cut::ToClient], time).await,
            Fault::CutToServers => self.cut(&[Cut::ToServers], time).await,
            Fault::CutToClient => self.cut(&[Cut::ToClient], time).await,
            Fault::IsolatedLeader | Fault::IsolatedFollower => {
                let leader = self.ensemble.leader().await?;
                let member = match fault {
                    Fault::IsolatedLeader => leader,
                    _ => (leader + 1) % self.ensemble.members().len(),
                };
                self.ensemble.isolate(member)?;
                sleep(time).await;
                Ok(self.ensemble.heal(member)?)
            }
            Fault::PausedLeader => {
                let leader = self.ensemble.leader().await?;
                self.ensemble.members()[leader].pause()?;
                sleep(time).await;
                Ok(self.ensemble.members()[leader].resume()?)
            }
            Fault::KilledLeader => {
                let leader = self.ensemble.leader().await?;
                self.ensemble.members_mut()[leader].kill().await?;
                sleep(time).await;
                Ok(self.ensemble.restart(leader).await?)
            }
            Fault::StalledDisk => self.disk.stall(time).await,
        }
    }

    /// Pauses a client at a moment of its turn that is drawn at random.
    async fn pause_holder(&self, time: Duration) -> anyhow::Result<()> {
        let client = loop {
            match self.arena.inside() {
                Some(client) => break client,
                None if self.arena.is_over() => return Ok(()),
                None => sleep(Duration::from_millis(1)).await,
            }
        };
        sleep(Duration::from_millis(fastrand::u64(0..15))).await;
        let process = self.clients[client].process;
        run(&format!("kill -STOP {process}"))?;
        sleep(time).await;
        run(&format!("kill -CONT {process}"))
    }

    /// Cuts off a client: one that is in its turn, if there is one.
    async fn cut(&self, directions: &[Cut], time: Duration) -> anyhow::Result<()> {
        let client = self.arena.inside();
        let network = &self.clients[client.unwrap_or(0)].network;
        for direction in directions {
            network.cut(*direction)?;
        }
        sleep(time).await;
        network.heal()
    }
}
