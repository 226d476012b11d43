//! `zkr deadlocks`: sessions that wait for each other.

use clap::Args;
use serde_json::{Value, json};
use zookeeper_recipes_overview::{Circle, QueueKind};

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::look::{Look, LookArguments};
use crate::plain_text::counted;
use crate::queue::{circle_json, circle_lines, now};

/// Show sessions that wait for each other, over all queues at a path and below it.
///
/// A circle is shown only if a second look finds the same contenders waiting. It is a possible
/// deadlock: if tasks of one process hold and wait independently of each other, one of them may
/// release. Such a circle passes by itself, so look again before you evict. The exit code is 1 if
/// there is a circle.
#[derive(Debug, Args)]
pub(crate) struct Deadlocks {
    #[command(flatten)]
    look: LookArguments,
}

impl Deadlocks {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let look = self.look.look(connection).await?;
        let circles = look.overview.circles();
        self.look.print(|| json_of(&look), || text_of(&look))?;
        Ok(match circles {
            [] => Exit::Done,
            _ => Exit::Found,
        })
    }
}

fn json_of(look: &Look) -> Value {
    let circle = |it: &Circle| circle_json(it, &look.addresses, &look.zkr);
    let circles: Vec<Value> = look.overview.circles().iter().map(circle).collect();
    json!({ "circles": circles })
}

fn text_of(look: &Look) -> String {
    let now = now();
    let circle = |it: &Circle| {
        let lines = circle_lines(it, &look.addresses, &look.zkr, now);
        lines.join("\n") + "\n"
    };
    match look.overview.circles() {
        [] => nothing(look) + "\n",
        circles => circles.iter().map(circle).collect::<Vec<_>>().join("\n"),
    }
}

/// What was looked at, if there is no circle.
fn nothing(look: &Look) -> String {
    let overview = &look.overview;
    let path = overview.path();
    let is_unknown = |kind| {
        matches!(
            kind,
            QueueKind::CuratorSemaphore | QueueKind::KazooSemaphore
        )
    };
    let queues = overview.queues().iter();
    let unknown = queues.filter(|it| is_unknown(it.kind())).count();
    let unread = overview.unread().len();
    let mut text = match overview.exists() {
        true => format!(
            "{path}: no sessions wait for each other, in {}",
            counted(overview.queues().len(), "queue", "queues")
        ),
        false => format!("{path}: does not exist"),
    };
    if unread > 0 {
        text += &format!("; {} may not be read", counted(unread, "znode", "znodes"));
    }
    if unknown > 0 {
        let semaphores = counted(unknown, "semaphore", "semaphores");
        text += &format!("; who waits for {semaphores} of Curator or kazoo is not known");
    }
    text
}
