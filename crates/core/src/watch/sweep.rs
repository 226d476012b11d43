//! The sweep: reads the znodes for which a session has no watch budget left.
//!
//! A watcher without budget registers a [`Look`] at its znode. One task of the session reads all
//! these znodes in each sixth of the session timeout. It reads each znode once, and up to a
//! thousand znodes in a request. The task runs only while a look is registered.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::server::ensemble::{Node, ServerSession};
use crate::server::error::{Refusal, ServerError};
use crate::session::live::{Attachment, LiveSession};
use crate::sync::lock;
use crate::watch::budget::WatchBudget;

/// The largest number of znodes in one request.
const MOST_IN_REQUEST: usize = 1_000;
/// The largest number of bytes in one answer, far below a server's limit.
const MOST_BYTES_IN_REQUEST: usize = 512 * 1024;
/// The largest number of znodes of each urgency in one sweep. The next sweep reads the rest.
const MOST_IN_SWEEP: usize = 3_000;
/// The assumed size of a znode's data before the first read.
const ASSUMED_BYTES: usize = 8 * 1024;
/// The size of a znode's metadata in an answer.
const STAT_BYTES: usize = 80;

/// The urgency of a look. Looks of the second urgency do not delay looks of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A waiter waits for the deletion of the znode.
    Waited,
    /// A holder or an observer waits for a change of the znode.
    Other,
}

/// The result of a read of a znode.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    Gone,
    /// The znode exists. The data is empty if no look wants it.
    There(Arc<Node>),
    Refused(Refusal),
}

/// The znodes of one session that the sweep reads.
#[derive(Default)]
pub(crate) struct Sweep {
    znodes: Mutex<Znodes>,
}

#[derive(Default)]
struct Znodes {
    by_path: BTreeMap<Arc<str>, Znode>,
    /// The path that was last read, for each urgency.
    last: [Option<Arc<str>>; 2],
    /// The number of requests until now.
    requests: u64,
    is_running: bool,
}

struct Znode {
    /// The number of looks at the znode, for each urgency.
    looks: [usize; 2],
    wants_data: bool,
    /// True if a look has begun since the request of the last read.
    is_new_to_some: bool,
    /// The number of requests before the last look began.
    requests_before: u64,
    /// The size of the znode in an answer.
    bytes: usize,
    seen: watch::Sender<Option<Read>>,
}

/// The result of a read, and the number of its request.
type Read = (u64, Seen);

impl Default for Znode {
    fn default() -> Znode {
        Znode {
            looks: [0; 2],
            wants_data: false,
            is_new_to_some: true,
            requests_before: 0,
            bytes: ASSUMED_BYTES,
            seen: watch::Sender::new(None),
        }
    }
}

/// A request to read one znode in each sweep, until the look is dropped.
pub(crate) struct Look {
    sweep: Arc<Sweep>,
    path: Arc<str>,
    urgency: Urgency,
    /// The number of requests before the look. Their results may be outdated.
    requests_before: u64,
    seen: watch::Receiver<Option<Read>>,
}

/// Reads a znode in each sweep, without its data, until the look is dropped.
pub(crate) fn look_at(live: &Arc<LiveSession>, path: &str, urgency: Urgency) -> Look {
    begin(live, path, urgency, false)
}

/// Reads a znode in each sweep, with its data, until the look is dropped.
pub(crate) fn read(live: &Arc<LiveSession>, path: &str, urgency: Urgency) -> Look {
    begin(live, path, urgency, true)
}

fn begin(live: &Arc<LiveSession>, path: &str, urgency: Urgency, wants_data: bool) -> Look {
    let sweep = live.attached::<Sweep>();
    let mut znodes = lock(&sweep.znodes);
    let known = znodes.by_path.get_key_value(path);
    let path = known.map_or_else(|| path.into(), |(path, _)| path.clone());
    let requests_before = znodes.requests;
    let znode = znodes.by_path.entry(path.clone()).or_default();
    znode.looks[urgency as usize] += 1;
    znode.wants_data |= wants_data;
    znode.is_new_to_some = true;
    znode.requests_before = requests_before;
    let seen = znode.seen.subscribe();
    let is_running = std::mem::replace(&mut znodes.is_running, true);
    drop(znodes);
    if !is_running {
        live.in_background(run(live.clone()));
    }
    Look {
        sweep,
        path,
        urgency,
        requests_before,
        seen,
    }
}

