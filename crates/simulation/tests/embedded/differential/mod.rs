//! The same random requests get the same answers from Apache's server and from the embedded one.
//!
//! Several sessions take turns; each sends one request, or a burst of them. What is compared is each
//! reply with its error code, the events of each session in their order, the metadata, and the number
//! of watches at the end of a case. What differs on purpose:
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
pub(crate) mod steps;

use std::cell::Cell;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};
use tokio::runtime::Handle;
use zookeeper_recipes_protocol::{ConnectResponse, CreateMode, Operation, RequestBody};
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
        sessions[0].done(create(&root, CreateMode::Persistent));
        Place {
            address: address.to_owned(),
            root,
            sessions,
            seen: Vec::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        let replies = match step {
            Step::Ask(session, requests) => {
                let client = &mut self.sessions[*session];
                let mut replies = Vec::new();
                for requests in requests.split_inclusive(leaves_the_next_to_chance) {
                    for request in requests {
                        client.send(below(&self.root, request));
                    }
                    let answers = requests.iter().map(|_| client.reply());
                    replies.extend(answers.map(|it| it.expect("an answer")));
                }
                replies
            }
            Step::Reconnect(session) => {
                let ConnectResponse {
                    session_id,
                    password,
                    ..
                } = self.sessions[*session].connected.clone();
                self.sessions[*session] = Raw::resume(&self.address, session_id, password);
                Vec::new()
            }
            Step::Close(session) => {
                let reply = self.sessions[*session].ask(RequestBody::CloseSession);
                self.sessions[*session] = Raw::connect(&self.address);
                vec![reply]
            }
        };
        let sessions: Vec<i64> = self.ids();
        let mut events: Vec<_> = self.sessions.iter_mut().map(Raw::events).collect();
        if matches!(step, Step::Close(_)) {
            for events in &mut events {
                events.sort_by_key(|event| (event.path.clone(), i32::from(event.kind)));
            }
        }
        self.seen.push(Seen::new(replies, events, sessions));
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

/// Whether Apache's server answers what comes right behind `request` by what it has committed until
/// then, so that two runs may differ:
///
/// * it checks some of the requests behind a new access control list by the old one,
/// * it takes the changes of a transaction back if an operation is refused, but not if it cannot read
///   one, as a create of the mode with a time to live that is no `CreateTtl`.
fn leaves_the_next_to_chance(request: &RequestBody) -> bool {
    let unreadable = |operation: &Operation| {
        use Operation::{Create, Create2, CreateContainer};
        matches!(operation, Create(it) | Create2(it) | CreateContainer(it)
            if it.mode == CreateMode::PersistentWithTtl)
    };
    match request {
        RequestBody::SetAcl(_) => true,
        RequestBody::Multi(operations) => operations.iter().any(unreadable),
        _ => false,
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
    let servers = Servers { apache, embedded };
    let compared = tokio::task::spawn_blocking(move || servers.compare());
    if let Err(difference) = compared.await.expect("it ends") {
        panic!("{difference}");
    }
}

struct Servers {
    apache: Server,
    embedded: EmbeddedServer,
}

impl Servers {
    fn compare(&self) -> Result<(), String> {
        let case = Cell::new(0);
        let config = Config {
            failure_persistence: None,
            max_shrink_iters: 2_000,
            ..Config::default()
        };
        let result = TestRunner::new(config).run(&steps(), |steps| {
            case.set(case.get() + 1);
            self.compare_case(case.get(), &steps)
        });
        result.map_err(|error| error.to_string())
    }

    fn compare_case(&self, case: usize, steps: &[Step]) -> TestCaseResult {
        let addresses = [self.apache.connect_string(), self.embedded.connect_string()];
        let places = addresses.map(|address| {
            let mut place = Place::new(&address, case);
            for step in steps {
                place.take(step);
            }
            place
        });
        let watches = self.watches();
        let [apaches, ours] = places.map(Place::normal);
        for (step, (apaches, ours)) in steps.iter().zip(apaches.iter().zip(&ours)) {
            prop_assert_eq!(apaches, ours, "Apache's server, then ours, at {:?}", step);
        }
        let [apaches, ours] = watches;
        prop_assert_eq!(apaches, ours, "watches on Apache's server, then on ours");
        Ok(())
    }

    /// The number of watches on each server. A server removes those of a closed connection late.
    fn watches(&self) -> [u64; 2] {
        let began = Instant::now();
        loop {
            let monitor = Handle::current().block_on(self.apache.monitor());
            let apaches = monitor.expect("an answer").watches;
            let ours = self.embedded.simulation().counters().watches() as u64;
            if apaches == ours || began.elapsed() > Duration::from_secs(1) {
                return [apaches, ours];
            }
            std::thread::yield_now();
        }
    }
}
