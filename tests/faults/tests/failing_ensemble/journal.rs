//! What the contenders for one recipe say, and what comes of judging it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zookeeper_recipes_core::{
    Error, FencingToken, HoldView, LossReason, NodePath, SessionEnd, SessionId,
};
use zookeeper_recipes_schedules::Figures;
use zookeeper_recipes_suite::TestedRecipe;
use zookeeper_recipes_testkit::history::{History, Violation};

use crate::settings::SESSION_TIMEOUT;

/// Tasks that are never later than this are not the cause if a loss is reported too late:
/// there is much more time between a loss and the next grant.
const NOT_TO_BLAME: Duration = SESSION_TIMEOUT.checked_div(12).expect("twelve is not zero");

/// A hold that was lost.
#[derive(Debug)]
struct Loss {
    who: String,
    weight: u64,
    /// When its owner learned of it.
    marked: Option<Instant>,
    /// When a contender came to hold that could not have held beside it.
    succeeded: Option<Instant>,
}

#[derive(Debug)]
struct Record {
    history: History,
    figures: Figures,
    grants: Vec<Instant>,
    losses: BTreeMap<u64, Loss>,
    /// Sessions that must have ended, or what was said of them makes no sense.
    ended: Vec<(SessionId, String)>,
    violations: Vec<String>,
}

/// The account of one recipe.
#[derive(Debug)]
pub(crate) struct Journal {
    recipe: TestedRecipe,
    path: NodePath,
    accepted: String,
    staying: AtomicUsize,
    /// What each contender is about, for when it hangs.
    doing: Mutex<BTreeMap<String, String>>,
    record: Mutex<Record>,
}

impl Journal {
    pub(crate) fn new(recipe: TestedRecipe) -> Journal {
        let record = Record {
            history: History::new(recipe.capacity),
            figures: Figures::default(),
            grants: Vec::new(),
            losses: BTreeMap::new(),
            ended: Vec::new(),
            violations: Vec::new(),
        };
        Journal {
            recipe,
            path: NodePath::new(&format!("/faults/{}/held", recipe.name)).expect("a good path"),
            accepted: format!("/accepted/{}", recipe.name),
            staying: AtomicUsize::new(0),
            doing: Mutex::default(),
            record: Mutex::new(record),
        }
    }

    pub(crate) fn recipe(&self) -> &TestedRecipe {
        &self.recipe
    }

    pub(crate) fn path(&self) -> &NodePath {
        &self.path
    }

    /// The znode whose children the contenders are.
    pub(crate) fn directory(&self) -> String {
        match self.recipe.queues {
            true => self.path.to_string(),
            false => format!("/faults/{}", self.recipe.name),
        }
    }

    /// The znode whose children are the guarded writes that the servers have accepted.
    pub(crate) fn accepted(&self) -> &str {
        &self.accepted
    }

