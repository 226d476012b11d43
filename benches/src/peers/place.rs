//! Where the libraries work.

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use zookeeper_recipes_benches::Testbed;

use crate::packets::{Packets, Passed};

/// How a library reaches the servers of a testbed.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) connect_string: String,
    /// The words before a command that make it run there.
    pub(crate) entrance: Vec<String>,
    /// The packets between the libraries and the servers.
    pub(crate) packets: Arc<Mutex<Packets>>,
}

impl Place {
    /// On the same machine, over loopback. No packets are counted.
    pub(crate) fn loopback(testbed: &Testbed) -> Place {
        Place {
            connect_string: testbed.server().connect_string(),
            entrance: Vec::new(),
            packets: Arc::default(),
        }
    }

    /// This command, to be run in this place.
    pub(crate) fn command(&self, command: Command) -> Command {
        let [program, arguments @ ..] = &self.entrance[..] else {
            return command;
        };
        let mut entered = Command::new(program);
        entered.args(arguments);
        entered.arg(command.get_program()).args(command.get_args());
        entered
    }

    /// The packets until now.
    pub(crate) fn passed(&self) -> Passed {
        let packets = self.packets.lock();
        packets.unwrap_or_else(PoisonError::into_inner).passed
    }
}
