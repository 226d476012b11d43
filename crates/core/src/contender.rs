//! Contenders: the names of the znodes in a queue, and their order.
//!
//! A contender is an ephemeral sequential znode. Its name is written as Apache Curator writes it,
//! `_c_<uuid>-<label><sequence>`, so that fleets of several languages can share a queue; what is
//! *read* is wider: also go-zookeeper's `_c_<32 hex digits>-<label><sequence>` and kazoo's
//! `<32 hex digits><label><sequence>`. Whatever else stands in the directory is no contender.
//!
//! # The order
//!
//! The sequence number is a signed 32-bit counter of the creates under the parent, and it ends.
//! Old servers let it wrap to negative numbers. Newer ones leave it at 2147483647, so that later
//! contenders get the same number again; and while several creates are under way at once they hand
//! out the first negative ones too, and then 2147483647 once more (measured on 3.8.0). Names are
//! therefore never compared as strings, nor numbers at the end of the count as numbers: those are
//! ordered by the `czxid` of their znodes, behind all others. So are equal numbers among
//! themselves. Everything else is ordered around the ring, beginning after the widest gap.
//!
//! What that costs: each list that shows several contenders at the end, or two of one number, is
//! followed by one request more, a read of all those together.

use std::cmp::Ordering;
use std::fmt;

use uuid::Uuid;

/// The number a server puts at the end of a sequential znode's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sequence(i32);

impl Sequence {
    /// The number itself.
    pub fn get(self) -> i32 {
        self.0
    }

    /// The number after this one, around the ring.
    pub fn next(self) -> Sequence {
        Sequence(self.0.wrapping_add(1))
    }

    /// Whether this is the last number of the count, or one of the first beyond it, which newer
    /// servers may give out in any order.
    pub fn is_at_the_end(self) -> bool {
        // As many as a server lets be under way at once, and far more.
        const BEYOND: i32 = 1 << 20;
        self.0 == i32::MAX || self.0 < i32::MIN + BEYOND
    }

    /// Whether only an old server, whose counter has wrapped for good, gives out this number.
    fn is_of_a_wrapped_count(self) -> bool {
        self.0 < 0 && !self.is_at_the_end()
    }

    /// How far beyond the last number this is, counting on around the ring.
    fn beyond_the_end(self) -> u32 {
        Sequence(i32::MAX).distance_to(self)
    }

    /// How far around the ring `later` lies from here.
    fn distance_to(self, later: Sequence) -> u32 {
        later.0.wrapping_sub(self.0) as u32
    }
}

impl From<i32> for Sequence {
    fn from(number: i32) -> Sequence {
        Sequence(number)
    }
}

/// Prints the number as a server does: ten characters, a minus sign among them.
impl fmt::Display for Sequence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:010}", self.0)
    }
}

/// A contender, as its znode's name tells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    name: String,
    label: std::ops::Range<usize>,
    sequence: Sequence,
    czxid: Option<i64>,
}

impl Contender {
    /// Reads a znode's name, or `None` where it is no contender with a label that `counts`.
    ///
    /// ```
    /// use zookeeper_recipes_core::Contender;
    ///
    /// let name = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-0000000007";
    /// let contender = Contender::parse(name, |label| label == "lock-").unwrap();
    /// assert_eq!(contender.sequence().get(), 7);
    /// assert_eq!(contender.label(), "lock-");
    ///
    /// assert!(Contender::parse("lock-0000000007", |_| true).is_none());
    /// assert!(Contender::parse("config", |_| true).is_none());
    /// ```
    pub fn parse(name: &str, counts: impl Fn(&str) -> bool) -> Option<Contender> {
        let label_start = identity_end(name)?;
        // The two readings of a trailing "-2147483647" differ in where the label ends, so it is
        // the label that decides between them.
        [10, 11].into_iter().find_map(|digits| {
            let label_end = name
                .len()
                .checked_sub(digits)
                .filter(|end| *end >= label_start)?;
            let sequence = parse_sequence(name.get(label_end..)?)?;
            let label = name.get(label_start..label_end)?;
            counts(label).then(|| Contender {
                name: name.to_owned(),
                label: label_start..label_end,
                sequence,
                czxid: None,
            })
        })
    }

    /// The znode's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What stands between the identity and the number: the kind of the contender.
    pub fn label(&self) -> &str {
        &self.name[self.label.clone()]
    }

    /// The number at the end of the name.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The transaction that created the znode, where it had to be asked for.
    pub fn czxid(&self) -> Option<i64> {
        self.czxid
    }

    /// Whether the name says that nobody but its owner can write to the znode, so that whoever
    /// holds by it marks its release by such a write.
    ///
    /// See [`docs::handoff`](crate::docs::handoff).
    pub fn marks_release(&self) -> bool {
        // Where the label begins tells the three ways to write an identity apart.
        self.label.start == CANONICAL_END && self.name.get(THIRD_GROUP) == Some(MARKING)
    }

    /// Takes in the transaction that created the znode.
    #[doc(hidden)]
    pub fn set_czxid(&mut self, czxid: i64) {
        self.czxid = Some(czxid);
    }
}

/// Where the label begins behind `_c_`, a hyphenated UUID and a hyphen.
const CANONICAL_END: usize = 40;

/// The group of such a UUID that begins with its version.
const THIRD_GROUP: std::ops::Range<usize> = 17..21;

/// What that group is in a name that marks: version 8, which is for uses of one's own, where
/// random UUIDs have version 4.
const MARKING: &str = "8001";

