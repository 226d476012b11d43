//! Contenders: the names of the znodes in a queue, and their order.
//!
//! A contender is an ephemeral sequential znode. Its name is written as Apache Curator writes it,
//! `_c_<uuid>-<label><sequence>`, so that clients in several languages can share a queue. Two more
//! forms are *read*: go-zookeeper's `_c_<32 hex digits>-<label><sequence>` and kazoo's `<32 hex
//! digits><label><sequence>`. A znode with any other name is not a contender.
//!
//! # The order
//!
//! The sequence number is a signed 32-bit counter of the creates under the parent. The count ends
//! at 2147483647:
//!
//! * Old servers let the number wrap to negative numbers.
//! * Newer servers stay at 2147483647, so later contenders get the same number again. If several
//!   creates are under way at once, newer servers give out the first negative numbers too, and then
//!   2147483647 once more (measured on 3.8.0).
//!
//! So names are never compared as strings. Numbers at the end of the count are not compared as
//! numbers: these contenders are ordered by the `czxid` of their znodes, behind all others.
//! Contenders with equal numbers are ordered by `czxid`, too. All others are ordered around the
//! ring of numbers, beginning after the widest gap.
//!
//! If a list shows several contenders at the end of the count, or two with one number, it costs one
//! request more: a read of all these contenders.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use uuid::Uuid;

/// The number that a server adds to the name of a sequential znode.
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

    /// True if this number is the last of the count, or one of the next.
    ///
    /// Newer servers may give out these numbers in any order.
    pub(crate) fn is_at_the_end(self) -> bool {
        // Far more creates than a server handles at once.
        const BEYOND: i32 = 1 << 20;
        self.0 == i32::MAX || self.0 < i32::MIN + BEYOND
    }

    /// True if only an old server, whose counter has wrapped, gives out this number.
    fn is_of_a_wrapped_count(self) -> bool {
        self.0 < 0 && !self.is_at_the_end()
    }

    /// The distance from the last number of the count to this one, around the ring.
    fn beyond_the_end(self) -> u32 {
        Sequence(i32::MAX).distance_to(self)
    }

    /// The distance from this number to `later`, around the ring.
    fn distance_to(self, later: Sequence) -> u32 {
        later.0.wrapping_sub(self.0) as u32
    }
}

impl From<i32> for Sequence {
    fn from(number: i32) -> Sequence {
        Sequence(number)
    }
}

/// Prints the number as a server does: ten characters, including a minus sign.
impl fmt::Display for Sequence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:010}", self.0)
    }
}

/// A contender, read from its znode's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contender {
    name: String,
    label: Range<usize>,
    sequence: Sequence,
    czxid: Option<i64>,
}

impl Contender {
    /// Reads a znode's name. `None` if it names no contender that `counts`.
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
        Contender::read(name.to_owned(), counts).ok()
    }

    /// As [`parse`](Self::parse). The error is the name, if it names no contender that `counts`.
    pub(crate) fn read(name: String, counts: impl Fn(&str) -> bool) -> Result<Contender, String> {
        match label_and_sequence(&name, counts) {
            Some((label, sequence)) => Ok(Contender {
                name,
                label,
                sequence,
                czxid: None,
            }),
            None => Err(name),
        }
    }

    /// The znode's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of the contender: the text between the identity and the number.
    pub fn label(&self) -> &str {
        &self.name[self.label.clone()]
    }

    /// The number at the end of the name.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The transaction that created the znode, if it was read.
    pub fn czxid(&self) -> Option<i64> {
        self.czxid
    }

    /// True if the name says that only the owner can write to the znode.
    ///
    /// A holder with such a name marks its release by a write: see
    /// [`docs::handoff`](crate::docs::handoff).
    pub(crate) fn is_closed_to_others(&self) -> bool {
        // The start of the label says which of the three forms of identity the name has.
        self.label.start == CANONICAL_END && self.name.get(THIRD_GROUP) == Some(MARKING)
    }

    /// Notes the transaction that created the znode.
    pub fn set_czxid(&mut self, czxid: i64) {
        self.czxid = Some(czxid);
    }
}

