//! The four-letter words: a server's own account of itself, over a plain TCP connection.
//!
//! They reach a server that has no quorum, take no session, and leave nothing behind.
//! Each does count as a packet received in the server's own figures: see
//! [`Monitor::packets_received`].

mod ask;
mod listing;
mod monitor;
mod status;
pub(crate) mod word;

pub use ask::{PATIENCE, ask, ask_within};
pub use listing::{parse_ephemerals, parse_watches};
pub use monitor::Monitor;
pub use status::{Mode, Status};
pub use word::FourLetterWord;