/// Where a name's identity ends and its label begins.
fn identity_end(name: &str) -> Option<usize> {
    let bytes = name.as_bytes();
    let hex = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let dash = |at: usize| bytes.get(at) == Some(&b'-');
    if name.starts_with("_c_") {
        let canonical = hex(3..11)
            && dash(11)
            && hex(12..16)
            && dash(16)
            && hex(17..21)
            && dash(21)
            && hex(22..26)
            && dash(26)
            && hex(27..39)
            && dash(39);
        if canonical {
            return Some(CANONICAL_END);
        }
        return (hex(3..35) && dash(35)).then_some(36);
    }
    hex(0..32).then_some(32)
}

/// Reads a number just as `%010d` writes it: ten characters, a minus sign among them, and more only
/// for a number that needs them.
fn parse_sequence(text: &str) -> Option<Sequence> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_padded = text.len() > 10 && digits.starts_with('0');
    if text.len() < 10 || is_padded || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i32 = text.parse().ok()?;
    // There is no such thing as "-000000000".
    (number != 0 || digits.len() == text.len()).then_some(Sequence(number))
}

/// The name of a contender that is about to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(Uuid);

impl Identity {
    /// The identity of no contender.
    pub(crate) const NONE: Identity = Identity(Uuid::nil());

    /// A new identity, unlike any other.
    pub fn random() -> Identity {
        Identity(Uuid::new_v4())
    }

    /// The identity made of these bits, fewer the six that say which kind of UUID it is, and in a
    /// name that marks ten more.
    pub fn from_random_bits(bits: u128) -> Identity {
        Identity(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }

    /// The same chance, in a name that [marks](Contender::marks_release).
    pub(crate) fn marking(self) -> Identity {
        let mut bytes = self.0.into_bytes();
        bytes[6..8].copy_from_slice(&[0x80, 0x01]);
        Identity(Uuid::from_bytes(bytes))
    }

    /// The part of the name that no other contender shares: `_c_<uuid>-`.
    pub fn prefix(&self) -> String {
        format!("_c_{}-", self.0.as_hyphenated())
    }

    /// The name as it is given to the server, which adds the number.
    pub fn name(&self, label: &str) -> String {
        format!("_c_{}-{label}", self.0.as_hyphenated())
    }
}

/// Puts contenders into the order of their queue: the same for every order they come in.
///
/// First those within the count, around the ring, beginning after the widest gap; then those at its
/// end or beyond, by `czxid`. Equal numbers by `czxid`, too, unknown ones last; and at last by name,
/// so that the order is total even among hostile names.
#[doc(hidden)]
pub fn order(contenders: &mut [Contender]) {
    let ends = ends(contenders);
    let at_the_end = |contender: &Contender| ends && contender.sequence.is_at_the_end();
    contenders.sort_unstable_by(|left, right| {
        let number = match (at_the_end(left), at_the_end(right)) {
            (false, false) => left.sequence.0.cmp(&right.sequence.0),
            (left, right) => left.cmp(&right),
        };
        let czxid = match (left.czxid, right.czxid) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => left
                .sequence
                .beyond_the_end()
                .cmp(&right.sequence.beyond_the_end()),
        };
        number.then(czxid).then_with(|| left.name.cmp(&right.name))
    });
    // Where some are at the end already, the count has not begun anew.
    if !contenders.iter().any(at_the_end) {
        contenders.rotate_left(after_the_widest_gap(contenders));
    }
}

/// Whether the count under this directory ends, as newer servers' do, or goes around.
fn ends(contenders: &[Contender]) -> bool {
    !contenders
        .iter()
        .any(|contender| contender.sequence.is_of_a_wrapped_count())
}

fn after_the_widest_gap(contenders: &[Contender]) -> usize {
    let (Some(first), Some(last)) = (contenders.first(), contenders.last()) else {
        return 0;
    };
    let mut widest = last.sequence.distance_to(first.sequence);
    let mut after = 0;
    for next in 1..contenders.len() {
        let gap = contenders[next - 1]
            .sequence
            .distance_to(contenders[next].sequence);
        if gap > widest {
            widest = gap;
            after = next;
        }
    }
    after
}

/// Which contenders of an ordered queue can only be ordered by their `czxid`: those at the end of
/// the count, and those that share their number with a neighbour.
///
/// Their places. Once their `czxid`s have been [told](Contender::set_czxid), they are to be
/// [ordered](order) again.
#[doc(hidden)]
pub fn ordered_by_czxid(ordered: &[Contender]) -> Vec<usize> {
    let same = |left: usize, right: usize| {
        let pair = ordered.get(left).zip(ordered.get(right));
        pair.is_some_and(|(left, right)| left.sequence == right.sequence)
    };
    let ends = ordered.len() > 1 && ends(ordered);
    (0..ordered.len())
        .filter(|&index| {
            (ends && ordered[index].sequence.is_at_the_end())
                || (index > 0 && same(index - 1, index))
                || same(index, index + 1)
        })
        .collect()
}

/// The recipe that this znode contends for, of those whose labels are known and `are_others`.
pub(crate) fn recipe_of(name: &str, are_others: impl Fn(&str) -> bool) -> Option<&'static str> {
    let known = |label: &str| match label {
        "lock-" | "__lock__" => Some("an exclusive lock"),
        "__READ__" | "__WRIT__" | "__rlock__" => Some("a read/write lock"),
        "latch-" => Some("a leader election"),
        _ => {
            let weight = label.strip_prefix("permit-")?.strip_suffix('-')?;
            let number: u32 = weight.parse().ok()?;
            (number > 0 && number.to_string() == weight).then_some("a semaphore")
        }
    };
    let contender = Contender::parse(name, |label| known(label).is_some() && are_others(label))?;
    known(contender.label())
}
