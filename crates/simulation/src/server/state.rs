//! The state of all servers, with the network in front of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_protocol::AuthId;

use super::action::Action;
use super::member::{Isolated, Member, MemberState};
use super::proposal::Outstanding;
use super::session::{ServerEnd, SessionRecord};
use super::transaction::{Origin, Transaction};
use super::tree::Tree;
use super::watches::Watches;
use crate::engine::kernel::{Agenda, Kernel};
use crate::options::{ServerSettings, SimulationOptions};
use crate::record::fault_met::FaultObserver;
use crate::record::history::Committed;
use crate::record::trace::TraceKind;
use crate::wire::message::Downward;
use crate::wire::names::Names;
use crate::wire::network::{ConnectionId, HostId, Network};

/// The wall clock's time at which every simulation begins, in milliseconds since 1970.
const EPOCH: i64 = 1_700_000_000_000;

/// The observer of each commit.
pub(crate) type CommitObserver = Arc<dyn Fn(&Committed) + Send + Sync>;

/// The servers of a simulation, and what they share: all that has been proposed and committed.
pub(crate) struct Servers {
    pub(crate) kernel: Kernel,
    pub(crate) network: Network,
    pub(crate) options: SimulationOptions,
    pub(crate) agenda: Agenda<Action>,

    /// The hosts to which the way is long: how much longer each message takes, each way, and until when.
    pub(crate) paths: BTreeMap<HostId, (Duration, Duration)>,
    pub(crate) members: Vec<Member>,
    /// The servers' ends of the connections.
    pub(crate) ends: BTreeMap<ConnectionId, ServerEnd>,
    pub(crate) leader: usize,
    /// A leader that is cut off from all the others.
    pub(crate) isolated: Option<Isolated>,
    /// The settings of a restart, which apply as soon as a member leads.
    pub(crate) restart: Option<ServerSettings>,
    /// True if an election is under way: its winner and its end are set.
    pub(crate) electing: bool,
    /// Grows with each election. Messages of an earlier term are void.
    pub(crate) term: u64,
    pub(crate) epoch: i64,
    pub(crate) proposals: i64,
    /// The tree with all that has been proposed.
    pub(crate) tree: Tree,
    pub(crate) outstanding: Outstanding,
    /// The transactions that some server has still to apply; `log_start` is the first one's index.
    pub(crate) log: VecDeque<Arc<Transaction>>,
    pub(crate) log_start: u64,
    pub(crate) committed: u64,
    pub(crate) last_commit: Duration,
    /// Commits that wait for a quorum, or for the end of a stall.
    pub(crate) commits_held: bool,
    /// The end of a stall: nothing is committed before.
    pub(crate) stalled_until: Duration,
    /// The number of paused servers.
    pub(crate) paused: usize,
    pub(crate) sessions: BTreeMap<i64, SessionRecord>,
    pub(crate) next_session: i64,
    /// The identities of the sessions.
    pub(crate) identities: BTreeMap<i64, Vec<AuthId>>,
    /// The sessions whose next reconnect is answered with another session.
    pub(crate) forgotten: BTreeSet<i64>,
    /// The syncs that wait for a commit: its index, the server and the request.
    pub(crate) syncs: Vec<(u64, usize, Origin)>,
    pub(crate) timers_armed: bool,

    /// The start of the simulation in milliseconds since 1970, for the times of znodes.
    pub(crate) began_at: i64,
    /// True if no server knows any scheme.
    pub(crate) refuses_credentials: bool,
    pub(crate) history: Vec<Committed>,
    pub(crate) keeps_history: bool,
    pub(crate) commit_observer: Option<CommitObserver>,
    pub(crate) fault_observer: Option<FaultObserver>,
}