/// Where the label begins: after `_c_`, a hyphenated UUID and a hyphen.
const CANONICAL_END: usize = 40;

/// The group of this UUID that begins with the version.
const THIRD_GROUP: Range<usize> = 17..21;

/// This group in a name that marks releases.
///
/// It begins with version 8, which is for private uses. Random UUIDs have version 4.
const MARKING: &str = "8001";

/// Where the label is in the name of a contender that `counts`, and the number behind it.
fn label_and_sequence(
    name: &str,
    counts: impl Fn(&str) -> bool,
) -> Option<(Range<usize>, Sequence)> {
    let start = identity_end(name)?;
    // A trailing "-2147483647" can be read in two ways, and the label decides which one is right.
    [10, 11].into_iter().find_map(|digits| {
        let end = name.len().checked_sub(digits)?;
        let sequence = parse_sequence(name.get(end..)?)?;
        let label = name.get(start..end)?;
        counts(label).then_some((start..end, sequence))
    })
}

/// The end of the identity in a name, where the label begins.
fn identity_end(name: &str) -> Option<usize> {
    let bytes = name.as_bytes();
    let hex = |range: Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let dash = |at: usize| bytes.get(at) == Some(&b'-');
    if name.starts_with("_c_") {
        let groups = [3..11, 12..16, 17..21, 22..26, 27..39];
        if groups
            .into_iter()
            .all(|group| dash(group.end) && hex(group))
        {
            return Some(CANONICAL_END);
        }
        return (hex(3..35) && dash(35)).then_some(36);
    }
    hex(0..32).then_some(32)
}

/// Reads a number exactly as `%010d` writes it.
///
/// It has ten characters, including a minus sign. It has more only if the number needs them.
fn parse_sequence(text: &str) -> Option<Sequence> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_padded = text.len() > 10 && digits.starts_with('0');
    if text.len() < 10 || is_padded || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i32 = text.parse().ok()?;
    // The server never writes "-000000000".
    (number != 0 || digits.len() == text.len()).then_some(Sequence(number))
}

/// The unique part of a contender's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(Uuid);

impl Identity {
    /// A new random identity.
    pub fn random() -> Identity {
        Identity(Uuid::new_v4())
    }

