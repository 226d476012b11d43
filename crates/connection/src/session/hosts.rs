//! The names of the servers, the addresses that they have, and the order of the tries.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use crate::error::DisconnectReason;
use crate::session::host::{Host, Obstacle};

/// An address of a host. Each address of each name is a place to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
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
    /// The places that the present round has not tried. The last one is the next.
    untried: Vec<Endpoint>,
    /// The place of the present connection, or of the present try.
    present: Option<Endpoint>,
    random: Rng,
}

#[derive(Debug)]
struct Name {
    host: Host,
    /// Each with the reason why the last try has opened no session there.
    addresses: Vec<(SocketAddr, Option<DisconnectReason>)>,
    /// Since when the name is being looked up.
    asked_at: Option<Duration>,
    /// Why the last look-up has found no address.
    problem: Option<DisconnectReason>,
}

impl Name {
    fn has(&self, address: SocketAddr) -> bool {
        self.addresses.iter().any(|(it, _)| *it == address)
    }
}

impl Hosts {
    /// The order of the tries is drawn from `seed`.
    pub(crate) fn new(hosts: &[Host], seed: u64) -> Hosts {
        let mut found = Hosts {
            names: Vec::new(),
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
                    self.names.push(Name {
                        host: host.clone(),
                        addresses: Vec::new(),
                        asked_at: None,
                        problem: None,
                    });
                    self.learn(host, host.address().as_slice());
                }
            }
        }
        self.forget_untried();
    }

    /// Forgets the places of the round that no name has any more.
    fn forget_untried(&mut self) {
        self.untried.retain(|place| has(&self.names, place));
    }

    fn name(&mut self, host: &Host) -> Option<&mut Name> {
        self.names.iter_mut().find(|name| name.host == *host)
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let addresses = self.names.iter().flat_map(|name| &name.addresses);
        addresses.map(|(address, _)| *address)
    }

    /// The number of addresses. A name without one counts as one.
    pub(crate) fn number(&self) -> usize {
        let numbers = self.names.iter().map(|name| name.addresses.len().max(1));
        numbers.sum()
    }

    /// Begins a round, and returns the names to look up.
    pub(crate) fn begin_round(&mut self, now: Duration) -> Vec<Host> {
        self.untried.clear();
        for Name {
            host, addresses, ..
        } in &self.names
        {
            let endpoint = |it: &(SocketAddr, _)| Endpoint {
                host: host.clone(),
                address: it.0,
            };
            self.untried.extend(addresses.iter().map(endpoint));
        }
        self.random.shuffle(&mut self.untried);
        // The session has just lost it, or has left it, so it is the last one to try.
        let present = self.present.as_ref().map(|it| it.address);
        self.untried.sort_by_key(|it| Some(it.address) != present);
        self.names_to_look_up(now)
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
        let Some(name) = self.name(host) else {
            return;
        };
        name.asked_at = None;
        match found {
            Ok(found) if found.is_empty() => {
                let none = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
                name.problem = Some(DisconnectReason::NoAddress(Arc::new(none)));
            }
            Ok(found) => {
                name.problem = None;
                name.addresses.retain(|(it, _)| found.contains(it));
                self.learn(host, &found);
                self.forget_untried();
            }
            Err(problem) => name.problem = Some(problem),
        }
    }

    /// Adds addresses of a name, and tries them in the present round.
    pub(crate) fn learn(&mut self, host: &Host, found: &[SocketAddr]) {
        for address in found.iter().copied() {
            let name = self.name(host).filter(|name| !name.has(address));
            let Some(name) = name else {
                continue;
            };
            name.addresses.push((address, None));
            let host = host.clone();
            let place = self.random.usize(0..=self.untried.len());
            self.untried.insert(place, Endpoint { host, address });
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
    pub(crate) fn next(&mut self) -> Option<Endpoint> {
        let next = self.untried.pop()?;
        self.present = Some(next.clone());
        Some(next)
    }

    /// The place of the last try, if its name still has the address.
    pub(crate) fn again(&self) -> Option<Endpoint> {
        let present = self.present.clone();
        present.filter(|place| has(&self.names, place))
    }

    /// True if an address is known.
    pub(crate) fn has_address(&self) -> bool {
        self.addresses().next().is_some()
    }

    /// True if another address than the present one is known.
    pub(crate) fn has_other(&self) -> bool {
        let present = self.present.as_ref().map(|it| it.address);
        self.addresses().any(|address| Some(address) != present)
    }

    /// True if the name of the present place is still one of the names, or its address is known.
    pub(crate) fn lists_present(&self) -> bool {
        let Some(Endpoint { host, address }) = &self.present else {
            return true;
        };
        let mut names = self.names.iter();
        names.any(|name| name.host == *host || name.has(*address))
    }

    /// Notes why there is no session at the present place. `None` if there is one.
    pub(crate) fn note(&mut self, obstacle: Option<DisconnectReason>) {
        let Some(Endpoint { host, address }) = self.present.clone() else {
            return;
        };
        let addresses = self.name(&host).map(|name| &mut name.addresses);
        for (_, cause) in addresses.into_iter().flatten().filter(|it| it.0 == address) {
            cause.clone_from(&obstacle);
        }
    }

    /// What stands in the way at each host. `present` stands in the way of the present try.
    pub(crate) fn obstacles(
        &self,
        now: Duration,
        present: Option<DisconnectReason>,
    ) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        for name in &self.names {
            let asked_at = name.asked_at.filter(|_| name.addresses.is_empty());
            let lasts = asked_at.map(|at| DisconnectReason::NotLookedUp(now.saturating_sub(at)));
            let mut causes = vec![(None, name.problem.clone().or(lasts))];
            for (address, obstacle) in &name.addresses {
                let mut tried = self.present.iter();
                let is_tried = tried.any(|it| it.host == name.host && it.address == *address);
                let present = present.clone().filter(|_| is_tried);
                causes.push((Some(*address), obstacle.clone().or(present)));
            }
            obstacles.extend(causes.into_iter().filter_map(|(address, cause)| {
                let (host, cause) = (name.host.clone(), cause?);
                Some(Obstacle {
                    host,
                    address,
                    cause,
                })
            }));
        }
        obstacles
    }
}

/// True if the name of this place has its address.
fn has(names: &[Name], place: &Endpoint) -> bool {
    let mut names = names.iter();
    names.any(|name| name.host == place.host && name.has(place.address))
}
