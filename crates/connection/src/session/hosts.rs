//! The names of the servers, the addresses that they have, and the order of the tries.

use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::error::DisconnectReason;
use crate::session::host::Host;
use crate::session::obstacle::Obstacle;

/// An address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) address: SocketAddr,
}

/// The names with their last known addresses, and the tries of the present round.
///
/// A round tries each address once, in an order that is drawn anew. The names are looked up beside
/// the tries. What a look-up finds counts in the same round.
#[derive(Debug)]
pub(crate) struct Hosts {
    names: Vec<Name>,
    /// All places of the names.
    places: Vec<Place>,
    /// Why the last try has opened no session at a place.
    obstacles: HashMap<Place, DisconnectReason>,
    /// The places that the present round has not tried. The last one is the next.
    untried: Vec<Place>,
    /// The place of the present connection, or of the present try.
    present: Option<Place>,
    /// The place that the session has left, until it has lost another one.
    left: Option<SocketAddr>,
    random: Rng,
}

#[derive(Debug)]
struct Name {
    host: Host,
    /// Since when the name is being looked up.
    asked_at: Option<Duration>,
    /// Why the last look-up has found no address.
    problem: Option<DisconnectReason>,
}

impl Hosts {
    /// The order of the tries is drawn from `seed`.
    pub(crate) fn new(hosts: &[Host], seed: u64) -> Hosts {
        let mut found = Hosts {
            names: Vec::new(),
            places: Vec::new(),
            obstacles: HashMap::new(),
            untried: Vec::new(),
            present: None,
            left: None,
            random: Rng::with_seed(seed),
        };
        found.set(hosts);
        // The first round has not begun.
        found.untried.clear();
        found
    }

    /// Replaces the names. A name that stays keeps its addresses. New addresses are tried in the
    /// present round.
    pub(crate) fn set(&mut self, hosts: &[Host]) {
        self.names.retain(|name| hosts.contains(&name.host));
        for host in hosts {
            if !self.lists(host) {
                self.names.push(Name {
                    host: host.clone(),
                    asked_at: None,
                    problem: None,
                });
                self.learn(host, host.address().as_slice());
            }
        }
        let names = &self.names;
        self.places
            .retain(|place| names.iter().any(|name| name.host == place.host));
        self.forget();
    }

    /// Forgets what is known of places that no name has any more.
    fn forget(&mut self) {
        let places = &self.places;
        self.untried.retain(|place| places.contains(place));
        self.obstacles.retain(|place, _| places.contains(place));
    }

    fn lists(&self, host: &Host) -> bool {
        self.names.iter().any(|name| name.host == *host)
    }

