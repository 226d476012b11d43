//! The names of the servers, the addresses that they have, and the order of the tries.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::error::Break;
use crate::session::host::{Host, Obstacle};

/// An address of a host. Each address of each name is a place to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The names that are being looked up, and since when. Some may be listed no more.
    asked: Vec<(Host, Duration)>,
    /// The places that the present round has not tried. The last one is the next.
    untried: Vec<Place>,
    /// The place of the present connection, or of the present try.
    present: Option<Place>,
    random: Rng,
}

#[derive(Debug)]
struct Name {
    host: Host,
    addresses: Vec<Address>,
    /// Why the last look-up has found no address.
    problem: Option<Break>,
}

#[derive(Debug)]
struct Address {
    address: SocketAddr,
    /// Why the last try has opened no session.
    obstacle: Option<Break>,
}

impl Name {
    fn new(host: Host) -> Name {
        Name {
            host,
            addresses: Vec::new(),
            problem: None,
        }
    }
}

impl Address {
    fn new(address: SocketAddr) -> Address {
        let obstacle = None;
        Address { address, obstacle }
    }
}

impl Hosts {
    /// The order of the tries is drawn from `seed`.
    pub(crate) fn new(hosts: &[Host], seed: u64) -> Hosts {
        let mut found = Hosts {
            names: Vec::new(),
            asked: Vec::new(),
            untried: Vec::new(),
            present: None,
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
        let mut before = std::mem::take(&mut self.names);
        for host in hosts {
            if self.names.iter().any(|name| name.host == *host) {
                continue;
            }
            let place = before.iter().position(|name| name.host == *host);
            match place {
                Some(place) => self.names.push(before.swap_remove(place)),
                None => {
                    self.names.push(Name::new(host.clone()));
                    self.learn(host, host.address().as_slice());
                }
            }
        }
        let names = &self.names;
        self.untried.retain(|place| has(names, place));
    }

    /// The number of addresses. A name without one counts as one.
    pub(crate) fn number(&self) -> usize {
        let numbers = self.names.iter().map(|name| name.addresses.len().max(1));
        numbers.sum()
    }

    /// Begins a round, and returns the names to look up.
    pub(crate) fn begin_round(&mut self, now: Duration) -> Vec<Host> {
        let places = self.names.iter().flat_map(|name| {
            let host = &name.host;
            let addresses = name.addresses.iter().map(|it| it.address);
            addresses.map(|address| Place {
                host: host.clone(),
                address,
            })
        });
        self.untried = places.collect();
        self.random.shuffle(&mut self.untried);
        // The session has just lost it, or has left it, so it is the last one to try.
        let present = self.present.as_ref().map(|it| it.address);
        self.untried.sort_by_key(|it| Some(it.address) != present);
        self.names_to_look_up(now)
    }

    /// The names that are neither addresses nor being looked up. They count as being looked up.
    pub(crate) fn names_to_look_up(&mut self, now: Duration) -> Vec<Host> {
        let hosts = self.names.iter().map(|name| &name.host);
        let mut names: Vec<Host> = hosts
            .filter(|host| host.address().is_none() && self.asked_at(host).is_none())
            .cloned()
            .collect();
        self.random.shuffle(&mut names);
        let asked = names.iter().map(|name| (name.clone(), now));
        self.asked.extend(asked);
        names
    }

    /// Since when a name is being looked up.
    fn asked_at(&self, host: &Host) -> Option<Duration> {
        let asked = self.asked.iter().find(|(asked, _)| asked == host);
        asked.map(|(_, at)| *at)
    }

    /// Takes the addresses that a name has now. The others leave.
    pub(crate) fn looked_up(&mut self, host: &Host, found: Result<Vec<SocketAddr>, Break>) {
        self.asked.retain(|(asked, _)| asked != host);
        let Some(name) = self.names.iter_mut().find(|name| name.host == *host) else {
            return;
        };
        match found {
            Ok(found) if found.is_empty() => {
                let none = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
                name.problem = Some(Break::NoAddress(Arc::new(none)));
            }
            Ok(found) => {
                name.problem = None;
                name.addresses.retain(|it| found.contains(&it.address));
                self.learn(host, &found);
                let names = &self.names;
                self.untried.retain(|place| has(names, place));
            }
            Err(problem) => name.problem = Some(problem),
        }
    }

    /// Adds addresses of a name, and tries them in the present round.
    pub(crate) fn learn(&mut self, host: &Host, found: &[SocketAddr]) {
        let Some(name) = self.names.iter_mut().find(|name| name.host == *host) else {
            return;
        };
        for address in found.iter().copied() {
            if name.addresses.iter().any(|it| it.address == address) {
                continue;
            }
            name.addresses.push(Address::new(address));
            let host = host.clone();
            let place = self.random.usize(0..=self.untried.len());
            self.untried.insert(place, Place { host, address });
        }
    }

    /// True if the present round has not tried each address that is known.
    pub(crate) fn has_untried(&self) -> bool {
        !self.untried.is_empty()
    }

    /// True if a name is being looked up.
    pub(crate) fn are_looked_up(&self) -> bool {
        let mut names = self.names.iter();
        names.any(|name| self.asked_at(&name.host).is_some())
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
        present.filter(|place| has(&self.names, place))
    }

    /// True if an address is known.
    pub(crate) fn has_address(&self) -> bool {
        self.names.iter().any(|name| !name.addresses.is_empty())
    }

    /// True if another address than the present one is known.
    pub(crate) fn has_other(&self) -> bool {
        let present = self.present.as_ref().map(|it| it.address);
        let mut addresses = self.names.iter().flat_map(|name| &name.addresses);
        addresses.any(|it| Some(it.address) != present)
    }

    fn is_present(&self, host: &Host, address: SocketAddr) -> bool {
        let present = self.present.as_ref();
        present.is_some_and(|present| present.host == *host && present.address == address)
    }

    /// True if the name of the present place is still one of the names, or its address is known.
    pub(crate) fn lists_present(&self) -> bool {
        let Some(present) = &self.present else {
            return true;
        };
        self.names.iter().any(|name| {
            let mut addresses = name.addresses.iter();
            name.host == present.host || addresses.any(|it| it.address == present.address)
        })
    }

    /// True if the name of the present place still has its address.
    pub(crate) fn knows_present(&self) -> bool {
        let present = self.present.as_ref();
        present.is_none_or(|present| has(&self.names, present))
    }

    /// Notes why there is no session at the present place. `None` if there is one.
    pub(crate) fn note(&mut self, obstacle: Option<Break>) {
        let Some(present) = &self.present else {
            return;
        };
        let name = self.names.iter_mut().find(|name| name.host == present.host);
        let addresses = name.into_iter().flat_map(|name| &mut name.addresses);
        for it in addresses.filter(|it| it.address == present.address) {
            it.obstacle.clone_from(&obstacle);
        }
    }

    /// What stands in the way at each host. `present` stands in the way of the present try.
    pub(crate) fn obstacles(&self, now: Duration, present: Option<Break>) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        for name in &self.names {
            let host = &name.host;
            let mut add = |address, cause: Option<Break>| {
                let host = host.clone();
                obstacles.extend(cause.map(|cause| Obstacle {
                    host,
                    address,
                    cause,
                }));
            };
            let asked_at = self.asked_at(host).filter(|_| name.addresses.is_empty());
            let lasts = asked_at.map(|at| Break::NotLookedUp(now.saturating_sub(at)));
            add(None, name.problem.clone().or(lasts));
            for Address { address, obstacle } in &name.addresses {
                let is_present = self.is_present(host, *address);
                let present = present.clone().filter(|_| is_present);
                add(Some(*address), obstacle.clone().or(present));
            }
        }
        obstacles
    }
}

/// True if the name of this place has its address.
fn has(names: &[Name], place: &Place) -> bool {
    let name = names.iter().find(|name| name.host == place.host);
    name.is_some_and(|name| name.addresses.iter().any(|it| it.address == place.address))
}
