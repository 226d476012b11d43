//! The recipes, Apache Curator and kazoo on one path: real libraries, in processes of their own.

mod fleet;
mod groups;
mod kazoo_suite;
mod killed;
mod overviews;
mod owners;
mod peers;
mod process;
mod read_write;
mod steered;
mod support;
