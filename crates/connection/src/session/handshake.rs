//! The handshake of each connection: the session, who asks for it, and its watches.
//!
//! If there are credentials for SASL, its exchange comes before anything else, because a server that
//! requires SASL refuses all other requests before it.

use std::time::Duration;

use zookeeper_recipes_protocol::{
    AuthRequest, ConnectRequest, ConnectResponse, ErrorCode, OpCode, PathRequest, Reply, ReplyBody,
    ReplyHeader, RequestBody, SaslRequest, xid,
};

use crate::error::{DisconnectReason, SessionEnd};
use crate::session::digest_md5::{DigestMd5, SaslStep};
use crate::session::machine::{MAX_WATCH_BREAKS, Machine, Phase, Recipient, Refusal};
use crate::session::output::{ConnectionState, Output};
use crate::session::timing::Timing;

/// A session ends once its credentials were refused this often in a row, and once by each host.
const MAX_REFUSALS: usize = 3;

impl<R, W> Machine<R, W> {
    /// The connection that [`Output::Connect`] asked for is open.
    pub fn connected(&mut self, now: Duration) {
        let Phase::Opening { since } = self.phase else {
            return;
        };
        self.phase = Phase::Greeting { since };
        self.connection += 1;
        self.heard_at = now;
        let mut request = ConnectRequest::new(self.config.session_timeout);
        if let Some(session) = self.asked_session() {
            request.session_id = session.session_id;
            request.password.clone_from(&session.password);
            request.last_zxid_seen = self.last_zxid;
        }
        // What an earlier connection did not take belongs to that one.
        self.own_frames.clear();
        request.encode_frame(&mut self.own_frames);
    }

    /// The answer to the request for the session.
    pub(crate) fn greeted(
        &mut self,
        now: Duration,
        response: ConnectResponse,
    ) -> Result<(), DisconnectReason> {
        // It has no quorum, so it neither grants a session nor knows that one has expired.
        if response.read_only == Some(true) {
            return Err(DisconnectReason::ReadOnly);
        }
        if self.session.is_some() && self.asked_session().is_none() {
            return self.tried(now, &response);
        }
        let is_granted = response.is_granted();
        match &self.session {
            None if !is_granted => return Err(DisconnectReason::NotGranted),
            Some(session) if !is_granted || session.session_id != response.session_id => {
                if is_granted {
                    // Nobody knows the new session, so it must not stay open at the server.
                    self.send_own(RequestBody::CloseSession);
                }
                self.end(SessionEnd::Expired);
                return Ok(());
            }
            _ => {}
        }
        let granted = Duration::from_millis(response.timeout.unsigned_abs().into());
        let is_first = self.session.is_none();
        self.session = Some(response);
        self.opened_over.get_or_insert(self.connection);
        if is_first || granted < self.shortest {
            self.shortest = granted;
            // Credentials and watches come first, and the session can expire meanwhile.
            if !is_first {
                self.yields(Output::State(self.disconnected()));
            }
        }
        self.timing = Timing::of(granted, self.hosts.number());
        self.authenticate(now);
        Ok(())
    }

    /// A server has confirmed the session: SASL comes first, if there are credentials for it.
    fn authenticate(&mut self, now: Duration) {
        let Some(sasl) = &mut self.sasl else {
            return self.restore(now);
        };
        let token = sasl.begin();
        self.phase = Phase::Authenticating { since: now };
        self.send_token(token);
    }

    fn send_token(&mut self, token: Vec<u8>) {
        let token = Some(token);
        self.send_own(RequestBody::Sasl(SaslRequest { token }));
    }

    /// The answer to a token of the exchange.
    ///
    /// The reply of a server that refuses the credentials, or has no SASL, has an error or no token.
    pub(crate) fn challenged(
        &mut self,
        now: Duration,
        frame: &[u8],
    ) -> Result<(), DisconnectReason> {
        let token = match Reply::decode(frame, OpCode::Sasl)?.body {
            ReplyBody::Sasl(response) => response.token,
            _ => None,
        };
        let sasl = self.sasl.as_mut().zip(token);
        match sasl.and_then(|(sasl, token)| sasl.next(&token)) {
            Some(SaslStep::Respond(token)) => self.send_token(token),
            Some(SaslStep::Done) => self.restore(now),
            None => return self.credentials_refused(DigestMd5::SCHEME.to_owned()),
        }
        Ok(())
    }

