//! The metrics, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::snapshot::Snapshot;
use crate::queue::{Sort, Summary, elapsed, milliseconds, now};

/// What is added over the queues of a kind.
#[derive(Default)]
struct OfKind {
    queues: usize,
    holders: usize,
    waiters: usize,
    oldest_wait: Duration,
    oldest_holder: Duration,
}

/// The lines of the metrics.
struct Text(String);

impl Text {
    /// Begins a metric.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a text does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{}\"", escaped(text)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.metric(name, "gauge", help);
        self.sample(name, &[], value);
    }
}

/// The value of a label, as the format writes it.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => escaped += r"\\",
            '"' => escaped += "\\\"",
            '\n' => escaped += r"\n",
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A number of things.
fn count(number: usize) -> f64 {
    // Exact below 2^53.
    number as f64
}

impl Snapshot {
    /// The metrics of the last look. The paths are those of so many queues, the worst ones.
    pub(super) fn metrics(&self, paths: usize) -> String {
        let mut text = Text(String::new());
        let now = now();
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        text.metric("zkr_build_info", "gauge", "The version of zkr.");
        text.sample("zkr_build_info", &version, 1.0);
        self.looks(&mut text);
        self.circles(&mut text, now);
        self.kinds(&mut text, now);
        self.paths(&mut text, now, paths);
        text.0
    }

    fn looks(&self, text: &mut Text) {
        let age = self.live.age();
        let help = "The age of what is shown.";
        text.gauge("zkr_look_age_seconds", help, age.as_secs_f64());
        let name = "zkr_look_failures_total";
        text.metric(name, "counter", "Looks that have failed.");
        text.sample(name, &[], self.live.failures as f64);
        let unread = self.overview().unread().len();
        let help = "Znodes that may not be listed, so that nothing below them is shown.";
        text.gauge("zkr_unread_znodes", help, count(unread));
        let sessions = self.overview().sessions();
        let help = "ZooKeeper sessions with a contender or a member.";
        text.gauge("zkr_sessions", help, count(sessions.len()));
        let full = sessions.iter().filter(|it| it.is_near_its_limit()).count();
        let help = "Sessions whose znodes fill half of what the servers can end, or more.";
        text.gauge("zkr_sessions_near_limit", help, count(full));
    }

    fn circles(&self, text: &mut Text, now: i64) {
        let circles = self.overview().circles();
        let help = "Circles of sessions that wait for each other: possible deadlocks.";
        text.gauge("zkr_circles", help, count(circles.len()));
        let ages = circles
            .iter()
            .map(|it| elapsed(milliseconds(it.since()), now));
        let oldest = ages.max().unwrap_or_default();
        let help = "The age of the oldest circle. 0 if there is none.";
        text.gauge("zkr_oldest_circle_seconds", help, oldest.as_secs_f64());
    }

    fn kinds(&self, text: &mut Text, now: i64) {
        let mut kinds: BTreeMap<String, OfKind> = BTreeMap::new();
        for summary in self.summaries() {
            let kind = kinds.entry(summary.kind.to_string()).or_default();
            kind.queues += 1;
            kind.holders += summary.holders.unwrap_or_default();
            kind.waiters += summary.waiting;
            kind.oldest_wait = kind.oldest_wait.max(age(summary.waits_since, now));
            kind.oldest_holder = kind.oldest_holder.max(age(summary.held_since, now));
        }
        type Value = fn(&OfKind) -> f64;
        let metrics: [(&str, &str, Value); 5] = [
            ("zkr_queues", "Queues with a contender.", |it| {
                count(it.queues)
            }),
            (
                "zkr_holders",
                "Contenders that hold, as far as it is known.",
                |it| count(it.holders),
            ),
            ("zkr_waiters", "Contenders that wait.", |it| {
                count(it.waiters)
            }),
            (
                "zkr_oldest_wait_seconds",
                "The age of the oldest contender that waits. 0 if none waits.",
                |it| it.oldest_wait.as_secs_f64(),
            ),
            (
                "zkr_oldest_holder_age_seconds",
                "The age of the oldest contender that holds, with its wait. 0 if none holds.",
                |it| it.oldest_holder.as_secs_f64(),
            ),
        ];
        for (name, help, value) in metrics {
            text.metric(name, "gauge", help);
            for (kind, of_kind) in &kinds {
                text.sample(name, &[("kind", kind)], value(of_kind));
            }
        }
    }

    fn paths(&self, text: &mut Text, now: i64, paths: usize) {
        let mut worst: Vec<&Summary> = self.summaries().iter().collect();
        Sort::Trouble.order(&mut worst);
        worst.truncate(paths);
        type Value = fn(&Summary, i64) -> f64;
        let metrics: [(&str, &str, Value); 3] = [
            (
                "zkr_queue_waiters",
                "Contenders that wait, of the queues in the most trouble.",
                |it, _| count(it.waiting),
            ),
            (
                "zkr_queue_oldest_wait_seconds",
                "The age of the oldest contender that waits, of these queues.",
                |it, now| age(it.waits_since, now).as_secs_f64(),
            ),
            (
                "zkr_queue_holder_age_seconds",
                "The age of the oldest contender that holds, with its wait, of these queues.",
                |it, now| age(it.held_since, now).as_secs_f64(),
            ),
        ];
        for (name, help, value) in metrics {
            text.metric(name, "gauge", help);
            for summary in &worst {
                let kind = summary.kind.to_string();
                let labels = [("path", &*summary.path), ("kind", &*kind)];
                text.sample(name, &labels, value(summary, now));
            }
        }
    }
}

fn age(since: Option<i64>, now: i64) -> Duration {
    since.map_or(Duration::ZERO, |since| elapsed(since, now))
}
