//! What all recipes promise alike.

mod bad_input;
mod crowds;
mod loss_reasons;
mod names;
mod paused_clock;
mod time_limits;
