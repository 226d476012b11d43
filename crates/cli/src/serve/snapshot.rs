//! One look, as the page and the metrics show it.

use std::iter::once;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};
use zookeeper_recipes_overview::{LiveOverview, Overview, QueueKind, QueueStatus};

use super::parts::parts;
use crate::addresses::Addresses;
use crate::look::notes;
use crate::queue::{Row, Summary, circle_json, json_of, now};

/// What is after the rows.
const END: &str = "]}";

/// One look with the addresses of the clients.
pub(crate) struct Snapshot {
    pub(super) live: LiveOverview,
    pub(super) addresses: Addresses,
    showing: Showing,
    shown: Arc<Shown>,
}

/// How looks are shown.
#[derive(Clone)]
pub(crate) struct Showing {
    /// True if the data of contenders are hidden.
    pub(crate) is_redacted: bool,
    /// How a shell runs `zkr` for the same servers.
    pub(crate) zkr: Arc<str>,
}

/// What is shown of an overview. Looks that have found no change share it.
struct Shown {
    /// In the order of their paths, as the rows are.
    summaries: Vec<Summary>,
    /// The row of each queue as JSON. It has times and no ages, so that it is equal in two looks if
    /// nothing has changed.
    rows: Vec<String>,
    /// All rows, for the clients that ask for them.
    all: OnceLock<Arc<str>>,
    /// The number of the snapshots before that differ, and what has changed since the last of them.
    number: u64,
    changes: Changes,
    /// What concerns no single queue, without the end of the object.
    head: String,
}

/// The paths that have gone, as JSON, and the rows that differ.
#[derive(Clone)]
struct Changes {
    gone: String,
    rows: Arc<str>,
}

/// The row of a queue. Times are in milliseconds since 1970, by the clock of the servers.
#[derive(Serialize)]
struct QueueRow<'s> {
    path: &'s str,
    kind: String,
    /// The first holder. `None` if it is not shown.
    holder: Option<&'s str>,
    holders: Option<usize>,
    contenders: usize,
    waiting: usize,
    held_since_ms: Option<i64>,
    waits_since_ms: Option<i64>,
    marks: Vec<String>,
    in_circle: bool,
    /// The order by trouble: the larger number first, then the older wait.
    trouble: u8,
    trouble_since_ms: Option<i64>,
}

impl Snapshot {
    /// What a look has shown, with these addresses. `before` is the snapshot of an earlier one.
    pub(crate) fn new(
        live: LiveOverview,
        addresses: Addresses,
        showing: Showing,
        before: Option<&Snapshot>,
    ) -> Snapshot {
        let is_same = |before: &&Snapshot| {
            Arc::ptr_eq(&before.live.overview, &live.overview)
                && before.addresses.is_same(&addresses)
        };
        let shown = match before.filter(is_same) {
            Some(before) => Arc::clone(&before.shown),
            None => {
                let mut shown = Shown::new(&live.overview, &addresses, &showing);
                if let Some(before) = before {
                    shown.number = before.shown.number + 1;
                    shown.changes = shown.changes_since(&before.shown);
                }
                Arc::new(shown)
            }
        };
        Snapshot {
            live,
            addresses,
            showing,
            shown,
        }
    }

    pub(super) fn summaries(&self) -> &[Summary] {
        &self.shown.summaries
    }

    pub(super) fn overview(&self) -> &Overview {
        &self.live.overview
    }

    /// All queues and circles, in parts. The clients share the rows: they may be many, and slow.
    pub(super) fn json(&self) -> impl Iterator<Item = String> + Send + use<> {
        let rows = || self.shown.rows.join(",").into();
        let rows = Arc::clone(self.shown.all.get_or_init(rows));
        let begin = parts(self.begin(true, "[]"));
        begin.chain(parts(rows)).chain(once(END.to_owned()))
    }

    /// What this look has changed since another one: all of the head, and the rows that differ.
    ///
    /// The clients share the changes since the look before. One that has missed looks has its own.
    pub(super) fn changes_since(
        &self,
        before: &Snapshot,
    ) -> impl Iterator<Item = String> + Send + use<> {
        let changes = match self.shown.number - before.shown.number {
            0 => Changes::none(),
            1 => self.shown.changes.clone(),
            _ => self.shown.changes_since(&before.shown),
        };
        let begin = parts(self.begin(false, &changes.gone));
        begin.chain(parts(changes.rows)).chain(once(END.to_owned()))
    }

