//! The lease of a session: may it run when a leader expires the session?
//!
//! The model follows one session of one client, and the servers as far as the session's life
//! depends on them. All times are ages in whole units: a state knows how long ago something
//! happened, and never when. Every moment and every order of events is the adversary's choice:
//! how long the client pauses, how long a request and its answer take, when a server is cut off,
//! who stops, who is elected.
//!
//! # Where the model is wider than the servers
//! Each of these adds schedules and takes none away, so a rule that is clean here is clean there.
//! - A leader rounds an expiry up to the next multiple of its tick. The phase of these multiples is
//!   the adversary's, so here the leader may expire the session at any moment from T on.
//! - A request may take for ever, and so may its answer.
//! - A comparison includes equality. With whole units for all constants, whole units for all
//!   moments are then enough: a schedule with moments in between can be rounded to one without.
//!
//! # What the model leaves out
//! Each of these is a schedule for which the model has another one that is at least as bad.
//! - The way from the follower to its leader takes no time. A request that is slow on this way is
//!   one that is slow before it, and a report that is slow on it touches the session later.
//! - The model follows one contact at a time, with the requests that confirm it: the lease counts
//!   from a single contact, and other requests only touch the session. The adversary chooses the
//!   contact.
//! - An isolated leader does not expire the session, since it commits nothing.
//! - A contact is covered, and has no age any more, once the last touch came so late that the lease
//!   counted from the contact runs out first: later touches and later leaders only add to that.
//!   [`Servers::unreduced`] switches this off.

mod contact;
mod model;
mod parameters;
mod schedule;
mod state;

pub use contact::{Contact, Request};
pub use model::Action;
pub use parameters::{CountedFrom, LeaseModel, Proof, Rule, Servers, WaitFrom};
pub use schedule::schedule;
pub use state::{Connection, Proven, State};

/// A moment, as the units that have passed since.
pub type Age = u16;
