//! The checks of `zkr doctor`.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Acl, AuthId, CreateMode, Error, Identity, NodePath, Permission, Refusal, ServerError, Session,
    Stat,
};

use crate::connecting::{Connection, SHORT_SILENCE};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::four_letter::{Ephemerals, Room, Servers};

/// How often a time is measured. The median counts.
const ROUNDS: usize = 5;

/// The shortest session timeout that a session can have.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(100);

/// More than servers grant: a day.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// The last number that a server gives to a sequential znode.
const LAST_NUMBER: i32 = i32::MAX;

#[derive(Debug)]
pub(crate) struct Finding {
    grade: Grade,
    text: String,
    /// The exit code, if locks cannot work.
    pub(crate) exit: Option<Exit>,
}

#[derive(Clone, Copy, Debug)]
enum Grade {
    Good,
    /// Locks work, and something could be better.
    Note,
    Bad,
}

impl Finding {
    fn good(text: impl Into<String>) -> Finding {
        Finding {
            grade: Grade::Good,
            text: text.into(),
            exit: None,
        }
    }

    fn note(text: impl Into<String>) -> Finding {
        Finding {
            grade: Grade::Note,
            ..Finding::good(text)
        }
    }

    fn bad(failure: &Failure) -> Finding {
        Finding {
            grade: Grade::Bad,
            text: failure.to_string(),
            exit: Some(failure.exit()),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let grade = match self.grade {
            Grade::Good => "ok",
            Grade::Note => "note",
            Grade::Bad => "bad",
        };
        json!({ "grade": grade, "text": self.text, "exit": self.exit.map(Exit::code) })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grade = match self.grade {
            Grade::Good => "ok  ",
            Grade::Note => "note",
            Grade::Bad => "BAD ",
        };
        write!(formatter, "{grade}  {}", self.text)
    }
}

/// Does all checks, in an order in which the first that is bad explains the others.
pub(crate) async fn examine(
    session: &Session,
    connection: &Connection,
    path: &str,
    connected_in: Duration,
) -> Result<Vec<Finding>, Failure> {
    // The root is no place for a queue, and may be examined all the same.
    let queue = if path == "/" { "/any" } else { path };
    let server = session.server(&NodePath::new(queue)?).await?;
    let mut findings = vec![
        Finding::good(format!(
            "connected to {} in {connected_in:.1?}",
            connection.connect
        )),
        timeout(session, connection),
        silence(session),
        tick(connection).await,
        encryption(connection)?,
        identity(connection)?,
    ];
    let list = Servers::of(session, connection).await?;
    findings.extend(servers(&list).await);
    findings.push(ephemerals(session, &list).await);
    findings.push(times(&server).await);
    let (directory, stat) = match nearest(&server, path).await {
        Ok(found) => found,
        Err(error) => {
            let error = Error::at(path, server.id, error);
            findings.push(Finding::bad(&error.into()));
            return Ok(findings);
        }
    };
    findings.push(creates(&server, &directory, path).await);
    findings.push(containers(&server, &directory).await);
    findings.push(marks(&server));
    if directory == path && path != "/" {
        findings.push(counter(path, &stat));
    }
    Ok(findings)
}

fn timeout(session: &Session, connection: &Connection) -> Finding {
    let (given, asked) = (
        session.timeout().unwrap_or_default(),
        connection.session_timeout,
    );
    let id = session.id().map(|id| id.to_string()).unwrap_or_default();
    if given == asked {
        return Finding::good(format!(
            "session {id}, with the timeout asked for: {given:?}"
        ));
    }
    Finding::note(format!(
        "session {id}: the servers give a timeout of {given:?} instead of {asked:?}; \
         minSessionTimeout and maxSessionTimeout of the servers are the bounds"
    ))
}

fn silence(session: &Session) -> Finding {
    let silence = session.tolerated_silence().unwrap_or_default();
    let text = format!("holds survive a single silence of the servers of up to {silence:?}");
    match silence < SHORT_SILENCE {
        true => Finding::note(format!(
            "{text}, which an election can exceed; set --tick, or raise --session-timeout"
        )),
        false => Finding::good(text),
    }
}

/// What the limits of the session timeout say of the servers' tick, which no server reports.
async fn tick(connection: &Connection) -> Finding {
    let limits = async {
        let (shortest, _) = connection.granted(SHORTEST_TIMEOUT, None).await?;
        let (longest, _) = connection.granted(LONGEST_TIMEOUT, None).await?;
        Ok::<_, Failure>((shortest, longest))
    };
    let (shortest, longest) = match limits.await {
        Ok(limits) => limits,
        Err(failure) => return Finding::note(format!("the tick is unknown: {failure}")),
    };
    let limits = format!("the servers grant session timeouts from {shortest:?} to {longest:?}");
    // The default of minSessionTimeout is two ticks, and of maxSessionTimeout twenty.
    if shortest <= SHORTEST_TIMEOUT || longest != shortest * 10 {
        return Finding::good(format!(
            "{limits}, which does not show their tick; tickTime in their configuration is the \
             value of --tick"
        ));
    }
    let likely = shortest / 2;
    match connection.tick {
        Some(tick) if tick == likely => {
            Finding::good(format!("{limits}, which fits the tick of {tick:?}"))
        }
        Some(tick) => Finding::note(format!(
            "{limits}: their tick is probably {likely:?}, but --tick is {tick:?}; if it is shorter \
             than tickTime, two processes can hold"
        )),
        None => recommendation(connection, &limits, likely).await,
    }
}

/// Recommends a tick if holds then survive a longer silence.
async fn recommendation(connection: &Connection, limits: &str, likely: Duration) -> Finding {
    let asked = connection.session_timeout;
    let (without, with) = (
        connection.granted(asked, None).await,
        connection.granted(asked, Some(likely)).await,
    );
    match (without, with) {
        (Ok((_, without)), Ok((_, with))) if with > without => Finding::note(format!(
            "{limits}, so their tick is probably {likely:?}; if tickTime in the configuration of \
             each server says so, set --tick {likely:?}: holds then survive a silence of {with:?} \
             in place of {without:?}"
        )),
        _ => Finding::good(format!("{limits}, so their tick is probably {likely:?}")),
    }
}

/// What protects the connections from others on the network.
fn encryption(connection: &Connection) -> Result<Finding, Failure> {
    Ok(match (connection.tls()?, connection.ca()) {
        (None, _) => Finding::note("connections are not encrypted; --tls encrypts them"),
        (Some(tls), ca) => {
            let trusted = match ca {
                Some(file) => format!("{}", file.display()),
                None => "the system's".to_owned(),
            };
            let shown = match tls.has_client_certificate() {
                true => "with a client certificate",
                false => "without a client certificate",
            };
            Finding::good(format!(
                "connections are encrypted, {shown}; trusted certificates: {trusted}"
            ))
        }
    })
}

fn identity(connection: &Connection) -> Result<Finding, Failure> {
    let identities = connection.identities()?;
    let shows_certificate = connection
        .tls()?
        .is_some_and(|tls| tls.has_client_certificate());
    if identities.is_empty() && shows_certificate {
        return Ok(Finding::good(
            "no credentials but the certificate: --credentials-file gives others",
        ));
    }
    if identities.is_empty() {
        return Ok(Finding::note(
            "no credentials: the servers see anyone; --credentials-file gives some",
        ));
    }
    // A server accepts any digest: only an access control list shows whether it is right.
    Ok(Finding::good(format!(
        "credentials of {}",
        identities.join(", ")
    )))
}

async fn servers(servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in 0..servers.number() {
        let host = servers.name(place);
        findings.push(match servers.ask(place, "srvr").await {
            Ok(Some(answer)) => {
                let after = |name: &str| {
                    let line = answer.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or("unknown").trim().to_owned()
                };
                let (version, mode) = (after("Zookeeper version:"), after("Mode:"));
                let version = version
                    .split([',', '-'])
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                Finding::good(format!("{host}: version {version}, {mode}"))
            }
            Ok(None) => Finding::note(format!(
                "{host} does not answer `srvr`; is it in 4lw.commands.whitelist?"
            )),
            Err(cause) => Finding::note(format!("{host} cannot be reached: {cause}")),
        });
        let room = servers.room(place).await;
        findings.extend(room.map(|room| connections(&host, &room)));
    }
    findings
}

/// How many connections a server accepts from one address, and how many are there.
fn connections(host: &str, room: &Room) -> Finding {
    let limit = room.limit;
    let text = format!("{host}: maxClientCnxns accepts {limit} connections from one address");
    match &room.busiest {
        Some((address, number)) if number * 5 >= limit * 4 => Finding::note(format!(
            "{text}, and {address} has {number}; further ones are closed without a word: raise the \
             limit, or share one session in each process"
        )),
        Some((address, number)) => {
            Finding::good(format!("{text}; {address} has {number}, the most"))
        }
        None => Finding::good(text),
    }
}

/// How near a session is to more ephemeral znodes than the servers can list when they end it.
async fn ephemerals(session: &Session, servers: &Servers) -> Finding {
    let Some(fullest) = servers.fullest_session().await else {
        return Finding::note(
            "which session has the most ephemeral znodes is not known: no server answers `dump`; \
             is it in 4lw.commands.whitelist?",
        );
    };
    let (Some(fullest), Some(limit)) = (fullest, session.ephemeral_bytes_left()) else {
        return Finding::good("no session has ephemeral znodes");
    };
    let Ephemerals {
        session,
        number,
        bytes,
    } = fullest;
    let share = bytes as f64 / limit as f64 * 100.0;
    let text = format!(
        "the fullest session, {session}, has {number} ephemeral znodes, and their paths {bytes} \
         bytes: {share:.0} % of the {limit} with which servers can end a session by the default of \
         jute.maxbuffer"
    );
    if bytes < limit / 2 {
        return Finding::good(text);
    }
    let addresses = servers.addresses().await;
    let client = addresses.get(&session.0);
    let client = client.map_or_else(String::new, |address| format!(" ({address})"));
    Finding::note(format!(
        "{text}; with more, no server serves any more when it ends: let its client{client} share \
         its locks out over several sessions, or raise jute.maxbuffer at all servers"
    ))
}

/// The time for an answer of the server, and for one through the leader.
async fn times(server: &ServerSession) -> Finding {
    let mut trips = Vec::new();
    let mut syncs = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        // The root may not be readable: any answer will do.
        let _ = server.get("/").await;
        trips.push(began.elapsed());
        let began = Instant::now();
        if server.sync("/").await.is_err() {
            return Finding::note("the leader does not answer; is there a quorum?");
        }
        syncs.push(began.elapsed());
    }
    let (trip, sync) = (median(trips), median(syncs));
    Finding::good(format!(
        "round trip {trip:.1?}, to the leader and back {sync:.1?}"
    ))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The directory, or the nearest one above it that exists.
pub(crate) async fn nearest(
    server: &ServerSession,
    path: &str,
) -> Result<(String, Stat), ServerError> {
    let mut directory = path.to_owned();
    loop {
        match server.get(&directory).await {
            Ok((_, stat)) => return Ok((directory, stat)),
            Err(error) if error.is(Refusal::NoNode) && directory != "/" => {
                let parent = directory.rsplit_once('/').map_or("", |(parent, _)| parent);
                directory = if parent.is_empty() { "/" } else { parent }.to_owned();
            }
            // Without the permission to read, creating may still be allowed.
            Err(error) if error.is(Refusal::NoAuth) => return Ok((directory, Stat::default())),
            Err(error) => return Err(error),
        }
    }
}

/// A name that is no contender's.
fn probe(directory: &str) -> String {
    let directory = if directory == "/" { "" } else { directory };
    let identity = Identity::random().name("probe");
    format!("{directory}/zkr-doctor-{identity}")
}

fn everyone() -> [Acl; 1] {
    [Acl::new(Permission::ALL, AuthId::anyone())]
}

/// Creates and deletes an ephemeral znode, which needs a quorum.
async fn creates(server: &ServerSession, directory: &str, path: &str) -> Finding {
    let node = probe(directory);
    let began = Instant::now();
    let created = server
        .create(&node, b"", CreateMode::Ephemeral, &everyone())
        .await;
    let took = began.elapsed();
    let outcome = match created {
        Ok(created) => server.delete(&created.path).await,
        Err(error) => Err(error),
    };
    let missing = if directory == path {
        String::new()
    } else {
        format!(" ({path} does not exist yet)")
    };
    match outcome {
        Ok(()) => Finding::good(format!(
            "may create and delete in {directory}{missing}; a write takes {took:.1?}"
        )),
        Err(error) => Finding::bad(&Error::at(directory, server.id, error).into()),
    }
}

async fn containers(server: &ServerSession, directory: &str) -> Finding {
    let node = probe(directory);
    match server
        .create(&node, b"", CreateMode::Container, &everyone())
        .await
    {
        Ok(created) => match server.delete(&created.path).await {
            Ok(()) => Finding::good("empty directories are deleted: the servers have containers"),
            Err(error) => Finding::note(format!("{} is left: {error}", created.path)),
        },
        Err(error) => Finding::note(format!(
            "no containers ({error}), so empty directories stay; delete them by hand if there are many"
        )),
    }
}

fn marks(server: &ServerSession) -> Finding {
    match server.own_identity {
        Some(_) => Finding::good("releases are marked: the next holder need not list the queue"),
        None => Finding::note(
            "releases are not marked, so the next holder lists the queue; the servers refuse digest",
        ),
    }
}

/// How near the numbers of the contenders are to their end.
fn counter(path: &str, stat: &Stat) -> Finding {
    // A server shows twice the number of creates, less the children, and lets that overflow.
    let twice = stat.cversion.wrapping_add(stat.num_children);
    let twice = u32::from_ne_bytes(twice.to_ne_bytes());
    let used = f64::from(twice / 2) / f64::from(LAST_NUMBER) * 100.0;
    let text = format!("{path} has used {used:.2} % of its numbers for contenders");
    if used > 80.0 {
        return Finding::note(format!(
            "{text}; delete the directory while no contender is in it, and the count begins anew \
             (zkr works on after the last number, other clients may not)"
        ));
    }
    Finding::good(text)
}
