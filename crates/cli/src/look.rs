//! A look at all queues below a path, for the verbs that show it.

use std::collections::HashMap;

use clap::Args;
use serde_json::{Value, json};
use zookeeper_recipes_core::{Session, SessionId};
use zookeeper_recipes_overview::{LARGEST_SESSION, Overview, printable};

use crate::connecting::{Connection, close};
use crate::failure::Failure;
use crate::four_letter::Servers;
use crate::output::print;
use crate::plain_text::json_text;
use crate::queue::{Row, Summary, summary_table};

/// Where to look, and for whom.
#[derive(Clone, Debug, Args)]
pub(crate) struct LookArguments {
    /// Where to look.
    #[arg(default_value = "/")]
    pub(crate) prefix: String,

    /// Print one JSON object, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

impl LookArguments {
    /// Looks once, in a session for this look.
    pub(crate) async fn look(&self, connection: &Connection) -> Result<Look, Failure> {
        let session = connection.open().await?;
        let looked = Look::below(&session, connection, &self.prefix).await;
        close(session).await;
        looked
    }

    /// Prints what the look has found, for programs or for people.
    pub(crate) fn print(
        &self,
        json: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let text = match self.json {
            true => json_text(&format!("{:#}\n", json())),
            false => text(),
        };
        print(&text)?;
        Ok(())
    }
}

/// An overview, and the addresses of the clients.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) overview: Overview,
    addresses: HashMap<i64, String>,
}

impl Look {
    /// Looks at all queues at a path and below it, and asks each server for its clients.
    pub(crate) async fn below(
        session: &Session,
        connection: &Connection,
        prefix: &str,
    ) -> Result<Look, Failure> {
        let overview = Overview::below(session, prefix).await?;
        let servers = Servers::of(session, connection).await?;
        let addresses = match overview.queues().is_empty() {
            true => HashMap::new(),
            false => servers.addresses().await,
        };
        Ok(Look {
            overview,
            addresses,
        })
    }

    /// The address of a session's client, if the servers report it.
    pub(crate) fn address(&self, session: SessionId) -> Option<String> {
        self.addresses.get(&session.0).cloned()
    }

    /// The contenders of a queue that were read, with their addresses.
    pub(crate) fn rows(&self, summary: &Summary) -> Vec<Row> {
        let queue = &self.overview.queues()[summary.place];
        Row::with_addresses(queue, |session| self.address(session))
    }

    /// The table of these queues, and what concerns no single queue.
    pub(crate) fn text(&self, summaries: &[Summary], now: i64) -> String {
        let path = self.overview.path();
        let mut lines = match summaries {
            _ if !self.overview.exists() => vec![format!("{path}: does not exist")],
            [] => vec![match self.overview.queues().len() {
                0 => format!("{path}: no queue is here or below"),
                all => format!("{path}: no queue of {all} matches the options"),
            }],
            _ => summary_table(summaries, now),
        };
        lines.extend(notes(&self.overview));
        if !self.overview.circles().is_empty() {
            lines.push(format!(
                "warning: sessions wait for each other: `zkr deadlocks {path}` shows them"
            ));
        }
        lines.join("\n") + "\n"
    }

    /// These queues with their contenders, for programs.
    pub(crate) fn json(&self, summaries: &[Summary], now: i64) -> Value {
        let queue = |summary: &Summary| {
            let mut queue = summary.json(now);
            let rows = self.rows(summary);
            queue["rows"] = rows.iter().map(Row::json).collect();
            queue
        };
        overview_json(&self.overview, summaries.iter().map(queue).collect())
    }
}

/// An overview with these queues, for programs.
pub(crate) fn overview_json(overview: &Overview, queues: Vec<Value>) -> Value {
    let unread = overview.unread().iter();
    json!({
        "path": overview.path(),
        "exists": overview.exists(),
        "queues": queues,
        "unread": unread.map(|it| json!({
            "path": it.path,
            "why": it.refusal.to_string(),
        })).collect::<Vec<_>>(),
        "circles": overview.circles().len(),
    })
}

/// What may not be read, and sessions near their limit.
pub(crate) fn notes(overview: &Overview) -> Vec<String> {
    let mut notes = Vec::new();
    match overview.unread() {
        [] => {}
        [one] => notes.push(format!("note: {} may not be read", printable(&one.path))),
        [first, ..] => notes.push(format!(
            "note: {} znodes may not be read, nor what is below them; the first is {}",
            overview.unread().len(),
            printable(&first.path)
        )),
    }
    let sessions = overview.sessions();
    for session in sessions.iter().filter(|it| it.is_near_its_limit()) {
        notes.push(format!(
            "warning: session {} has {} ephemeral znodes, whose paths have {} bytes: the servers \
             cannot end a session with {LARGEST_SESSION}",
            session.session_id, session.znodes, session.bytes,
        ));
    }
    notes
}
