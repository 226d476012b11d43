//! `zkr watch` on a terminal: what it shows, and what its keys do.

mod app;
mod circles;
mod feed;
mod grid;
mod prompt;
mod queue_view;
mod queues_view;
mod style;
mod text_view;
mod view;

pub(crate) use app::{App, Status};
pub(crate) use feed::{Seen, Source};
pub(crate) use view::Action;

#[cfg(test)]
#[path = "../tests/unit/watch.rs"]
mod tests;
