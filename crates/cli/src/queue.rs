//! Looking at a queue: who holds, and who waits for whom.

mod kind;
mod picture;
mod row;
mod slot;
mod snapshot;

pub(crate) use kind::{RecipeKind, is_contender};
pub(crate) use picture::{Picture, age, age_of, now};
pub(crate) use row::{Row, State, milliseconds};
#[cfg(unix)]
pub(crate) use slot::slot_text;
pub(crate) use snapshot::Snapshot;
