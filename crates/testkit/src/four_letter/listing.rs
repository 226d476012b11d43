//! Watches and ephemeral znodes, as a server lists them.

use std::collections::{BTreeMap, BTreeSet};

/// `0x…` as Java prints a long: two's complement.
pub(super) fn hexadecimal(text: &str) -> Option<i64> {
    let bits = u64::from_str_radix(text.strip_prefix("0x")?, 16);
    bits.ok().map(|bits| bits as i64)
}

/// Reads the answer to `wchp`: each watched path with the sessions that watch it.
pub fn parse_watches(answer: &str) -> BTreeMap<String, BTreeSet<i64>> {
    let mut watches: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let mut path = None;
    for line in answer.lines() {
        match line.strip_prefix('\t') {
            Some(session) => {
                if let (Some(path), Some(session)) = (&path, hexadecimal(session.trim())) {
                    watches
                        .entry(String::clone(path))
                        .or_default()
                        .insert(session);
                }
            }
            None => path = line.starts_with('/').then(|| line.to_owned()),
        }
    }
    watches
}

/// Reads the answer to `dump`: each session that has ephemeral znodes, with their paths.
pub fn parse_ephemerals(answer: &str) -> BTreeMap<i64, BTreeSet<String>> {
    let mut ephemerals: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let mut session = None;
    let section = answer
        .lines()
        .skip_while(|line| !line.starts_with("ephemeral nodes dump"))
        .take_while(|line| !line.starts_with("Connections dump"));
    for line in section {
        match line.strip_prefix('\t') {
            Some(path) => {
                if let Some(session) = session {
                    ephemerals
                        .entry(session)
                        .or_default()
                        .insert(path.to_owned());
                }
            }
            None => session = line.strip_suffix(':').and_then(hexadecimal),
        }
    }
    ephemerals
}

#[cfg(test)]
#[path = "../../tests/unit/listing.rs"]
mod tests;
