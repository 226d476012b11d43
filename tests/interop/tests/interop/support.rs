//! What the tests share.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_interop::{Referee, Report, Task};
use zookeeper_recipes_suite::{Address, LONG, TestServer};

use crate::peers::available;
use crate::process::{Contenders, Language, all_done};

/// The contenders of one language: how many of each mode.
pub(crate) type Group<'a> = (Language, &'a [(&'a str, usize)]);

/// Lets all groups contend at once, and checks that each contender has had all its turns. `None` if
/// the machine lacks one of the libraries.
pub(crate) async fn contend(
    server: &TestServer,
    suite: &str,
    groups: &[Group<'_>],
    turns: usize,
) -> Option<Report> {
    let peers = groups.iter().filter_map(|(language, _)| language.peer());
    if !available(suite, &peers.collect::<Vec<_>>()) {
        return None;
    }
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
    Some(report)
}

/// Lets all groups contend, and checks that they exclude each other, take turns and list each other.
pub(crate) async fn share(
    server: &TestServer,
    suite: &str,
    groups: &[Group<'_>],
    turns: usize,
) -> Option<Report> {
    let report = contend(server, suite, groups, turns).await?;
    assert_eq!(report.violations, [""; 0]);
    for &(language, _) in groups {
        assert_mixed(&report, language);
        let seen = seen_by(&report, language);
        for &(other, modes) in groups.iter().filter(|(other, _)| *other != language) {
            let unseen: Vec<_> = names(other, modes).difference(&seen).cloned().collect();
            assert!(
                unseen.is_empty(),
                "{language:?} has never listed {unseen:?}"
            );
        }
    }
    Some(report)
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

/// Checks that contenders of this language came in right after others, and others after them, many
/// times.
///
/// The queue is first in, first out, and each contender enters again at once. So the order of the
/// first round stays, and among three languages one of them may never follow a certain other.
fn assert_mixed(report: &Report, language: Language) {
    let is_own = |name: &str| name.starts_with(language.prefix());
    let pairs = report.entries.windows(2);
    let changes: Vec<bool> = pairs
        .map(|pair| (is_own(&pair[0]), is_own(&pair[1])))
        .filter(|(before, after)| before != after)
        .map(|(_, after)| after)
        .collect();
    let to_own = changes.iter().filter(|&&to_own| to_own).count();
    let to_others = changes.len() - to_own;
    assert!(
        to_own.min(to_others) > 20,
        "{language:?} followed others {to_own} times, and others it {to_others} times"
    );
}
