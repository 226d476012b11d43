//! `zkr leader`: who leads, now or from now on.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::sync::watch;
use zookeeper_recipes_core::{Error, NodePath, Session};
use zookeeper_recipes_election::{Leader as Found, LeaderElection, LeaderState};
use zookeeper_recipes_overview::QueueKind;

use super::who::look;
use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Reader, print};
use crate::plain_text::json_text;
use crate::queue::{age, milliseconds, now, recipe};

/// Show who leads, or transfer the leadership to another candidate.
#[derive(Debug, Args)]
pub(crate) struct Leader {
    /// The directory of the election.
    path: String,

    /// Print a line for each change, until interrupted.
    #[arg(long, conflicts_with = "transfer_to")]
    follow: bool,

    /// Transfer the leadership to the candidate with this id, and wait until it leads.
    ///
    /// The leader stops its work and resigns. The candidates ahead of the successor requeue at the
    /// end. Leaders and candidates of Curator do neither.
    #[arg(long, value_name = "ID")]
    transfer_to: Option<String>,

    /// Give up if the candidate does not lead within this time.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "30s")]
    #[arg(requires = "transfer_to")]
    timeout: Duration,

    /// Print one JSON object per line, for scripts.
    #[arg(long)]
    json: bool,
}

impl Leader {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let shown = connection.within(async |session| self.show(session).await);
        shown.await.map(|()| Exit::Done)
    }

    async fn show(&self, session: &Session) -> Result<(), Failure> {
        let election = LeaderElection::new(session, &self.path, "")?;
        let exists = self.check(session, election.path()).await?;
        if let Some(id) = &self.transfer_to {
            let leader = self.transfer(&election, id).await?;
            print(&self.line(Some(&leader)))?;
            if !self.json {
                print(
                    "a candidate whose process has died is the leader until its session has expired\n",
                )?;
            }
            return Ok(());
        }
        if !exists && !self.json {
            let text = format!("nobody leads: {} does not exist\n", self.path);
            if print(&text)? == Reader::Gone || !self.follow {
                return Ok(());
            }
        }
        if !self.follow {
            print(&self.line(election.leader().await?.as_ref()))?;
            return Ok(());
        }
        let mut watched = election.watch_leader();
        loop {
            let leader = next(&mut watched, &election).await?;
            if print(&self.line(leader.as_ref()))? == Reader::Gone {
                return Ok(());
            }
        }
    }

    /// True if the path exists. A directory of another recipe is refused.
    async fn check(&self, session: &Session, path: &NodePath) -> Result<bool, Failure> {
        let queue = look(session, path, 0).await?;
        match (queue.kind(), recipe(&queue)) {
            (QueueKind::Election, _) | (_, None) => Ok(queue.exists()),
            (_, Some(other)) => {
                let problem = "not an election; `zkr who` shows who holds";
                Err(Failure::usage(format!("{path}: {other}, {problem}")))
            }
        }
    }

    /// Names the successor, and waits until it leads.
    async fn transfer(&self, election: &LeaderElection, id: &str) -> Result<Found, Failure> {
        let mut watched = election.watch_leader();
        election.transfer_to(id).await?;
        let led = async {
            loop {
                let leader = next(&mut watched, election).await?;
                if let Some(leader) = leader.filter(|leader| leader.id == id) {
                    return Ok(leader);
                }
            }
        };
        let led = tokio::time::timeout(self.timeout, led).await;
        led.unwrap_or_else(|_| {
            let message = format!(
                "{}: {id} does not lead after {:?}; `zkr who` shows who leads, and whether {id} \
                 still campaigns",
                self.path, self.timeout
            );
            Err(Failure::new(Exit::TimedOut, message))
        })
    }

    fn line(&self, leader: Option<&Found>) -> String {
        let since = |leader: &Found| milliseconds(leader.candidate_since);
        if self.json {
            let object = leader.map(|leader| {
                json!({
                    "id": leader.id,
                    "fencing_token": leader.fencing_token.get(),
                    "session": leader.session_id.to_string(),
                    "candidate_since_ms": since(leader),
                    "proclaimed": leader.proclaimed,
                })
            });
            return json_text(&format!("{}\n", json!(object)));
        }
        match leader {
            Some(leader) => {
                let said = leader.proclaimed.as_deref();
                let said = said.map(|said| format!(": {}", said.escape_debug()));
                format!(
                    "{} leads: token {}, session {}, candidate for {}{}\n",
                    leader.id.escape_debug(),
                    leader.fencing_token,
                    leader.session_id,
                    age(since(leader), now()),
                    said.unwrap_or_default(),
                )
            }
            None => "nobody leads\n".to_owned(),
        }
    }
}

/// The leader after the next change, or none.
async fn next(
    watched: &mut watch::Receiver<LeaderState>,
    election: &LeaderElection,
) -> Result<Option<Found>, Error> {
    if watched.changed().await.is_ok() {
        match watched.borrow_and_update().clone() {
            LeaderState::Leader(leader) => return Ok(Some(leader)),
            LeaderState::Nobody => return Ok(None),
            LeaderState::Unknown | LeaderState::Refused(_) => {}
        }
    }
    // The server refuses the reads, or the session is closed: a read returns the error.
    election.leader().await
}