    /// What is before the rows.
    fn begin(&self, is_whole: bool, gone: &str) -> String {
        let mut text = self.shown.head.clone();
        let look = json!({
            "now_ms": now(),
            "age_ms": u64::try_from(self.live.age().as_millis()).unwrap_or(u64::MAX),
            "failures": self.live.failures,
            "error": self.live.error.as_ref().map(ToString::to_string),
        });
        text += &format!(r#","look":{look},"whole":{is_whole},"gone":{gone},"queues":["#);
        text
    }

    /// The contenders of the queue at this path.
    pub(super) fn queue(&self, path: &str) -> Option<Value> {
        let queue = self.overview().queue(path)?;
        let mut object = json_of(queue, &self.contenders(queue));
        if self.showing.is_redacted {
            object["job"] = Value::Null;
        }
        Some(object)
    }

    /// The contenders of a queue as they are shown.
    ///
    /// The members of a group are shown without their data: they may be the znodes of any program.
    pub(super) fn contenders(&self, queue: &QueueStatus) -> Vec<Row> {
        let hides_owners = self.showing.is_redacted || queue.kind() == QueueKind::Group;
        let mut rows = Row::of(queue, &self.addresses);
        if hides_owners {
            for row in &mut rows {
                row.contender.owner = Arc::default();
            }
        }
        rows
    }
}

impl Shown {
    fn new(overview: &Overview, addresses: &Addresses, showing: &Showing) -> Shown {
        let is_redacted = showing.is_redacted;
        let summaries = Summary::of_all(overview);
        let row = |summary: &Summary| {
            let shows_holder = !is_redacted || summary.kind == QueueKind::Group;
            let row = QueueRow {
                path: &summary.path,
                kind: summary.kind_text(),
                holder: shows_holder.then_some(&summary.holder),
                holders: summary.holders,
                contenders: summary.contenders,
                waiting: summary.waiting,
                held_since_ms: summary.held_since,
                waits_since_ms: summary.waits_since,
                marks: summary.mark_texts().collect(),
                in_circle: summary.is_in_circle,
                trouble: summary.trouble() as u8,
                trouble_since_ms: summary.troubling_wait(),
            };
            // Its maps have no keys but texts, so that it can always be written.
            serde_json::to_string(&row).unwrap_or_default()
        };
        let rows = summaries.iter().map(row).collect();
        let circles = overview.circles().iter();
        let mut circles: Value = circles
            .map(|it| circle_json(it, addresses, &showing.zkr))
            .collect();
        if is_redacted {
            hide_owners(&mut circles);
        }
        let head = json!({
            "path": overview.path(),
            "exists": overview.exists(),
            "redacted": is_redacted,
            "circles": circles,
            "notes": notes(overview),
        });
        let mut head = head.to_string();
        head.pop();
        Shown {
            summaries,
            rows,
            all: OnceLock::new(),
            number: 0,
            changes: Changes::none(),
            head,
        }
    }
}

impl Shown {
    fn changes_since(&self, before: &Shown) -> Changes {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        let mut old = before.summaries.iter().zip(&before.rows).peekable();
        for (summary, row) in self.summaries.iter().zip(&self.rows) {
            while let Some((it, _)) = old.next_if(|(it, _)| it.path < summary.path) {
                gone.push(&*it.path);
            }
            let known = old.next_if(|(it, _)| it.path == summary.path);
            if known.is_none_or(|(_, before)| before != row) {
                changed.push(&**row);
            }
        }
        gone.extend(old.map(|(it, _)| &*it.path));
        Changes {
            gone: json!(gone).to_string(),
            rows: changed.join(",").into(),
        }
    }
}

impl Changes {
    fn none() -> Changes {
        Changes {
            gone: "[]".to_owned(),
            rows: Arc::default(),
        }
    }
}

/// Removes the owners of the contenders in these circles.
fn hide_owners(circles: &mut Value) {
    let circles = circles.as_array_mut().into_iter().flatten();
    let waits = circles.filter_map(|it| it["waits"].as_array_mut());
    for wait in waits.flatten() {
        for contender in ["waiter", "waits_for"] {
            wait[contender]["owner"] = json!("");
        }
    }
}
