//! HTTP ports for operators: bounded, and closed to web pages of other origins.
//!
//! `zkr serve` and the admin port of the embedded ZooKeeper serve with this crate. It is a part of
//! these two: a minor version may change any of it.
//!
//! | part | what it does |
//! |---|---|
//! | [`guarded`] | checks `Host`, `Origin`, `Sec-Fetch-Site` and the body of each request, and adds headers to each answer |
//! | [`serve`] | takes connections, with limits of number, size and time |
//! | [`in_parts`], [`streamed`] | a large answer, and a stream of events that lasts |
//! | [`Refused`], [`json_response`] | answers in JSON |

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-http/latest")]

mod admission;
mod connections;
mod response;

pub use admission::{Admission, guarded};
pub use connections::{Deadline, in_parts, serve, streamed};
pub use response::{Refused, json_response};
