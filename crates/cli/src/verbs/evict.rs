//! `zkr evict`: takes a contender out of the queue.

use std::io::{IsTerminal, Write, stderr, stdin};

use clap::Args;
use zookeeper_recipes_core::{Error, NodePath, Refusal, Session};
use zookeeper_recipes_overview::{ContenderState, ContenderStatus, is_contender};

use super::who::look;
use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::plain_text::plain;

/// Remove a holder or a waiter from the queue.
///
/// If it was the holder, the next contender may hold immediately. A holder of zookeeper-recipes notices
/// its loss within a sixth of its session timeout. A holder of another client does not notice: restart
/// its process. If a holder keeps working, only a store that checks fencing tokens rejects its writes.
///
/// zkr asks before it removes anything, unless there is --yes.
#[derive(Debug, Args)]
pub(crate) struct Evict {
    /// The directory of a lock, a semaphore or an election.
    path: String,

    /// The contender: its OWNER or TOKEN as shown by `zkr who`, or the name of its znode.
    ///
    /// Of an owner such as `billing@host:7`, the part before `@` is enough.
    #[arg(required_unless_present = "if_holder")]
    node: Option<String>,

    /// Evict only if the holder has this TOKEN. Otherwise do nothing, and exit with code 75.
    #[arg(long, value_name = "TOKEN")]
    if_holder: Option<i64>,

    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
}

impl Evict {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let path = NodePath::new(&self.path)?;
        let evicted = connection.within(async |session| self.in_session(session, &path).await);
        evicted.await.map(|()| Exit::Done)
    }

    async fn in_session(&self, session: &Session, path: &NodePath) -> Result<(), Failure> {
        let contender = self.find(session, path).await?;
        if !self.yes {
            self.ask(&contender)?;
        }
        let server = session.server(path).await?;
        let node = format!("{path}/{}", contender.name);
        match server.delete(&node).await {
            Ok(()) => {}
            Err(error) if error.is(Refusal::NoNode) => {
                let text = format!("{node}: it has gone by itself; nothing was done");
                return Err(Failure::new(Exit::Conflict, text));
            }
            Err(error) => return Err(Error::at(node, server.id, error).into()),
        }
        print(&format!(
            "{} was removed from the queue\n",
            describe(&contender)
        ))?;
        Ok(())
    }

    async fn find(&self, session: &Session, path: &NodePath) -> Result<ContenderStatus, Failure> {
        let queue = look(session, path, usize::MAX).await?;
        let found = queue.contenders().filter(|it| self.means(it));
        let mut found: Vec<ContenderStatus> = found.collect();
        if let Some(token) = self.if_holder {
            let holds = |it: &ContenderStatus| it.state == ContenderState::Holds;
            found.retain(|it| it.fencing_token.get() == token && holds(it));
            return found.pop().ok_or_else(|| {
                let problem = format!("no holder has the TOKEN {token}; nothing was done");
                Failure::new(Exit::Conflict, format!("{path}: {problem}"))
            });
        }
        if found.len() > 1 {
            let tokens: Vec<String> = found
                .iter()
                .map(|it| it.fencing_token.to_string())
                .collect();
            let tokens = tokens.join(", ");
            let problem = format!("several contenders; give the TOKEN of one: {tokens}");
            return Err(Failure::usage(format!("{path}: {problem}")));
        }
        found.pop().ok_or_else(|| {
            let node = self.node.as_deref().unwrap_or_default();
            if is_contender(node) || node.parse::<i64>().is_ok() {
                let text =
                    format!("{path}: {node} is not a contender, or not any more; nothing was done");
                return Failure::new(Exit::Conflict, text);
            }
            let problem = "is not the OWNER, the TOKEN or the znode of a contender; \
                           `zkr who` lists them";
            Failure::usage(format!("{path}: {node:?} {problem}"))
        })
    }

    fn means(&self, row: &ContenderStatus) -> bool {
        let Some(node) = &self.node else { return true };
        let service = row.owner.rsplit_once('@').map(|(service, _)| service);
        row.name == *node
            || node.parse() == Ok(row.fencing_token.get())
            || *row.owner == **node
            || service == Some(node)
    }

    fn ask(&self, row: &ContenderStatus) -> Result<(), Failure> {
        if !stdin().is_terminal() {
            return Err(Failure::usage(
                "the standard input is not a terminal, so nobody can confirm: pass --yes",
            ));
        }
        let meaning = match row.state {
            ContenderState::Holds | ContenderState::Unknown => {
                "The next contender may hold at once. A holder of zookeeper-recipes learns of its \
                 loss within a sixth of its session timeout. A holder of another client does not \
                 learn of it, and continues to work: restart its process."
            }
            ContenderState::WaitsFor(_) => "It loses its place in the queue.",
        };
        let question = format!("{}\n{meaning}\nRemove it? [y/N] ", describe(row));
        let asked = stderr().write_all(plain(&question).as_bytes());
        let mut answer = String::new();
        let heard = asked.and_then(|()| stdin().read_line(&mut answer));
        heard.map_err(|error| Failure::internal("cannot ask", error))?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::new(Exit::Conflict, "nothing was done")),
        }
    }
}

fn describe(row: &ContenderStatus) -> String {
    let does = match row.state {
        ContenderState::Holds => "holds",
        ContenderState::WaitsFor(_) => "waits",
        ContenderState::Unknown => "holds or waits",
    };
    let owner = if row.owner.is_empty() {
        "unknown"
    } else {
        &row.owner
    };
    format!(
        "{} ({owner}, token {}, {does})",
        row.name, row.fencing_token
    )
}
