//! The condition of a connection: frozen, closed in a direction, ended.

use tokio::sync::watch;

use super::fault::Direction;

/// In which directions nothing passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frozen {
    to_server: bool,
    to_client: bool,
}

impl Frozen {
    pub(super) const BOTH: Frozen = Frozen {
        to_server: true,
        to_client: true,
    };

    pub(super) fn is(self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    pub(super) fn and(mut self, direction: Direction) -> Frozen {
        match direction {
            Direction::ToServer => self.to_server = true,
            Direction::ToClient => self.to_client = true,
        }
        self
    }
}

/// How a connection ends altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Cut,
    Reset,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) frozen: Frozen,
    pub(super) closed: Frozen,
    pub(super) ending: Option<Ending>,
}

/// Changes the condition of a connection, from outside and by the faults that strike it.
pub(super) struct Link {
    condition: watch::Sender<Condition>,
}

impl Link {
    pub(super) fn new(frozen: Frozen) -> Link {
        Link {
            condition: watch::Sender::new(Condition {
                frozen,
                ..Condition::default()
            }),
        }
    }

    pub(super) fn end(&self, ending: Ending) {
        self.condition.send_modify(|condition| {
            condition.ending.get_or_insert(ending);
        });
    }

    pub(super) fn freeze(&self, frozen: Frozen) {
        self.condition
            .send_modify(|condition| condition.frozen = frozen);
    }

    pub(super) fn half_close(&self, direction: Direction) {
        self.condition
            .send_modify(|condition| condition.closed = condition.closed.and(direction));
    }

    /// Waits for a condition. The sender lives as long as this, so it does not fail.
    pub(super) async fn when(&self, met: impl FnMut(&Condition) -> bool) -> Condition {
        let mut condition = self.condition.subscribe();
        let met = condition.wait_for(met).await.map(|condition| *condition);
        match met {
            Ok(condition) => condition,
            Err(_) => std::future::pending().await,
        }
    }
}
