//! What all recipes promise alike.

mod bad_input;
mod log;
mod names;
mod paused_clock;
mod time_limits;
mod unknown_requests;
