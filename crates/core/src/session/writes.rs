//! The guarded writes that are about to be sent under a shared name.
//!
//! A guarded write looks at its hold, and is sent then. The thread of the write may stand still in
//! between. If the session deletes the holder's znode meanwhile, another client may create a znode
//! of the same name, and the server accepts the late write. So the deletion of a znode with a
//! shared name waits for the writes under that name.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// The number of guarded writes of one session between look and sending, by the holder's znode.
#[derive(Debug, Default)]
pub(crate) struct Writes(watch::Sender<BTreeMap<String, usize>>);

/// A guarded write that is about to be sent. A drop tells that it is sent, or is given up.
#[must_use = "a deletion waits for the write until this is dropped"]
pub(crate) struct AboutToSend {
    writes: Arc<Writes>,
    path: String,
}

impl Writes {
    /// Begins a write under the hold of the znode at `path`, before the look at the hold.
    pub(crate) fn begin(self: &Arc<Self>, path: &str) -> AboutToSend {
        let path = path.to_owned();
        self.0
            .send_modify(|writes| *writes.entry(path.clone()).or_default() += 1);
        let writes = self.clone();
        AboutToSend { writes, path }
    }

    /// Waits until each write that has begun under the hold of this znode is sent.
    ///
    /// A write that begins later sees that the hold has ended, if the hold has ended before the
    /// call.
    pub(crate) async fn until_sent(&self, path: &str) {
        let mut writes = self.0.subscribe();
        // The sender cannot be dropped before this future.
        let _ = writes.wait_for(|writes| !writes.contains_key(path)).await;
    }
}

impl Drop for AboutToSend {
    fn drop(&mut self) {
        self.writes.0.send_modify(|writes| {
            if let Some(number) = writes.get_mut(&self.path) {
                *number -= 1;
                if *number == 0 {
                    writes.remove(&self.path);
                }
            }
        });
    }
}
