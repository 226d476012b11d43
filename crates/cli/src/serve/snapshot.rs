//! One look, as the page and the metrics show it.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::iter::once;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::{Value, json};
use zookeeper_recipes_overview::{LiveOverview, Overview, QueueKind, QueueStatus, SessionId};

use super::parts::parts;
use crate::look::notes;
use crate::queue::{Row, Summary, circle_json, json_of, now};

/// What is after the rows.
const END: &str = "]}";

/// One look with the addresses of the clients.
pub(crate) struct Snapshot {
    pub(super) live: LiveOverview,
    addresses: Arc<HashMap<i64, String>>,
    is_redacted: bool,
    shown: Arc<Shown>,
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
    /// What concerns no single queue, without the end of the object.
    head: String,
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
        addresses: Arc<HashMap<i64, String>>,
        is_redacted: bool,
        before: Option<&Snapshot>,
    ) -> Snapshot {
        let is_same = |before: &&Snapshot| {
            Arc::ptr_eq(&before.live.overview, &live.overview)
                && Arc::ptr_eq(&before.addresses, &addresses)
        };
        let shown = match before.filter(is_same) {
            Some(before) => Arc::clone(&before.shown),
            None => Arc::new(Shown::new(&live.overview, &addresses, is_redacted)),
        };
        Snapshot {
            live,
            addresses,
            is_redacted,
            shown,
        }
    }

    pub(super) fn summaries(&self) -> &[Summary] {
        &self.shown.summaries
    }

    pub(super) fn overview(&self) -> &Overview {
        &self.live.overview
    }

    pub(super) fn address(&self, session: SessionId) -> Option<String> {
        self.addresses.get(&session.0).cloned()
    }

    /// All queues and circles, in parts. The clients share the rows: they may be many, and slow.
    pub(super) fn json(&self) -> impl Iterator<Item = String> + Send + use<> {
        let rows = || self.shown.rows.join(",").into();
        let rows = Arc::clone(self.shown.all.get_or_init(rows));
        let begin = parts(self.begin(true, &[]));
        begin.chain(parts(rows)).chain(once(END.to_owned()))
    }

    /// What this look has changed since another one: all of the head, and the rows that differ.
    pub(super) fn changes_since(&self, before: &Snapshot) -> String {
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        if Arc::ptr_eq(&self.shown, &before.shown) {
            return self.begin(false, &[]) + END;
        }
        let before = &before.shown;
        let mut old = before.summaries.iter().zip(&before.rows).peekable();
        for (summary, row) in self.shown.summaries.iter().zip(&self.shown.rows) {
            loop {
                let order = old.peek().map(|(it, _)| it.path.cmp(&summary.path));
                match order {
                    Some(Ordering::Less) => gone.extend(old.next().map(|(it, _)| &*it.path)),
                    Some(Ordering::Equal) => {
                        if old.next().is_none_or(|(_, before)| before != row) {
                            changed.push(&**row);
                        }
                        break;
                    }
                    Some(Ordering::Greater) | None => {
                        changed.push(&**row);
                        break;
                    }
                }
            }
        }
        gone.extend(old.map(|(it, _)| &*it.path));
        self.begin(false, &gone) + &changed.join(",") + END
    }

    /// What is before the rows.
    fn begin(&self, is_whole: bool, gone: &[&str]) -> String {
        let mut text = self.shown.head.clone();
        let look = json!({
            "now_ms": now(),
            "age_ms": u64::try_from(self.live.age().as_millis()).unwrap_or(u64::MAX),
            "failures": self.live.failures,
            "error": self.live.error.as_ref().map(ToString::to_string),
        });
        text += &format!(
            r#","look":{look},"whole":{is_whole},"gone":{},"queues":["#,
            json!(gone)
        );
        text
    }

    /// The contenders of the queue at this path.
    pub(super) fn queue(&self, path: &str) -> Option<Value> {
        let queue = self.overview().queue(path)?;
        let mut object = json_of(queue, &self.contenders(queue));
        if self.is_redacted {
            object["job"] = Value::Null;
        }
        Some(object)
    }

    /// The contenders of a queue as they are shown.
    ///
    /// The members of a group are shown without their data: they may be the znodes of any program.
    pub(super) fn contenders(&self, queue: &QueueStatus) -> Vec<Row> {
        let hides_owners = self.is_redacted || queue.kind() == QueueKind::Group;
        let mut rows = Row::with_addresses(queue, |session| self.address(session));
        if hides_owners {
            for row in &mut rows {
                row.contender.owner = Arc::default();
            }
        }
        rows
    }
}

impl Shown {
    fn new(overview: &Overview, addresses: &HashMap<i64, String>, is_redacted: bool) -> Shown {
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
        let address = |session: SessionId| addresses.get(&session.0).cloned();
        let circles = overview.circles().iter();
        let mut circles: Value = circles.map(|it| circle_json(it, &address)).collect();
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
            head,
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
