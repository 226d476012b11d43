//! A subscriber that keeps the events of the recipes, and the spans that they happen in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Clone, Debug)]
pub struct Line {
    pub level: Level,
    pub message: String,
    /// The other fields, as text.
    pub fields: BTreeMap<String, String>,
    /// The spans around the event, innermost last.
    pub spans: Vec<&'static str>,
}

/// Keeps the events of the recipes. Its clones keep the same.
#[derive(Clone, Debug)]
pub struct Log {
    state: Arc<Mutex<State>>,
    /// The most verbose level that is kept. `None` keeps nothing.
    most: Option<Level>,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    /// The names of all spans. The id is the place, from one.
    spans: Vec<&'static str>,
    /// How many handles there are of all spans together.
    handles: usize,
    entered: Vec<u64>,
}

impl Log {
    /// Keeps the events of this level and of those above it.
    pub fn up_to(most: Level) -> Log {
        // If there is only one subscriber, tracing asks the thread that first logs an event, which may
        // have none. The event would then be off in all threads.
        static SECOND: Once = Once::new();
        SECOND.call_once(|| drop(set_global_default(Log::of(None))));
        Log::of(Some(most))
    }

    fn of(most: Option<Level>) -> Log {
        let state = Arc::default();
        Log { state, most }
    }

    /// The events so far.
    pub fn lines(&self) -> Vec<Line> {
        self.state().lines.clone()
    }

    /// How many handles of spans are left.
    pub fn open_spans(&self) -> usize {
        self.state().handles
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn name(&self, id: u64) -> Option<&'static str> {
        let place = usize::try_from(id).ok()?.checked_sub(1)?;
        self.spans.get(place).copied()
    }
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Log {
    fn register_callsite(&self, _metadata: &Metadata<'_>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_kept = |most| *metadata.level() <= most;
        metadata.target() == "zookeeper_recipes" && self.most.is_some_and(is_kept)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut state = self.state();
        state.handles += 1;
        state.spans.push(span.metadata().name());
        Id::from_u64(state.spans.len() as u64)
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.state().handles += 1;
        id.clone()
    }

    fn try_close(&self, _id: Id) -> bool {
        self.state().handles -= 1;
        true
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let mut state = self.state();
        let around = match event.parent() {
            Some(parent) => vec![parent.into_u64()],
            None => state.entered.clone(),
        };
        let spans = around.into_iter().filter_map(|id| state.name(id)).collect();
        state.lines.push(Line {
            level: *event.metadata().level(),
            message,
            fields: fields.0,
            spans,
        });
    }

    fn enter(&self, span: &Id) {
        self.state().entered.push(span.into_u64());
    }

    fn exit(&self, _span: &Id) {
        self.state().entered.pop();
    }
}
