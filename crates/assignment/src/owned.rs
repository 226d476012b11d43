//! What each worker owns, as the workers publish it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::{FencingToken, HoldView};

use crate::children::Children;
use crate::pieces::{Lines, OWNED, Piece, parse_name};

/// The owner of a partition, as it has published itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The id of the worker.
    pub worker: String,
    /// The [address](crate::AssignmentOptions::address) of the worker.
    pub address: String,
    /// The fencing token of the hold by which the worker owns the partition.
    pub fencing_token: FencingToken,
    /// Since when the worker owns the partition, by the worker's clock.
    pub since: SystemTime,
}

/// The owner of each partition that is owned, by the partition's name.
///
/// It is what the workers have published. It may be old, and it is no proof: a worker that is shown
/// may own the partition no longer. If a late request does harm, send the
/// [`fencing_token`](Owner::fencing_token) with it, and let the worker compare.
pub type Routing = BTreeMap<String, Owner>;

/// The partitions of a worker whose work has not ended: each with its hold, and since when.
pub(crate) type Owns = BTreeMap<String, (HoldView, SystemTime)>;

/// What a worker publishes. Work that blocks its thread may outlast its hold, and does not count.
pub(crate) fn lines(owns: Owns) -> Lines {
    let held = owns.into_iter().filter(|(_, (hold, _))| hold.is_held());
    held.map(|(id, (hold, since))| (id, word(hold.fencing_token(), since)))
        .collect()
}

/// The word of a line: the token, and since when in milliseconds since 1970.
fn word(token: FencingToken, since: SystemTime) -> String {
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}@{}", token.get(), since.as_millis())
}

fn parse_word(word: &str) -> Option<(FencingToken, SystemTime)> {
    let (token, since) = word.split_once('@')?;
    let token: i64 = token.parse().ok()?;
    let since = UNIX_EPOCH.checked_add(Duration::from_millis(since.parse().ok()?))?;
    Some((FencingToken::from(token), since))
}

/// The owner of each partition. If two have published the same, the larger token wins.
pub(crate) fn owners(published: &Children) -> BTreeMap<String, Owner> {
    let mut owners: BTreeMap<String, Owner> = BTreeMap::new();
    for (name, data) in published {
        let (Some((worker, _)), Ok(piece)) = (parse_name(name), Piece::parse(OWNED, data)) else {
            continue;
        };
        for (partition, word) in piece.lines {
            let Some((fencing_token, since)) = parse_word(&word) else {
                continue;
            };
            let owner = Owner {
                worker: worker.to_owned(),
                address: piece.note.clone(),
                fencing_token,
                since,
            };
            let known = owners.get(&partition);
            if known.is_none_or(|known| known.fencing_token < owner.fencing_token) {
                owners.insert(partition, owner);
            }
        }
    }
    owners
}

#[cfg(test)]
#[path = "../tests/unit/owned.rs"]
mod tests;
