//! `zkr locks`: all queues below a path, and what is wrong with them.

use std::collections::HashMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zookeeper_recipes_core::Session;
use zookeeper_recipes_overview::{
    ContenderState, Mark, Overview, QueueKind, QueueStatus, printable,
};

use crate::connecting::{Connection, close};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::four_letter::Servers;
use crate::output::print;
use crate::plain_text::json_text;
use crate::queue::{Row, age_of, aligned, now, or_dash};

/// Show all locks, semaphores, elections and groups at a path and below it.
///
/// The table has a row for each queue of zookeeper-recipes, Curator, kazoo and go-zookeeper. The rule
/// of each recipe says who holds. HELD is the age of the oldest holder's znode, with the time that it
/// waited: no znode records when a hold began. zkr lists each znode below the path but the
/// contenders, and reads the contenders. It writes nothing and sets no watch.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    /// Where to look.
    #[arg(default_value = "/")]
    prefix: String,

    #[command(flatten)]
    filter: Filter,

    /// The order of the rows.
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,

    /// End with code 1 if a contender that is shown has waited for longer.
    ///
    /// Candidates of an election do not count: they wait for as long as the leader lives.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    fail_if_older: Option<Duration>,

    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

/// Which queues are shown.
#[derive(Debug, Default, Args)]
struct Filter {
    /// Only queues in which a contender waits.
    #[arg(long)]
    waiting: bool,

    /// Only queues whose oldest holder queued longer ago.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    held_longer: Option<Duration>,

    /// Only queues with a contender whose OWNER contains this text.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    /// Only queues with a contender of this session, such as 0x1000a3b4c5d0000.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only queues with a contender whose client has this address, or whose OWNER names this host.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Sort {
    #[default]
    Path,
    /// The queue that is held for the longest time first.
    Held,
    /// The queue with the most waiters first.
    Waiting,
    /// The queue with the oldest waiter first.
    Oldest,
}

impl Locks {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let session = connection.open().await?;
        let looked = look(&session, connection, &self.prefix).await;
        close(session).await;
        let look = looked?;
        let now = now();
        let mut lines: Vec<Line> = look.lines(now);
        lines.retain(|line| self.filter.shows(line));
        // Equal rows stay in the order of their paths.
        match self.sort {
            Sort::Path => {}
            Sort::Held => lines.sort_by_key(|line| std::cmp::Reverse(line.held)),
            Sort::Waiting => lines.sort_by_key(|line| std::cmp::Reverse(line.waiting)),
            Sort::Oldest => lines.sort_by_key(|line| std::cmp::Reverse(line.oldest_wait)),
        }
        let text = match self.json {
            true => json_text(&format!("{:#}\n", look.json(&lines))),
            false => look.text(&lines),
        };
        print(&text)?;
        let is_too_old = |line: &Line| {
            let counts = line.queue.kind() != QueueKind::Election;
            counts
                && line
                    .oldest_wait
                    .is_some_and(|wait| Some(wait) > self.fail_if_older)
        };
        Ok(
            match self.fail_if_older.is_some() && lines.iter().any(is_too_old) {
                true => Exit::Found,
                false => Exit::Done,
            },
        )
    }
}

impl Filter {
    fn shows(&self, line: &Line) -> bool {
        let any = |is_meant: &dyn Fn(&Row) -> bool| line.rows.iter().any(is_meant);
        let by = |text: &Option<String>, is_meant: &dyn Fn(&Row, &str) -> bool| {
            text.as_deref()
                .is_none_or(|text| any(&|row| is_meant(row, text)))
        };
        (!self.waiting || line.waiting > 0)
            && self
                .held_longer
                .is_none_or(|least| line.held.is_some_and(|held| held > least))
            && by(&self.owner, &|row, text| row.contender.owner.contains(text))
            && by(&self.session, &|row, id| {
                row.contender.session_id.to_string() == id
            })
            && by(&self.host, &is_at)
    }
}

/// True if the client of this contender is at this host, as far as anybody can say.
fn is_at(row: &Row, host: &str) -> bool {
    let address = row
        .address
        .as_deref()
        .and_then(|address| address.rsplit_once(':'));
    let address = address.map(|(address, _)| address.trim_matches(['[', ']']));
    let owner = &*row.contender.owner;
    let named = owner.rsplit_once('@').map_or(owner, |(_, named)| named);
    let named = named.rsplit_once(':').map_or(named, |(named, _)| named);
    address == Some(host) || named == host
}

/// An overview, and the addresses of the clients.
pub(super) struct Look {
    pub(super) overview: Overview,
    addresses: HashMap<i64, String>,
}

/// Looks at all queues below a path.
pub(super) async fn look(
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

/// A queue, and what its row shows.
pub(super) struct Line<'l> {
    queue: &'l QueueStatus,
    rows: Vec<Row>,
    /// How many contenders wait.
    waiting: usize,
    held: Option<Duration>,
    oldest_wait: Option<Duration>,
}

impl Look {
    pub(super) fn address(&self, session: i64) -> Option<String> {
        self.addresses.get(&session).cloned()
    }

