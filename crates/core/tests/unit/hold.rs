//! What a hold does when it is dropped, and in which order.

use std::task::{Context, Wake};

use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{self, Interest};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::live::live_session::SessionUse;
use crate::live::scripted::*;
use crate::server::options::DEFAULT_MAXBUFFER;
use crate::sync::{Mutex, lock};

/// The level of each event, and how many deletions were sent before it.
type Events = Arc<Mutex<Vec<(Level, usize)>>>;

/// Notes the events.
struct Notes {
    script: Arc<Scripted>,
    events: Events,
}

impl Subscriber for Notes {
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

    fn event(&self, event: &Event<'_>) {
        let deletions = self.script.deletions().len();
        lock(&self.events).push((*event.metadata().level(), deletions));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A hold, and the events from its begin on, while the guard lives.
fn held() -> (Hold, Events, subscriber::DefaultGuard) {
    let (live, script) = Scripted::open(Duration::ZERO);
    let open = OpenSession::new(live, DEFAULT_MAXBUFFER);
    let znode = open.znodes.contender(name("/locks/a"));
    let owner = ZnodeOwner::new(&Arc::new(SessionUse::new(false)), znode);
    let terms = terms(0, None);
    let record = record(&terms);
    let events = Events::default();
    let notes = Notes {
        script,
        events: events.clone(),
    };
    let guard = subscriber::set_default(notes);
    let hold = Hold::begin(owner, &open, terms, record, None);
    lock(&events).clear();
    (hold, events, guard)
}

#[tokio::test(start_paused = true)]
async fn subscriber_that_blocks_delays_no_deletion_of_a_dropped_hold() {
    let (hold, events, _guard) = held();
    drop(hold);
    // It was deleted, and then reported.
    assert_eq!(*lock(&events), [(Level::DEBUG, 1)]);
}

/// Drops a hold as soon as its end is noticed.
struct DropsTheHold(Mutex<Option<Hold>>);

impl Wake for DropsTheHold {
    fn wake(self: Arc<Self>) {
        drop(lock(&self.0).take());
    }
}

#[tokio::test(start_paused = true)]
async fn loss_is_reported_as_a_loss_though_the_hold_is_dropped_at_once() {
    let (hold, events, _guard) = held();
    let view = hold.view();
    let mut ended = pin!(view.ended());
    let waker = Arc::new(DropsTheHold(Mutex::new(Some(hold)))).into();
    let polled = ended.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending(), "it is held");
    view.grant.lose(LossReason::Deleted);
    assert_eq!(*lock(&events), [(Level::WARN, 0)]);
}
