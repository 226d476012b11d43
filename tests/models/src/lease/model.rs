//! What may happen next.

use stateright::{Model, Property};

use super::{Age, Connection, Contact, LeaseModel, Proof, Proven, Request, State};

/// A step of the servers, of the client, of the network or of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A unit of time passes.
    Pass,
    Ping,
    /// The observer master pings the observer, and hears which sessions that has heard of.
    PingObserver,
    /// A ping arrives at the follower, which answers with the sessions it has heard of.
    Deliver,
    /// Something other than a contact comes from the client.
    Speak,
    /// The client sends the request of a contact.
    Begin,
    /// The client sends a request that is to confirm the contact.
    Send(usize),
    /// A request goes through the leader.
    Serve(usize),
    /// The client processes the answer to a request.
    Answer(usize),
    /// The client's follower is cut off from its leader.
    CutOff,
    /// The client loses its connection.
    Disconnect,
    /// The client connects to a server, which passes the session to its leader.
    Reconnect(Connection),
    /// The request that proves the reconnect goes through the leader.
    ServeProof,
    /// The client processes the answer to that request.
    AnswerProof,
    /// The leader is cut off from a quorum, together with the client's server or not.
    Isolate {
        /// Together with the client's server.
        with_client: bool,
    },
    /// The isolated leader steps down, or stops.
    StepDown,
    Elect,
}

impl LeaseModel {
    pub(super) fn may_expire(&self, state: &State) -> bool {
        state
            .touched
            .is_some_and(|touched| touched >= self.servers.timeout)
    }

    fn has_expired(&self, state: &State) -> bool {
        state
            .touched
            .is_some_and(|touched| touched >= self.servers.expired())
    }

    /// Whether the client's server passes requests through a leader.
    fn is_served(&self, state: &State) -> bool {
        match state.connection {
            Connection::None | Connection::Silent => false,
            Connection::Isolated => state
                .isolated
                .is_some_and(|since| since >= self.servers.stands_still),
            Connection::Leader | Connection::Follower { .. } | Connection::Observer { .. } => {
                !self.has_expired(state)
            }
        }
    }

    fn time_may_pass(&self, state: &State) -> bool {
        let ping_is_due = match state.connection {
            Connection::Follower { since_ping, .. } => since_ping >= self.servers.ping_gap(),
            Connection::Observer {
                since_ping,
                since_leader_ping,
                ..
            } => {
                since_ping >= self.servers.tick / 2 || since_leader_ping >= self.servers.ping_gap()
            }
            _ => false,
        };
        let must_step_down =
            matches!(state.isolated, Some(since) if since >= self.servers.isolated_limit());
        let must_elect = !self.servers.unreduced
            && state.touched.is_none()
            && matches!(state.isolated, Some(since) if since >= self.servers.election());
        let is_over =
            self.has_expired(state) && state.isolated.is_none() && state.contact == Contact::None;
        !ping_is_due && !must_step_down && !must_elect && !is_over
    }

    fn steps_of_the_client(&self, state: &State, actions: &mut Vec<Action>) {
        let contact = &state.contact;
        if self.is_served(state) {
            actions.push(Action::Speak);
            let proof_suffices =
                state.connection != Connection::Isolated || self.rule.proof == Proof::Sync;
            match state.proven {
                Proven::No if proof_suffices => actions.push(Action::ServeProof),
                Proven::Yes => {
                    actions.extend(contact.next_to_serve().map(Action::Serve));
                }
                _ => {}
            }
        }
        if state.connection == Connection::None {
            self.reconnects(state, actions);
            return;
        }
        actions.push(Action::Disconnect);
        if state.proven == Proven::Yes && state.connection != Connection::Silent {
            actions.extend(contact.begin(self).map(|_| Action::Begin));
            actions.extend(contact.next_request(self).map(Action::Send));
        }
        if state.proven == Proven::ProofServed {
            actions.push(Action::AnswerProof);
        }
        if let Some((index, behind)) = contact.next_to_answer() {
            if behind == 0 || !matches!(state.connection, Connection::Follower { .. }) {
                actions.push(Action::Answer(index));
            }
        }
    }

    fn reconnects(&self, state: &State, actions: &mut Vec<Action>) {
        if state.isolated.is_some() {
            actions.push(Action::Reconnect(Connection::Isolated));
        }
        if state.touched.is_some() && !self.has_expired(state) {
            actions.push(Action::Reconnect(Connection::Leader));
            actions.extend(self.learners().map(Action::Reconnect));
        }
    }

