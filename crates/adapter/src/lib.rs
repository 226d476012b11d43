//! Recipes over a `zookeeper_client::Client` that the caller has connected.
//!
//! Use this for a client that your program shares with other code, or for Kerberos. Otherwise use
//! `Session::connect` of `zookeeper-recipes-core`, whose connection gives stronger guarantees.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use zookeeper_client::Client;
//! use zookeeper_recipes_adapter::ClientEnsemble;
//! use zookeeper_recipes_core::{ConnectOptions, Error, Session};
//!
//! # async fn example(client: Client) -> Result<(), Error> {
//! let ensemble = Arc::new(ClientEnsemble::new(client));
//! let session = Session::open(ensemble, ConnectOptions::new()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What cannot be promised
//!
//! | what the client does (zookeeper-client 0.11.2) | consequence |
//! |---|---|
//! | it does not report a session timeout that a server has lowered at a reconnect | a holder can learn of its loss too late: lower the timeout of the client before that of the servers |
//! | it silently adopts another session | [`ClientEnsemble`] keeps a guard: see [its costs](ClientEnsemble#the-guard) |
//! | it cannot restore more than 128 KiB of watched paths | beyond 64 KiB, znodes are read every sixth of the session timeout, and waiters learn that late of their turn |
//! | it ends the session by itself after 7/5 of the session timeout without a server | a session can end that a server would still have known |
//! | it gives up permanently if a server refuses an authentication at a reconnect, even once | the session is over, and no other one is opened: connect another client |
//! | it retries hosts without a pause if connects fail at once: no route, no file descriptors, no TLS at the port | its tasks keep a processor busy, and other tasks of their threads wait: give the client a runtime of its own |
//! | it panics at a reply that is too short, and at a host such as `zk..a` with TLS | its task ends, and no answers come: the holds are lost with their lease, and the client has to be replaced |
//! | its session stays open as long as a clone of it lives | see [`ClientEnsemble`] |

#![doc(html_root_url = "https://docs.rs/zookeeper-recipes-adapter/latest")]

mod ensemble;
mod fence;
mod session;
mod transaction;
mod values;
mod watched_paths;

pub use ensemble::ClientEnsemble;
