//! The watches that a waiter keeps from one look at the queue to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::{FutureExt, select_all};

use crate::backoff::Backoff;
use crate::hold::loss_watch::{LossWatch, Standing};
use crate::server::ensemble::{Event, ServerSession, Watch};

/// The watches of one waiter, kept as long as they are useful.
pub(crate) struct Watches {
    /// On the waiter's own znode.
    pub(crate) own: Option<LossWatch>,
    /// On the directory's data.
    pub(crate) directory: Option<Watch>,
    /// False if the directory's data, as the watch on it was set, rules out a step back. `None` if
    /// the data was not read.
    pub(crate) may_step_back: Option<bool>,
    /// On the directory's children.
    pub(crate) parent: Option<Watch>,
    /// On the contenders that the waiter waits on, by name.
    pub(crate) contenders: BTreeMap<String, Watch>,
    /// The connection over which the last watch was set.
    ///
    /// Over a later one, events may come in another order than they happened in.
    pub(crate) connection: Option<u64>,
    /// Paces the looks if contenders leave before they are watched.
    pub(crate) look_again: Backoff,
}

impl Default for Watches {
    fn default() -> Watches {
        Watches {
            own: None,
            directory: None,
            may_step_back: None,
            parent: None,
            contenders: BTreeMap::new(),
            connection: None,
            look_again: may_happen(),
        }
    }
}

/// The pauses for contenders that leave before they are watched.
///
/// This may happen a few times in a row, without a pause.
pub(crate) fn may_happen() -> Backoff {
    Backoff::after(4, Duration::from_secs(1))
}

/// What wakes a waiter.
pub(crate) enum Woken {
    OwnGone,
    /// The directory's data has changed.
    Directory,
    /// The queue must be listed.
    Changed,
    /// The znode of the contender with this name is deleted.
    Gone(String),
    /// Somebody wrote to the znode of the contender with this name.
    Written(String),
}

impl Watches {
    /// Drops the watches on all contenders but these.
    pub(crate) fn keep(&mut self, names: &[&str]) {
        self.contenders
            .retain(|name, _| names.contains(&name.as_str()));
    }

    /// The state of the waiter's own znode, at an event of another znode.
    ///
    /// If both znodes are watched over one connection, every earlier event of the own znode is
    /// known. After a reconnect an earlier event may come later.
    pub(crate) fn look_at_own(&mut self, server: &dyn ServerSession) -> Standing {
        let is_same_connection =
            self.connection.is_some() && self.connection == server.connection();
        match self.own.as_mut().map(LossWatch::look) {
            Some(Standing::Certain) if is_same_connection => Standing::Certain,
            Some(Standing::Gone) => Standing::Gone,
            _ => Standing::Doubtful,
        }
    }

    /// True if the contender need not look behind it before it holds.
    ///
    /// The directory's data says so, and has not changed. A server tells of a change before it
    /// answers a later request. At an event, a change may be told later only after a reconnect,
    /// and then the own znode [is in doubt](Self::look_at_own).
    pub(crate) fn rule_out_a_step_back(&mut self) -> bool {
        let directory = self.directory.as_mut();
        let is_unchanged = directory.is_some_and(|watch| watch.now_or_never().is_none());
        if !is_unchanged {
            // A future must not be polled again once it has resolved.
            self.directory = None;
        }
        is_unchanged && self.may_step_back == Some(false)
    }

    /// Waits for the first event.
    pub(crate) async fn next(&mut self) -> Woken {
        let own = async {
            match &mut self.own {
                Some(own) => own.gone().await,
                None => std::future::pending().await,
            }
        };
        let directory = async {
            match &mut self.directory {
                Some(watch) => watch.await,
                None => std::future::pending().await,
            }
        };
        let other = async {
            match self.contenders.is_empty() {
                true => std::future::pending().await,
                false => select_all(self.contenders.values_mut()).await,
            }
        };
        let woken = tokio::select! {
            // If the waiter's own deletion and another's are both known, its own counts.
            biased;
            _ = own => return Woken::OwnGone,
            _ = directory => None,
            (event, index, _) = other => Some((event, index)),
        };
        let Some((event, index)) = woken else {
            self.directory = None;
            return Woken::Directory;
        };
        let name = self
            .contenders
            .keys()
            .nth(index)
            .cloned()
            .unwrap_or_default();
        self.contenders.remove(&name);
        match event {
            Event::DataChanged | Event::Created | Event::ChildrenChanged => Woken::Written(name),
            Event::Deleted => Woken::Gone(name),
            Event::Unwatched | Event::SessionEnded(_) => Woken::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::loss_watch::Watched;
    use crate::hold::own_znode::OwnNode;
    use crate::session::scripted::Scripted;

    /// After a reconnect the server tells of missed events in any order.
    #[tokio::test(start_paused = true)]
    async fn own_znode_is_in_doubt_once_the_connection_has_broken() {
        let (live, server) = Scripted::open(Duration::from_millis(1));
        let watched = Watched {
            node: OwnNode::unique(&live, "/own"),
            live,
            server: server.clone(),
        };
        let never = std::future::pending().boxed();
        let mut watches = Watches {
            own: Some(LossWatch::armed(watched, never)),
            connection: server.connection(),
            ..Watches::default()
        };
        assert_eq!(watches.look_at_own(&*server), Standing::Certain);
        server.reconnect();
        assert_eq!(watches.look_at_own(&*server), Standing::Doubtful);
    }
}
