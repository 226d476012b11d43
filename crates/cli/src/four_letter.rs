//! What servers answer to the words of four letters that operators send them.

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use zookeeper_recipes_connection::{DisconnectReason, Host, Network, Stream, Tcp};
use zookeeper_recipes_core::{Session, SessionId};

use crate::connecting::Connection;
use crate::failure::Failure;

/// The longest wait for the answer of a server.
const PATIENCE: Duration = Duration::from_millis(500);

/// The longest wait for a list of all ephemeral znodes.
const LIST_PATIENCE: Duration = Duration::from_secs(5);

/// The most bytes of an answer. Each connection has about a hundred in the answer to `cons`.
const LARGEST_ANSWER: u64 = 64 << 20;

/// The longest wait for the addresses of a name.
const LOOK_UP: Duration = Duration::from_secs(2);

/// The servers of a session, each connected to as the session is.
pub(crate) struct Servers {
    list: Vec<Server>,
    network: Tcp,
}

/// A server, which is one address of a name.
struct Server {
    host: Host,
    address: Result<SocketAddr, DisconnectReason>,
    /// True if the name has other addresses.
    is_one_of_many: bool,
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.host)?;
        match &self.address {
            Ok(address) if self.is_one_of_many => write!(formatter, " ({})", address.ip()),
            _ => Ok(()),
        }
    }
}

impl Servers {
    pub(crate) async fn of(session: &Session, connection: &Connection) -> Result<Servers, Failure> {
        let named = &session.ensemble().facts().servers;
        let hosts: Vec<Host> = named
            .iter()
            .filter_map(|named| Host::parse(named).ok())
            .collect();
        let network = Tcp::new();
        let network = match connection.tls()? {
            None => network,
            Some(tls) => network
                .encrypted(tls)
                .map_err(|error| Failure::usage(error.to_string()))?,
        };
        let lists = join_all(hosts.into_iter().map(|host| servers(host, &network))).await;
        let list = lists.into_iter().flatten().collect();
        Ok(Servers { list, network })
    }

    pub(crate) fn number(&self) -> usize {
        self.list.len()
    }

    /// The name of the server at this place, with its address if the name has several.
    pub(crate) fn name(&self, place: usize) -> String {
        self.list
            .get(place)
            .map(Server::to_string)
            .unwrap_or_default()
    }

    pub(crate) async fn connect(&self, place: usize) -> Result<Box<dyn Stream>, DisconnectReason> {
        let server = self.list.get(place);
        let server = server.ok_or(DisconnectReason::NotConnected(Duration::ZERO))?;
        let connecting = self
            .network
            .connect(&server.host, server.address.clone()?, PATIENCE);
        let connected = timeout(PATIENCE, connecting).await;
        connected.unwrap_or(Err(DisconnectReason::NotConnected(PATIENCE)))
    }

    /// The answer of the server at this place to a word. `None` if it does not allow the word.
    pub(crate) async fn ask(
        &self,
        place: usize,
        word: &str,
    ) -> Result<Option<String>, DisconnectReason> {
        self.ask_for(PATIENCE, place, word).await
    }

    async fn ask_for(
        &self,
        patience: Duration,
        place: usize,
        word: &str,
    ) -> Result<Option<String>, DisconnectReason> {
        let conversation = async {
            let mut stream = self.connect(place).await?;
            stream.write_all(word.as_bytes()).await?;
            stream.flush().await?;
            let mut answer = Vec::new();
            match stream.take(LARGEST_ANSWER).read_to_end(&mut answer).await {
                // A server may end a connection without the end that TLS has for it.
                Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error.into()),
                _ => {}
            }
            Ok(String::from_utf8_lossy(&answer).into_owned())
        };
        let answer = timeout(patience, conversation).await;
        let answer: String = answer.unwrap_or(Err(DisconnectReason::Silent(patience)))?;
        let is_refusal = answer.contains("is not in the whitelist") || answer.trim().is_empty();
        Ok((!is_refusal).then_some(answer))
    }

    /// The connections that the server at this place accepts. `None` if it has no limit for each
    /// address, or does not report it.
    pub(crate) async fn room(&self, place: usize) -> Option<Room> {
        let configuration = self.ask(place, "conf").await.ok()??;
        let limit = connection_limit(&configuration)?;
        let connections = self.ask(place, "cons").await.ok().flatten();
        let busiest = connections.and_then(|answer| busiest(&answer));
        Some(Room { limit, busiest })
    }

    /// The session whose ephemeral znodes have the longest paths together. Each server knows them.
    ///
    /// The outer `None` says that no server reports them, the inner that there are none.
    pub(crate) async fn fullest_session(&self) -> Option<Option<Ephemerals>> {
        for place in 0..self.number() {
            if let Ok(Some(answer)) = self.ask_for(LIST_PATIENCE, place, "dump").await {
                let fullest = ephemerals(&answer).into_iter();
                return Some(fullest.max_by_key(|session| session.bytes));
            }
        }
        None
    }

    /// The address of each session's client, as the servers report it.
    pub(crate) async fn addresses(&self) -> HashMap<i64, String> {
        let places = 0..self.number();
        let answers = join_all(places.map(|place| self.ask(place, "cons"))).await;
        let answers = answers.into_iter().filter_map(Result::ok).flatten();
        answers.flat_map(|answer| clients(&answer)).collect()
    }
}

