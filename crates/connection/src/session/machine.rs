//! The state machine of a session, and what callers ask of it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use zookeeper_recipes_protocol::{ConnectResponse, FrameDecoder, OpCode, Request, RequestBody};

use crate::error::{RequestError, SessionEnd};
use crate::session::digest_md5::DigestMd5;
use crate::session::host::Host;
use crate::session::hosts::Hosts;
use crate::session::output::{ConnectionState, Output};
use crate::session::pauses::Pauses;
use crate::session::requests::{Requests, take_first};
use crate::session::timing::{HandshakeLimit, Timing};
use crate::session::trees::Trees;
use crate::session::unsupported::UnsupportedRequests;
use crate::session::watches::{ReadWatch, Watches};

/// What a session is opened with.
#[derive(Clone)]
pub struct Config {
    /// The hosts to choose from. Each address of each of them is tried.
    pub hosts: Vec<Host>,
    /// The session timeout to ask for.
    pub session_timeout: Duration,
    /// The schemes and credentials to send over each connection, in this order.
    ///
    /// Those of the scheme `sasl` are a user and a password, with a colon between them. The session
    /// shows them by SASL's mechanism DIGEST-MD5, before all others.
    pub auth: Vec<(String, Vec<u8>)>,
    /// The longest reply to accept, in bytes.
    pub reply_limit: usize,
    /// Where the order of the hosts and the pauses are drawn from.
    pub seed: u64,
    /// What earlier sessions have learned of the servers.
    pub unsupported: UnsupportedRequests,
}

/// Leaves the credentials out.
impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("hosts", &self.hosts)
            .field("session_timeout", &self.session_timeout)
            .field("reply_limit", &self.reply_limit)
            .finish_non_exhaustive()
    }
}

/// Where the reply of a request goes.
pub(crate) enum Recipient<R> {
    /// To a caller, whose read may set this watch.
    Caller(R, Option<ReadWatch>),
    /// Nobody waits for the reply to the removal of a watch.
    Nobody,
    /// To the readers of the watch of this tree.
    Tree(Arc<str>),
    Closing,
}

/// The current connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// There is none. The next address is tried at `until`.
    ///
    /// `idle` is true if the round is over: a new address is tried before.
    Down { until: Duration, idle: bool },
    /// A connection is being opened, since `since`.
    Opening { since: Duration },
    /// The server was asked for the session.
    Greeting { since: Duration },
    /// The server has confirmed the session, and the exchange of SASL is not over.
    Authenticating { since: Duration },
    /// The server knows who asks. The replies to so many requests of both kinds are
    /// outstanding, and to a ping if no connection was up before.
    Restoring {
        since: Duration,
        credentials: usize,
        watches: usize,
    },
    /// The server takes requests.
    Up,
    /// The session is over.
    Ended(SessionEnd),
}

/// What is known of hosts that refuse the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Unknown,
    /// The present host has refused the session. It is asked for a new one next.
    Suspected,
    /// The present host has refused the session, and has then opened a new one. It is asked for the
    /// old one once more.
    Shown {
        /// How long the opening took, from the start of the connect.
        opened_in: Duration,
    },
}

/// A session without I/O: bytes and the time go in, bytes and [`Output`]s come out.
///
/// `R` is where the reply of a request goes, `W` where the event of a watch goes. The machine hands
/// both back and does nothing else with them. It reads no clock: each input carries the time since
/// some fixed moment.
///
/// After each input, take what [`transmit`](Self::transmit) and [`poll`](Self::poll) yield, then
/// wait for bytes, a request or the [`deadline`](Self::deadline).
pub struct Machine<R, W> {
    pub(crate) config: Config,
    /// The last answer with which a server has granted or confirmed the session.
    pub(crate) session: Option<ConnectResponse>,
    /// The shortest session timeout that a server has granted. Before the first grant, the one to
    /// ask for.
    pub(crate) shortest: Duration,
    /// The limits that follow from the session timeout that the last server has granted.
    pub(crate) timing: Timing,
    pub(crate) last_zxid: i64,
    /// True if an event has come since the last reply. An event does not say by which transaction it
    /// came, so the next server may not have it yet.
    pub(crate) has_seen_more: bool,
    pub(crate) hosts: Hosts,
    pub(crate) handshake_limit: HandshakeLimit,
    /// When a server that had confirmed the session was last heard. `None` if there was none yet.
    pub(crate) served_at: Option<Duration>,
    pub(crate) refusal: Refusal,
    /// When the present connection was restored.
    pub(crate) up_at: Duration,
    pub(crate) pauses: Pauses,
    /// When names are looked up again if no address is known, while the session is connected.
    pub(crate) look_up_at: Duration,
    pub(crate) phase: Phase,
    /// The number of the current or last connection.
    pub(crate) connection: u64,
    /// The number of the first connection over which a server has confirmed the session.
    pub(crate) opened_over: Option<u64>,
    /// The exchange of SASL, if there are credentials for it.
    pub(crate) sasl: Option<DigestMd5>,
    /// How often in a row the credentials were refused.
    pub(crate) refusals: usize,
    pub(crate) requests: Requests<Recipient<R>>,
    pub(crate) watches: Watches<W>,
    pub(crate) trees: Trees,
    pub(crate) decoder: FrameDecoder,
    /// Frames of the machine itself: the handshake, credentials, watches, pings.
    pub(crate) own_frames: Vec<u8>,
    pub(crate) heard_at: Duration,
    /// When the last reply to a request came.
    pub(crate) answered_at: Duration,
    pub(crate) said_at: Duration,
    pub(crate) pinged_at: Option<Duration>,
    /// How many connections in a row broke when watches were set again.
    pub(crate) broken_at_watches: u32,
    /// When to give up to close the session at the server.
    pub(crate) closing_until: Option<Duration>,
    pub(crate) outputs: VecDeque<Output<R, W>>,
}

