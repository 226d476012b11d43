//! The benches as their users run them.

mod demo;
mod reports;