    /// A line for each queue, at this time in milliseconds since 1970.
    pub(super) fn lines(&self, now: i64) -> Vec<Line<'_>> {
        let line = |queue| {
            let mut rows = Row::of(queue);
            for row in &mut rows {
                row.address = self.address(row.contender.session_id.0);
            }
            Line::new(queue, rows, now)
        };
        self.overview.queues().iter().map(line).collect()
    }

    /// The table, and what is to be said beside it.
    pub(super) fn text(&self, lines: &[Line<'_>]) -> String {
        let overview = &self.overview;
        let mut text = Vec::new();
        if !overview.exists() {
            text.push(format!("{}: does not exist", overview.path()));
        } else if lines.is_empty() {
            text.push(format!("{}: no queue is here or below", overview.path()));
        } else {
            let header = [
                "PATH",
                "KIND",
                "HOLDER",
                "HELD",
                "WAITING",
                "OLDEST WAIT",
                "MARKS",
            ];
            let mut cells = vec![header.map(str::to_owned).to_vec()];
            cells.extend(lines.iter().map(Line::cells));
            text.extend(aligned(&cells, &[4]));
        }
        text.extend(self.notes());
        text.join("\n") + "\n"
    }

    /// What concerns no single queue.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.overview.unread() {
            [] => {}
            [one] => notes.push(format!("note: {} may not be read", printable(&one.path))),
            [first, ..] => notes.push(format!(
                "note: {} znodes may not be read, nor what is below them; the first is {}",
                self.overview.unread().len(),
                printable(&first.path)
            )),
        }
        let sessions = self.overview.sessions();
        for session in sessions.iter().filter(|it| it.is_near_its_limit()) {
            notes.push(format!(
                "warning: session {} has {} ephemeral znodes, whose paths have {} bytes: the servers \
                 cannot end a session with {}",
                session.session_id,
                session.znodes,
                session.bytes,
                zookeeper_recipes_overview::LARGEST_SESSION
            ));
        }
        if !self.overview.circles().is_empty() {
            notes.push(format!(
                "warning: sessions wait for each other: `zkr deadlocks {}` shows them",
                self.overview.path()
            ));
        }
        notes
    }

    pub(super) fn json(&self, lines: &[Line<'_>]) -> Value {
        let unread = self.overview.unread().iter();
        json!({
            "path": self.overview.path(),
            "exists": self.overview.exists(),
            "queues": lines.iter().map(Line::json).collect::<Vec<_>>(),
            "unread": unread.map(|it| json!({
                "path": it.path,
                "why": it.refusal.to_string(),
            })).collect::<Vec<_>>(),
            "circles": self.overview.circles().len(),
        })
    }
}

impl<'l> Line<'l> {
    fn new(queue: &'l QueueStatus, rows: Vec<Row>, now: i64) -> Line<'l> {
        let is_waiting = |row: &&Row| matches!(row.contender.state, ContenderState::WaitsFor(_));
        let is_holding = |row: &&Row| row.contender.state == ContenderState::Holds;
        let age = |row: &Row| Duration::from_millis((now - row.created()).max(0).unsigned_abs());
        let waiting = match queue.holders() {
            // Some may not be read.
            Some(holders) if !is_renumbered(queue) => queue.len() - holders,
            _ => rows.iter().filter(is_waiting).count(),
        };
        Line {
            queue,
            waiting,
            held: rows.iter().filter(is_holding).map(age).max(),
            oldest_wait: rows.iter().filter(is_waiting).map(age).max(),
            rows,
        }
    }

    /// The first holder, and how many others hold.
    fn holder(&self) -> String {
        let mut holders = self.rows.iter();
        let is_holding = |row: &&Row| row.contender.state == ContenderState::Holds;
        let first = holders.find(is_holding);
        let others = holders.filter(is_holding).count();
        let Some(first) = first else {
            return match self.queue.holders() {
                None => "unknown".to_owned(),
                Some(_) => "-".to_owned(),
            };
        };
        let name = or_dash(match self.queue.kind() {
            QueueKind::Group => &first.contender.name,
            _ => &first.contender.owner,
        });
        match others {
            0 => name,
            _ => format!("{name} and {others} more"),
        }
    }

    fn cells(&self) -> Vec<String> {
        let time = |time: Option<Duration>| time.map_or("-".to_owned(), age_of);
        let marks: Vec<String> = self.queue.marks().iter().map(Mark::to_string).collect();
        vec![
            self.queue.path().to_owned(),
            self.kind(),
            self.holder(),
            time(self.held),
            self.waiting.to_string(),
            time(self.oldest_wait),
            marks.join(", "),
        ]
    }

    fn kind(&self) -> String {
        match (self.queue.kind(), self.queue.permits()) {
            (kind @ QueueKind::Semaphore, Some(permits)) => format!("{kind} of {permits}"),
            (kind, _) => kind.to_string(),
        }
    }

    fn json(&self) -> Value {
        let milliseconds_of = |time: Option<Duration>| {
            time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        };
        json!({
            "path": self.queue.path(),
            "kind": self.queue.kind().to_string(),
            "permits": self.queue.permits(),
            "contenders": self.queue.len(),
            "holders": self.queue.holders(),
            "waiting": self.waiting,
            "held_ms": milliseconds_of(self.held),
            "oldest_wait_ms": milliseconds_of(self.oldest_wait),
            "marks": self.queue.marks().iter().map(Mark::to_string).collect::<Vec<_>>(),
            "rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
        })
    }
}

/// True if some contenders hold or wait, and no znode records which.
fn is_renumbered(queue: &QueueStatus) -> bool {
    queue.marks().contains(&Mark::NumberChanged)
}
