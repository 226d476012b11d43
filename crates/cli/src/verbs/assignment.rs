//! `zkr assignment`: who owns which partition, what moves, and what operators order.

use std::fmt::Write;

use clap::Args;
use serde_json::{Value, json};
use zookeeper_recipes_assignment::{
    AssignmentOperator, AssignmentStatus, PartitionStatus, WorkerStatus,
};
use zookeeper_recipes_core::Session;

use crate::connecting::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::plain_text::json_text;
use crate::queue::{age, milliseconds, now};

/// How many partitions fit on a screen.
const SCREEN: usize = 20;
/// The length of the longest bar.
const BAR: usize = 40;

/// Show which worker owns which partition, or direct the workers.
///
/// An order applies until it is revoked. The leader of the workers follows it as soon as it reads
/// it. No order gives a partition two owners.
#[derive(Debug, Args)]
pub(crate) struct Assignment {
    /// The path of the assignment.
    path: String,

    /// Show all partitions, not only the first ones.
    #[arg(long)]
    all: bool,

    /// Print all as one JSON object, for scripts.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    order: Order,

    /// The worker that the partition moves to.
    #[arg(long, value_name = "WORKER", requires = "partition")]
    to: Option<String>,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Order {
    /// Move all partitions off a worker, and give it none. The worker need not be running.
    #[arg(long, value_name = "WORKER")]
    drain: Option<String>,

    /// Give partitions to a drained worker again.
    #[arg(long, value_name = "WORKER")]
    undrain: Option<String>,

    /// Move a partition to the worker of --to, and pin it there.
    #[arg(
        long = "move",
        id = "partition",
        value_name = "PARTITION",
        requires = "to"
    )]
    partition: Option<String>,

    /// Let a pinned partition be balanced again.
    #[arg(long, value_name = "PARTITION")]
    unpin: Option<String>,

    /// Stop moving the partitions of live workers.
    #[arg(long)]
    freeze: bool,

    /// Resume moving partitions.
    #[arg(long)]
    thaw: bool,
}

impl Assignment {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let shown = connection.within(async |session| self.in_session(session).await);
        print(&shown.await?)?;
        Ok(Exit::Done)
    }

    async fn in_session(&self, session: &Session) -> Result<String, Failure> {
        let operator = AssignmentOperator::new(session, &self.path)?;
        let status = operator.status().await?;
        if status.partitions.is_empty() {
            let problem = "has no partitions: it is not an assignment";
            return Err(Failure::usage(format!("{} {problem}", self.path)));
        }
        self.follow(&operator, &status).await?;
        let mut status = operator.status().await?;
        status.partitions.sort_by_cached_key(|it| by_number(&it.id));
        status.workers.sort_by_cached_key(|it| by_number(&it.id));
        Ok(match self.json {
            true => json_text(&format!("{:#}\n", json_of(&status))),
            false => self.text(&status),
        })
    }

    /// Gives the order, if there is one.
    async fn follow(
        &self,
        operator: &AssignmentOperator,
        status: &AssignmentStatus,
    ) -> Result<(), Failure> {
        let order = &self.order;
        if let Some(worker) = &self.to {
            let workers = &mut status.workers.iter();
            if !workers.any(|it| it.id == *worker) {
                let problem = "is not a worker of this assignment";
                return Err(Failure::usage(format!("{worker} {problem}")));
            }
        }
        if let Some(partition) = &order.partition {
            if !status.partitions.iter().any(|it| it.id == *partition) {
                let problem = "is not a partition of this assignment";
                return Err(Failure::usage(format!("{partition} {problem}")));
            }
        }
        if let Some(worker) = &order.drain {
            operator.drain(worker).await?;
        } else if let Some(worker) = &order.undrain {
            operator.undrain(worker).await?;
        } else if let (Some(partition), Some(worker)) = (&order.partition, &self.to) {
            operator.pin(partition, worker).await?;
        } else if let Some(partition) = &order.unpin {
            operator.unpin(partition).await?;
        } else if order.freeze {
            operator.freeze().await?;
        } else if order.thaw {
            operator.thaw().await?;
        }
        Ok(())
    }

    fn text(&self, status: &AssignmentStatus) -> String {
        let partitions = &status.partitions;
        let mut text = overview(&self.path, status).join("\n") + "\n";
        let shown = if self.all { partitions.len() } else { SCREEN };
        for partition in partitions.iter().take(shown) {
            let _ = writeln!(text, "{}", line(partition));
        }
        if partitions.len() > shown {
            let _ = writeln!(
                text,
                "and {} more; --all shows them",
                partitions.len() - shown
            );
        }
        text
    }
}

/// A key that sorts `p2` before `p10`: each run of digits is ordered by its number.
fn by_number(id: &str) -> (Vec<(String, u64)>, String) {
    let mut parts = vec![(String::new(), 0_u64)];
    for letter in id.chars() {
        let last = parts.len() - 1;
        let (text, number) = &mut parts[last];
        match letter.to_digit(10) {
            Some(digit) => {
                if !text.ends_with('0') {
                    text.push('0');
                }
                *number = number.saturating_mul(10).saturating_add(digit.into());
            }
            None if text.ends_with('0') => parts.push((letter.to_string(), 0)),
            None => text.push(letter),
        }
    }
    (parts, id.to_owned())
}

