//! What tests of TLS need: certificates, and listeners in front of a server.

mod certificates;
mod front;

pub use certificates::{Authority, Files, Issued, trusting};
pub use front::{After, Front, Tap};