    /// Followers and observers, with their pings at any moment.
    fn learners(&self) -> impl Iterator<Item = Connection> {
        let gap = self.servers.ping_gap();
        let followers = (0..=gap).map(|since_ping| Connection::Follower {
            since_ping,
            pings: 0,
            heard: false,
        });
        let masters = if self.servers.observers {
            0..gap + 1
        } else {
            0..0
        };
        let observers = masters.flat_map(|since_leader_ping| {
            (0..=self.servers.tick / 2).map(move |since_ping| Connection::Observer {
                since_ping,
                heard: false,
                since_leader_ping,
                passed_on: false,
            })
        });
        followers.chain(observers)
    }

    fn steps_of_the_servers(&self, state: &State, actions: &mut Vec<Action>) {
        if let Connection::Follower {
            since_ping, pings, ..
        } = state.connection
        {
            let most = self.servers.pings_under_way;
            if since_ping >= self.servers.tick / 2 && (most == 0 || pings < most) {
                actions.push(Action::Ping);
            }
            if pings > 0 {
                actions.push(Action::Deliver);
            }
            actions.push(Action::CutOff);
        }
        if let Connection::Observer {
            since_ping,
            since_leader_ping,
            ..
        } = state.connection
        {
            if since_ping >= self.servers.tick / 2 {
                actions.push(Action::PingObserver);
            }
            if since_leader_ping >= self.servers.tick / 2 {
                actions.push(Action::Ping);
            }
            actions.push(Action::CutOff);
        }
        match (state.isolated, state.touched) {
            (Some(since), None) if since < self.servers.election() => {}
            (_, None) => actions.push(Action::Elect),
            (None, Some(_)) if !self.has_expired(state) => self.isolations(state, actions),
            _ => {}
        }
        if state.isolated.is_some() {
            actions.push(Action::StepDown);
        }
    }

    fn isolations(&self, state: &State, actions: &mut Vec<Action>) {
        let is_led = matches!(
            state.connection,
            Connection::Leader | Connection::Follower { .. } | Connection::Observer { .. }
        );
        if is_led {
            actions.push(Action::Isolate { with_client: true });
        }
        if state.connection != Connection::Leader {
            actions.push(Action::Isolate { with_client: false });
        }
    }

    fn pass(&self, state: &mut State) {
        let expired = self.servers.expired();
        state.touched = state.touched.map(|touched| (touched + 1).min(expired));
        state.isolated = state.isolated.map(|since| since + 1);
        match &mut state.connection {
            Connection::Follower { since_ping, .. } => *since_ping += 1,
            Connection::Observer {
                since_ping,
                since_leader_ping,
                ..
            } => {
                *since_ping += 1;
                *since_leader_ping += 1;
            }
            _ => {}
        }
        state.contact.age();
    }

    /// Something from the client reaches its server; gives how many pings are under way to that.
    fn reach(&self, state: &mut State) -> u8 {
        match &mut state.connection {
            Connection::Leader => {
                state.touched = Some(0);
                0
            }
            Connection::Follower { pings, heard, .. } => {
                *heard = true;
                *pings
            }
            Connection::Observer { heard, .. } => {
                *heard = true;
                0
            }
            _ => 0,
        }
    }

    fn serve(&self, state: &mut State, index: usize) {
        let silent_for = state.touched.unwrap_or(0);
        if let Contact::Pending { after_silence, .. } = &mut state.contact {
            *after_silence |= index == 0 && silent_for >= self.rule.lease;
        }
        let behind = self.reach(state);
        state.contact.set(index, Request::Served { behind });
    }

    fn ping_observer(state: &mut State) {
        if let Connection::Observer {
            since_ping,
            heard,
            passed_on,
            ..
        } = &mut state.connection
        {
            *since_ping = 0;
            *passed_on |= std::mem::take(heard);
        }
    }

    fn ping(&self, state: &mut State) {
        if let Connection::Observer {
            since_leader_ping,
            passed_on,
            ..
        } = &mut state.connection
        {
            *since_leader_ping = 0;
            if std::mem::take(passed_on) {
                state.touched = Some(0);
            }
            return;
        }
        if let Connection::Follower {
            since_ping, pings, ..
        } = &mut state.connection
        {
            *since_ping = 0;
            *pings += 1;
        }
        if self.servers.pings_under_way == 0 {
            self.deliver(state);
        }
    }

    fn deliver(&self, state: &mut State) {
        let Connection::Follower { pings, heard, .. } = &mut state.connection else {
            return;
        };
        *pings -= 1;
        if *heard {
            *heard = false;
            state.touched = Some(0);
        }
        if let Contact::Pending { requests, .. } = &mut state.contact {
            for request in requests {
                if let Request::Served { behind } = request {
                    *behind = behind.saturating_sub(1);
                }
            }
        }
    }

