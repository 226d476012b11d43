//! Reads names as each recipe reads those in its directory.

use std::collections::BTreeSet;

use zookeeper_recipes_core::{
    Contender, NodePath, QueueView, Rule, Verdict, order, ordered_by_czxid,
};
use zookeeper_recipes_election::FirstCandidate;
use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_rwlock::ReadOrWrite;
use zookeeper_recipes_semaphore::WithinPermits;

const LABELS: [&str; 12] = [
    "lock-",
    "-lock-",
    "__lock__",
    "__rlock__",
    "__READ__",
    "__WRIT__",
    "latch-",
    "standby-latch-",
    "permit-1-",
    "permit-4294967295-",
    "permit-0-",
    "",
];

/// The names that these bytes stand for: as the libraries write them, broken, or any text.
pub(crate) fn names_in(mut bytes: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while let [form, label, a, b, c, d, rest @ ..] = bytes {
        bytes = rest;
        let number = i32::from_be_bytes([*a, *b, *c, *d]);
        let hex = format!("{:032x}", u128::from(*d) << 96 | u128::from(*label));
        let groups = [&hex[..8], &hex[8..12], "8001", &hex[16..20], &hex[20..]];
        let kind = LABELS[usize::from(*label) % LABELS.len()];
        let mut name = match form % 4 {
            0 => format!("_c_{}-{kind}{number:010}", groups.join("-")),
            1 => format!("_c_{hex}-{kind}{number:010}"),
            2 => format!("{hex}{kind}{number:010}"),
            _ => {
                let (text, after) = rest.split_at(rest.len().min(usize::from(*label)));
                bytes = after;
                String::from_utf8_lossy(text).into_owned()
            }
        };
        let (place, is_broken) = (usize::from(*form) / 4, *form >= 128);
        if is_broken && name.is_char_boundary(place) && place <= name.len() {
            name.insert(place, char::from(*a));
        }
        names.push(name);
    }
    names
}

/// Reads the names as each recipe does, orders them, and decides about each place.
///
/// Returns the number of contenders of each rule.
pub(crate) fn read_as_each_recipe(names: &[String], data: Option<&[u8]>) -> [usize; 5] {
    let path = NodePath::new("/semaphore").expect("a good path");
    let rules: [Box<dyn Rule>; 5] = [
        Box::new(FirstInQueue),
        Box::new(ReadOrWrite::Read),
        Box::new(ReadOrWrite::Write),
        Box::new(WithinPermits::new(&path, 3, 1).expect("three permits")),
        Box::new(FirstCandidate::default()),
    ];
    // A directory has no name twice.
    let names: BTreeSet<&String> = names.iter().collect();
    rules.map(|rule| {
        let names = names.iter();
        let read = names.filter_map(|name| Contender::parse(name, |label| rule.counts(label)));
        let queue: Vec<Contender> = read.collect();
        let count = queue.len();
        for contender in &queue {
            has_its_parts(contender);
            assert!(rule.counts(contender.label()), "{contender:?}");
        }
        decide_everywhere(&*rule, in_order(queue), data);
        count
    })
}

/// The name is an identity, the label and the number, and nothing else.
fn has_its_parts(contender: &Contender) {
    let end = format!("{}{}", contender.label(), contender.sequence());
    let identity = contender.name().strip_suffix(&end);
    let length = identity.map(str::len);
    assert!(matches!(length, Some(32 | 36 | 40)), "{contender:?}");
}

/// The queue in order, which does not depend on the order of a list.
fn in_order(mut queue: Vec<Contender>) -> Vec<Contender> {
    let mut reversed = queue.clone();
    reversed.reverse();
    order(&mut queue);
    order(&mut reversed);
    assert_eq!(queue, reversed);
    for (czxid, place) in ordered_by_czxid(&queue).into_iter().enumerate() {
        // The later of two gets the smaller one: the order is by this number alone.
        queue[place].set_czxid(-(czxid as i64));
    }
    let mut rotated = queue.clone();
    rotated.rotate_left(queue.len() / 2);
    order(&mut queue);
    order(&mut rotated);
    assert_eq!(queue, rotated);
    queue
}

/// Each verdict waits on contenders before the place, and on at least one.
///
/// A queue asks a rule about its own contenders alone.
fn decide_everywhere(rule: &dyn Rule, queue: Vec<Contender>, data: Option<&[u8]>) {
    for (place, me) in queue.iter().enumerate() {
        let view = QueueView::new(&queue[..place], me, data);
        let _ = rule.holds(&view);
        if me.label() != rule.label() {
            continue;
        }
        if let Ok(Verdict::Wait { on }) = rule.decide(&view) {
            let is_before = on.iter().all(|before| *before < place);
            assert!(
                is_before && !on.is_empty(),
                "{on:?} of {place} in {queue:?}"
            );
        }
    }
}
