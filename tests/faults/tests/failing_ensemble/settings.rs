//! How much there is of everything: recipes, members, contenders, sessions.

use std::time::Duration;

pub(crate) const RECIPES: [&str; 5] = [
    "lock",
    "rwlock",
    "semaphore",
    "election",
    "lock-single-node",
];

pub(crate) const MEMBERS: usize = 3;
pub(crate) const CONTENDERS: usize = 30;

/// As many know all members, and as many know one member only, and share its fate.
pub(crate) const SESSIONS_OF_EACH_MEMBER: usize = 2;

pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);
