//! `zkr doctor`: whether locks can work here, and what to do if not.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Error, NodePath, Permission, Session};

use crate::connecting::Connection;
use crate::doctor::{Finding, examine, nearest};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::four_letter::Servers;
use crate::output::print;
use crate::plain_text::json_text;
use crate::thorough::{Verdict, runs_in, try_promises};

/// Check whether locks can work here, and say what to do if not.
///
/// Creates and deletes a znode in the directory, or in its nearest existing ancestor.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The directory of a lock, a semaphore or an election.
    #[arg(default_value = "/")]
    path: String,

    /// Also test each promise of the servers that the recipes rely on. Takes about a minute.
    ///
    /// Works under a znode of its own, zkr-doctor-thorough, in the directory or its nearest existing
    /// ancestor, and removes it at the end. Refuses to start while another doctor is at work there.
    #[arg(long)]
    thorough: bool,

    /// How long --thorough waits for the servers to delete an empty container.
    #[arg(long, value_name = "DURATION", default_value = "65s", requires = "thorough", value_parser = duration::parse)]
    containers_within: Duration,

    /// Print the findings as one JSON object, for scripts.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let began = std::time::Instant::now();
        let examined = connection.within(async |session| {
            let findings = examine(session, connection, &self.path, began.elapsed()).await?;
            let verdicts = match self.thorough {
                true => self.verdicts(session, connection).await?,
                false => Vec::new(),
            };
            Ok((findings, verdicts))
        });
        let (findings, verdicts) = examined.await?;
        if self.json {
            let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
            let mut object = json!({ "path": self.path, "findings": findings });
            if self.thorough {
                object["verdicts"] = verdicts.iter().map(Verdict::json).collect();
            }
            print(&json_text(&format!("{object:#}\n")))?;
        } else {
            let findings = findings.iter().map(Finding::to_string);
            let lines: Vec<String> = findings
                .chain(verdicts.iter().map(Verdict::to_string))
                .collect();
            print(&(lines.join("\n") + "\n"))?;
        }
        let broken = verdicts.iter().filter_map(Verdict::exit);
        // A broken promise explains more than a server that was not reached.
        let broken = broken.max_by_key(|exit| *exit == Exit::BrokenPromise);
        let worst = broken.or_else(|| findings.iter().find_map(|finding| finding.exit));
        Ok(worst.unwrap_or(Exit::Done))
    }

    /// The verdict about each promise of the servers.
    async fn verdicts(
        &self,
        session: &Session,
        connection: &Connection,
    ) -> Result<Vec<Verdict>, Failure> {
        let queue = if self.path == "/" { "/any" } else { &self.path };
        let server = session.server(&NodePath::new(queue)?).await?;
        let found = nearest(&server, &self.path).await;
        let (directory, _) = found.map_err(|error| Error::at(&self.path, server.id, error))?;
        let runs = async {
            let (node, acl) = (
                runs_in(&directory),
                [Acl::new(Permission::ALL, AuthId::anyone())],
            );
            let created = server.create(&node, b"", CreateMode::Ephemeral, &acl).await;
            created.map_err(|error| Error::at(&node, server.id, error))?;
            Ok(())
        };
        let chroot = session.ensemble().facts().chroot.trim_end_matches('/');
        let servers = Servers::of(session, connection).await?;
        let below = format!("{chroot}{directory}");
        try_promises(&servers, connection, &below, runs, self.containers_within).await
    }
}
