//! Looking at a queue: who holds, and who waits for whom.

mod picture;
mod row;
mod slot;
mod table;

pub(crate) use picture::Picture;
pub(crate) use row::{Row, json_of, recipe};
#[cfg(unix)]
pub(crate) use slot::slot_text;
pub(crate) use table::{age, age_of, aligned, milliseconds, now, or_dash};
