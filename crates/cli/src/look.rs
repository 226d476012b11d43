//! A look at all queues below a path, for the verbs that show it.

use clap::Args;
use serde_json::{Value, json};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_overview::{LARGEST_SESSION, Overview, printable};

use crate::addresses::Addresses;
use crate::connecting::Connection;
use crate::failure::{Failure, say};
use crate::output::print;
use crate::plain_text::{json_text, quoted};
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
        let look = async |session: &Session| Look::below(session, connection, &self.prefix).await;
        connection.within(look).await
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
    pub(crate) addresses: Addresses,
    /// How a shell runs `zkr` for the same servers.
    pub(crate) zkr: String,
}

impl Look {
    /// Looks at all queues at a path and below it, and asks each server for its clients.
    pub(crate) async fn below(
        session: &Session,
        connection: &Connection,
        prefix: &str,
    ) -> Result<Look, Failure> {
        let overview = Overview::below(session, prefix).await?;
        let addresses = match overview.queues().is_empty() {
            true => Addresses::default(),
            false => Addresses::ask(session, connection).await?,
        };
        Ok(Look {
            overview,
            addresses,
            zkr: connection.command(true),
        })
    }

    /// The contenders of a queue that were read, with their addresses.
    pub(crate) fn rows(&self, summary: &Summary) -> Vec<Row> {
        let queue = &self.overview.queues()[summary.place];
        Row::of(queue, &self.addresses)
    }

    /// The table of these queues. Says what concerns no single queue to the standard error.
    pub(crate) fn text(&self, summaries: &[Summary], now: i64) -> String {
        let path = self.overview.path();
        let lines = match summaries {
            _ if !self.overview.exists() => vec![format!("{path}: does not exist")],
            [] => vec![match self.overview.queues().len() {
                0 => format!("{path}: no queue is here or below"),
                all => format!("{path}: no queue of {all} matches the options"),
            }],
            _ => summary_table(summaries, now),
        };
        notes(&self.overview).iter().for_each(|note| say(note));
        if !self.overview.circles().is_empty() {
            let command = format!("{} deadlocks {}", self.zkr, quoted(path));
            say(&format!(
                "warning: sessions wait for each other: `{command}` shows them"
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
