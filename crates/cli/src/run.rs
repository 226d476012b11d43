//! Running a command while something is held.
//!
//! | process | what it does |
//! |---|---|
//! | `zkr` | holds, renews the hold at the guard, passes signals on, keeps the terminal |
//! | the guard, a child of `zkr` | stops the command before the hold runs out, or if `zkr` dies |
//! | the command, a child of the guard | runs in a process group of its own |
//!
//! The guard and the beginning of the command's process are `zkr` itself, in another part.
//!
//! # What stops the command
//!
//! | what happens | what the guard does |
//! |---|---|
//! | `--grace` is left of the hold, and nothing renews it | SIGTERM to the group |
//! | another process is to lead (`zkr leader --transfer-to`, `--standby`) | SIGTERM to the group, and SIGKILL after `--grace` |
//! | the hold is about to run out | SIGKILL to the group |
//! | another client deletes the holder's znode | SIGKILL to the group when `zkr` notices it |
//! | `zkr` dies | SIGKILL to the group, at once |
//! | `zkr` is stopped | as if nothing renewed the hold |
//!
//! If the guard dies, `zkr` kills the group, and Linux kills the command itself. If the guard is
//! stopped, `zkr` continues it and reports so.
//!
//! # What remains
//!
//! * `zkr` and the guard, or the whole machine, are stopped for longer than the hold lasts. The
//!   command may run for as long as both are stopped, and for a moment when they continue. A store
//!   that checks `ZKR_FENCING_TOKEN` refuses it.
//! * A process that leaves the command's process group, such as a daemon, is not stopped.
//! * On systems other than Linux, a killed guard and a killed `zkr` together leave the command.

mod clock;
mod descriptor;
mod guard;
mod guarded;
mod hosts_file;
mod in_slot;
mod itself;
mod leading;
mod message;
mod part;
mod program;
mod progress;
mod signals;
mod started;
mod supervise;
mod switch;
mod task;
mod terminal;
mod under_hold;
mod wait;

pub(crate) use leading::Lead;
pub(crate) use part::play_part;
pub(crate) use signals::Signals;
pub(crate) use task::TaskArguments;
pub(crate) use under_hold::{HoldArguments, UnderHold};
pub(crate) use wait::WaitArguments;
