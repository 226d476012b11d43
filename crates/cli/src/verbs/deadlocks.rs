//! `zkr deadlocks`: sessions that wait for each other.

use clap::Args;
use serde_json::{Value, json};
use zookeeper_recipes_overview::{Circle, ContenderState, ContenderStatus, QueueKind};

use super::locks::{Look, look};
use crate::connecting::{Connection, close};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::plain_text::json_text;
use crate::queue::{age, milliseconds, now, or_dash};

/// Show sessions that wait for each other, over all queues at a path and below it.
///
/// A circle is shown only if a second look finds the same contenders waiting. It is a possible
/// deadlock: if tasks of one process hold and wait independently of each other, one of them may
/// release. Such a circle passes by itself, so look again before you evict. The exit code is 1 if
/// there is a circle.
#[derive(Debug, Args)]
pub(crate) struct Deadlocks {
    /// Where to look.
    #[arg(default_value = "/")]
    prefix: String,

    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

impl Deadlocks {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let session = connection.open().await?;
        let looked = look(&session, connection, &self.prefix).await;
        close(session).await;
        let look = looked?;
        let circles = look.overview.circles();
        let text = match (self.json, circles) {
            (true, _) => {
                let circles: Vec<Value> = circles.iter().map(|it| json_of(&look, it)).collect();
                json_text(&format!("{:#}\n", json!({ "circles": circles })))
            }
            (false, []) => format!("{}\n", nothing(&look)),
            (false, circles) => {
                let now = now();
                let circles = circles.iter().map(|it| text_of(&look, it, now));
                circles.collect::<Vec<_>>().join("\n")
            }
        };
        print(&text)?;
        Ok(match circles {
            [] => Exit::Done,
            _ => Exit::Found,
        })
    }
}

/// What was looked at, if there is no circle.
fn nothing(look: &Look) -> String {
    let overview = &look.overview;
    let (path, queues) = (overview.path(), overview.queues());
    let is_unknown = |kind| {
        matches!(
            kind,
            QueueKind::CuratorSemaphore | QueueKind::KazooSemaphore
        )
    };
    let unknown = queues.iter().filter(|it| is_unknown(it.kind())).count();
    let unread = overview.unread().len();
    let mut text = match overview.exists() {
        true => format!(
            "{path}: no sessions wait for each other, in {} queues",
            queues.len()
        ),
        false => format!("{path}: does not exist"),
    };
    if unread > 0 {
        text += &format!("; {unread} znodes may not be read");
    }
    if unknown > 0 {
        text += &format!("; who waits for {unknown} semaphores of Curator or kazoo is not known");
    }
    text
}

fn text_of(look: &Look, circle: &Circle, now: i64) -> String {
    let number = circle.waits.len();
    let since = age(milliseconds(circle.since()), now);
    let mut lines = vec![format!(
        "{number} sessions wait for each other, for {since}:"
    )];
    for wait in &circle.waits {
        let age = age(milliseconds(wait.waiter.created), now);
        lines.push(format!("  {}", who(look, &wait.waiter)));
        lines.push(format!(
            "    waits for {age} to {} at {}, behind {}",
            wait.waiter.wants,
            wait.path,
            who(look, &wait.blocker)
        ));
    }
    if let Some(command) = command(circle) {
        lines.push(format!(
            "the way out, if it is still there when you look again: {command}"
        ));
    }
    lines.join("\n") + "\n"
}

fn who(look: &Look, contender: &ContenderStatus) -> String {
    let owner = or_dash(&contender.owner);
    match look.address(contender.session_id.0) {
        Some(address) => format!("{owner} (session {}, {address})", contender.session_id),
        None => format!("{owner} (session {})", contender.session_id),
    }
}

/// The command that breaks the circle.
fn command(circle: &Circle) -> Option<String> {
    let wait = circle.way_out()?;
    let (path, token) = (quoted(&wait.path), wait.blocker.fencing_token);
    Some(match wait.blocker.state {
        ContenderState::Holds => format!("zkr evict {path} --if-holder {token}"),
        _ => format!("zkr evict {path} {token}"),
    })
}

/// The path, as a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_-.,:@%+=".contains(letter);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

fn json_of(look: &Look, circle: &Circle) -> Value {
    let contender = |it: &ContenderStatus| {
        json!({
            "node": it.name,
            "owner": &*it.owner,
            "session": it.session_id.to_string(),
            "address": look.address(it.session_id.0),
            "fencing_token": it.fencing_token.get(),
            "created_ms": milliseconds(it.created),
        })
    };
    let waits = circle.waits.iter().map(|wait| {
        json!({
            "path": wait.path,
            "waiter": contender(&wait.waiter),
            "waits_for": contender(&wait.blocker),
        })
    });
    json!({
        "since_ms": milliseconds(circle.since()),
        "waits": waits.collect::<Vec<_>>(),
        "way_out": command(circle),
    })
}
