//! Members and sessions, as the admin port shows them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use zookeeper_recipes_core::ensemble::SessionId;

use crate::embedded::member::Member;
use crate::embedded::words;
use crate::faults::Backup;
use crate::simulation::Simulation;

/// What the admin port changes and shows.
#[derive(Debug)]
pub(super) struct Administered {
    pub(super) simulation: Simulation,
    pub(super) members: Vec<Arc<Member>>,
    pub(super) backup: Mutex<Option<Backup>>,
}

/// A session id, as the four-letter words write it.
pub(super) fn session_id(session: SessionId) -> String {
    format!("{:#x}", session.0)
}

pub(super) fn member(member: &Member) -> Value {
    let (state, zxid, lag) = member.shared.with(|world| {
        let servers = &world.servers;
        let found = &servers.members[member.server];
        let state = match (found.stopped, servers.is_down(member.server)) {
            (true, _) => Some("stopped"),
            (false, true) if !servers.is_read_only(member.server) => Some("without a leader"),
            _ => None,
        };
        (state, found.tree.zxid, found.lag)
    });
    json!({
        "member": member.server,
        "address": member.address.to_string(),
        "state": state.unwrap_or_else(|| words::mode(member)),
        "connections": member.connections().len(),
        "zxid": format!("{zxid:#x}"),
        "lag_milliseconds": lag.as_millis() as u64,
    })
}

pub(super) fn sessions(administered: &Administered) -> Vec<Value> {
    let mut addresses = BTreeMap::new();
    for member in &administered.members {
        for outlet in member.connections().values() {
            let session = outlet.account().session;
            addresses.insert(session, (member.server, outlet.address.to_string()));
        }
    }
    let administrator = administered.simulation.administrator();
    let session = |session: SessionId| {
        let timeout = administrator.timeout_of(session).unwrap_or_default();
        let connected = addresses.get(&session.0);
        json!({
            "session": session_id(session),
            "timeout_milliseconds": timeout.as_millis() as u64,
            "member": connected.map(|(member, _)| member),
            "client": connected.map(|(_, address)| address),
        })
    };
    administrator.sessions().into_iter().map(session).collect()
}
