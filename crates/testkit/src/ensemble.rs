//! An ensemble of servers.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::four_letter::{self, FourLetterWord, Mode, Status};
use crate::handshake;
use crate::options::ServerOptions;
use crate::partitions::{MemberPorts, Partitions};
use crate::ports::free_port;
use crate::server::{PORT_TRIES, Server};

/// How often the members are asked who leads.
const LOOK: Duration = Duration::from_millis(25);

/// How long a member may take for one answer, before all are asked again.
const ANSWER: Duration = Duration::from_secs(1);

/// An ensemble of ZooKeeper servers on loopback.
///
/// Each member is a [`Server`] with data and ports of its own.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_testkit::{Ensemble, ServerOptions};
///
/// let mut ensemble = Ensemble::start(3, ServerOptions::new()).await?;
/// let leader = ensemble.leader().await?;
/// ensemble.members_mut()[leader].kill().await?;
/// assert_ne!(ensemble.leader().await?, leader);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<Server>,
    partitions: Option<Partitions>,
    timeout: Duration,
}

impl Ensemble {
    /// Starts `size` servers and waits until all of them serve clients.
    ///
    /// An ensemble serves while more than half of its members reach each other: one of three may
    /// fail. A `size` of 0 is taken as 1. If the future is dropped, the started servers end.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub async fn start(size: usize, options: ServerOptions) -> Result<Self, Error> {
        Self::start_members(size.max(1), options, false).await
    }

    /// As [`start`](Self::start), with proxies between the members.
    ///
    /// A member can then be [isolated](Self::isolate). Clients connect to the members directly.
    ///
    /// # Errors
    ///
    /// As [`Server::start`]; [`Error::Proxy`].
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use zookeeper_recipes_testkit::{Ensemble, ServerOptions};
    ///
    /// let ensemble = Ensemble::start_with_partitions(3, ServerOptions::new()).await?;
    /// let leader = ensemble.leader().await?;
    /// ensemble.isolate(leader)?; // no longer reaches the others, nor they it
    /// assert_ne!(ensemble.leader().await?, leader);
    /// ensemble.heal(leader)?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_with_partitions(size: usize, options: ServerOptions) -> Result<Self, Error> {
        Self::start_members(size.max(1), options, true).await
    }

    async fn start_members(
        size: usize,
        options: ServerOptions,
        partitions: bool,
    ) -> Result<Self, Error> {
        // By default a waiting member asks the others once a minute in the end, which is too long
        // for a test.
        let options =
            options.system_property("zookeeper.fastleader.maxNotificationInterval", "1000");
        let mut tries = 1;
        loop {
            let mut ensemble = Self::launch(size, &options, partitions).await?;
            match ensemble.wait_until_all_serve().await {
                Ok(()) => return Ok(ensemble),
                Err(_)
                    if tries < PORT_TRIES
                        && ensemble.members.iter().any(Server::port_was_taken) =>
                {
                    tries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn launch(size: usize, options: &ServerOptions, partitions: bool) -> Result<Self, Error> {
        let mut ports = Vec::new();
        for _ in 0..size {
            let (quorum, election) = (free_port()?, free_port()?);
            ports.push(MemberPorts { quorum, election });
        }
        let partitions = match partitions {
            true => Some(Partitions::start(&ports).await.map_err(Error::Proxy)?),
            false => None,
        };
        let mut members = Vec::new();
        for member in 0..size {
            let mut lines = Vec::new();
            for (other, MemberPorts { quorum, election }) in ports.iter().enumerate() {
                let direct = || format!("127.0.0.1:{quorum}:{election}");
                let line = partitions
                    .as_ref()
                    .and_then(|partitions| partitions.line(member, other));
                lines.push((format!("server.{}", other + 1), line.unwrap_or_else(direct)));
            }
            let mut server = Server::prepare(options.clone(), free_port()?)?;
            server.join(lines, member + 1)?;
            server.configure()?;
            server.launch()?;
            members.push(server);
        }
        Ok(Self {
            members,
            partitions,
            timeout: options.start_timeout,
        })
    }

    /// The addresses of all members, running or not, for clients.
    pub fn connect_string(&self) -> String {
        let addresses: Vec<String> = self.members.iter().map(Server::connect_string).collect();
        addresses.join(",")
    }

    /// The members, in the order of their numbers. The index of a member is its number less one.
    pub fn members(&self) -> &[Server] {
        &self.members
    }

    /// The members, to be killed, stopped or configured. The indexes are those of
    /// [`members`](Self::members).
    pub fn members_mut(&mut self) -> &mut [Server] {
        &mut self.members
    }

    /// Cuts a member off from the other members, until it is [healed](Self::heal).
    ///
    /// Packets between the member and the others do not arrive. Connections between them do not
    /// end, and clients still reach the member.
    ///
    /// A follower that is cut off answers pings for `syncLimit` ticks (five by default), and then
    /// stops serving. A leader that is cut off does the same, while the others elect another
    /// leader.
    ///
    /// # Errors
    ///
    /// [`Error::NoPartitions`] unless the ensemble was
    /// [started with partitions](Self::start_with_partitions).
    pub fn isolate(&self, member: usize) -> Result<(), Error> {
        let partitions = self.partitions.as_ref().ok_or(Error::NoPartitions)?;
        partitions.isolate(member);
        Ok(())
    }

    /// Ends the isolation of a member. Packets that were held back arrive now.
    ///
    /// # Errors
    ///
    /// [`Error::NoPartitions`].
    pub fn heal(&self, member: usize) -> Result<(), Error> {
        let partitions = self.partitions.as_ref().ok_or(Error::NoPartitions)?;
        partitions.heal(member);
        Ok(())
    }

    /// Stops a member if it runs, and starts it again with its data and ports.
    ///
    /// If there are enough members for a quorum, it waits until the member serves clients.
    ///
    /// # Errors
    ///
    /// As [`Server::restart`].
    ///
    /// # Panics
    ///
    /// If there is no member with this index.
    pub async fn restart(&mut self, member: usize) -> Result<(), Error> {
        self.members[member].stop().await?;
        self.members[member].launch()?;
        let running = self.members.iter().filter(|member| member.is_running());
        if running.count() < self.quorum() {
            return Ok(());
        }
        self.members[member].wait_until_serving().await
    }

    fn quorum(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Waits until a leader serves with a quorum, and returns its index.
    ///
    /// # Errors
    ///
    /// [`Error::NoQuorum`] after [`ServerOptions::start_timeout`].
    pub async fn leader(&self) -> Result<usize, Error> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let answers = self.ask_all().await;
            if let Some(leader) = self.acknowledged_leader(&answers) {
                let address = self.members[leader].connect_string();
                // A deposed leader says for a while that it leads, but it opens no session.
                if handshake::open_and_close(&address, ANSWER).await.is_ok() {
                    return Ok(leader);
                }
            }
            if Instant::now() >= deadline {
                let members: Vec<String> = answers
                    .iter()
                    .map(|answer| match answer {
                        Ok(status) => format!("{:?}", status.mode),
                        Err(error) => error.to_string(),
                    })
                    .collect();
                return Err(Error::NoQuorum {
                    connect_string: self.connect_string(),
                    after: self.timeout,
                    members: members.join("; "),
                });
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until a leader serves with a quorum.
    ///
    /// # Errors
    ///
    /// As [`leader`](Self::leader).
    pub async fn wait_until_serving(&self) -> Result<(), Error> {
        self.leader().await.map(drop)
    }

    /// Waits until every running member serves clients.
    ///
    /// A member that is stopped, killed or paused is not running. A member serves if it has joined
    /// the quorum and opens a session.
    ///
    /// # Errors
    ///
    /// [`Error::Exited`], [`Error::NotServingInTime`].
    pub async fn wait_until_all_serve(&mut self) -> Result<(), Error> {
        for member in self.members.iter_mut().filter(|member| member.is_running()) {
            member.wait_until_serving().await?;
        }
        Ok(())
    }

    /// The indexes of all members but the leader, once there is a leader that serves.
    ///
    /// # Errors
    ///
    /// As [`leader`](Self::leader).
    pub async fn followers(&self) -> Result<Vec<usize>, Error> {
        let leader = self.leader().await?;
        Ok((0..self.members.len())
            .filter(|member| *member != leader)
            .collect())
    }

    async fn ask_all(&self) -> Vec<Result<Status, Error>> {
        let mut questions = JoinSet::new();
        for (index, member) in self.members.iter().enumerate() {
            let address = member.connect_string();
            questions.spawn(async move {
                let answer = four_letter::ask_within(&address, FourLetterWord::Srvr, ANSWER).await;
                (index, answer.and_then(|answer| Status::parse(&answer)))
            });
        }
        let mut answers = questions.join_all().await;
        answers.sort_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// The member that says it leads, in the highest epoch, if a quorum serves.
    fn acknowledged_leader(&self, answers: &[Result<Status, Error>]) -> Option<usize> {
        if self.members.len() == 1 {
            return answers[0].is_ok().then_some(0);
        }
        if answers.iter().flatten().count() < self.quorum() {
            return None;
        }
        let leaders = answers
            .iter()
            .enumerate()
            .filter_map(|(index, answer)| match answer {
                Ok(status) if status.mode == Mode::Leader => Some((status.zxid, index)),
                _ => None,
            });
        leaders.max().map(|(_, index)| index)
    }
}
