//! Quotas: limits on the znodes and the bytes below a path, as Apache's server counts them.
//!
//! The quota of `/a` is in two znodes. `/zookeeper/quota/a/zookeeper_limits` has the limits, and
//! the servers count in `/zookeeper/quota/a/zookeeper_stats`.

use zookeeper_recipes_protocol::ErrorCode;

use super::tree::{Edit, EditKind, Tree, Znode};

const QUOTAS: &str = "/zookeeper/quota";
const LIMITS: &str = "/zookeeper_limits";
const COUNTS: &str = "/zookeeper_stats";

/// A number of znodes, and of the bytes of their data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    znodes: i64,
    bytes: i64,
}

impl Counted {
    fn of(node: &Znode) -> Counted {
        Counted {
            znodes: 1,
            bytes: node.data_length() as i64,
        }
    }

    fn text(self) -> String {
        format!("count={},bytes={}", self.znodes, self.bytes)
    }
}

/// The number of this key in the data of a quota's znode. -1 if there is none.
fn number(data: &str, key: &str) -> i64 {
    let pairs = data.split([',', ';']);
    let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(found, _)| *found == key);
    let number = found.map(|(_, number)| number.trim_end_matches('='));
    number.and_then(|number| number.parse().ok()).unwrap_or(-1)
}

/// The path whose limits a znode has, if the znode is that of a quota.
fn limited_by(path: &str) -> Option<&str> {
    let limited = path.strip_prefix(QUOTAS)?.strip_suffix(LIMITS)?;
    (!limited.is_empty()).then_some(limited)
}

impl Tree {
    /// The longest path with a quota that is this path or above it.
    fn quota_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.quotas == 0 {
            return None;
        }
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
        let mut above: Vec<&str> = ends.map(|end| &path[..end]).collect();
        above.push(path);
        let has_quota = |path: &&str| self.get(&format!("{QUOTAS}{path}{LIMITS}")).is_some();
        above.into_iter().rev().find(has_quota)
    }

    fn text_at(&self, path: &str) -> Option<String> {
        let data = self.get(path)?.data.as_deref().unwrap_or_default();
        Some(String::from_utf8_lossy(data).into_owned())
    }

    /// Refuses a write at `path` that adds this to its quota, beyond a hard limit.
    pub(super) fn check_quota(&self, path: &str, added: Counted) -> Result<(), ErrorCode> {
        let Some(limited) = self.quota_of(path) else {
            return Ok(());
        };
        let limits = self.text_at(&format!("{QUOTAS}{limited}{LIMITS}"));
        let counts = self.text_at(&format!("{QUOTAS}{limited}{COUNTS}"));
        let (Some(limits), Some(counts)) = (limits, counts) else {
            return Ok(());
        };
        let exceeds = |added: i64, key: &str, limit: &str| {
            let limit = number(&limits, limit);
            added != 0 && limit > -1 && number(&counts, key) + added > limit
        };
        let exceeded = exceeds(added.znodes, "count", "countHardLimit")
            || exceeds(added.bytes, "bytes", "byteHardLimit");
        match exceeded {
            true => Err(ErrorCode::QuotaExceeded),
            false => Ok(()),
        }
    }

    /// What a create of a znode with this data adds.
    pub(super) fn added_by_create(data: Option<&[u8]>) -> Counted {
        Counted {
            znodes: 1,
            bytes: data.map_or(0, <[u8]>::len) as i64,
        }
    }

    /// What a write of this data adds to the znode at `path`.
    pub(super) fn added_by_write(&self, path: &str, data: Option<&[u8]>) -> Counted {
        let before = self.get(path).map_or(0, Znode::data_length) as i64;
        Counted {
            znodes: 0,
            bytes: data.map_or(0, <[u8]>::len) as i64 - before,
        }
    }

    /// What a znode adds to its quota. Nothing if there are no quotas.
    pub(super) fn counted_at(&self, path: &str) -> Counted {
        if self.quotas == 0 {
            return Counted::default();
        }
        self.get(path).map_or_else(Counted::default, Counted::of)
    }

    /// Counts an edit that has been applied. `before` is what its znode added before.
    pub(super) fn count(&mut self, edit: &Edit, before: Counted) {
        let path = edit.path.as_str();
        match edit.kind {
            EditKind::Create { .. } if limited_by(path).is_some() => self.quotas += 1,
            EditKind::Create { .. } => self.begin_to_count(path),
            EditKind::Delete if limited_by(path).is_some() => {
                self.quotas = self.quotas.saturating_sub(1);
            }
            _ => {}
        }
        let after = self.counted_at(path);
        let Some(limited) = self.quota_of(path).filter(|_| after != before) else {
            return;
        };
        let counts = format!("{QUOTAS}{limited}{COUNTS}");
        if let Some(counted) = self.text_at(&counts) {
            let sum = Counted {
                znodes: number(&counted, "count") + after.znodes - before.znodes,
                bytes: number(&counted, "bytes") + after.bytes - before.bytes,
            };
            self.overwrite(&counts, sum.text().into_bytes());
        }
    }

    /// Counts what there is, if the znode that was created is the one to count in.
    fn begin_to_count(&mut self, path: &str) {
        let limited = path
            .strip_prefix(QUOTAS)
            .and_then(|path| path.strip_suffix(COUNTS));
        let Some(limited) = limited.filter(|limited| !limited.is_empty()) else {
            return;
        };
        let below = format!("{limited}/");
        let mut sum = Counted::default();
        for (path, node) in self.iter() {
            if path == limited || path.starts_with(&below) {
                let counted = Counted::of(node);
                sum.znodes += counted.znodes;
                sum.bytes += counted.bytes;
            }
        }
        self.overwrite(path, sum.text().into_bytes());
    }
}
