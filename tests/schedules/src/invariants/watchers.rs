//! Watchers of a group see nobody come back that has left.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_core::SessionId;

use crate::findings::Findings;

/// What no two members have in common: the transaction that created it, which can come again if the
/// servers lose data, and its session.
pub(crate) type Id = (i64, SessionId);

/// The members of a group, by name.
pub(crate) type Members = BTreeMap<String, Id>;

/// What each watcher was notified of.
#[derive(Default)]
pub(crate) struct Watchers {
    notified: BTreeMap<String, Notified>,
}

/// What one watcher was notified of.
#[derive(Default)]
struct Notified {
    last: Members,
    /// The members that it has seen leave.
    left: BTreeSet<Id>,
    /// The members that had left and that a backup has brought back, until the next notification.
    restored: BTreeSet<Id>,
}

impl Watchers {
    /// The watchers, each with the members that it was notified of last.
    pub(crate) fn seen(&self) -> impl Iterator<Item = (&str, &Members)> {
        let notified = self.notified.iter();
        notified.map(|(who, notified)| (who.as_str(), &notified.last))
    }
}

/// The servers have lost data: the members of `after` are there, which can have left before.
pub(crate) fn at_loss(watchers: &mut Watchers, before: &Members, after: &Members) {
    let is_new = |id: &&Id| !before.values().any(|before| before == *id);
    let restored: BTreeSet<Id> = after.values().filter(is_new).copied().collect();
    for notified in watchers.notified.values_mut() {
        notified.left.retain(|id| !restored.contains(id));
        notified.restored.clone_from(&restored);
    }
}

/// A watcher is notified of these members.
///
/// A watcher sends a read only after the notification of the read before. So at most one answer is
/// on its way when the servers lose data, and only the first notification after it can be of that
/// answer. It can lack a member that had left by then, and that the servers have again.
pub(crate) fn at_news(watchers: &mut Watchers, who: &str, members: Members) -> Findings {
    let notified = watchers.notified.entry(who.to_owned()).or_default();
    let restored = std::mem::take(&mut notified.restored);
    let is_seen = |id: &Id| members.values().any(|seen| seen == id);
    let gone = notified.last.values().filter(|id| !is_seen(id));
    let gone = gone.filter(|id| !restored.contains(id));
    notified.left.extend(gone);
    let returned = members.values().find(|id| notified.left.contains(id));
    let finding = returned.map(|(token, _)| {
        let promise = "a watcher sees nobody come back that has left";
        (promise, format!("{who}: {token:#x}"))
    });
    notified.last = members;
    finding.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These members, each named by its token.
    fn members(tokens: &[i64]) -> Members {
        let id = |token: &i64| (token.to_string(), (*token, SessionId(1)));
        tokens.iter().map(id).collect()
    }

    /// A watcher that was notified of these members, one after the other.
    fn watcher(notified: &[&[i64]]) -> Watchers {
        let mut watchers = Watchers::default();
        for tokens in notified {
            assert!(sees(&mut watchers, tokens));
        }
        watchers
    }

    /// True if the watcher may see these members now.
    fn sees(watchers: &mut Watchers, tokens: &[i64]) -> bool {
        at_news(watchers, "w", members(tokens)).is_empty()
    }

    /// The servers lose data.
    fn lose(watchers: &mut Watchers, before: &[i64], after: &[i64]) {
        at_loss(watchers, &members(before), &members(after));
    }

    #[test]
    fn member_that_left_does_not_come_back() {
        let mut watchers = watcher(&[&[1, 2], &[1]]);
        assert!(!sees(&mut watchers, &[1, 2]));
    }

    #[test]
    fn member_that_a_backup_brings_back_is_seen_again_once() {
        let mut watchers = watcher(&[&[1, 2], &[1]]);
        lose(&mut watchers, &[1], &[1, 2]);
        assert!(sees(&mut watchers, &[1, 2]));
        assert!(sees(&mut watchers, &[1]));
        assert!(!sees(&mut watchers, &[1, 2]));
    }

    #[test]
    fn answer_from_before_a_loss_of_data_may_lack_what_the_backup_brings_back() {
        let mut watchers = watcher(&[&[1, 2, 3]]);
        lose(&mut watchers, &[1, 3], &[1, 2]);
        assert!(sees(&mut watchers, &[1, 3]));
        assert!(sees(&mut watchers, &[1, 2]));
        assert!(sees(&mut watchers, &[1]));
        assert!(!sees(&mut watchers, &[1, 2]));
    }

    #[test]
    fn only_the_first_notification_after_a_loss_of_data_may_be_from_before() {
        let mut watchers = watcher(&[&[1, 2]]);
        lose(&mut watchers, &[1], &[1, 2]);
        assert!(sees(&mut watchers, &[1, 2, 3]));
        assert!(sees(&mut watchers, &[1, 3]));
        assert!(!sees(&mut watchers, &[1, 2, 3]));
    }

    #[test]
    fn loss_of_data_excuses_no_return_of_a_member_that_it_did_not_bring_back() {
        let mut watchers = watcher(&[&[1, 2, 3], &[2, 3]]);
        lose(&mut watchers, &[2, 3], &[2]);
        assert!(!sees(&mut watchers, &[1, 2]), "no backup has it");
        let mut watchers = watcher(&[&[1, 2]]);
        lose(&mut watchers, &[1, 2], &[1, 2]);
        assert!(sees(&mut watchers, &[1]));
        assert!(!sees(&mut watchers, &[1, 2]), "it had not left");
    }
}
