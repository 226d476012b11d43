//! The addresses of the clients, which the servers are asked for now and then.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use zookeeper_recipes_core::{Session, SessionId};

use crate::connecting::Connection;
use crate::failure::Failure;
use crate::four_letter::Servers;

/// The pause between two questions, if sessions without an address were found.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// The pause if there are none, or if the servers report no addresses.
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// The address of each session's client, as the servers have reported it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Addresses(Arc<HashMap<i64, String>>);

impl Addresses {
    /// Asks each server for its clients.
    pub(crate) async fn ask(
        session: &Session,
        connection: &Connection,
    ) -> Result<Addresses, Failure> {
        let servers = Servers::of(session, connection).await?;
        Ok(servers.addresses().await.into_iter().collect())
    }

    pub(crate) fn of(&self, session: SessionId) -> Option<String> {
        self.0.get(&session.0).cloned()
    }

    pub(crate) fn has(&self, session: i64) -> bool {
        self.0.contains_key(&session)
    }

    /// True if the servers report no addresses: they have that of each `zkr` that asks.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if both are of one question.
    pub(crate) fn is_same(&self, other: &Addresses) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl FromIterator<(i64, String)> for Addresses {
    fn from_iter<I: IntoIterator<Item = (i64, String)>>(addresses: I) -> Addresses {
        Addresses(Arc::new(addresses.into_iter().collect()))
    }
}

/// The last addresses, and whom to ask for new ones.
pub(crate) struct AddressBook<'s> {
    session: &'s Session,
    connection: &'s Connection,
    known: Addresses,
    checked_at: Option<Instant>,
    asked_at: Option<Instant>,
}

impl<'s> AddressBook<'s> {
    pub(crate) fn new(session: &'s Session, connection: &'s Connection) -> AddressBook<'s> {
        AddressBook {
            session,
            connection,
            known: Addresses::default(),
            checked_at: None,
            asked_at: None,
        }
    }

    /// The last addresses, or new ones if those are old, or are not complete for the caller.
    ///
    /// The caller may have to count the sessions of many queues, and is asked that seldom. Only the
    /// first question can fail: later ones leave the addresses as they are.
    pub(crate) async fn refreshed(
        &mut self,
        are_complete: impl FnOnce(&Addresses) -> bool,
    ) -> Result<Addresses, Failure> {
        let is_recent =
            |at: Option<Instant>, pause| at.is_some_and(|at: Instant| at.elapsed() < pause);
        if !is_recent(self.checked_at, PAUSE) {
            let is_enough = self.known.is_empty() || are_complete(&self.known);
            if !is_enough || !is_recent(self.asked_at, LONG_PAUSE) {
                match Addresses::ask(self.session, self.connection).await {
                    Ok(known) => self.known = known,
                    // The files of certificates may just be replaced.
                    Err(_) if self.asked_at.is_some() => {}
                    Err(failure) => return Err(failure),
                }
                self.asked_at = Some(Instant::now());
            }
            self.checked_at = Some(Instant::now());
        }
        Ok(self.known.clone())
    }
}

#[cfg(test)]
#[path = "../tests/unit/addresses.rs"]
mod tests;
