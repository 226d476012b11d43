//! A server that a test runs on: Apache's, or the embedded one.

use std::collections::{BTreeMap, BTreeSet};

use zookeeper_recipes_core::SessionId;
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};
use zookeeper_recipes_testkit::conformance::CheckedServer;
use zookeeper_recipes_testkit::four_letter::{self, FourLetterWord, Monitor};
use zookeeper_recipes_testkit::{Error, Server};

use crate::server::{Address, TICK, server};

/// A server that a test runs on. See [`on_both_servers`](crate::on_both_servers).
#[derive(Debug)]
pub enum TestServer {
    /// A process that runs Apache's.
    Apache(Box<Server>),
    /// The simulated one, served over TCP by a thread of the test.
    Embedded(EmbeddedServer),
}

impl TestServer {
    /// Starts Apache's server with the usual tick.
    pub async fn apache() -> TestServer {
        TestServer::Apache(Box::new(server().await))
    }

    /// Starts the embedded server with the usual tick.
    pub async fn embedded() -> TestServer {
        let options = EmbeddedOptions::default();
        let options = EmbeddedOptions {
            simulation: SimulationOptions {
                tick: TICK,
                ..options.simulation
            },
            ..options
        };
        TestServer::Embedded(EmbeddedServer::start_with(options).expect("it starts"))
    }

    /// Ends a session as if it had expired.
    pub async fn expire(&self, session: SessionId) {
        match self {
            TestServer::Apache(server) => {
                let ended = server.expire_session(session.0).await;
                ended.expect("there is such a session");
            }
            TestServer::Embedded(server) => server.administrator().expire(session),
        }
    }

    /// The server's figures.
    pub async fn monitor(&self) -> Result<Monitor, Error> {
        Monitor::read(&self.address()).await
    }

    /// The paths that clients watch, each with the watching sessions.
    pub async fn watches(&self) -> Result<BTreeMap<String, BTreeSet<i64>>, Error> {
        let answer = four_letter::ask(&self.address(), FourLetterWord::Wchp).await?;
        Ok(four_letter::parse_watches(&answer))
    }
}

impl Address for TestServer {
    fn address(&self) -> String {
        match self {
            TestServer::Apache(server) => server.connect_string(),
            TestServer::Embedded(server) => server.connect_string(),
        }
    }
}

impl CheckedServer for TestServer {
    fn connect_string(&self) -> String {
        self.address()
    }

    fn pause(&self) -> Result<(), String> {
        match self {
            TestServer::Apache(server) => CheckedServer::pause(&**server),
            TestServer::Embedded(server) => {
                server.pause();
                Ok(())
            }
        }
    }

    fn resume(&self) -> Result<(), String> {
        match self {
            TestServer::Apache(server) => CheckedServer::resume(&**server),
            TestServer::Embedded(server) => {
                server.resume();
                Ok(())
            }
        }
    }
}

/// Makes two tests of each of these functions, which take a [`TestServer`]: one on Apache's server,
/// and one on the embedded server, which must answer in the same way.
///
/// After `apache at night:` stand the functions for which the embedded server is enough in most runs,
/// and after `embedded at night:` those for which Apache's is. `cargo xtask test` leaves their tests on
/// the other server out, unless `--all-servers` asks for them.
#[macro_export]
macro_rules! on_both_servers {
    (apache at night: $($test:ident),+ $(,)?) => {
        $crate::on_both_servers!(@ apache_at_night, apache, $($test)+);
        $crate::on_both_servers!(@ embedded, embedded, $($test)+);
    };
    (embedded at night: $($test:ident),+ $(,)?) => {
        $crate::on_both_servers!(@ apache, apache, $($test)+);
        $crate::on_both_servers!(@ embedded_at_night, embedded, $($test)+);
    };
    ($($test:ident),+ $(,)?) => {
        $crate::on_both_servers!(@ apache, apache, $($test)+);
        $crate::on_both_servers!(@ embedded, embedded, $($test)+);
    };
    (@ $module:ident, $server:ident, $($test:ident)+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test($crate::TestServer::$server().await).await;
                }
            )+
        }
    };
}
