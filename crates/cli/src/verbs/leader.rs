//! `zkr leader`: who leads, now or from now on.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use futures_util::stream::StreamExt;
use serde_json::json;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_election::{Leader as Found, LeaderElection};

use crate::connecting::{Connection, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Reader, print};
use crate::queue::{age, now};

/// Show who leads.
#[derive(Debug, Args)]
pub(crate) struct Leader {
    /// The directory of the election.
    path: String,

    /// Print a line for each change, until Ctrl-C.
    #[arg(long)]
    follow: bool,

    /// Print a JSON object in each line, for programs.
    #[arg(long)]
    json: bool,
}

impl Leader {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let session = connection.open().await?;
        let shown = self.show(&session).await;
        close(session).await;
        shown.map(|()| Exit::Done)
    }

    async fn show(&self, session: &Session) -> Result<(), Failure> {
        let election = LeaderElection::new(session, &self.path, "")?;
        if !self.follow {
            print(&self.line(election.leader().await?.as_ref()))?;
            return Ok(());
        }
        let mut leaders = election.observe();
        while let Some(leader) = leaders.next().await {
            if print(&self.line(leader?.as_ref()))? == Reader::Gone {
                break;
            }
        }
        Ok(())
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
                })
            });
            return format!("{}\n", json!(object));
        }
        match leader {
            Some(leader) => format!(
                "{} leads: token {}, session {}, candidate for {}\n",
                leader.id.escape_debug(),
                leader.fencing_token,
                leader.session_id,
                age(since(leader), now())
            ),
            None => "nobody leads\n".to_owned(),
        }
    }
}

fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