    /// The server knows the session: credentials and watches come before all requests.
    fn restore(&mut self, now: Duration) {
        for (scheme, credentials) in self.config.auth.clone() {
            let (kind, auth) = (0, Some(credentials));
            let request = AuthRequest { kind, scheme, auth };
            self.send_own(RequestBody::Auth(request));
        }
        if self.broken_at_watches >= MAX_WATCH_BREAKS {
            let unwatched = self.watches.take_all_set();
            self.unwatched(unwatched);
        }
        let requests = self.watches.set_again(self.last_zxid);
        let watches = requests.len();
        for request in requests {
            self.send_own(RequestBody::SetWatches(request));
        }
        // Servers that enforce a scheme refuse each request without it, and no handshake. The session
        // is up only once a request is served. The reply comes with those to the credentials.
        if self.served_at.is_none() {
            self.ping(now);
        }
        self.phase = Phase::Restoring {
            since: now,
            credentials: self.config.auth.len(),
            watches,
        };
        self.up_if_restored(now);
    }

    /// The answer to one of the credentials.
    pub(crate) fn authenticated(
        &mut self,
        now: Duration,
        error: ErrorCode,
    ) -> Result<(), DisconnectReason> {
        let credentials = match &mut self.phase {
            Phase::Restoring { credentials, .. } if *credentials > 0 => credentials,
            _ => return Err(DisconnectReason::NotAsked(xid::AUTH)),
        };
        let place = self.config.auth.len() - *credentials;
        *credentials -= 1;
        if error == ErrorCode::Ok {
            self.up_if_restored(now);
            return Ok(());
        }
        self.credentials_refused(self.config.auth[place].0.clone())
    }

    /// The server does not accept the credentials of this scheme.
    fn credentials_refused(&mut self, scheme: String) -> Result<(), DisconnectReason> {
        self.refusals += 1;
        // A session that had these credentials accepted before is worth other tries.
        if self.served_at.is_none() || self.refusals >= self.hosts.number().max(MAX_REFUSALS) {
            self.hosts
                .note(Some(DisconnectReason::AuthenticationFailed(scheme)));
            self.end(SessionEnd::AuthenticationFailed);
            return Ok(());
        }
        Err(DisconnectReason::AuthenticationFailed(scheme))
    }

    /// The answer to some of the watches that were set again.
    pub(crate) fn watches_set(
        &mut self,
        now: Duration,
        header: ReplyHeader,
    ) -> Result<(), DisconnectReason> {
        let watches = match &mut self.phase {
            Phase::Restoring { watches, .. } if *watches > 0 => watches,
            _ => return Err(DisconnectReason::NotAsked(header.xid)),
        };
        if header.error != ErrorCode::Ok {
            return Err(DisconnectReason::WatchesRefused(header.error));
        }
        *watches -= 1;
        self.up_if_restored(now);
        Ok(())
    }

    pub(crate) fn up_if_restored(&mut self, now: Duration) {
        let is_restored = matches!(
            self.phase,
            Phase::Restoring {
                credentials: 0,
                watches: 0,
                ..
            }
        );
        let is_restored = is_restored && self.pinged_at.is_none();
        let Some(session_id) = self.session_id().filter(|_| is_restored) else {
            return;
        };
        self.hosts.note(None);
        self.phase = Phase::Up;
        self.served_at = Some(now);
        self.up_at = now;
        self.refusal = Refusal::Unknown;
        self.refusals = 0;
        self.broken_at_watches = 0;
        self.said_at = now;
        self.catch_up();
        self.yields(Output::State(ConnectionState::Connected {
            session_id,
            timeout: self.shortest,
            connection: self.connection,
        }));
        self.add_watches(now);
    }

    /// Has a server that may lag behind the events of the one before catch up with its leader, before
    /// it answers the requests that wait.
    ///
    /// A caller that acts on an event must read nothing older than what has caused the event.
    fn catch_up(&mut self) {
        if self.has_seen_more {
            let sync = RequestBody::Sync(PathRequest::new("/"));
            // A request with such a path is never too long.
            let _ = self.requests.ask_first(sync, Recipient::Nobody);
        }
    }
}
