//! The examples run, and what the README and the pages say is so.

mod custom_rule;
mod examples_run;
mod leader_service;
mod readme;
