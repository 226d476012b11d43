//! The hosts of an ensemble, and the sessions that follow if the hosts are replaced.

use std::sync::{Arc, Weak};

use zookeeper_recipes_connection::{Connection, Host};

use crate::server::connect_string::ConnectString;
use crate::sync::{Mutex, lock};

/// The hosts of an ensemble. They may be replaced while sessions are connected to them.
pub(crate) struct ListedHosts(Mutex<Listed>);

struct Listed {
    connect_string: ConnectString,
    sessions: Vec<Weak<Connection>>,
}

impl ListedHosts {
    pub(crate) fn new(connect_string: ConnectString) -> ListedHosts {
        ListedHosts(Mutex::new(Listed {
            connect_string,
            sessions: Vec::new(),
        }))
    }

    pub(crate) fn connect_string(&self) -> ConnectString {
        lock(&self.0).connect_string.clone()
    }

    /// Opens a session at these hosts, which follows if they are replaced.
    pub(crate) fn open(&self, open: impl FnOnce(Vec<Host>) -> Connection) -> Arc<Connection> {
        let mut listed = lock(&self.0);
        let session = Arc::new(open(listed.connect_string.hosts.clone()));
        listed.sessions.retain(|session| session.strong_count() > 0);
        listed.sessions.push(Arc::downgrade(&session));
        session
    }

    /// Replaces the hosts. The sessions that are open follow.
    pub(crate) fn replace(&self, new: ConnectString) {
        let hosts = new.hosts.clone();
        let sessions = {
            let mut listed = lock(&self.0);
            listed.connect_string = new;
            listed.sessions.clone()
        };
        for session in sessions.iter().filter_map(Weak::upgrade) {
            session.set_hosts(&hosts);
        }
    }
}
