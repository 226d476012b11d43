//! The same random requests get the same answers from Apache's server and from the embedded one.
//!
//! Several sessions send them, one at a time. What is compared is each reply with its error code,
//! the events of each session in their order, and the metadata. What differs on purpose:
//!
//! | what | Apache's server | the embedded server |
//! |---|---|---|
//! | zxids | from 1 | of an epoch; compared by their order |
//! | times, session ids | its own | its own; not compared |
//! | children, own ephemeral znodes | in the order of a hash | sorted |
//! | identities of a client | in the order of a hash | in the order in which they were shown |
//! | deletions when a session ends | in the order of a hash | in a random order |
//! | a check outside a transaction | not answered at all | answered with the metadata |
//! | a createTTL of a mode without a time to live | creates something else | bad arguments |
//! | permissions beyond the five | kept | dropped |

mod below;
mod characters;
mod normal;
mod steps;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use zookeeper_recipes_protocol::{ConnectResponse, RequestBody};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};
use zookeeper_recipes_testkit::{Server, ServerOptions};

use self::below::below;
use self::normal::{Normal, Seen};
use self::steps::{SESSIONS, Step, steps};
use crate::raw::{Raw, create};

/// The sessions of one case on one server, and what they have seen.
struct Place {
    address: String,
    root: String,
    sessions: Vec<Raw>,
    seen: Vec<Seen>,
}

impl Place {
    fn new(address: &str, case: usize) -> Place {
        let root = format!("/case-{case}");
        let mut sessions: Vec<Raw> = (0..SESSIONS).map(|_| Raw::connect(address)).collect();
        let mode = zookeeper_recipes_protocol::CreateMode::Persistent;
        sessions[0].done(create(&root, mode));
        Place {
            address: address.to_owned(),
            root,
            sessions,
            seen: Vec::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        let reply = match step {
            Step::Ask(session, request) => {
                let request = below(&self.root, request);
                Some(self.sessions[*session].ask(request))
            }
            Step::Reconnect(session) => {
                let ConnectResponse {
                    session_id,
                    password,
                    ..
                } = self.sessions[*session].connected.clone();
                self.sessions[*session] = Raw::resume(&self.address, session_id, password);
                None
            }
            Step::Close(session) => {
                let reply = self.sessions[*session].ask(RequestBody::CloseSession);
                self.sessions[*session] = Raw::connect(&self.address);
                Some(reply)
            }
        };
        let sessions: Vec<i64> = self.ids();
        let mut events: Vec<_> = self.sessions.iter_mut().map(Raw::events).collect();
        if matches!(step, Step::Close(_)) {
            for events in &mut events {
                events.sort_by_key(|event| (event.path.clone(), i32::from(event.kind)));
            }
        }
        self.seen.push(Seen::new(reply, events, sessions));
    }

    fn ids(&self) -> Vec<i64> {
        let ids = self.sessions.iter().map(|it| it.connected.session_id);
        ids.collect()
    }

    /// What was seen, in a form that does not depend on the server.
    fn normal(mut self) -> Vec<Normal> {
        for session in &mut self.sessions {
            session.ask(RequestBody::CloseSession);
        }
        Normal::of(self.seen)
    }
}

/// The version of Apache's server.
fn version(text: &str) -> (u32, u32, u32) {
    let number = text.split(['-', ',']).next().unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

#[tokio::test(flavor = "multi_thread")]
async fn random_requests_get_the_same_answers_from_apaches_server() {
    // Containers are reaped by the clock, which no two servers share.
    let never = Duration::from_secs(86_400);
    let options = ServerOptions::new().container_check_interval(never);
    let apache = Server::start(options).await.expect("it starts");
    let status = apache.status().await.expect("it says who it is");
    let simulation = SimulationOptions {
        version: version(&status.version),
        container_interval: never,
        ..EmbeddedOptions::default().simulation
    };
    let options = EmbeddedOptions {
        simulation,
        ..Default::default()
    };
    let embedded = EmbeddedServer::start_with(options).expect("it starts");
    let addresses = [apache.connect_string(), embedded.connect_string()];
    let compared = tokio::task::spawn_blocking(move || compare(&addresses));
    if let Err(difference) = compared.await.expect("it ends") {
        panic!("{difference}");
    }
}

fn compare(addresses: &[String; 2]) -> Result<(), String> {
    let mut case = 0;
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let all = std::cell::RefCell::new(&mut case);
    let result = runner.run(&steps(), |steps| {
        let case = {
            let mut case = all.borrow_mut();
            **case += 1;
            **case
        };
        let [apaches, ours] = addresses.each_ref().map(|address| {
            let mut place = Place::new(address, case);
            for step in &steps {
                place.take(step);
            }
            place.normal()
        });
        for (step, (apaches, ours)) in steps.iter().zip(apaches.iter().zip(&ours)) {
            prop_assert_eq!(apaches, ours, "Apache's server, then ours, at {:?}", step);
        }
        Ok(())
    });
    result.map_err(|error| error.to_string())
}
