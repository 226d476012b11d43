//! What the tests share.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_recipes_interop::{Referee, Report};
use zookeeper_recipes_suite::TestServer;

use crate::peers::available;
use crate::process::{Contenders, Language, Task, all_done};

/// The contenders of one language: how many of each mode.
pub(crate) type Group<'a> = (Language, &'a [(&'a str, usize)]);

/// Of these languages, those whose library the machine has. None if no other library is left.
pub(crate) fn present<T: Copy>(suite: &str, languages: &[(Language, T)]) -> Vec<(Language, T)> {
    let is_there = |(language, _): &(Language, T)| {
        let peer = language.peer();
        peer.is_none_or(|peer| available(suite, peer))
    };
    let mut present: Vec<_> = languages.iter().copied().filter(is_there).collect();
    if present
        .iter()
        .all(|(language, _)| language.peer().is_none())
    {
        present.clear();
    }
    present
}

/// Lets all groups that are [`present`] contend at once, and checks that each contender has had all
/// its turns. `None` if the machine lacks the libraries.
pub(crate) async fn contend(
    server: &TestServer,
    suite: &str,
    groups: &[Group<'_>],
    turns: usize,
) -> Option<Report> {
    let groups = present(suite, groups);
    let count = |(_, modes): &Group<'_>| modes.iter().map(|(_, count)| count).sum::<usize>();
    let contenders: usize = groups.iter().map(count).sum();
    if contenders == 0 {
        return None;
    }
    let referee = Referee::listen(contenders).expect("a free port");
    // It is longer than a wrong handoff takes, so that the referee sees it.
    let task = Task::new(server, turns, Duration::from_millis(2));
    let start = |(language, modes)| Contenders::start(language, &task, &referee, modes);
    all_done(groups.into_iter().map(start), &referee).await;
    let report = referee.report();
    assert_eq!(report.entries.len(), contenders * turns);
    Some(report)
}

/// Lets the groups contend, and checks that they exclude each other, take turns and list each other.
pub(crate) async fn share(
    server: &TestServer,
    suite: &str,
    groups: &[Group<'_>],
    turns: usize,
) -> Option<Report> {
    let report = contend(server, suite, groups, turns).await?;
    assert_eq!(report.violations, [""; 0]);
    let groups = present(suite, groups);
    for &(language, _) in &groups {
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