impl Look {
    /// Waits until `is_news` returns a value for a result, and returns that value.
    ///
    /// Cancel safe: may be dropped and called again.
    pub(crate) async fn until<T>(&mut self, mut is_news: impl FnMut(&Seen) -> Option<T>) -> T {
        loop {
            // The sender cannot be dropped before the look.
            if self.seen.changed().await.is_err() {
                return std::future::pending().await;
            }
            let news = self
                .seen
                .borrow_and_update()
                .as_ref()
                .filter(|(request, _)| *request > self.requests_before)
                .and_then(|(_, seen)| is_news(seen));
            if let Some(news) = news {
                return news;
            }
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        let mut znodes = lock(&self.sweep.znodes);
        let Some(znode) = znodes.by_path.get_mut(&self.path) else {
            return;
        };
        znode.looks[self.urgency as usize] -= 1;
        if znode.looks == [0; 2] {
            znodes.by_path.remove(&self.path);
        }
    }
}

/// The pause between two sweeps. Each sweep reads each znode, unless there are too many.
pub(crate) fn interval(live: &LiveSession) -> Duration {
    live.timeout() / 6
}

/// Sweeps until no look is registered.
async fn run(live: Arc<LiveSession>) {
    let sweep = live.attached::<Sweep>();
    loop {
        tokio::time::sleep(interval(&live)).await;
        let Ok(server) = live.server() else { return };
        for urgency in [Urgency::Waited, Urgency::Other] {
            let due = sweep.due(urgency);
            if sweep.read(&*server, due).await.is_none() {
                break;
            }
        }
        live.attached::<WatchBudget>().let_all_try();
        if sweep.ends() {
            return;
        }
    }
}

impl Attachment for Sweep {
    fn attach(_live: &LiveSession) -> Sweep {
        Sweep::default()
    }
}

impl Sweep {
    /// True if no look is registered. The next look then has to start the task again.
    fn ends(&self) -> bool {
        let mut znodes = lock(&self.znodes);
        znodes.is_running = !znodes.by_path.is_empty();
        !znodes.is_running
    }