/// How many connections a server accepts from one address.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) limit: usize,
    /// The address with the most connections, and their number.
    pub(crate) busiest: Option<(String, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ephemerals {
    pub(crate) session: SessionId,
    pub(crate) number: usize,
    /// The bytes of their paths in the transaction that ends the session.
    pub(crate) bytes: usize,
}

/// The ephemeral znodes of each session in an answer to `dump`.
///
/// A line with the session, `0x1000a3b4c5d0000:`, and then a path in each line, behind a tab.
fn ephemerals(answer: &str) -> Vec<Ephemerals> {
    /// A path is written with its length.
    const LENGTH: usize = 4;
    let mut sessions: Vec<Ephemerals> = Vec::new();
    for line in answer.lines() {
        if let Some(path) = line.strip_prefix("\t/") {
            if let Some(session) = sessions.last_mut() {
                session.number += 1;
                session.bytes += LENGTH + "/".len() + path.len();
            }
        } else if let Some(id) = line.strip_suffix(':').and_then(session_id) {
            let (session, number, bytes) = (SessionId(id), 0, 0);
            sessions.push(Ephemerals {
                session,
                number,
                bytes,
            });
        }
    }
    sessions
}

/// The session of `0x1000a3b4c5d0000`. It has all 64 bits, and the first one is its sign.
fn session_id(text: &str) -> Option<i64> {
    let id = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    Some(i64::from_ne_bytes(id.to_ne_bytes()))
}

/// The limit for each address in an answer to `conf`. `None` if there is none.
fn connection_limit(answer: &str) -> Option<usize> {
    let mut lines = answer.lines();
    let limit = lines.find_map(|line| line.trim().strip_prefix("maxClientCnxns="));
    limit?.trim().parse().ok().filter(|limit| *limit > 0)
}

/// The address with the most connections in an answer to `cons`.
fn busiest(answer: &str) -> Option<(String, usize)> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for line in answer.lines() {
        if let Some((address, _)) = client(line).and_then(|(client, _)| client.rsplit_once(':')) {
            *numbers.entry(address).or_default() += 1;
        }
    }
    let busiest = numbers.into_iter().max_by_key(|(_, number)| *number)?;
    Some((busiest.0.to_owned(), busiest.1))
}

/// The address and the facts in a line of an answer to `cons`.
///
/// `/10.0.0.7:53904[1](queued=0,sid=0x1)`, and an IPv6 address may have brackets, too.
fn client(line: &str) -> Option<(&str, &str)> {
    let (client, facts) = line.trim().strip_prefix('/')?.split_once('(')?;
    Some((client.rsplit_once('[')?.0, facts))
}

/// The first of these addresses that accepts a connection, or the last one.
async fn accepting(host: &Host, found: &[SocketAddr], network: &Tcp) -> Option<SocketAddr> {
    let (last, others) = found.split_last()?;
    for address in others {
        let connecting = network.connect(host, *address, PATIENCE);
        if let Ok(Ok(_)) = timeout(PATIENCE, connecting).await {
            return Some(*address);
        }
    }
    Some(*last)
}

/// The servers that a name stands for.
async fn servers(host: Host, network: &Tcp) -> Vec<Server> {
    let found = match host.address() {
        Some(address) => Ok(vec![address]),
        None => {
            let found = timeout(LOOK_UP, network.look_up(&host)).await;
            found.unwrap_or(Err(DisconnectReason::NotLookedUp(LOOK_UP)))
        }
    };
    let addresses = match found {
        // One machine: a server need not listen at each of its addresses.
        Ok(found) if found.iter().all(|address| address.ip().is_loopback()) => {
            let address = accepting(&host, &found, network).await;
            address.into_iter().map(Ok).collect()
        }
        Ok(found) => found.into_iter().map(Ok).collect(),
        Err(cause) => vec![Err(cause)],
    };
    let is_one_of_many = addresses.len() > 1;
    let server = |address| Server {
        host: host.clone(),
        address,
        is_one_of_many,
    };
    addresses.into_iter().map(server).collect()
}

/// The sessions and addresses in an answer to `cons`.
fn clients(answer: &str) -> Vec<(i64, String)> {
    let session = |line| {
        let (address, facts) = client(line)?;
        let (_, session) = facts.split_once("sid=")?;
        let ends = |letter: char| !letter.is_ascii_alphanumeric();
        let session = session_id(session.split(ends).next()?)?;
        Some((session, address.to_owned()))
    };
    answer.lines().filter_map(session).collect()
}

#[cfg(test)]
#[path = "../tests/unit/four_letter.rs"]
mod tests;
