//! Names that can be segments of paths and words of records.

use zookeeper_recipes_core::NodePath;

/// The longest name of a partition or of a zone, in bytes.
const LONGEST: usize = 200;

/// A partition without a zone.
pub(crate) const NO_ZONE: &str = "-";

/// What is wrong with the name of a partition.
pub(crate) fn problem_of_partition(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return Some(format!("is longer than {LONGEST} bytes"));
    }
    let path = NodePath::new("/p").and_then(|path| path.join(name));
    path.err()
        .map(|error| format!("cannot be a path's segment: {error}"))
}

/// What is wrong with the name of a zone.
pub(crate) fn problem_of_zone(zone: &str) -> Option<String> {
    let is_bad = |it: char| it.is_whitespace() || it.is_control();
    let bad = zone.is_empty() || zone == NO_ZONE || zone.contains(is_bad) || zone.len() > LONGEST;
    bad.then(|| format!("must not have the zone {zone:?}"))
}
