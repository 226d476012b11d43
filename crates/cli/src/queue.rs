//! Looking at a queue: who holds, and who waits for whom.

mod circle;
mod picture;
mod row;
mod slot;
mod summary;
mod table;

pub(crate) use circle::{circle_json, circle_lines};
pub(crate) use picture::Picture;
pub(crate) use row::{Row, json_of, recipe};
#[cfg(unix)]
pub(crate) use slot::slot_text;
pub(crate) use summary::{COLUMNS, Sort, Summary, Trouble, summary_table};
pub(crate) use table::{age, age_of, elapsed, milliseconds, now};