/// A line for all, and a bar for each worker.
pub(crate) fn overview(path: &str, status: &AssignmentStatus) -> Vec<String> {
    let partitions = &status.partitions;
    let mut workers: Vec<&WorkerStatus> = status.workers.iter().collect();
    workers.sort_by_cached_key(|worker| by_number(&worker.id));
    let count =
        |is: &dyn Fn(&PartitionStatus) -> bool| partitions.iter().filter(|it| is(it)).count();
    let head = format!(
        "{path}: {} partitions, {} workers; {} without an owner, {} to move{}",
        partitions.len(),
        workers.iter().filter(|worker| worker.is_there).count(),
        count(&|it| it.owner.is_none()),
        count(&PartitionStatus::moves),
        if status.frozen { "; frozen" } else { "" },
    );
    let owned_by =
        |it: &PartitionStatus, id: &str| it.owner.as_ref().is_some_and(|owner| owner.worker == id);
    let loads = workers.iter().map(|worker| Load {
        leave: count(&|it| it.moves() && owned_by(it, &worker.id)),
        come: count(&|it| it.moves() && it.planned.as_deref() == Some(&worker.id)),
        worker,
    });
    let loads: Vec<Load<'_>> = loads.collect();
    let width = workers.iter().map(|it| shown_id(it).chars().count()).max();
    let width = width.unwrap_or(0);
    let bars = loads.iter().map(|it| it.line(width, partitions.len()));
    std::iter::once(head).chain(bars).collect()
}

fn shown_id(worker: &WorkerStatus) -> String {
    worker.id.escape_debug().to_string()
}

/// A worker, and how many of its partitions move.
struct Load<'a> {
    worker: &'a WorkerStatus,
    /// Partitions that it owns and another worker should own.
    leave: usize,
    /// Partitions that it should own and does not.
    come: usize,
}

impl Load<'_> {
    /// The bar of a worker: `#` for what it owns and keeps, `-` for what leaves, `+` for what comes.
    ///
    /// A bar of the full length is all partitions.
    fn line(&self, width: usize, all: usize) -> String {
        let Load {
            worker,
            leave,
            come,
        } = self;
        let part = |sign: &str, number: usize| sign.repeat((number * BAR).div_ceil(all.max(1)));
        let keeps = worker.owned.saturating_sub(*leave);
        let bar = part("#", keeps) + &part("-", *leave) + &part("+", *come);
        let mut line = format!(
            "  {:width$}  {bar} {} of {all}",
            shown_id(worker),
            worker.owned
        );
        for (number, verb) in [(leave, "leave"), (come, "come")] {
            if *number > 0 {
                line += &format!(", {number} {verb}");
            }
        }
        line + &notes(worker)
    }
}

/// What is special about a worker.
fn notes(worker: &WorkerStatus) -> String {
    let mut notes = String::new();
    if !worker.address.is_empty() {
        notes += &format!(", {}", worker.address.escape_debug());
    }
    if worker.drained {
        notes += ", drained";
    }
    if worker.set_aside {
        notes += ", set aside: it makes no progress";
    }
    if !worker.is_there {
        notes += ", gone";
    }
    notes
}

fn line(partition: &PartitionStatus) -> String {
    let id = partition.id.escape_debug();
    let mut line = match &partition.owner {
        Some(owner) => format!(
            "{id}: {}, token {}, for {}",
            owner.worker.escape_debug(),
            owner.fencing_token,
            age(milliseconds(owner.since), now()),
        ),
        None => format!("{id}: nobody"),
    };
    match &partition.planned {
        Some(worker) if partition.moves() => {
            line += &format!(", to {}", worker.escape_debug());
        }
        _ => {}
    }
    if let Some(worker) = &partition.pinned {
        line += &format!(", pinned to {}", worker.escape_debug());
    }
    line
}

pub(crate) fn json_of(status: &AssignmentStatus) -> Value {
    let partition = |it: &PartitionStatus| {
        let owner = it.owner.as_ref().map(|owner| {
            json!({
                "worker": owner.worker,
                "address": owner.address,
                "fencing_token": owner.fencing_token.get(),
                "since_ms": milliseconds(owner.since),
            })
        });
        json!({
            "id": it.id,
            "weight": it.weight,
            "owner": owner,
            "planned": it.planned,
            "pinned": it.pinned,
            "moves": it.moves(),
        })
    };
    let worker = |it: &WorkerStatus| {
        json!({
            "id": it.id,
            "is_there": it.is_there,
            "address": it.address,
            "capacity": it.capacity,
            "zone": it.zone,
            "drained": it.drained,
            "set_aside": it.set_aside,
            "owned": it.owned,
            "planned": it.planned,
        })
    };
    json!({
        "frozen": status.frozen,
        "workers": status.workers.iter().map(worker).collect::<Vec<_>>(),
        "partitions": status.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
#[path = "../../tests/unit/assignment.rs"]
mod tests;
