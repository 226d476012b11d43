//! `zkr` as its users run it: processes, signals, terminals and real servers.

#![cfg(unix)]

#[cfg(target_os = "linux")]
mod pty;
mod support;

mod assignment;
mod bad_input;
mod dev_server;
mod exit_codes;
#[cfg(target_os = "linux")]
mod hostile_text;
mod leading;
mod looking;
mod losing;
mod once;
mod overview;
mod readme;
mod secrets;
mod serve;
mod signals;
#[cfg(target_os = "linux")]
mod terminal;
mod thorough;
mod time_limit;
mod tls;
#[cfg(target_os = "linux")]
mod watching;
