//! The rule of a semaphore, on every short queue.

use std::borrow::Cow;

use proptest::prelude::*;
use zookeeper_recipes_core::{
    Contender, Identity, InvalidInput, QueueView, Rule, Sequence, Verdict,
};
use zookeeper_recipes_semaphore::{NodePath, WithinPermits};
use zookeeper_recipes_testkit::laws::{Laws, queues};

/// A contender that wants this many of the permits.
fn rule(permits: u32, weight: u32) -> WithinPermits {
    let path = NodePath::new("/semaphore").expect("a good path");
    WithinPermits::new(&path, permits, weight).expect("good numbers")
}

fn weight(contender: &Contender) -> u32 {
    weight_of(contender.label())
}

fn weight_of(label: &str) -> u32 {
    let weight = label.strip_prefix("permit-");
    let weight = weight.and_then(|rest| rest.strip_suffix('-')?.parse().ok());
    weight.expect("a label of a semaphore")
}

fn sum(contenders: &[Contender]) -> u32 {
    contenders.iter().map(weight).sum()
}

#[test]
fn contenders_of_all_weights_keep_the_laws() {
    for permits in 1..=8 {
        let rules: Vec<WithinPermits> = (1..=permits.min(5))
            .map(|weight| rule(permits, weight))
            .collect();
        let rules: Vec<&dyn Rule> = rules.iter().map(|rule| rule as _).collect();
        let number = permits.to_string();
        let laws = Laws::of(&rules).directory_data(number.as_bytes());
        // Holders from the time before the number was lowered.
        let laws = laws.beside(&["permit-9-"]);
        let within =
            |labels: &[&str]| labels.iter().map(|label| weight_of(label)).sum::<u32>() <= permits;
        let as_many = |labels: &[&str]| labels.len() <= permits as usize;
        let laws = laws.holders(&within).wakes(&as_many);
        assert_eq!(laws.check(), Ok(()), "{permits} permits");
    }
}

#[test]
fn contender_holds_within_the_permits_and_waits_on_the_latest_that_weigh_enough() {
    const LABELS: [&str; 4] = ["permit-1-", "permit-2-", "permit-3-", "permit-6-"];
    for permits in 1..=7 {
        for queue in queues(&LABELS) {
            let (me, before) = queue.split_last().expect("not empty");
            if weight(me) > permits {
                continue;
            }
            let room = permits - weight(me);
            let designed = match sum(before) <= room {
                true => Verdict::Hold,
                false => {
                    let windows = (0..before.len()).rev();
                    let mut enough = windows.filter(|&earliest| sum(&before[earliest..]) > room);
                    let earliest = enough.next().expect("all of them are enough");
                    Verdict::Wait {
                        on: (earliest..before.len()).collect(),
                    }
                }
            };
            let number = permits.to_string();
            let view = QueueView::new(before, me, Some(number.as_bytes()));
            let decided = rule(permits, weight(me)).decide(&view);
            assert_eq!(decided, Ok(designed), "{permits} permits, {queue:?}");
        }
    }
}

#[test]
fn contender_decides_by_the_number_that_the_directory_records_now() {
    let rule = rule(5, 3);
    assert_eq!(decided_by(&rule, b"5"), Ok(Verdict::Hold));
    assert_eq!(decided_by(&rule, b"3"), Ok(Verdict::Hold));
    assert!(decided_by(&rule, b"2").is_err());
    assert_eq!(decided_by(&rule, b"4"), Ok(Verdict::Hold));
}

proptest! {
    #[test]
    fn absurd_weights_are_no_contenders(weight in "[-+0-9a-z]{0,25}") {
        let counted = rule(1, 1).counts(&format!("permit-{weight}-"));
        let sensible = weight.parse::<u32>().is_ok_and(|parsed| {
            parsed > 0 && parsed.to_string() == weight
        });
        prop_assert_eq!(counted, sensible);
    }
}

/// Curator's first semaphore: a contender with `N` or more before it watches the one `N` places
/// ahead.
#[derive(Debug)]
struct WatchesRankMinusPermits {
    permits: usize,
}

impl Rule for WatchesRankMinusPermits {
    fn label(&self) -> Cow<'_, str> {
        "permit-1-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let watched = view.place().checked_sub(self.permits);
        Ok(watched.map_or(Verdict::Hold, Verdict::wait_on))
    }
}

#[test]
fn curators_first_semaphore_sleeps_when_another_holder_goes_first() {
    let curators = WatchesRankMinusPermits { permits: 2 };
    let broken = Laws::of(&[&curators]).check().expect_err("it sleeps");
    let queue = "permit-1- permit-1- [permit-1-]: ";
    assert!(broken.to_string().starts_with(queue), "{broken}");
}

/// A contender by this rule.
fn contender(rule: &dyn Rule, number: i32) -> Contender {
    let name = Identity::random().name(&rule.label());
    let name = format!("{name}{}", Sequence::from(number));
    Contender::parse(&name, |label| rule.counts(label)).unwrap()
}

/// The verdict on a contender that is alone, with this data in the directory.
fn decided_by(rule: &dyn Rule, data: &[u8]) -> Result<Verdict, InvalidInput> {
    let me = contender(rule, 0);
    rule.decide(&QueueView::new(&[], &me, Some(data)))
}

#[test]
fn numbers_that_make_no_sense_are_refused_with_the_reason() {
    let refused = |permits, weight| {
        let path = NodePath::new("/semaphore").unwrap();
        let refused = WithinPermits::new(&path, permits, weight);
        refused.unwrap_err().to_string()
    };
    assert_eq!(refused(0, 1), r#"number of permits "0" must not be zero"#);
    assert_eq!(
        refused(5, 0),
        r#"number of permits to acquire "0" must not be zero"#
    );
    assert_eq!(
        refused(5, 6),
        r#"number of permits to acquire "6" is more than the 5 that /semaphore has"#
    );
    let rule = rule(5, 1);
    for data in ["", "0", "-5", "+5", "05", "5 ", "five", "4294967296"] {
        let error = decided_by(&rule, data.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&format!("{data:?}")), "{error}");
        assert!(error.contains("/semaphore"), "{error}");
    }
    assert!(decided_by(&rule, &[0xff]).is_err());
}

#[test]
fn another_number_is_refused_until_the_two_have_agreed_once() {
    let rule = rule(5, 1);
    assert_eq!(
        decided_by(&rule, b"8").unwrap_err().to_string(),
        "number of permits \"5\" is not the 8 that /semaphore is recorded with; \
         open the semaphore with the recorded number, or resize it"
    );
    decided_by(&rule, b"5").unwrap();
    decided_by(&rule, b"8").unwrap();
    assert_eq!(rule.directory_data(), b"8");
}

#[test]
fn weights_near_the_largest_number_add_up() {
    let rule = rule(u32::MAX, u32::MAX);
    let contenders = [0, 1, 2].map(|number| contender(&rule, number));
    let decided = |me: usize| {
        let view = QueueView::new(&contenders[..me], &contenders[me], None);
        rule.decide(&view).unwrap()
    };
    assert_eq!(decided(0), Verdict::Hold);
    assert_eq!(decided(2), Verdict::wait_on(1));
}

#[test]
fn number_of_permits_is_read_for_each_decision() {
    let rule = rule(2, 1);
    assert!(rule.reads_directory());
    assert_eq!(rule.directory_data(), b"2");
    assert_eq!(rule.recipe("permit-1-"), "semaphore");
}