    fn reconnect(&self, state: &mut State, connection: Connection) {
        state.connection = connection;
        if connection != Connection::Isolated {
            state.touched = Some(0);
            // A reconnect to the isolated leader is not proved, with or without this one.
            state.isolated = None;
        }
    }

    fn isolate(&self, state: &mut State, with_client: bool) {
        state.touched = None;
        state.isolated = Some(0);
        match state.connection {
            Connection::None | Connection::Silent => {}
            _ if with_client => state.connection = Connection::Isolated,
            _ => state.connection = Connection::Silent,
        }
    }

    fn apply(&self, state: &mut State, action: Action) {
        match action {
            Action::Pass => self.pass(state),
            Action::Ping => self.ping(state),
            Action::PingObserver => LeaseModel::ping_observer(state),
            Action::Deliver => self.deliver(state),
            Action::Speak => {
                self.reach(state);
            }
            Action::Begin => state.contact = state.contact.begin(self).unwrap_or(state.contact),
            Action::Send(index) => state.contact.set(index, Request::Sent),
            Action::Serve(index) => self.serve(state, index),
            Action::Answer(index) => state.contact.answer(index, self),
            Action::CutOff => state.connection = Connection::Silent,
            Action::Disconnect => {
                state.connection = Connection::None;
                state.proven = Proven::No;
                state.contact.disconnect(self);
            }
            Action::Reconnect(connection) => self.reconnect(state, connection),
            Action::ServeProof => {
                self.reach(state);
                state.proven = Proven::ProofServed;
            }
            Action::AnswerProof => {
                state.proven = Proven::Yes;
                state.contact.reconnect();
            }
            Action::Isolate { with_client } => self.isolate(state, with_client),
            Action::StepDown => {
                state.isolated = None;
                if state.connection == Connection::Isolated {
                    state.connection = Connection::Silent;
                }
            }
            Action::Elect => state.touched = Some(0),
        }
        state.contact.forget(state.touched, self);
    }
}

impl Model for LeaseModel {
    type State = State;
    type Action = Action;

    /// A session that has just been created.
    fn init_states(&self) -> Vec<State> {
        let with = |connection| State {
            touched: Some(0),
            isolated: None,
            connection,
            proven: Proven::Yes,
            contact: Contact::Counted {
                sent: Some(0),
                by_reconnect: false,
                after_silence: false,
            },
        };
        self.learners()
            .chain([Connection::Leader])
            .map(with)
            .collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if self.time_may_pass(state) {
            actions.push(Action::Pass);
        }
        self.steps_of_the_client(state, actions);
        self.steps_of_the_servers(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        self.apply(&mut next, action);
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Self::SAFE, |model: &Self, state: &State| {
                !(model.may_expire(state) && state.contact.holds(model.rule.lease))
            }),
            Property::sometimes(Self::AFTER_SILENCE, |_, state: &State| {
                matches!(
                    state.contact,
                    Contact::Counted {
                        by_reconnect: false,
                        after_silence: true,
                        ..
                    }
                )
            }),
            Property::sometimes(Self::WHILE_CUT_OFF, |model: &Self, state: &State| {
                model.may_expire(state) && state.connection == Connection::Silent
            }),
            Property::sometimes(Self::ISOLATED, |_, state: &State| {
                state.connection == Connection::Isolated
                    && state.touched.is_some()
                    && state.contact.is_answered()
            }),
            Property::sometimes(Self::BY_RECONNECT, |_, state: &State| {
                matches!(
                    state.contact,
                    Contact::Counted {
                        by_reconnect: true,
                        after_silence: false,
                        ..
                    }
                )
            }),
        ]
    }
}

impl LeaseModel {
    /// The lease has run out before a leader expires the session.
    pub const SAFE: &str = "the lease has run out before a leader expires the session";
    /// What is seen if the rule is clean, lest the model leave it out.
    pub const SEEN: [&str; 4] = [
        Self::AFTER_SILENCE,
        Self::WHILE_CUT_OFF,
        Self::ISOLATED,
        Self::BY_RECONNECT,
    ];
    const AFTER_SILENCE: &str = "a lease is renewed after a silence as long as a lease";
    const WHILE_CUT_OFF: &str = "the session expires while its client is cut off";
    const ISOLATED: &str = "an isolated leader answers after the election of another";
    const BY_RECONNECT: &str = "a reconnect confirms a contact";

    /// An age in ticks.
    pub(super) fn ticks(&self, age: Age) -> f64 {
        f64::from(age) / f64::from(self.servers.tick)
    }
}
