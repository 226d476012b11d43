//! The embedded server, as clients over TCP see it.

#[cfg(feature = "admin")]
mod admin;
mod any_requests;
mod conformance;
mod differential;
mod four_letter_words;
mod hostile_clients;
mod members;
mod server_options;
mod sessions;
mod start;
#[cfg(feature = "admin")]
mod web_pages;

use zookeeper_recipes_suite::raw;
