//! Looking at a queue: who holds, and who waits for whom.

mod kind;
mod picture;
mod row;
mod snapshot;

pub(crate) use kind::RecipeKind;
pub(crate) use picture::{Picture, age, age_of, now};
pub(crate) use row::{Row, State};
pub(crate) use snapshot::Snapshot;