    /// The paths to read now, split into requests, beginning after the last sweep's last path.
    fn due(&self, urgency: Urgency) -> Vec<Vec<String>> {
        let mut znodes = lock(&self.znodes);
        let is_due = |znode: &Znode| match urgency {
            Urgency::Waited => znode.looks[Urgency::Waited as usize] > 0,
            Urgency::Other => znode.looks[Urgency::Waited as usize] == 0,
        };
        let last = znodes.last[urgency as usize].clone();
        let last = last.as_deref().unwrap_or_default();
        let after = (Bound::Excluded(last), Bound::Unbounded);
        let until = (Bound::Unbounded, Bound::Included(last));
        let in_turn = znodes.by_path.range::<str, _>(after);
        let in_turn = in_turn.chain(znodes.by_path.range::<str, _>(until));
        let (mut requests, mut request, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut last = None;
        let due = in_turn.filter(|(_, znode)| is_due(znode));
        for (path, znode) in due.take(MOST_IN_SWEEP) {
            bytes += path.len() + znode.bytes;
            if bytes > MOST_BYTES_IN_REQUEST || request.len() == MOST_IN_REQUEST {
                requests.push(std::mem::take(&mut request));
                bytes = path.len() + znode.bytes;
            }
            request.push(path.to_string());
            last = Some(path.clone());
        }
        requests.push(request);
        requests.retain(|request| !request.is_empty());
        znodes.last[urgency as usize] = last;
        requests
    }

    /// Sends the requests one after another, and passes on the results.
    ///
    /// `None` if a request failed, so that this sweep must end.
    async fn read(&self, server: &dyn ServerSession, mut requests: Vec<Vec<String>>) -> Option<()> {
        requests.reverse();
        while let Some(mut paths) = requests.pop() {
            let request = self.next_request();
            match server.get_each(&paths).await {
                Ok(nodes) => {
                    for (path, node) in paths.iter().zip(nodes) {
                        self.tell(request, path, node);
                    }
                }
                Err(ServerError::Refused(refusal)) if refusal != Refusal::Throttled => {
                    if let [path] = &*paths {
                        self.refused(request, path, refusal);
                    } else {
                        // The refusal does not name the path that it is about.
                        requests.push(paths.split_off(paths.len() / 2));
                        requests.push(paths);
                    }
                }
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// The number of a request that is about to be sent.
    fn next_request(&self) -> u64 {
        let mut znodes = lock(&self.znodes);
        znodes.requests += 1;
        znodes.requests
    }

    fn tell(&self, request: u64, path: &str, node: Option<Node>) {
        let mut znodes = lock(&self.znodes);
        let Some(znode) = znodes.by_path.get_mut(path) else {
            return;
        };
        let now = node.map_or(Seen::Gone, |(mut data, stat)| {
            znode.bytes = data.len() + STAT_BYTES;
            if !znode.wants_data {
                data = Vec::new();
            }
            Seen::There(Arc::new((data, stat)))
        });
        let is_new_to_some = znode.is_new_to_some;
        if request > znode.requests_before {
            znode.is_new_to_some = false;
        }
        znode.seen.send_if_modified(|before| {
            let is_known = match (&*before, &now) {
                (Some((_, Seen::Gone)), Seen::Gone) => true,
                (Some((_, Seen::There(before))), Seen::There(now)) => before.1.mzxid == now.1.mzxid,
                _ => false,
            };
            *before = Some((request, now));
            is_new_to_some || !is_known
        });
    }

    fn refused(&self, request: u64, path: &str, refusal: Refusal) {
        if let Some(znode) = lock(&self.znodes).by_path.get(path) {
            let refused = Seen::Refused(refusal);
            znode.seen.send_replace(Some((request, refused)));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::FutureExt;

    use super::*;
    use crate::session::scripted::Scripted;

    #[tokio::test(start_paused = true)]
    async fn look_that_begins_later_is_told_what_the_first_has_seen() {
        let (live, _script) = Scripted::open(Duration::from_secs(1));
        let look = || look_at(&live, "/a", Urgency::Other);
        let is_told = |look: &mut Look| {
            let sweep = live.attached::<Sweep>();
            sweep.tell(sweep.next_request(), "/a", None);
            look.until(|_| Some(())).now_or_never().is_some()
        };
        let mut first = look();
        assert!(is_told(&mut first));
        assert!(!is_told(&mut first));
        assert!(is_told(&mut look()));
    }

    #[tokio::test(start_paused = true)]
    async fn look_is_told_nothing_that_was_asked_for_before_it() {
        let (live, _script) = Scripted::open(Duration::from_secs(1));
        let sweep = live.attached::<Sweep>();
        let is_told = |look: &mut Look, request| {
            sweep.tell(request, "/a", None);
            look.until(|_| Some(())).now_or_never().is_some()
        };
        let mut first = look_at(&live, "/a", Urgency::Other);
        let request = sweep.next_request();
        let mut second = look_at(&live, "/a", Urgency::Other);
        assert!(!is_told(&mut second, request));
        assert!(is_told(&mut first, request));
        assert!(is_told(&mut second, sweep.next_request()));
    }

    #[test]
    fn sweeps_take_turns_when_there_is_too_much_for_one() {
        let sweep = Sweep::default();
        let path = |place: usize| Arc::from(format!("/{place:06}"));
        for place in 0..7_000 {
            let znode = Znode {
                // Each hundredth znode has a waiter, and is read in each sweep.
                looks: [usize::from(place % 100 == 0), 1],
                bytes: STAT_BYTES,
                ..Znode::default()
            };
            lock(&sweep.znodes).by_path.insert(path(place), znode);
        }
        let mut read: Vec<String> = Vec::new();
        for _ in 0..3 {
            assert_eq!(sweep.due(Urgency::Waited).concat().len(), 70);
            let due = sweep.due(Urgency::Other);
            assert!(due.iter().all(|request| request.len() <= MOST_IN_REQUEST));
            assert_eq!(due.concat().len(), MOST_IN_SWEEP);
            read.extend(due.concat());
        }
        read.sort();
        read.dedup();
        assert_eq!(read.len(), 7_000 - 70);
    }

    #[test]
    fn znodes_with_much_data_are_read_a_few_at_a_time() {
        let sweep = Sweep::default();
        for place in 0..1_000 {
            let path = Arc::from(format!("/{place:06}"));
            lock(&sweep.znodes).by_path.insert(path, Znode::default());
        }
        let due = sweep.due(Urgency::Other);
        assert_eq!(due.concat().len(), 1_000);
        let most = due.iter().map(Vec::len).max();
        assert!(most.is_some_and(|most| most * ASSUMED_BYTES <= MOST_BYTES_IN_REQUEST));
    }
}
