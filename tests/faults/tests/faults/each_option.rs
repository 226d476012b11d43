//! Each option of a session, for each way to open one: it is used, or refused at once.

use std::fmt::Debug;

use zookeeper_recipes_core::ensemble::{Acl, AuthId, CreateMode, Permission};
use zookeeper_recipes_core::{Ensemble, NodePath};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::tls::{Authority, trusting};

use crate::support::*;

const OPTIONS: [Set; 6] = [
    Set::SessionTimeout,
    Set::Tick,
    Set::Owner,
    Set::JuteMaxbuffer,
    Set::Auth,
    Set::Tls,
];
const BACKENDS: [Backend; 4] = [
    Backend::ConnectString,
    Backend::Zookeeper,
    Backend::Simulation,
    Backend::Client,
];
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
const SECRET: &str = "me:correct-horse";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Set {
    SessionTimeout,
    Tick,
    Owner,
    JuteMaxbuffer,
    Auth,
    Tls,
}

impl Set {
    fn options(self) -> ConnectOptions {
        let new = ConnectOptions::new();
        match self {
            Set::SessionTimeout => new.session_timeout(Duration::from_secs(7)),
            Set::Tick => new.tick(Duration::from_secs(4)),
            Set::Owner => new.owner("billing"),
            Set::JuteMaxbuffer => new.jute_maxbuffer(262_144),
            Set::Auth => new.auth("digest", SECRET),
            Set::Tls => new.tls(trusting(&Authority::new("root"))),
        }
    }
}

/// What a session is opened with.
#[derive(Clone, Copy, Debug)]
enum Backend {
    /// `connect_with` and `connect_in_background`.
    ConnectString,
    /// `open` and `open_in_background`, as with each of the following.
    Zookeeper,
    Simulation,
    Client,
}

impl Backend {
    /// What the error names if this way cannot use the option.
    fn refuses(self, option: Set) -> Option<[&'static str; 2]> {
        match (self, option) {
            (Backend::Simulation, Set::Tls) => Some(["\"tls\"", "a simulated ensemble"]),
            (Backend::Client, Set::SessionTimeout) => Some(["\"session_timeout\"", "a client"]),
            (Backend::Client, Set::Auth) => Some(["\"auth\"", "a client"]),
            (Backend::Client, Set::Tls) => Some(["\"tls\"", "a client"]),
            _ => None,
        }
    }

    /// Opens a session, and waits until it is open.
    async fn open(
        self,
        place: &Place,
        options: ConnectOptions,
        in_background: bool,
    ) -> Result<Session, Error> {
        let ensemble: Arc<dyn Ensemble> = match self {
            Backend::ConnectString => {
                let at = &place.address;
                return match in_background {
                    true => Ok(Session::connect_in_background(at, options)?),
                    false => Session::connect_with(at, options).await,
                };
            }
            Backend::Zookeeper => Arc::new(ZookeeperEnsemble::new(&place.address)?),
            Backend::Simulation => place.simulation.ensemble("one"),
            Backend::Client => {
                let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
                let client = connector.connect(&place.address).await;
                Arc::new(ClientEnsemble::new(client.expect("it connects")))
            }
        };
        match in_background {
            true => Ok(Session::open_in_background(ensemble, options)?),
            false => Session::open(ensemble, options).await,
        }
    }
}

/// Servers over TCP, and simulated ones.
struct Place {
    address: String,
    simulation: Simulation,
}

/// Looks at what the option does to an open session.
async fn seen_in(session: &Session, option: Set) -> bool {
    let path = NodePath::new("/data").expect("a path");
    let create = async |bytes, who| {
        let server = session.server(&path).await.expect("it is open");
        let acl = [Acl::new(Permission::ALL, who)];
        let data = vec![0; bytes];
        let created = server.create("/data", &data, CreateMode::Ephemeral, &acl);
        created.await.map(drop)
    };
    match option {
        Set::SessionTimeout => session.timeout() == Some(Duration::from_secs(7)),
        Set::Tick => session.tolerated_silence() == Some(Duration::from_millis(1_875)),
        Set::Owner => session.owner().starts_with("billing@"),
        Set::JuteMaxbuffer => {
            let created = create(300_000, AuthId::anyone()).await;
            matches!(created, Err(ServerError::Refused(Refusal::TooLong(_))))
        }
        Set::Auth => create(0, AuthId::authed()).await.is_ok(),
        Set::Tls => unreachable!("no session opens"),
    }
}

async fn assert_refused(backend: Backend, place: &Place, option: Set, named: [&str; 2]) {
    for in_background in [false, true] {
        let opened = backend.open(place, option.options(), in_background).await;
        let error = opened.expect_err("it is refused");
        let way = (backend, option, in_background);
        assert!(matches!(error, Error::InvalidInput(_)), "{way:?}: {error}");
        let text = error.to_string();
        assert!(named.iter().all(|it| text.contains(it)), "{way:?}: {text}");
        assert!(!text.contains("horse"), "{way:?}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_uses_each_option_or_refuses_it_at_once() {
    let server = EmbeddedServer::start().expect("it starts");
    let place = Place {
        address: server.connect_string(),
        simulation: Simulation::new(SimulationOptions {
            session_timeout: SESSION_TIMEOUT,
            ..SimulationOptions::default()
        }),
    };
    for backend in BACKENDS {
        for option in OPTIONS {
            if let Some(named) = backend.refuses(option) {
                assert_refused(backend, &place, option, named).await;
                continue;
            }
            if option == Set::Tls {
                continue;
            }
            for in_background in [false, true] {
                let way = (backend, option, in_background);
                let usual = backend.open(&place, ConnectOptions::new(), in_background);
                let usual = opened(usual.await, way).await;
                assert!(!seen_in(&usual, option).await, "{way:?} without it");
                let session = backend.open(&place, option.options(), in_background);
                let session = opened(session.await, way).await;
                assert!(seen_in(&session, option).await, "{way:?}");
                // The next one creates the same znode.
                session.close().await;
            }
        }
    }
}

async fn opened(session: Result<Session, Error>, way: impl Debug) -> Session {
    let session = session.unwrap_or_else(|error| panic!("{way:?}: {error}"));
    let connected = in_time("the session opens", session.wait_connected()).await;
    connected.unwrap_or_else(|error| panic!("{way:?}: {error}"));
    session
}
