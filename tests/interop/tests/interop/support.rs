//! What the tests share.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_interop::{Referee, Report, Task};
use zookeeper_recipes_suite::{Address, LONG, TestServer};

use crate::process::{Contenders, Language, all_done};

/// The contenders of one language: how many of each mode.
pub(crate) type Group<'a> = (Language, &'a [(&'a str, usize)]);

/// Lets all groups contend at once, and checks that each contender has had all its turns.
pub(crate) async fn contend(server: &TestServer, groups: &[Group<'_>], turns: usize) -> Report {
    let count = |(_, modes): &Group<'_>| modes.iter().map(|(_, count)| count).sum::<usize>();
    let contenders: usize = groups.iter().map(count).sum();
    let referee = Referee::listen(contenders).expect("a free port");
    let task = Task {
        connect_string: server.address(),
        path: "/shared",
        session_timeout: LONG,
        turns,
        // Longer than a wrong handoff takes, so that the referee sees it.
        stay: Duration::from_millis(2),
    };
    let mut running: Vec<Contenders> = groups
        .iter()
        .map(|&(language, modes)| Contenders::start(language, &task, &referee, modes))
        .collect();
    all_done(&mut running, &referee).await;
    let report = referee.report();
    assert_eq!(report.entries.len(), contenders * turns);
    report
}

/// Lets all groups contend, and checks that they exclude each other, take turns and list each other.
pub(crate) async fn share(server: &TestServer, groups: &[Group<'_>], turns: usize) -> Report {
    let report = contend(server, groups, turns).await;
    assert_eq!(report.violations, [""; 0]);
    for (place, one) in groups.iter().enumerate() {
        for other in &groups[place + 1..] {
            assert_mixed(&report, *one, *other);
        }
    }
    report
}

/// The names of the contenders of one language.
fn names(language: Language, modes: &[(&str, usize)]) -> BTreeSet<String> {
    let name = |mode: &str, number| format!("{}{mode}-{number}", language.prefix());
    modes
        .iter()
        .flat_map(|&(mode, count)| (0..count).map(move |number| name(mode, number)))
        .collect()
}

/// All contenders that the contenders of one language have listed.
fn seen_by(report: &Report, language: Language) -> BTreeSet<String> {
    report
        .seen
        .iter()
        .filter(|(observer, _)| observer.starts_with(language.prefix()))
        .flat_map(|(_, seen)| seen.iter().cloned())
        .collect()
}

/// How often a contender of `to` came in right after one of `from`.
fn handoffs(report: &Report, from: Language, to: Language) -> usize {
    let is_of = |name: &str, language: Language| name.starts_with(language.prefix());
    report
        .entries
        .windows(2)
        .filter(|pair| is_of(&pair[0].name, from) && is_of(&pair[1].name, to))
        .count()
}

/// Checks that each group has come in right after the other many times, and has listed all of its
/// contenders.
fn assert_mixed(report: &Report, one: Group<'_>, other: Group<'_>) {
    for ((from, _), (to, modes)) in [(one, other), (other, one)] {
        let handoffs = handoffs(report, from, to);
        assert!(
            handoffs > 20,
            "from {from:?} to {to:?}: {handoffs} handoffs"
        );
        let seen = seen_by(report, from);
        let unseen: Vec<_> = names(to, modes).difference(&seen).cloned().collect();
        assert!(unseen.is_empty(), "{from:?} has never listed {unseen:?}");
    }
}
