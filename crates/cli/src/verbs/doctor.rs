//! `zkr doctor`: whether locks can work here, and what to do if not.

use clap::Args;
use serde_json::{Value, json};

use crate::connecting::{Connection, close};
use crate::doctor::{Finding, examine};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::plain_text::json_text;

/// Check whether locks can work here, and say what to do if not.
///
/// Creates a znode in the directory, or in the nearest one above that exists, and deletes it again.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The directory of a lock, a semaphore or an election.
    #[arg(default_value = "/")]
    path: String,

    /// Print the findings as one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let began = std::time::Instant::now();
        let session = connection.open().await?;
        let took = began.elapsed();
        let findings = examine(&session, connection, &self.path, took).await;
        close(session).await;
        let findings = findings?;
        if self.json {
            let findings: Vec<Value> = findings.iter().map(Finding::json).collect();
            let object = json!({ "path": self.path, "findings": findings });
            print(&json_text(&format!("{object:#}\n")))?;
        } else {
            let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
            print(&(lines.join("\n") + "\n"))?;
        }
        let worst = findings.iter().find_map(|finding| finding.exit);
        Ok(worst.unwrap_or(Exit::Done))
    }
}
