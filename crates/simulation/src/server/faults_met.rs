//! Reports of the faults that meet clients.

use zookeeper_recipes_core::ensemble::SessionId;

use super::state::Servers;
use crate::chance::fault::FaultKind;
use crate::record::fault_met::FaultMet;
use crate::record::request_kind::RequestKind;
use crate::wire::network::{Connection, ConnectionId};

impl Servers {
    /// Reports a fault of all these connections.
    pub(crate) fn meets(
        &self,
        fault: &'static str,
        is_hit: impl Fn(ConnectionId, &Connection) -> bool,
    ) {
        let Some(observer) = &self.fault_observer else {
            return;
        };
        for (id, connection) in &self.network.connections {
            if connection.client_open && is_hit(*id, connection) {
                let session = SessionId(self.session_on(*id));
                observer(&FaultMet {
                    fault,
                    session: connection.granted.then_some(session),
                    asked: connection.asked.iter().copied().collect(),
                });
            }
        }
    }

    /// Reports a slow handshake on a connection, of this session or of a new one.
    pub(super) fn handshake_meets(&self, id: ConnectionId, session: i64) {
        let Some(observer) = &self.fault_observer else {
            return;
        };
        if self
            .network
            .connections
            .get(&id)
            .is_some_and(|it| it.client_open)
        {
            observer(&FaultMet {
                fault: "handshake slow",
                session: (session != 0).then_some(SessionId(session)),
                asked: Vec::new(),
            });
        }
    }

    /// Reports a fault of this request.
    pub(crate) fn request_meets(&self, id: ConnectionId, kind: RequestKind, fault: FaultKind) {
        let Some(observer) = &self.fault_observer else {
            return;
        };
        observer(&FaultMet {
            fault: fault.name(),
            session: Some(SessionId(self.session_on(id))),
            asked: vec![kind],
        });
    }
}