    /// The identity made of these bits.
    ///
    /// Six of the bits are replaced by the kind of the UUID. In a name that marks releases ten more
    /// bits are replaced.
    pub fn from_random_bits(bits: u128) -> Identity {
        Identity(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }

    /// The identity that is `count` after this one. A session draws the first, and derives the
    /// others.
    pub(crate) fn after(self, count: u64) -> Identity {
        const COUNTED: u128 = (1 << 48) - 1;
        let bits = self.0.as_u128();
        let counted = bits.wrapping_add(count.into()) & COUNTED;
        Identity(Uuid::from_u128(bits & !COUNTED | counted))
    }

    /// A random share of this time. The random bits are those of the identity.
    pub(crate) fn share_of(self, time: Duration) -> Duration {
        let [.., a, b, c, d] = self.0.into_bytes();
        let drawn = u32::from_be_bytes([a, b, c, d]);
        time.mul_f64(f64::from(drawn) / f64::from(u32::MAX))
    }

    /// The same identity, in a name that says that releases are marked.
    pub(crate) fn marking(self) -> Identity {
        let mut bytes = self.0.into_bytes();
        bytes[6..8].copy_from_slice(&[0x80, 0x01]);
        Identity(Uuid::from_bytes(bytes))
    }

    /// The part of the name that no other contender shares: `_c_<uuid>-`.
    pub fn prefix(&self) -> String {
        self.name("")
    }

    /// The path of a contender with this identity, without the number that the server adds.
    pub(crate) fn path(&self, directory: &str, label: &str) -> String {
        self.text([directory, "/"], label)
    }

    /// The name that is sent to the server, which adds the number.
    pub fn name(&self, label: &str) -> String {
        self.text(["", ""], label)
    }

    fn text(&self, before: [&str; 2], label: &str) -> String {
        let mut digits = Uuid::encode_buffer();
        let identity: &str = self.0.as_hyphenated().encode_lower(&mut digits);
        [before[0], before[1], "_c_", identity, "-", label].concat()
    }
}

/// Puts contenders into the order of their queue.
///
/// The result does not depend on the input's order.
///
/// * Numbers within the count come first, around the ring, beginning after the widest gap.
/// * Numbers at the end of the count or beyond come last, by `czxid`.
/// * Equal numbers are ordered by `czxid`. Unknown `czxid`s come last.
/// * Any others are ordered by name, so that the order is total even among hostile names.
pub fn order(contenders: &mut [Contender]) {
    let ends = ends(contenders);
    let at_the_end = |contender: &Contender| ends && contender.sequence.is_at_the_end();
    let key = |contender: &Contender| {
        let at_the_end = at_the_end(contender);
        let number = if at_the_end { 0 } else { contender.sequence.0 };
        let beyond = i64::from(contender.sequence.beyond_the_end());
        let age = contender.czxid.map_or((1, beyond), |czxid| (0, czxid));
        (at_the_end, number, age)
    };
    contenders.sort_unstable_by(|left, right| {
        let order = key(left).cmp(&key(right));
        order.then_with(|| left.name.cmp(&right.name))
    });
    // If a contender is at the end of the count, the count has not begun again.
    if !contenders.iter().any(at_the_end) {
        contenders.rotate_left(after_the_widest_gap(contenders));
    }
}

/// True if the count under this directory ends. False if it wraps, as on old servers.
fn ends(contenders: &[Contender]) -> bool {
    !contenders
        .iter()
        .any(|contender| contender.sequence.is_of_a_wrapped_count())
}

/// The place of the first contender after the widest gap of the ring.
fn after_the_widest_gap(contenders: &[Contender]) -> usize {
    let gap_before = |place: &usize| {
        let before = place.checked_sub(1).unwrap_or(contenders.len() - 1);
        let (before, at) = (contenders[before].sequence, contenders[*place].sequence);
        before.distance_to(at)
    };
    // Of equal gaps the last one that is tried counts.
    let widest = (0..contenders.len()).rev().max_by_key(gap_before);
    widest.unwrap_or(0)
}

/// The places of the contenders that can only be ordered by their `czxid`.
///
/// These are the contenders at the end of the count, and those with the number of a neighbour.
/// [Note](Contender::set_czxid) their `czxid`s, and [order](order) the queue again.
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

/// True if the identities in these names are counted from one: see [`Identity::after`].
///
/// The group that says if releases are marked does not count.
pub(crate) fn are_of_one_session(one: &str, other: &str) -> bool {
    let is_same = |bytes: Range<usize>| one.get(bytes.clone()) == other.get(bytes);
    one.len().min(other.len()) > CANONICAL_END && is_same(0..16) && is_same(21..27)
}

/// The recipe of this znode, if its label is known.
pub(crate) fn recipe_of(name: &str) -> Option<&'static str> {
    let known = |label: &str| match label {
        "lock-" | "__lock__" => Some("an exclusive lock"),
        "__READ__" | "__WRIT__" | "__rlock__" => Some("a read/write lock"),
        "latch-" | "standby-latch-" => Some("a leader election"),
        _ => {
            let weight = label.strip_prefix("permit-")?.strip_suffix('-')?;
            let number: u32 = weight.parse().ok()?;
            (number > 0 && number.to_string() == weight).then_some("a semaphore")
        }
    };
    let (label, _) = label_and_sequence(name, |label| known(label).is_some())?;
    known(&name[label])
}

#[cfg(test)]
#[path = "../tests/unit/contender.rs"]
mod tests;
