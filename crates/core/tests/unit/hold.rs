//! What a hold does when it is dropped, and in which order.

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{self, Interest};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::live::live_session::SessionUse;
use crate::live::scripted::*;
use crate::server::options::DEFAULT_MAXBUFFER;
use crate::sync::{Mutex, lock};

/// Notes how many deletions were sent before each event.
struct SentBefore {
    script: Arc<Scripted>,
    sent: Arc<Mutex<Vec<usize>>>,
}

impl Subscriber for SentBefore {
    fn register_callsite(&self, _: &Metadata<'_>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        lock(&self.sent).push(self.script.deletions().len());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn subscriber_that_blocks_delays_no_deletion_of_a_dropped_hold() {
    let (live, script) = Scripted::open(Duration::ZERO);
    let open = OpenSession::new(live, DEFAULT_MAXBUFFER);
    let znode = open.znodes.contender(name("/locks/a"));
    let owner = ZnodeOwner::new(&Arc::new(SessionUse::new(false)), znode);
    let sent = Arc::default();
    let sent_before = SentBefore {
        script,
        sent: Arc::clone(&sent),
    };
    let _default = subscriber::set_default(sent_before);
    let terms = terms(0, None);
    let record = record(&terms);
    let hold = Hold::begin(owner, &open, terms, record, None);
    lock(&sent).clear();
    drop(hold);
    assert_eq!(*lock(&sent), [1], "it was deleted, and then reported");
}