    fn places_of(&self, host: &Host) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |place| place.host == *host)
    }

    /// The number of addresses. A name without one counts as one.
    pub(crate) fn number(&self) -> usize {
        let names = self.names.iter();
        let numbers = names.map(|name| self.places_of(&name.host).count().max(1));
        numbers.sum()
    }

    /// Begins a round.
    pub(crate) fn begin_round(&mut self) {
        self.untried.clone_from(&self.places);
        self.random.shuffle(&mut self.untried);
        let present = self.present_address();
        // What was tried last is tried late, and the server that the session has left last of all.
        self.untried.sort_by_key(|it| {
            let address = Some(it.address);
            (address != self.left, address != present)
        });
    }

    /// The names that are neither addresses nor being looked up. They count as being looked up.
    pub(crate) fn names_to_look_up(&mut self, now: Duration) -> Vec<Host> {
        let mut asked = Vec::new();
        for name in &mut self.names {
            if name.asked_at.is_none() && name.host.address().is_none() {
                name.asked_at = Some(now);
                asked.push(name.host.clone());
            }
        }
        self.random.shuffle(&mut asked);
        asked
    }

    /// Takes the addresses that a name has now. The others leave.
    pub(crate) fn looked_up(
        &mut self,
        host: &Host,
        found: Result<Vec<SocketAddr>, DisconnectReason>,
    ) {
        let Some(name) = self.names.iter_mut().find(|name| name.host == *host) else {
            return;
        };
        name.asked_at = None;
        let found = match found {
            Ok(found) if found.is_empty() => {
                let none = Error::new(ErrorKind::NotFound, "the name has no address");
                Err(DisconnectReason::NoAddress(Arc::new(none)))
            }
            found => found,
        };
        name.problem = found.as_ref().err().cloned();
        if let Ok(found) = found {
            self.places
                .retain(|it| it.host != *host || found.contains(&it.address));
            self.learn(host, &found);
            self.forget();
        }
    }

    /// Adds addresses of a name, and tries them in the present round.
    pub(crate) fn learn(&mut self, host: &Host, found: &[SocketAddr]) {
        for address in found.iter().copied() {
            let host = host.clone();
            let place = Place { host, address };
            if self.lists(&place.host) && !self.places.contains(&place) {
                self.places.push(place.clone());
                let turn = self.random.usize(0..=self.untried.len());
                self.untried.insert(turn, place);
            }
        }
    }

    /// True if the present round has not tried each address that is known.
    pub(crate) fn has_untried(&self) -> bool {
        !self.untried.is_empty()
    }

    /// True if a name is being looked up.
    pub(crate) fn are_looked_up(&self) -> bool {
        self.names.iter().any(|name| name.asked_at.is_some())
    }

    /// The next place of the round.
    pub(crate) fn next(&mut self) -> Option<Place> {
        let next = self.untried.pop()?;
        self.present = Some(next.clone());
        Some(next)
    }

    /// The place of the last try, if its name still has the address.
    pub(crate) fn again(&self) -> Option<Place> {
        let present = self.present.clone();
        present.filter(|place| self.places.contains(place))
    }

    fn present_address(&self) -> Option<SocketAddr> {
        self.present.as_ref().map(|place| place.address)
    }

    /// True if an address is known.
    pub(crate) fn has_address(&self) -> bool {
        !self.places.is_empty()
    }

    /// True if another address than the present one is known.
    pub(crate) fn has_other(&self) -> bool {
        let present = self.present_address();
        self.places.iter().any(|it| Some(it.address) != present)
    }

    /// True if the name of the present place is still one of the names, or its address is known.
    pub(crate) fn lists_present(&self) -> bool {
        self.present.as_ref().is_none_or(|Place { host, address }| {
            self.lists(host) || self.places.iter().any(|it| it.address == *address)
        })
    }

    /// Notes that the connection to the present place has ended, because the session `has_left` it or
    /// for another reason.
    pub(crate) fn note_end(&mut self, has_left: bool) {
        self.left = self.present_address().filter(|_| has_left);
    }

    /// Notes why there is no session at the present place. `None` if there is one.
    pub(crate) fn note(&mut self, obstacle: Option<DisconnectReason>) {
        if let Some(place) = self.again() {
            match obstacle {
                Some(cause) => drop(self.obstacles.insert(place, cause)),
                None => drop(self.obstacles.remove(&place)),
            }
        }
    }

    /// What stands in the way at each host. `present` stands in the way of the present try.
    pub(crate) fn obstacles(
        &self,
        now: Duration,
        present: Option<DisconnectReason>,
    ) -> Vec<Obstacle> {
        let at_name = |name: &Name| {
            let has_none = self.places_of(&name.host).next().is_none();
            let asked_at = name.asked_at.filter(|_| has_none);
            let lasts = asked_at.map(|at| DisconnectReason::NotLookedUp(now.saturating_sub(at)));
            (name.host.clone(), None, name.problem.clone().or(lasts))
        };
        let at_place = |place: &Place| {
            let is_present = self.present.as_ref() == Some(place);
            let present = present.as_ref().filter(|_| is_present);
            let cause = self.obstacles.get(place).or(present).cloned();
            (place.host.clone(), Some(place.address), cause)
        };
        let names = self.names.iter().map(at_name);
        let all = names.chain(self.places.iter().map(at_place));
        let obstacles = all.filter_map(|(host, address, cause)| {
            cause.map(|cause| Obstacle {
                host,
                address,
                cause,
            })
        });
        obstacles.collect()
    }
}
