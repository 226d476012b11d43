//! The fate of a holder's znode.

use tokio::sync::watch;

/// What has happened to a grant's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Standing,
    Deleted,
    Written,
    /// The lease has lapsed, so the znode is being deleted.
    Lapsed,
}

impl Fate {
    /// Tells a grant its fate. Only the first fate counts.
    pub(crate) fn tell(self, grant: &watch::Sender<Fate>) {
        grant.send_if_modified(|now| {
            let standing = *now == Fate::Standing;
            if standing {
                *now = self;
            }
            standing
        });
    }
}
