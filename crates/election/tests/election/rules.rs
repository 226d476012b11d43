//! The rules of an election, on every short queue.

use zookeeper_recipes_core::{Contender, QueueView, Rule, Verdict};
use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_testkit::laws::Laws;

#[test]
fn candidates_on_standby_or_not_keep_the_laws() {
    let (candidate, standby) = (FirstCandidate::default(), FirstCandidate::standby());
    let laws = Laws::of(&[&candidate, &standby]);
    let one = |labels: &[&str]| labels.len() <= 1;
    assert_eq!(laws.holders(&one).wakes(&one).check(), Ok(()));
}

fn candidate(label: &str, number: i32) -> Contender {
    let identity = format!("_c_6e8f2c1a-9d3b-4f57-8a41-{number:012x}-");
    let name = format!("{identity}{label}{number:010}");
    Contender::parse(&name, |counted| counted == label).expect("a name")
}

/// The data of a directory that names this successor.
fn data(successor: &str) -> Vec<u8> {
    format!("zookeeper-recipes election\nsuccessor {successor}\n").into_bytes()
}

#[test]
fn only_candidates_count_and_none_is_replaced() {
    let rule = FirstCandidate::default();
    assert!(rule.looks_behind());
    for label in ["latch-", "standby-latch-"] {
        assert!(rule.counts(label), "{label}");
        assert!(!rule.may_be_replaced(label), "{label}");
        assert_eq!(rule.recipe(label), "election");
    }
    for label in ["", "lock-", "latch", "standby-"] {
        assert!(!rule.counts(label), "{label}");
    }
}

/// The verdict about `me`, first in the queue, with these candidates behind it.
fn decided(me: &Contender, behind: &[Contender], data: Option<&[u8]>) -> Verdict {
    let view = QueueView::new(&[], me, data).with_behind(behind);
    let verdict = FirstCandidate::default().decide(&view);
    assert_eq!(FirstCandidate::standby().decide(&view), verdict);
    verdict.expect("a candidate")
}

#[test]
fn candidate_steps_back_for_the_successor_that_is_behind_it() {
    let [me, next, last] = [5, 6, 7].map(|number| candidate("latch-", number));
    for (successor, verdict) in [
        (me.name(), Verdict::Hold),
        (next.name(), Verdict::StepBack),
        (last.name(), Verdict::StepBack),
        // Before it, gone, or no candidate at all.
        (candidate("latch-", 4).name(), Verdict::Hold),
        (candidate("latch-", 8).name(), Verdict::Hold),
        ("config", Verdict::Hold),
    ] {
        let behind = [next.clone(), last.clone()];
        let decided = decided(&me, &behind, Some(&data(successor)));
        assert_eq!(decided, verdict, "{successor}");
    }
    for data in [&b""[..], b"of another program", b"successor x\n"] {
        assert_eq!(
            decided(&me, std::slice::from_ref(&next), Some(data)),
            Verdict::Hold
        );
    }
    let view = QueueView::new(std::slice::from_ref(&me), &next, None);
    let waits = FirstCandidate::default().decide(&view.with_behind(&[]));
    assert_eq!(waits, Ok(Verdict::wait_on(0)));
}

#[test]
fn candidate_on_standby_steps_back_for_each_that_is_not() {
    let [me, other] = [5, 6].map(|number| candidate("standby-latch-", number));
    let regular = candidate("latch-", 7);
    let decided = |behind: &[&Contender], data: &[u8]| {
        let behind: Vec<Contender> = behind.iter().copied().cloned().collect();
        decided(&me, &behind, Some(data))
    };
    assert_eq!(decided(&[&other], b""), Verdict::Hold);
    assert_eq!(decided(&[&other, &regular], b""), Verdict::StepBack);
    assert_eq!(decided(&[&regular], &data(me.name())), Verdict::Hold);
    assert_eq!(decided(&[&other], &data(other.name())), Verdict::StepBack);
}
