//! The fate of a holder's znode.

use tokio::sync::watch;

/// What has become of a grant's znode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Standing,
    Deleted,
    Written,
    /// The lease has lapsed, and the znode is being deleted for that.
    Lapsed,
}

impl Fate {
    /// Tells a grant its fate. The first one counts.
    pub(crate) fn befall(self, grant: &watch::Sender<Fate>) {
        grant.send_if_modified(|now| {
            let standing = *now == Fate::Standing;
            if standing {
                *now = self;
            }
            standing
        });
    }
}