    /// What a guarded write creates there, without the number that the server appends.
    pub(crate) fn accepted_write(&self, weight: u64, token: FencingToken) -> String {
        format!("{}/{token}-{weight}-", self.accepted)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.record().figures);
    }

    pub(crate) fn violated(&self, text: String) {
        self.record().violations.push(text);
    }

    /// A hold begins now.
    pub(crate) fn granted(&self, who: &str, weight: u64, hold: &HoldView) -> u64 {
        let mut record = self.record();
        let Record {
            history,
            figures,
            grants,
            losses,
            ..
        } = &mut *record;
        let now = Instant::now();
        grants.push(now);
        figures.grants += 1;
        for (number, other) in history.held() {
            if !other.hold.is_held() && history.excludes(other.weight, weight) {
                // Its owner may not know yet, which would be too late.
                losses.entry(number).or_insert_with(|| Loss {
                    who: other.who.clone(),
                    weight: other.weight,
                    marked: None,
                    succeeded: None,
                });
            }
        }
        for loss in losses.values_mut() {
            if history.excludes(loss.weight, weight) {
                loss.succeeded.get_or_insert(now);
            }
        }
        let (number, violations) = history.granted(who, weight, hold);
        record.found(violations);
        number
    }

    /// The owner of a hold has learned that it is lost.
    pub(crate) fn marked(&self, number: u64, reason: LossReason) {
        let now = Instant::now();
        let mut record = self.record();
        record.figures.losses += 1;
        let held = record
            .history
            .held()
            .find(|(other, _)| *other == number)
            .map(|(_, held)| held.clone());
        let Some(held) = held else { return };
        if held.hold.is_held() {
            let text = format!("lost, and still held: {held:?}");
            record.violations.push(text);
        }
        let loss = record.losses.entry(number).or_insert_with(|| Loss {
            who: held.who.clone(),
            weight: held.weight,
            marked: None,
            succeeded: None,
        });
        loss.marked.get_or_insert(now);
        record.explain(&held.who, reason, held.hold.session_id());
    }

    /// The owner of a hold lets go of it: from here on it does not say that it holds.
    pub(crate) fn letting_go(&self, number: u64) {
        let mut record = self.record();
        let held = record.history.letting_go(number);
        let is_reported = record
            .losses
            .get(&number)
            .is_some_and(|loss| loss.marked.is_some());
        if !is_reported {
            // The hold was lost in the very moment in which its owner let go of it.
            record.losses.remove(&number);
        }
        drop(record);
        drop(held);
    }

    /// A write arrives at a store that refuses old tokens.
    pub(crate) fn stored(&self, number: u64, weight: u64, token: FencingToken) {
        let mut record = self.record();
        let (accepted, violation) = record.history.stored(number, weight, token);
        if !accepted {
            record.figures.stale_tokens += 1;
        }
        record.found(violation);
    }

    /// The server has refused a guarded write since the holder's znode was gone.
    pub(crate) fn refused(&self, number: u64) {
        let mut record = self.record();
        record.figures.refused_writes += 1;
        let violation = record.history.guarded_write_refused(number);
        record.found(violation);
    }

    /// An attempt, or a release, has failed with this.
    pub(crate) fn failed(&self, who: &str, error: &Error) {
        let mut record = self.record();
        record.figures.errors += 1;
        match error {
            Error::DeadlineElapsed { .. } | Error::Disconnected { .. } => {}
            Error::SessionOver {
                session,
                reason: SessionEnd::Expired,
                ..
            } => record.ended.push((*session, format!("{who}: {error}"))),
            Error::ContenderDeleted { session, .. } => {
                record.ended.push((*session, format!("{who}: {error}")));
            }
            Error::Lost {
                session, reason, ..
            } => record.explain(who, *reason, *session),
            _ => record.violations.push(format!("{who}: {error}")),
        }
    }

    /// Notes what a contender does from now on.
    pub(crate) fn is_about(&self, who: &str, what: impl Into<String>) {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        doing.insert(who.to_owned(), what.into());
    }

    /// A contender has ended.
    pub(crate) fn is_done(&self, who: &str) {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        doing.remove(who);
    }

    /// What the contenders do that have not ended.
    pub(crate) fn unfinished(&self) -> String {
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = doing.iter().map(|(who, what)| format!("  {who}: {what}\n"));
        lines.collect()
    }

    /// Counts a holder that stays until its hold is lost.
    pub(crate) fn stay(&self) -> Staying<'_> {
        self.staying.fetch_add(1, Ordering::Relaxed);
        Staying(&self.staying)
    }

    pub(crate) fn staying(&self) -> usize {
        self.staying.load(Ordering::Relaxed)
    }

    /// How many losses have been marked.
    pub(crate) fn losses(&self) -> u64 {
        self.record().figures.losses
    }

    pub(crate) fn first_grant_after(&self, moment: Instant) -> Option<Instant> {
        let record = self.record();
        let first = record.grants.partition_point(|grant| *grant <= moment);
        record.grants.get(first).copied()
    }

    /// Takes in the guarded writes that the servers have accepted.
    pub(crate) fn read_accepted(&self, names: Vec<String>) {
        let mut writes: Vec<(u64, i64, u64)> = names
            .iter()
            .map(|name| {
                let mut words = name.split('-');
                let mut next = || words.next().and_then(|word| word.parse::<i64>().ok());
                match (next(), next(), next()) {
                    (Some(token), Some(weight), Some(number)) => {
                        (number.unsigned_abs(), token, weight.unsigned_abs())
                    }
                    _ => panic!("{name}: none of ours"),
                }
            })
            .collect();
        writes.sort_unstable();
        let mut record = self.record();
        if (writes.len() as u64) < record.figures.guarded_writes {
            let text = format!(
                "{} guarded writes were accepted, and {} are there",
                record.figures.guarded_writes,
                writes.len(),
            );
            record.violations.push(text);
        }
        record.figures.guarded_writes = writes.len() as u64;
        for (_, token, weight) in writes {
            let token = FencingToken::from(token);
            let violation = record.history.guarded_write_committed(weight, token);
            record.found(violation);
        }
    }

    /// All violations.
    ///
    /// `live` are the sessions that have not ended, and `lag` is how late a task was at the worst. Tasks
    /// report losses to their owners.
    pub(crate) fn judge(&self, live: &[SessionId], lag: Duration) -> Vec<String> {
        let record = self.record();
        let name = self.recipe.name;
        let mut violations = record.violations.clone();
        for loss in record.losses.values() {
            let Some(succeeded) = loss.succeeded else {
                continue;
            };
            let late = match loss.marked {
                Some(marked) => marked.saturating_duration_since(succeeded),
                None => Duration::MAX,
            };
            if !late.is_zero() && lag < NOT_TO_BLAME {
                let text = format!(
                    "{} learned of its loss {late:?} after the next grant",
                    loss.who
                );
                violations.push(text);
            }
        }
        for (session, said) in &record.ended {
            if live.contains(session) {
                violations.push(format!("{session} has not ended: {said}"));
            }
        }
        violations
            .iter()
            .map(|violation| format!("{name}: {violation}"))
            .collect()
    }

    /// Whether enough has happened for the lack of violations to mean something.
    pub(crate) fn is_telling(&self) -> bool {
        let record = self.record();
        let figures = &record.figures;
        let happened = [figures.losses, figures.stale_tokens];
        // A lock of one znode has no guarded writes.
        let written = [figures.guarded_writes, figures.refused_writes];
        let is_written = !self.recipe().queues || written.iter().all(|count| *count > 0);
        let succeeded = record.losses.values().any(|loss| loss.succeeded.is_some());
        succeeded && is_written && happened.iter().all(|count| *count > 0)
    }
}