impl Servers {
    pub(crate) fn new(options: SimulationOptions) -> Servers {
        let count = options.servers.max(1);
        let watches = Watches::with_modes_apart(options.keeps_watch_modes_apart());
        let member = |_| Member {
            linked: true,
            watches: watches.clone(),
            ..Member::default()
        };
        Servers {
            kernel: Kernel::new(options.seed, options.limits.clone(), options.trace_limit),
            network: Network::new(options.network_delay.clone(), Names::new(&options)),
            options,
            agenda: Agenda::new(),
            paths: BTreeMap::new(),
            members: (0..count).map(member).collect(),
            ends: BTreeMap::new(),
            leader: 0,
            isolated: None,
            restart: None,
            electing: false,
            term: 1,
            epoch: 1,
            proposals: 0,
            tree: Tree::default(),
            outstanding: Outstanding::new(),
            log: VecDeque::new(),
            log_start: 0,
            committed: 0,
            last_commit: Duration::ZERO,
            commits_held: false,
            stalled_until: Duration::ZERO,
            paused: 0,
            sessions: BTreeMap::new(),
            next_session: 1,
            identities: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            syncs: Vec::new(),
            timers_armed: false,
            began_at: EPOCH,
            refuses_credentials: false,
            history: Vec::new(),
            keeps_history: true,
            commit_observer: None,
            fault_observer: None,
        }
    }

    /// True if a server has no leader, and refuses connections.
    pub(crate) fn is_down(&self, server: usize) -> bool {
        self.members[server].state == MemberState::Down
    }

    /// True if a server has no leader, and serves clients that only read.
    pub(crate) fn is_read_only(&self, server: usize) -> bool {
        self.options.read_only_mode && self.is_down(server) && !self.members[server].stopped
    }

    /// The session that is served on a connection; 0 for none.
    pub(crate) fn session_on(&self, connection: ConnectionId) -> i64 {
        let end = self.ends.get(&connection);
        end.and_then(|end| end.session).unwrap_or(0)
    }

    pub(crate) fn log_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    pub(crate) fn schedule(&mut self, at: Duration, action: Action) {
        self.agenda.schedule(&mut self.kernel, at, action);
    }

    pub(crate) fn after(&mut self, delay: Duration, action: Action) {
        self.schedule(self.kernel.now + delay, action);
    }

    /// Writes a line about a fault of the servers into the trace.
    pub(super) fn trace_fault(&mut self, text: impl FnOnce() -> String) {
        self.kernel.trace(TraceKind::Fault, None, 0, text);
    }

    pub(crate) fn send_down(&mut self, id: ConnectionId, message: Downward, extra: Duration) {
        let extra = extra + self.path_delay(id);
        self.network.send_down(&mut self.kernel, id, message, extra);
    }

    /// How much longer each message takes on this connection, because its host is far away.
    pub(crate) fn path_delay(&self, id: ConnectionId) -> Duration {
        let connection = self.network.connections.get(&id);
        connection.map_or(Duration::ZERO, |it| self.path_delay_of(it.host))
    }

    /// How much longer each message of a host takes, each way.
    pub(crate) fn path_delay_of(&self, host: HostId) -> Duration {
        match self.paths.get(&host) {
            Some((by, until)) if self.kernel.now < *until => *by,
            _ => Duration::ZERO,
        }
    }

    /// Closes the server's end of a connection, and if `notify` reports it to the client.
    pub(crate) fn close_at_server(&mut self, id: ConnectionId, notify: bool) {
        let Some(connection) = self.network.connections.get_mut(&id) else {
            return;
        };
        if !connection.server_open {
            return;
        }
        connection.server_open = false;
        let server = connection.server;
        if let Some(end) = self.ends.remove(&id) {
            if let Some(session) = end.session.filter(|_| end.reads_only) {
                self.identities.remove(&session);
            }
        }
        self.members[server].watches.remove_connection(id);
        if notify {
            self.send_down(id, Downward::Close, Duration::ZERO);
        }
        self.network.forget_closed(id);
    }

    /// The members that follow, and that the leader can reach.
    #[cfg(feature = "embedded")]
    pub(crate) fn followers(&self) -> impl Iterator<Item = &Member> {
        let members = self.members.iter().enumerate();
        let others = members.filter(|(at, _)| *at != self.leader);
        others
            .map(|(_, member)| member)
            .filter(|member| member.state == MemberState::Serving)
    }

    /// True if a member leads, and serves.
    #[cfg(feature = "embedded")]
    pub(crate) fn leads(&self, server: usize) -> bool {
        self.leader == server && self.members[server].state != MemberState::Down
    }
}