/// Leaves all bytes out: they can have a password in them.
impl<R, W> fmt::Debug for Machine<R, W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Machine")
            .field("session", &self.session)
            .field("timing", &self.timing)
            .field("hosts", &self.hosts)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

/// The number of the machine's own requests that no other number is for. Requests begin with 1.
pub(crate) const OWN_XID: i32 = 0;

/// After this many connections in a row that the server closed when watches were set again, or when
/// it was asked for a tree, the next connection does without them.
pub(crate) const MAX_WATCH_BREAKS: u32 = 3;

impl<R, W> Machine<R, W> {
    /// A session that is not open yet. It yields the first [`Output::Connect`] or
    /// [`Output::LookUp`] at once.
    pub fn new(now: Duration, mut config: Config) -> Machine<R, W> {
        let mut schemes = config.auth.iter();
        let place = schemes.position(|(scheme, _)| scheme == DigestMd5::SCHEME);
        let seed = config.seed.wrapping_add(2);
        let sasl = place.map(|place| DigestMd5::new(&config.auth.remove(place).1, seed));
        let hosts = Hosts::new(&config.hosts, config.seed);
        let timing = Timing::of(config.session_timeout, hosts.number());
        let mut machine = Machine {
            session: None,
            shortest: config.session_timeout,
            handshake_limit: HandshakeLimit::default(),
            served_at: None,
            refusal: Refusal::Unknown,
            up_at: now,
            timing,
            last_zxid: 0,
            has_seen_more: false,
            hosts,
            pauses: Pauses::new(config.seed.wrapping_add(1)),
            look_up_at: now,
            phase: Phase::Down {
                until: now,
                idle: true,
            },
            connection: 0,
            opened_over: None,
            sasl,
            refusals: 0,
            requests: Requests::new(),
            watches: Watches::new(),
            trees: Trees::default(),
            decoder: FrameDecoder::new(config.reply_limit),
            own_frames: Vec::new(),
            heard_at: now,
            answered_at: now,
            said_at: now,
            pinged_at: None,
            broken_at_watches: 0,
            closing_until: None,
            outputs: VecDeque::new(),
            config,
        };
        machine.elapsed(now);
        machine
    }

    /// As [`Connection::limit_requests`](crate::Connection::limit_requests).
    pub fn limit_requests(&mut self, bytes: usize) {
        self.requests.limit = bytes;
    }

    /// Sends a request behind all earlier ones, once a server has confirmed the session.
    ///
    /// Pings, credentials, the setting and removal of watches and the end of the session are the
    /// machine's own: such a request is refused with [`RequestError::Reserved`].
    pub fn request(&mut self, now: Duration, body: RequestBody, caller: R) {
        let (opcode, to) = (body.opcode(), Recipient::Caller(caller, None));
        match is_reserved(opcode) {
            true => self.unanswered(to, RequestError::Reserved(opcode)),
            false => self.ask(now, body, to),
        }
    }

    /// Closes the session, as [`Connection::begin_close`](crate::Connection::begin_close).
    ///
    /// If the connection breaks before the answer, the close is sent again over the next one.
    pub fn close(&mut self, now: Duration) {
        if self.closing_until.is_some() || self.is_ended() {
            return;
        }
        if self.session.is_none() {
            // A handshake that goes out now would open a session that nobody closes.
            self.own_frames.clear();
            return self.end(SessionEnd::Closed);
        }
        self.ask_to_close();
        self.closing_until = Some(now + self.timing.session);
    }

    pub(crate) fn ask_to_close(&mut self) {
        // A request without a path is never too long.
        let (close, to) = (RequestBody::CloseSession, Recipient::Closing);
        let _ = self.requests.ask(close, to);
    }