/// A holder that stays, until this is dropped.
pub(crate) struct Staying<'a>(&'a AtomicUsize);

impl Drop for Staying<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Record {
    fn found(&mut self, violations: impl IntoIterator<Item = Violation>) {
        let violations = violations.into_iter();
        self.violations
            .extend(violations.map(|violation| violation.to_string()));
    }

    /// The test deletes no znode by hand. So a znode goes only with its session.
    fn explain(&mut self, who: &str, reason: LossReason, session: SessionId) {
        let said = format!("{who}: {reason}");
        match reason {
            LossReason::LeaseElapsed => {}
            LossReason::Session(SessionEnd::Expired) | LossReason::DeletedOrSessionOver => {
                self.ended.push((session, said));
            }
            _ => self.violations.push(said),
        }
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.record();
        let figures = &record.figures;
        write!(
            formatter,
            "{:<16} {} grants; {} lost, {} of them before a successor was granted",
            self.recipe.name,
            figures.grants,
            figures.losses,
            record
                .losses
                .values()
                .filter(|loss| loss.succeeded.is_some())
                .count(),
        )?;
        let closest = record
            .losses
            .values()
            .filter_map(|loss| Some((loss.marked?, loss.succeeded?)))
            .map(|(marked, succeeded)| succeeded.saturating_duration_since(marked).as_secs_f64())
            .min_by(f64::total_cmp);
        if let Some(closest) = closest {
            write!(formatter, " by {closest:.2} s and more")?;
        }
        write!(
            formatter,
            "; {} attempts failed, {} dropped; {} guarded writes, {} refused; {} stale tokens refused",
            figures.errors,
            figures.aborted,
            figures.guarded_writes,
            figures.refused_writes,
            figures.stale_tokens,
        )
    }
}
