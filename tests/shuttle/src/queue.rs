//! A queue of one process, in which one contender at a time holds.

use std::borrow::Cow;

use shuttle::future::block_on;
use zookeeper_recipes_core::{
    ConnectOptions, InvalidInput, Queue, QueueOptions, QueueView, Rule, Session, Verdict,
};

use crate::server::Server;

/// The directory of the queue.
pub const DIRECTORY: &str = "/lock";

/// The first contender holds. Each other one waits for the one before it.
#[derive(Debug)]
struct First;

impl Rule for First {
    fn label(&self) -> Cow<'_, str> {
        "lock-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        Ok(match view.place().checked_sub(1) {
            None => Verdict::Hold,
            Some(predecessor) => Verdict::wait_on(predecessor),
        })
    }
}

/// A session of a server in memory, and a queue whose clones are one contender.
///
/// # Panics
///
/// If no session opens.
pub fn queue() -> (Server, Session, Queue) {
    let server = Server::default();
    let session = Session::open(server.ensemble(), ConnectOptions::new());
    let session = block_on(session).expect("a session");
    let options = QueueOptions::new().one_contender();
    let queue = Queue::with_options(&session, DIRECTORY, First, options);
    (server, session, queue.expect("a good path"))
}