    /// Appends the bytes to send over the current connection.
    pub fn transmit(&mut self, now: Duration, to: &mut Vec<u8>) {
        if !self.own_frames.is_empty() {
            to.append(&mut self.own_frames);
            self.said_at = now;
        }
        if self.sends_requests() {
            self.requests.send(now, to);
            self.said_at = now;
        }
    }

    /// Drops the reads that are not sent and whose callers have gone. Writes are kept.
    ///
    /// Call it before each [`transmit`](Self::transmit). It looks at the requests if they are sent
    /// next, or if their number has doubled since it last looked.
    pub fn drop_unwanted(&mut self, is_wanted: impl Fn(&R) -> bool) {
        if !self.sends_requests() && !self.requests.have_doubled() {
            return;
        }
        let unwanted = self.requests.take_unwanted(|asked| match &asked.to {
            // A read or a sync is worth nothing to anybody but its caller.
            Recipient::Caller(caller, _) => {
                let serves_others = !only_reads(asked.opcode) && asked.opcode != OpCode::Sync;
                serves_others || is_wanted(caller)
            }
            Recipient::Tree(path) => self.trees.paths.contains(path),
            Recipient::Nobody | Recipient::Closing => true,
        });
        for asked in unwanted {
            if let Recipient::Caller(_, Some(watch)) = asked.to {
                self.watches.remove(&watch.id);
            }
        }
    }

    fn sends_requests(&self) -> bool {
        matches!(self.phase, Phase::Up) && self.requests.has_unsent()
    }

    /// Ends the session on this side at once, and yields what its callers have to know.
    ///
    /// For a driver that stops. The session stays open at the server until its timeout.
    pub fn abandon(&mut self) {
        self.end(SessionEnd::Closed);
    }

    /// Takes the next output.
    pub fn poll(&mut self) -> Option<Output<R, W>> {
        take_first(&mut self.outputs)
    }

    /// The id of the session. `None` if no server has opened it yet.
    pub fn session_id(&self) -> Option<i64> {
        self.session.as_ref().map(|session| session.session_id)
    }

    /// The state while no server has confirmed the session.
    pub(crate) fn disconnected(&self) -> ConnectionState {
        let timeout = self.shortest;
        ConnectionState::Disconnected { timeout }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended(_))
    }

    pub(crate) fn yields(&mut self, output: Output<R, W>) {
        self.outputs.push_back(output);
    }

    pub(crate) fn ask(&mut self, now: Duration, body: RequestBody, to: Recipient<R>) {
        let opcode = body.opcode();
        let asked = match self.phase {
            Phase::Ended(end) => Err((to, RequestError::Ended(end))),
            _ if self.closing_until.is_some() => Err((to, RequestError::Ended(SessionEnd::Closed))),
            _ if self.config.unsupported.refuses(opcode, now) => {
                Err((to, RequestError::Unsupported(opcode)))
            }
            _ => self.requests.ask(body, to),
        };
        if let Err((to, error)) = asked {
            self.unanswered(to, error);
        }
    }

    /// Passes on that a request will have no reply.
    pub(crate) fn unanswered(&mut self, to: Recipient<R>, error: RequestError) {
        match (to, error) {
            (Recipient::Caller(caller, watch), error) => {
                if let Some(watch) = watch {
                    self.watches.remove(&watch.id);
                }
                self.yields(Output::Answered(caller, Err(error)));
            }
            // The next connection asks again.
            (Recipient::Tree(_), RequestError::Broken(_)) => {}
            (Recipient::Tree(path), error) => self.end_tree(&path, &error),
            (Recipient::Nobody | Recipient::Closing, _) => {}
        }
    }

    /// Sends a request of the machine itself.
    pub(crate) fn send_own(&mut self, body: RequestBody) {
        let xid = body.fixed_xid().unwrap_or(OWN_XID);
        Request { xid, body }.encode_frame(&mut self.own_frames);
    }
}

/// True if a caller must not send such a request.
///
/// A caller that removes a watch would silence others of the session that wait for it. A watch that
/// a caller adds by `addWatch` would have no receiver.
fn is_reserved(opcode: OpCode) -> bool {
    matches!(
        opcode,
        OpCode::Ping
            | OpCode::Auth
            | OpCode::Sasl
            | OpCode::SetWatches
            | OpCode::SetWatches2
            | OpCode::AddWatch
            | OpCode::RemoveWatches
            | OpCode::CloseSession
    )
}

/// True if a request of this kind changes nothing.
pub(crate) fn only_reads(opcode: OpCode) -> bool {
    matches!(
        opcode,
        OpCode::GetData
            | OpCode::Exists
            | OpCode::GetChildren
            | OpCode::GetChildren2
            | OpCode::GetAcl
            | OpCode::MultiRead
            | OpCode::GetEphemerals
    )
}
